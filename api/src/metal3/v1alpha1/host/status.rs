//! Observed state of a host.
//!
//! The Go manager writes some members even when they are empty (`goodCredentials: {}`, `image: {url: ""}`, times that
//! are null). They are read with or without and written as it writes them, so that a takeover changes no byte.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::super::{CustomDeploy, HardwareDetails, Image, RaidConfig, RootDeviceHints, without_schema_default};
use super::spec::{BootMode, FirmwareConfig};
use crate::meta::{Condition, SecretReference, Time};

/// Observed state of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["errorCount", "errorMessage", "operationalStatus", "poweredOn", "provisioning", "provisioningFailCount"]))]
pub struct BareMetalHostStatus {
    /// Operational status of the host.
    pub operational_status: OperationalStatus,
    /// Type of the last error. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<ErrorType>,
    /// Message of the last error, with the cure. Empty: none.
    pub error_message: String,
    /// How often in a row the present operation failed. Attempts are spaced by it.
    #[serde(default)]
    #[schemars(extend("default" = 0))]
    pub error_count: i64,
    /// How often the deployment of the present image failed.
    #[serde(default)]
    #[schemars(extend("default" = 0))]
    pub provisioning_fail_count: i64,
    /// The image that was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_image: Option<Image>,
    /// When the status was last written. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// Whether the machine was on at the last observation.
    pub powered_on: bool,
    /// The set of root device hints in force. Chosen once and kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_profile: Option<String>,
    /// What inspection found. HardwareData holds the same and is kept longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareDetails>,
    /// Credentials that the BMC accepted last.
    #[serde(default)]
    #[schemars(skip_serializing_if = "without_schema_default")]
    pub good_credentials: CredentialsStatus,
    /// Credentials that were sent last.
    #[serde(default)]
    #[schemars(skip_serializing_if = "without_schema_default")]
    pub tried_credentials: CredentialsStatus,
    /// When each operation last ran.
    #[serde(default)]
    #[schemars(skip_serializing_if = "without_schema_default")]
    pub operation_history: OperationHistory,
    /// Provisioning state of the host, and the settings in force.
    pub provisioning: ProvisionStatus,
    /// `Ready`, then `AvailableForProvisioning`, `Healthy`, `Manageable`, `Progressing` and `Provisioned`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Operational status of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OperationalStatus {
    /// Nothing is known yet.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// It works.
    #[serde(rename = "OK")]
    Ok,
    /// It was found and lacks credentials.
    #[serde(rename = "discovered")]
    Discovered,
    /// It does not work; see the error.
    #[serde(rename = "error")]
    Error,
    /// It waits for its turn.
    #[serde(rename = "delayed")]
    Delayed,
    /// It is detached from Ironic on request.
    #[serde(rename = "detached")]
    Detached,
    /// It is changed while in use.
    #[serde(rename = "servicing")]
    Servicing,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ErrorType {
    /// A provisioned host could not be registered again.
    #[serde(rename = "provisioned registration error")]
    ProvisionedRegistration,
    /// The host could not be registered: its BMC is unreachable or rejects requests.
    #[default]
    #[serde(rename = "registration error")]
    Registration,
    /// Inspection failed.
    #[serde(rename = "inspection error")]
    Inspection,
    /// Preparation failed: RAID, firmware or cleaning.
    #[serde(rename = "preparation error")]
    Preparation,
    /// Deployment failed.
    #[serde(rename = "provisioning error")]
    Provisioning,
    /// The machine could not be powered on or off.
    #[serde(rename = "power management error")]
    PowerManagement,
    /// A change while in use failed.
    #[serde(rename = "servicing error")]
    Servicing,
}

impl ErrorType {
    /// All types, in the order of the schema.
    pub const ALL: [Self; 7] = [
        Self::ProvisionedRegistration,
        Self::Registration,
        Self::Inspection,
        Self::Preparation,
        Self::Provisioning,
        Self::PowerManagement,
        Self::Servicing,
    ];
}

/// Credentials of a BMC, by reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsStatus {
    /// The Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<SecretReference>,
    /// Its resource version when it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_version: Option<String>,
}

