//! A template for remediations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::remediation::{Metal3RemediationSpec, Metal3RemediationStatus};
use crate::kind::kind;

kind! {
    /// A template from which Metal3Remediation objects are made.
    pub struct Metal3RemediationTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta2" as "metal3remediationtemplates" {
        spec: Metal3RemediationTemplateSpec,
        status: Metal3RemediationTemplateStatus,
    }
}

/// Holds the template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metal3RemediationTemplateSpec {
    /// Metadata and spec of each Metal3Remediation.
    pub template: RemediationTemplateResource,
}

/// Spec of the objects to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemediationTemplateResource {
    /// Spec of each Metal3Remediation.
    pub spec: Metal3RemediationSpec,
}

/// Never written; part of the wire contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metal3RemediationTemplateStatus {
    /// Never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Metal3RemediationStatus>,
}
