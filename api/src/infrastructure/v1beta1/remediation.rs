//! An attempt to bring an unhealthy machine back, and the template for such attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::Time;

kind! {
    /// An attempt to bring an unhealthy machine back by power-cycling its host.
    pub struct Metal3Remediation in "infrastructure.cluster.x-k8s.io" / "v1beta1" as "metal3remediations" {
        spec: Metal3RemediationSpec,
        status: Metal3RemediationStatus,
    }
}

/// What to try.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metal3RemediationSpec {
    /// What is tried and how often. Absent: nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RemediationStrategy>,
}

/// What is tried and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemediationStrategy {
    /// What is tried: `Reboot`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// How often it is tried before the machine is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_limit: Option<i64>,
    /// Time to wait for the machine after each try, such as `10m0s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

/// How far the attempt is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3RemediationStatus {
    /// What is going on: `Running`, `Waiting`, `Deleting machine` or `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Tries so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<i64>,
    /// When the last try began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_remediated: Option<Time>,
}

kind! {
    /// A template from which Metal3Remediation objects are made.
    pub struct Metal3RemediationTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta1" as "metal3remediationtemplates" {
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
    pub status: Metal3RemediationStatus,
}
