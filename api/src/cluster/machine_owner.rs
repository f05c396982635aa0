//! MachineSet and MachineDeployment, the owners of worker machines.

use serde::{Deserialize, Serialize};

use super::machine::MachineSpec;
use crate::kind::kind;
use crate::meta::{IntOrString, Time};

kind! {
    /// A set of equal machines.
    pub struct MachineSet in "cluster.x-k8s.io" / "v1beta2" as "machinesets" {
        spec: MachineSetSpec,
        status: MachineSetStatus,
    }
}

kind! {
    /// A set of equal machines that is rolled over when its template changes.
    pub struct MachineDeployment in "cluster.x-k8s.io" / "v1beta2" as "machinedeployments" {
        spec: MachineDeploymentSpec,
        status: MachineDeploymentStatus,
    }
}

/// Desired state of the set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetSpec {
    /// Name of the Cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// Desired number of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Template of each machine.
    #[serde(default)]
    pub template: MachineTemplate,
}

/// How many machines the set has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSetStatus {
    /// Actual number of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// Desired state of the deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentSpec {
    /// Name of the Cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// Desired number of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Template of each machine.
    #[serde(default)]
    pub template: MachineTemplate,
    /// How machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
}

/// How many machines the deployment has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineDeploymentStatus {
    /// Actual number of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// Template of each machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTemplate {
    /// Spec of each machine. Its infrastructure reference names a template.
    #[serde(default)]
    pub spec: MachineSpec,
}

/// How machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// When all machines are to be replaced although the template did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Time>,
    /// In which order machines are made and deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RolloutStrategy>,
}

/// In which order machines are made and deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// A few at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
}

/// How many at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// How many more machines there may be than asked for. With 0, a released host can be used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
}
