//! Links of the network data: interfaces, bonds and VLANs.
//!
//! The schema is wider than the Go manager's where `v1beta1` is wider too: a bond needs no parameters, a parameter may
//! be any JSON value, and there is no smallest packet size. What `v1beta1` accepts can then be written again. The
//! schema requires a hardware address, decoding does not: a template that was stored without one is still rendered, as
//! ever.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::infrastructure::v1beta2::AnnotationSource;
use crate::infrastructure::{BondHashPolicy, BondMode, EthernetType};

const INTERFACE_NAME: &str = "^[a-zA-Z][a-zA-Z0-9._-]*$";

/// Interfaces, bonds and VLANs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkLinks {
    /// Interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"])
    )]
    pub ethernets: Vec<Ethernet>,
    /// Several interfaces used as one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"])
    )]
    pub bonds: Vec<Bond>,
    /// Tagged networks on another link. No two may have the same tag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["vlanID"])
    )]
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
    #[schemars(length(min = 1, max = 512))]
    pub id: String,
    /// Name of the interface in the operating system. Absent: the identifier, or what the system chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15), regex(pattern = INTERFACE_NAME))]
    pub name: Option<String>,
    /// Largest packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9000), extend("default" = 1500))]
    pub mtu: Option<i32>,
    /// Hardware address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub mac_address: Option<MacAddress>,
}

/// Several interfaces used as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bond {
    /// Identifier that networks and other links refer to.
    #[schemars(length(min = 1, max = 512))]
    pub id: String,
    /// Name of the interface in the operating system. Absent: the identifier, or what the system chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15), regex(pattern = INTERFACE_NAME))]
    pub name: Option<String>,
    /// Largest packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9000), extend("default" = 1500))]
    pub mtu: Option<i32>,
    /// Hardware address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub mac_address: Option<MacAddress>,
    /// How traffic is spread over the interfaces.
    pub bond_mode: BondMode,
    /// What is hashed to choose an interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond_xmit_hash_policy: Option<BondHashPolicy>,
    /// Further parameters, written as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub parameters: Vec<BondParameter>,
    /// Identifiers of the interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), inner(length(min = 1, max = 512)), extend("x-kubernetes-list-type" = "set"))]
    pub bond_links: Vec<String>,
}

/// A parameter of a bond.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BondParameter {
    /// Name of the parameter.
    #[schemars(length(min = 1, max = 512))]
    pub name: String,
    /// Its value: any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub value: Option<Value>,
}

/// Tells a null that was written from a member that was not.
fn stated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A tagged network on another link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Vlan {
    /// Identifier that networks and other links refer to.
    #[schemars(length(min = 1, max = 512))]
    pub id: String,
    /// Name of the interface in the operating system. Absent: the identifier, or what the system chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15), regex(pattern = INTERFACE_NAME))]
    pub name: Option<String>,
    /// Largest packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9000), extend("default" = 1500))]
    pub mtu: Option<i32>,
    /// Hardware address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub mac_address: Option<MacAddress>,
    /// Tag.
    #[serde(rename = "vlanID")]
    #[schemars(range(min = 0, max = 4096))]
    pub vlan_id: i32,
    /// Identifier of the link that carries it.
    #[schemars(length(min = 1, max = 512))]
    pub vlan_link: String,
}

/// Where the hardware address of a link comes from. Set one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MacAddress {
    /// The address itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub string: Option<String>,
    /// Name of an interface of the host, as inspection found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub from_host_interface: Option<String>,
    /// An annotation that holds the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_annotation: Option<AnnotationSource>,
}