/// When each operation last ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationHistory {
    /// Registration with Ironic.
    #[serde(default)]
    #[schemars(skip_serializing_if = "without_schema_default")]
    pub register: OperationMetric,
    /// Inspection.
    #[serde(default)]
    #[schemars(skip_serializing_if = "without_schema_default")]
    pub inspect: OperationMetric,
    /// Deployment.
    #[serde(default)]
    #[schemars(skip_serializing_if = "without_schema_default")]
    pub provision: OperationMetric,
    /// Removal of what was deployed.
    #[serde(default)]
    #[schemars(skip_serializing_if = "without_schema_default")]
    pub deprovision: OperationMetric,
}

/// When an operation last ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationMetric {
    /// When it began. Null: never.
    #[serde(default)]
    #[schemars(extend("x-keep-null" = true))]
    pub start: Option<Time>,
    /// When it ended. Null: it has not.
    #[serde(default)]
    #[schemars(extend("x-keep-null" = true))]
    pub end: Option<Time>,
}

/// Provisioning state of a host, and the settings in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionStatus {
    /// Provisioning state.
    pub state: ProvisioningState,
    /// UUID of the Ironic node. Empty: there is none.
    #[serde(rename = "ID")]
    pub id: String,
    /// The image deployed. An empty URL: none.
    #[serde(default)]
    #[schemars(skip_serializing_if = "without_schema_default")]
    pub image: Image,
    /// The deployment method used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<CustomDeploy>,
    /// Hints in force for the choice of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_device_hints: Option<RootDeviceHints>,
    /// How the machine boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_mode: Option<BootMode>,
    /// Logical disks in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid: Option<RaidConfig>,
    /// Deprecated firmware settings. Always empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<FirmwareConfig>,
}

/// Provisioning state of a host. The schema allows any text, so an unknown text is kept as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProvisioningState {
    /// The host is not processed yet.
    #[default]
    #[serde(rename = "")]
    None,
    /// It has no management controller.
    #[serde(rename = "unmanaged")]
    Unmanaged,
    /// Its management controller is being registered.
    #[serde(rename = "registering")]
    Registering,
    /// Written by older managers only.
    #[serde(rename = "match profile")]
    MatchProfile,
    /// Its hardware is inspected.
    #[serde(rename = "inspecting")]
    Inspecting,
    /// Disks and firmware are set up.
    #[serde(rename = "preparing")]
    Preparing,
    /// It is available for an image.
    #[serde(rename = "available")]
    Available,
    /// The name of available in older managers.
    #[serde(rename = "ready")]
    Ready,
    /// An image is deployed.
    #[serde(rename = "provisioning")]
    Provisioning,
    /// It runs an image.
    #[serde(rename = "provisioned")]
    Provisioned,
    /// It runs an image that was deployed externally.
    #[serde(rename = "externally provisioned")]
    ExternallyProvisioned,
    /// Its image is removed.
    #[serde(rename = "deprovisioning")]
    Deprovisioning,
    /// It is powered off before deletion.
    #[serde(rename = "powering off before delete")]
    PoweringOffBeforeDelete,
    /// It is removed from Ironic.
    #[serde(rename = "deleting")]
    Deleting,
    /// A text that is none of the above.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for ProvisioningState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl JsonSchema for ProvisioningState {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProvisioningState".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::catalog;

    #[test]
    fn error_types_are_those_of_the_schema() {
        let kinds = catalog::definitions();
        let host = kinds.iter().find(|kind| kind.kind == "BareMetalHost").unwrap();
        let schema = (host.versions.first().unwrap().schema)();
        let published = schema.pointer("/properties/status/properties/errorType/enum").unwrap();
        let all: Vec<Value> = ErrorType::ALL
            .iter()
            .map(|error| serde_json::to_value(error).unwrap())
            .collect();
        assert_eq!(published, &Value::from(all));
    }
}
