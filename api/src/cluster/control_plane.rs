//! The kubeadm control plane. Other kinds of control planes are read without a type.

use serde::{Deserialize, Serialize};

use super::reference::ContractReference;
use crate::kind::kind;

kind! {
    /// A control plane made with kubeadm.
    pub struct KubeadmControlPlane in "controlplane.cluster.x-k8s.io" / "v1beta2" as "kubeadmcontrolplanes" {
        spec: KubeadmControlPlaneSpec,
        status: KubeadmControlPlaneStatus,
    }
}

/// Desired state of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneSpec {
    /// Desired number of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Template of each machine.
    #[serde(default)]
    pub machine_template: ControlPlaneMachineTemplate,
}

/// Template of each machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlPlaneMachineTemplate {
    /// Spec of each machine.
    #[serde(default)]
    pub spec: ControlPlaneMachineSpec,
}

/// Spec of each machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneMachineSpec {
    /// The template of the machines' infrastructure.
    #[serde(default)]
    pub infrastructure_ref: ContractReference,
}

/// Observed state of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubeadmControlPlaneStatus {
    /// Actual number of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
