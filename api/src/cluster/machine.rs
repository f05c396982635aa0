//! The Machine.

use serde::{Deserialize, Serialize};

use super::reference::{ContractReference, DeprecatedStatus};
use crate::kind::kind;
use crate::meta::Condition;

kind! {
    /// A machine of a cluster.
    pub struct Machine in "cluster.x-k8s.io" / "v1beta2" as "machines" {
        spec: MachineSpec,
        status: MachineStatus,
    }
}

/// What the machine is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Name of the Cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// Where the bootstrap data comes from.
    #[serde(default)]
    pub bootstrap: Bootstrap,
    /// The infrastructure object of the machine.
    #[serde(default)]
    pub infrastructure_ref: ContractReference,
    /// Version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Identity by which the Node is found.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "providerID")]
    pub provider_id: Option<String>,
    /// Failure domain to be placed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
}

/// Where the bootstrap data comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// The object that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<ContractReference>,
    /// The Secret that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_secret_name: Option<String>,
}

/// Observed state of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// The Node, once it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeName>,
    /// Steps that are done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<MachineInitialization>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Status in the form of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<DeprecatedStatus>,
}

/// A Node of the workload cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeName {
    /// Name of the Node.
    #[serde(default)]
    pub name: String,
}

/// Steps that are done once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineInitialization {
    /// The infrastructure is provisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// The bootstrap data exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_data_secret_created: Option<bool>,
}
