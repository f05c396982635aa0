//! How a host's network cards should be connected. Recorded; no controller acts on it yet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MAC_PATTERN;

/// One network card, named or given by its address, never both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// Name of the card, as inspection reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-zA-Z0-9._-]+$"))]
    pub name: Option<String>,
    /// MAC address of the card.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "macAddress")]
    #[schemars(regex(pattern = MAC_PATTERN))]
    pub mac_address: Option<String>,
    /// The settings that its switch port shall have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_network_attachment: Option<HostNetworkAttachmentReference>,
    /// The switch port it is plugged into, where discovery does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_port: Option<SwitchPort>,
}

/// A HostNetworkAttachment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostNetworkAttachmentReference {
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Namespace of the object. Absent: that of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// A port of a switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SwitchPort {
    /// MAC address that identifies the switch.
    #[serde(rename = "switchID")]
    #[schemars(regex(pattern = MAC_PATTERN))]
    pub switch_id: String,
    /// Name of the port, as the switch spells it.
    #[serde(rename = "portID")]
    pub port_id: String,
}
