//! A template for machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::Metal3MachineSpec;
use crate::kind::kind;
use crate::meta::TemplateMetadata;

kind! {
    /// A template from which Metal3Machine objects are made.
    pub struct Metal3MachineTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta2" as "metal3machinetemplates" {
        spec: Metal3MachineTemplateSpec,
    }
}

/// Holds the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Metadata and spec of the objects to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineTemplateResource {
    /// Labels and annotations of each Metal3Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Spec of each Metal3Machine.
    pub spec: Metal3MachineSpec,
}
