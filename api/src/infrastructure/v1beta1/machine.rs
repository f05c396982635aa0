//! A machine on a bare-metal host, and the template for machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host_selector::HostSelector;
use super::image::{CustomDeploy, Image};
use super::status::NewerStatus;
use crate::infrastructure::{CleaningMode, MachineAddress, Metal3MachineTemplateStatus};
use crate::kind::kind;
use crate::meta::{LegacyCondition, ObjectReference, SecretReference, Time};

kind! {
    /// A machine on a bare-metal host.
    pub struct Metal3Machine in "infrastructure.cluster.x-k8s.io" / "v1beta1" as "metal3machines" {
        spec: Metal3MachineSpec,
        status: Metal3MachineStatus,
    }
}

/// Which host the machine takes and what is put on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3MachineSpec {
    /// Identity of the machine for Cluster API: `metal3://`, then namespace, host and machine. Set by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "providerID")]
    pub provider_id: Option<String>,
    /// The image to put on the host. Required unless a deploy step is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// A deploy step to run instead of writing an image, or on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<CustomDeploy>,
    /// Secret with the user data. Normally the bootstrap data of the Machine is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// Which hosts qualify. Absent: all in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// Template from which metadata and network data of the machine are rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_template: Option<ObjectReference>,
    /// Secret with metadata. It wins over what a template renders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<SecretReference>,
    /// Secret with network data. It wins over what a template renders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
    /// What happens to the disks of the host before use and after release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automated_cleaning_mode: Option<CleaningMode>,
    /// Failure domain to place the machine in. Overwritten with the one of the Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
}

/// Observed state of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3MachineStatus {
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// One word: what made progress impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// A sentence: what made progress impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// Addresses of the host, from its inspection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// Not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// True when the machine is provisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Secret with the user data in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// Secret with the metadata in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<SecretReference>,
    /// Secret with the network data in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
    /// The Metal3Data that was rendered for the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_data: Option<ObjectReference>,
    /// `Ready` and the conditions it summarizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LegacyCondition>,
    /// What readers of newer versions expect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<NewerStatus>,
}

kind! {
    /// A template from which Metal3Machine objects are made.
    pub struct Metal3MachineTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta1" as "metal3machinetemplates" {
        spec: Metal3MachineTemplateSpec,
        status: Metal3MachineTemplateStatus,
    }
}

/// Holds the template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3MachineTemplateSpec {
    /// Metadata and spec of each Metal3Machine.
    pub template: MachineTemplateResource,
    /// Whether a released host is reserved for the next machine of the same control plane or MachineDeployment, with
    /// its disks as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub node_reuse: Option<bool>,
}

/// Spec of the objects to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineTemplateResource {
    /// Spec of each Metal3Machine.
    pub spec: Metal3MachineSpec,
}
