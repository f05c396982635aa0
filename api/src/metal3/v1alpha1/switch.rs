//! A network switch that Ironic may configure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MAC_PATTERN;
use crate::kind::kind;
use crate::meta::{Condition, SecretReference};

kind! {
    /// A network switch and how to manage it.
    pub struct BareMetalSwitch in "metal3.io" / "v1alpha1" as "baremetalswitches" {
        spec: BareMetalSwitchSpec,
        status: BareMetalSwitchStatus,
    }
}

/// How to manage the switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BareMetalSwitchSpec {
    /// Address or name at which the switch is managed.
    pub address: String,
    /// MAC address that identifies the switch, as it announces it to its neighbours.
    #[serde(rename = "macAddress")]
    #[schemars(regex(pattern = MAC_PATTERN))]
    pub mac_address: String,
    /// Make of the switch, as the driver names it, such as `netmiko_cisco_ios`.
    pub device_type: String,
    /// Driver of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "generic-switch"))]
    pub driver: Option<SwitchDriver>,
    /// Port at which the switch is managed. Absent: the usual one of its protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Secret with the login of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<SecretReference>,
    /// Whether the certificate of the switch is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_certificate_verification: Option<bool>,
}

/// Driver of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchDriver {
    /// The command line of the switch.
    #[default]
    GenericSwitch,
}

/// Whether the switch can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BareMetalSwitchStatus {
    /// `Valid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
