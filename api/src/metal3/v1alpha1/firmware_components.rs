//! Firmware versions of a host: desired and installed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{Condition, Time};

kind! {
    /// The firmware versions of the host of the same name.
    pub struct HostFirmwareComponents in "metal3.io" / "v1alpha1" as "hostfirmwarecomponents" {
        spec: HostFirmwareComponentsSpec,
        status: HostFirmwareComponentsStatus,
    }
}

/// Firmware to be installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostFirmwareComponentsSpec {
    /// Wanted updates. Components that are not named stay as they are.
    pub updates: Vec<FirmwareUpdate>,
}

/// New firmware for one component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirmwareUpdate {
    /// `bmc`, `bios`, or a network card as `nic:` and its name.
    pub component: String,
    /// Where the firmware is: an `http`, `https`, `ftp`, `gopher` or `oci` URL.
    pub url: String,
}

/// Firmware as the host has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostFirmwareComponentsStatus {
    /// Updates that were started, as requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<FirmwareUpdate>,
    /// Components the host reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<FirmwareComponentStatus>,
    /// When this was last read from the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// `ChangeDetected` and `Valid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Firmware of one component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirmwareComponentStatus {
    /// Name of the component.
    pub component: String,
    /// Version at the first observation.
    pub initial_version: String,
    /// Version it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_version: Option<String>,
    /// Version that was installed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_version_flashed: Option<String>,
    /// When the version last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
}
