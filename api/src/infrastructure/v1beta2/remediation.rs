//! An attempt to bring an unhealthy machine back, and the template for such attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{Condition, Time};

kind! {
    /// An attempt to bring an unhealthy machine back by power-cycling its host.
    pub struct Metal3Remediation in "infrastructure.cluster.x-k8s.io" / "v1beta2" as "metal3remediations" {
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
    /// What is tried.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<RemediationType>,
    /// How often it is tried before the machine is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 1))]
    pub retry_limit: Option<i32>,
    /// Seconds to wait for the machine after each try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100), extend("default" = 600))]
    pub timeout_seconds: Option<i32>,
}

/// What is tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RemediationType {
    /// The host is powered off and on again.
    #[default]
    Reboot,
    /// A word that only `v1beta1` lets through. Nothing is done.
    #[serde(untagged)]
    #[schemars(skip)]
    Other(String),
}

/// How far the attempt is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3RemediationStatus {
    /// What is going on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RemediationPhase>,
    /// Tries so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub retry_count: Option<i32>,
    /// When the last try began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_remediated: Option<Time>,
    /// What it waits for.
    ///
    /// differs: `remediation-conditions`. The Go manager writes none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// What is going on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RemediationPhase {
    /// The host is being power-cycled.
    #[default]
    Running,
    /// The machine has time to come back.
    Waiting,
    /// The machine is given up and will be deleted.
    #[serde(rename = "Deleting machine")]
    DeletingMachine,
    /// The machine did not come back.
    Failed,
    /// A word that only `v1beta1` lets through.
    #[serde(untagged)]
    #[schemars(skip)]
    Other(String),
}

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
