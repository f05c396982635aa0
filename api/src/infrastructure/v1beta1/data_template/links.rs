//! Links of the network data: interfaces, bonds and VLANs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::infrastructure::v1beta1::AnnotationSource;
use crate::infrastructure::{BondHashPolicy, BondMode, EthernetType};

const INTERFACE_NAME: &str = "^[a-zA-Z][a-zA-Z0-9._-]*$";

/// Interfaces, bonds and VLANs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkLinks {
    /// Interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ethernets: Vec<Ethernet>,
    /// Several interfaces used as one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bonds: Vec<Bond>,
    /// Tagged networks on another link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<Vlan>,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ethernet {
    /// Type of the interface; `phy` for one of the host's own.
    #[serde(rename = "type")]
    pub type_: EthernetType,
    /// Identifier that networks and other links refer to.
    pub id: String,
    /// Name of the interface in the operating system. Absent: the identifier, or what the system chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), regex(pattern = INTERFACE_NAME))]
    pub name: Option<String>,
    /// Largest packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9000), extend("default" = 1500))]
    pub mtu: Option<i64>,
    /// Hardware address.
    pub mac_address: MacAddress,
}

/// Several interfaces used as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bond {
    /// Identifier that networks and other links refer to.
    pub id: String,
    /// Name of the interface in the operating system. Absent: the identifier, or what the system chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), regex(pattern = INTERFACE_NAME))]
    pub name: Option<String>,
    /// Largest packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9000), extend("default" = 1500))]
    pub mtu: Option<i64>,
    /// Hardware address.
    pub mac_address: MacAddress,
    /// How traffic is spread over the interfaces.
    pub bond_mode: BondMode,
    /// What is hashed to choose an interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond_xmit_hash_policy: Option<BondHashPolicy>,
    /// Further parameters by name, written as they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("additionalProperties" = {"x-kubernetes-preserve-unknown-fields": true}))]
    pub parameters: BTreeMap<String, Value>,
    /// Identifiers of the interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bond_links: Vec<String>,
}

/// A tagged network on another link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Vlan {
    /// Identifier that networks and other links refer to.
    pub id: String,
    /// Name of the interface in the operating system. Absent: the identifier, or what the system chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), regex(pattern = INTERFACE_NAME))]
    pub name: Option<String>,
    /// Largest packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9000), extend("default" = 1500))]
    pub mtu: Option<i64>,
    /// Hardware address.
    pub mac_address: MacAddress,
    /// Tag.
    #[serde(rename = "vlanID")]
    #[schemars(range(max = 4096))]
    pub vlan_id: i64,
    /// Identifier of the link that carries it.
    pub vlan_link: String,
}

/// Where the hardware address of a link comes from. Set one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MacAddress {
    /// The address itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// Name of an interface of the host, as inspection found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_host_interface: Option<String>,
    /// An annotation that holds the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_annotation: Option<AnnotationSource>,
}
