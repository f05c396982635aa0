//! The infrastructure of a cluster: its endpoint, its failure domains, and where its hosts are. Also its template,
//! for clusters made from a ClusterClass.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint_source::{EndpointOrigin, EndpointSource};
use super::host_selector::HostSelector;
use super::reference::{IdentityReference, Metal3ObjectRef};
use super::status::{DeprecatedStatus, Initialization};
use crate::kind::kind;
use crate::meta::{Condition, TemplateMetadata, Time};

kind! {
    /// The bare-metal infrastructure of one cluster.
    pub struct Metal3Cluster in "infrastructure.cluster.x-k8s.io" / "v1beta2" as "metal3clusters" {
        spec: Metal3ClusterSpec,
        status: Metal3ClusterStatus,
    }
}

/// Desired state of the cluster's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3ClusterSpec {
    /// Where the API server of the cluster is reached. Cluster API copies it into the Cluster, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ControlPlaneEndpoint>,
    /// True when a cloud provider in the workload cluster sets the provider IDs of Nodes. False: this provider does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_provider_enabled: Option<bool>,
    /// Failure domains that machines can be placed in. Copied into the status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub failure_domains: Vec<FailureDomain>,
    /// Name of a Cluster in this namespace that this object joins although that Cluster's infrastructure is another
    /// object. It cannot be changed once set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: Option<String>,
    /// Where the endpoint is taken from when it is not written here. Absent: an endpoint must be written here, unless
    /// this object joins a Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint_source: Option<EndpointSource>,
    /// Whether a machine may leave its failure domain when no host is free in it. Absent means `Preferred`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain_policy: Option<FailureDomainPolicy>,
    /// For each failure domain, which hosts it has and how they are reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub deployment_zones: Vec<DeploymentZone>,
    /// Credentials of another cluster that has the hosts. Absent: the hosts are in this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<IdentityReference>,
    /// The kind for selecting hosts. Absent: the default set by the manager's flag.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "hostAPI")]
    pub host_api: Option<HostApi>,
}

/// Host and port of an API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneEndpoint {
    /// Address or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub host: Option<String>,
    /// Port. Absent: 6443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

impl Metal3ClusterSpec {
    /// Whether a failure domain is among its zones or those that it reports.
    #[must_use]
    pub fn has_domain(&self, domain: &str) -> bool {
        let is_zone = self.deployment_zones.iter().any(|zone| zone.name == domain);
        is_zone || self.failure_domains.iter().any(|one| one.name == domain)
    }
}

/// A part of the infrastructure that fails as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Name, which machines and the label of hosts refer to.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Whether control plane machines may be placed in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Free-form attributes. Carried, not used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// How strictly a machine keeps to its failure domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum FailureDomainPolicy {
    /// Hosts of the domain are preferred; when none is free, any host is used.
    #[default]
    Preferred,
    /// Only hosts of the domain are used.
    Required,
}

/// The hosts of one failure domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentZone {
    /// Name of the failure domain.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Credentials of the cluster that has the hosts of this zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<IdentityReference>,
    /// Namespace of the hosts in that cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub host_namespace: Option<String>,
    /// Which hosts belong to the zone; each machine's own selector applies as well. Absent: the hosts whose label names
    /// the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// Data template for machines that name none and have a host of this zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_template: Option<Metal3ObjectRef>,
}

/// The kind for selecting hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum HostApi {
    /// BareMetalHost objects are used directly.
    #[default]
    BareMetalHost,
    /// HostClaim objects are created, and the owner of the hosts binds them.
    HostClaim,
}

/// Observed state of the cluster's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3ClusterStatus {
    /// `Ready` and the conditions it summarizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// When the status was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// Initialization state for Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// Failure domains that machines can be placed in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub failure_domains: Vec<FailureDomain>,
    /// Status in the form of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<DeprecatedStatus>,
    /// The endpoint in use, and where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ResolvedEndpoint>,
    /// Role of this object for its Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<ClusterRole>,
}

/// An endpoint and where it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedEndpoint {
    /// Address or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub host: Option<String>,
    /// Port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Which of the possible sources supplied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<EndpointOrigin>,
    /// The object that supplied it, as kind and name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Role of this object for its Cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClusterRole {
    /// The Cluster names it as its infrastructure.
    Primary,
    /// It joined a Cluster whose infrastructure is another object.
    Secondary,
    /// It belongs to no Cluster yet.
    #[default]
    Unattached,
}

kind! {
    /// A template from which Metal3Cluster objects are made.
    pub struct Metal3ClusterTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta2" as "metal3clustertemplates" {
        spec: Metal3ClusterTemplateSpec,
    }
}

/// Holds the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metal3ClusterTemplateSpec {
    /// Metadata and spec of each Metal3Cluster.
    pub template: ClusterTemplateResource,
}

/// Metadata and spec of the objects to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterTemplateResource {
    /// Labels and annotations of each Metal3Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Spec of each Metal3Cluster.
    pub spec: Metal3ClusterSpec,
}
