//! Firmware settings of a host: desired and current.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{Condition, IntOrString, Time};

kind! {
    /// The firmware settings of the host of the same name.
    pub struct HostFirmwareSettings in "metal3.io" / "v1alpha1" as "hostfirmwaresettings" {
        spec: HostFirmwareSettingsSpec,
        status: HostFirmwareSettingsStatus,
    }
}

/// Settings to be changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostFirmwareSettingsSpec {
    /// Wanted values, by name of the setting. Settings that are not named stay as they are.
    pub settings: BTreeMap<String, IntOrString>,
}

/// Settings as the host has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostFirmwareSettingsStatus {
    /// The FirmwareSchema with the values that each setting accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaReference>,
    /// Values the host reports, by name of the setting. Passwords are left out.
    pub settings: BTreeMap<String, String>,
    /// When this was last read from the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// `ChangeDetected` and `Valid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A FirmwareSchema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchemaReference {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}
