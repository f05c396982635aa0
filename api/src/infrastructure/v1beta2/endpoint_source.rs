//! Where the control plane endpoint of a cluster comes from when the user does not set it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::TypedReference;
use crate::meta::IntOrString;

/// Where the endpoint comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointSource {
    /// The source to use. `Auto` tries, in this order: this object, the Cluster, the Cluster's infrastructure, its
    /// control plane.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<EndpointSourceType>,
    /// The object to read, for `InfraCluster` and `ControlPlane`, when it is not the one the Cluster refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<TypedReference>,
    /// The Service whose load balancer is the endpoint, for `Service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<EndpointService>,
    /// The pool that supplies the address, for `IPPool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_pool: Option<EndpointPool>,
    /// Writes a Secret from a template once the endpoint is known, for a load balancer that runs on the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render: Option<EndpointRender>,
}

/// The source of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EndpointSourceType {
    /// The first that has one: this object, the Cluster, its infrastructure, its control plane.
    #[default]
    Auto,
    /// This object.
    Spec,
    /// The Cluster.
    Cluster,
    /// The Cluster's infrastructure object.
    InfraCluster,
    /// The Cluster's control plane object.
    ControlPlane,
    /// A Service with a load balancer.
    Service,
    /// An address claimed from a pool.
    IPPool,
}

/// The source that supplied an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EndpointOrigin {
    /// This object.
    #[default]
    Spec,
    /// The Cluster.
    Cluster,
    /// The Cluster's infrastructure object.
    InfraCluster,
    /// The Cluster's control plane object.
    ControlPlane,
    /// A Service with a load balancer.
    Service,
    /// An address claimed from a pool.
    IPPool,
}

/// A Service of type LoadBalancer in this namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointService {
    /// Name of the Service.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Number or name of the port. Absent: the port of the endpoint written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<IntOrString>,
}

/// A pool of addresses in this namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointPool {
    /// API group of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), extend("default" = "ipam.metal3.io"))]
    pub api_group: Option<String>,
    /// Kind of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), extend("default" = "IPPool"))]
    pub kind: Option<String>,
    /// Name of the pool.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Port of the endpoint. Absent: 6443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The requested address. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub address: Option<String>,
}

/// A template that is rendered with the endpoint into a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointRender {
    /// ConfigMap in this namespace with the template. `HOST` and `PORT`, written as variables in braces, are replaced.
    #[schemars(length(min = 1, max = 253))]
    pub config_map_name: String,
    /// Key of the template in the ConfigMap, and of the result in the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// Secret in this namespace to write.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
}
