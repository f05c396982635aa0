//! The infrastructure of a cluster: its endpoint and its failure domains. Also its template, for clusters made
//! from a ClusterClass.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::NewerStatus;
use crate::kind::kind;
use crate::meta::{LegacyCondition, Time};

kind! {
    /// The bare-metal infrastructure of one cluster.
    pub struct Metal3Cluster in "infrastructure.cluster.x-k8s.io" / "v1beta1" as "metal3clusters" {
        spec: Metal3ClusterSpec,
        status: Metal3ClusterStatus,
    }
}

/// Desired state of the cluster's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3ClusterSpec {
    /// Where the API server of the cluster is reached. Cluster API copies it into the Cluster, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ControlPlaneEndpoint>,
    /// The opposite of `cloudProviderEnabled`, which replaces it and wins over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_cloud_provider: Option<bool>,
    /// True when a cloud provider in the workload cluster sets the provider IDs of Nodes. False: this provider does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_provider_enabled: Option<bool>,
    /// Failure domains that machines can be placed in, by name. Copied into the status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomain>,
}

/// Host and port of an API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlPlaneEndpoint {
    /// Address or name.
    pub host: String,
    /// Port.
    pub port: i64,
}

/// A part of the infrastructure that fails as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Whether control plane machines may be placed in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Free-form attributes. Carried, not used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// Observed state of the cluster's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3ClusterStatus {
    /// When the status was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// One word: what made progress impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// A sentence: what made progress impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// True when the infrastructure is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Failure domains that machines can be placed in, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomain>,
    /// `Ready` and the conditions it summarizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LegacyCondition>,
    /// What readers of newer versions expect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<NewerStatus>,
}

kind! {
    /// A template from which Metal3Cluster objects are made.
    pub struct Metal3ClusterTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta1" as "metal3clustertemplates" {
        spec: Metal3ClusterTemplateSpec,
    }
}

/// Holds the template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metal3ClusterTemplateSpec {
    /// Metadata and spec of each Metal3Cluster.
    pub template: ClusterTemplateResource,
}

/// Spec of the objects to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterTemplateResource {
    /// Spec of each Metal3Cluster.
    pub spec: Metal3ClusterSpec,
}
