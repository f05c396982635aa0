//! The health check that requests remediations.

use serde::{Deserialize, Serialize};

use crate::kind::kind;

kind! {
    /// A health check over machines.
    pub struct MachineHealthCheck in "cluster.x-k8s.io" / "v1beta2" as "machinehealthchecks" {
        spec: MachineHealthCheckSpec,
        status: MachineHealthCheckStatus,
    }
}

/// Which machines are checked and what happens to the unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckSpec {
    /// Name of the Cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// What happens to unhealthy machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<Remediation>,
}

/// What happens to unhealthy machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remediation {
    /// Template of the remediation to create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<RemediationTemplateReference>,
}

/// A template, version included: the one reference of Cluster API that still names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemediationTemplateReference {
    /// Group and version of the template.
    pub api_version: String,
    /// Kind of the template.
    pub kind: String,
    /// Name of the template.
    pub name: String,
}

/// What the check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckStatus {
    /// Healthy machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_healthy: Option<i32>,
    /// Machines checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_machines: Option<i32>,
}
