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

/// What the machines of the control plane are to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneSpec {
    /// How many machines there are to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// What each machine is to be.
    #[serde(default)]
    pub machine_template: ControlPlaneMachineTemplate,
}

/// What each machine is to be.
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

/// How far the control plane is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubeadmControlPlaneStatus {
    /// Machines there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
