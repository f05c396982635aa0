//! The network part of a config drive, in the shape of OpenStack's `network_data.json`.
//!
//! Only the data model; the renderer chooses links, addresses and routes. Members are declared in alphabetical order,
//! so serialising writes sorted keys, followed by a bond's parameters; a JSON value ([`serde_json::to_value`]) sorts
//! those as well. Members that upstream always writes are always written here, as an empty string or `null` if
//! necessary, because consumers distinguish absent and empty.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

/// Links, networks and services of one host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkData {
    /// Links: bonds first, then interfaces, then VLANs.
    pub links: Vec<Link>,
    /// Layer 3: addresses and routes.
    pub networks: Vec<Network>,
    /// Services that are not bound to one network.
    pub services: Vec<Service>,
}

/// A network interface, physical or built on others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Link {
    /// Several interfaces as one.
    Bond(Bond),
    /// A tagged part of another link.
    Vlan(Vlan),
    /// A single interface.
    Interface(Interface),
}

/// A literal `type: bond`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BondTag {
    /// The literal.
    #[default]
    #[serde(rename = "bond")]
    Bond,
}

/// A literal `type: vlan`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VlanTag {
    /// The literal.
    #[default]
    #[serde(rename = "vlan")]
    Vlan,
}

/// Several interfaces as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bond {
    /// Ids of the bonded links; `null` when the template names none.
    pub bond_links: Option<Vec<String>>,
    /// Bonding mode.
    pub bond_mode: String,
    /// Transmit hash policy; present even when empty.
    pub bond_xmit_hash_policy: String,
    /// Hardware address, as the template wrote it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ethernet_mac_address: Option<String>,
    /// Id for references by networks and VLANs.
    pub id: String,
    /// Largest packet.
    pub mtu: i32,
    /// Name in the operating system.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Always `bond`.
    pub r#type: BondTag,
    /// Further settings of the bonding driver.
    #[serde(flatten)]
    pub parameters: BondParameters,
}

/// Further settings of the bonding driver, written as `bond_<name>` next to the bond's own keys.
///
/// Invariant: no name collides with one of those keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BondParameters(BTreeMap<String, Value>);

/// Names reserved by the bond's own keys.
const RESERVED: [&str; 3] = ["links", "mode", "xmit_hash_policy"];
const PARAMETER_PREFIX: &str = "bond_";

/// Parameters with reserved names.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("bond parameters may not be named {}: the bond has its own fields for them; use those", names.join(", "))]
pub struct BondParameterError {
    /// The names, sorted.
    pub names: Vec<String>,
}

impl BondParameters {
    /// Creates parameters from names without the prefix.
    ///
    /// # Errors
    /// When a name is reserved.
    pub fn try_new(parameters: BTreeMap<String, Value>) -> Result<Self, BondParameterError> {
        let names: Vec<_> = parameters
            .keys()
            .filter(|name| RESERVED.contains(&name.as_str()))
            .cloned()
            .collect();
        if names.is_empty() {
            Ok(Self(parameters))
        } else {
            Err(BondParameterError { names })
        }
    }

    /// The parameters by name without the prefix.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl Serialize for BondParameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(&format!("{PARAMETER_PREFIX}{name}"), value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for BondParameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bare = |(key, value): (String, Value)| match key.strip_prefix(PARAMETER_PREFIX) {
            Some(name) => Ok((name.to_owned(), value)),
            None => Err(D::Error::custom(format_args!(
                "a bond has no key {key:?}; its parameters start with bond_"
            ))),
        };
        let entries = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let parameters = entries.into_iter().map(bare).collect::<Result<_, _>>()?;
        Self::try_new(parameters).map_err(D::Error::custom)
    }
}

/// A tagged part of another link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vlan {
    /// Id for references by networks.
    pub id: String,
    /// Largest packet.
    pub mtu: i32,
    /// Name in the operating system.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Always `vlan`.
    pub r#type: VlanTag,
    /// The tag.
    pub vlan_id: i32,
    /// Id of the link it is part of.
    pub vlan_link: String,
    /// Hardware address, as the template wrote it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vlan_mac_address: Option<String>,
}

/// A single interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Hardware address, as the template wrote it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ethernet_mac_address: Option<String>,
    /// Id for references by networks, bonds and VLANs.
    pub id: String,
    /// Largest packet.
    pub mtu: i32,
    /// Name in the operating system.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Its type.
    pub r#type: InterfaceType,
}

/// Type of an interface, as defined by OpenStack. Interfaces of a bare-metal host are physical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceType {
    /// A Linux bridge.
    Bridge,
    /// A distributed virtual switch.
    Dvs,
    /// A bridge in the network card.
    HwVeb,
    /// Hyper-V.
    Hyperv,
    /// Open vSwitch.
    Ovs,
    /// A tap device.
    Tap,
    /// A vhost-user socket.
    Vhostuser,
    /// A virtual interface.
    Vif,
    /// A physical interface.
    Phy,
}

/// Layer 3 on one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Network {
    /// A fixed address.
    Static(StaticNetwork),
    /// An address that the host discovers.
    Dynamic(DynamicNetwork),
}

/// The family of a fixed address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StaticType {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// How the host discovers its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DynamicType {
    /// DHCP.
    Ipv4Dhcp,
    /// DHCPv6.
    Ipv6Dhcp,
    /// Router advertisements.
    Ipv6Slaac,
}

/// A fixed address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticNetwork {
    /// Its name.
    pub id: String,
    /// The address.
    pub ip_address: String,
    /// Id of its link.
    pub link: String,
    /// Mask written as an address, for IPv6 too; empty when the prefix is unknown.
    pub netmask: String,
    /// Routes through it.
    pub routes: Vec<Route>,
    /// Its family.
    pub r#type: StaticType,
}

/// An address that the host discovers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DynamicNetwork {
    /// Its name.
    pub id: String,
    /// Id of its link.
    pub link: String,
    /// Routes through it.
    pub routes: Vec<Route>,
    /// How it is discovered.
    pub r#type: DynamicType,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Next hop; empty when unknown.
    pub gateway: String,
    /// Mask of the destination, written as an address.
    pub netmask: String,
    /// Destination.
    pub network: String,
    /// Services reached through the route.
    pub services: Vec<Service>,
}

/// A literal `type: dns`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceType {
    /// The literal.
    #[default]
    #[serde(rename = "dns")]
    Dns,
}

/// A name server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its address.
    pub address: String,
    /// Always `dns`.
    pub r#type: ServiceType,
}

impl Service {
    /// The name server at an address.
    #[must_use]
    pub fn dns(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            r#type: ServiceType::Dns,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bond() -> Bond {
        let parameters = BTreeMap::from([
            ("miimon".to_owned(), json!(100)),
            ("downdelay".to_owned(), json!({"a": [1]})),
        ]);
        Bond {
            bond_links: Some(vec!["nic0".to_owned(), "nic1".to_owned()]),
            bond_mode: "802.3ad".to_owned(),
            bond_xmit_hash_policy: String::new(),
            ethernet_mac_address: None,
            id: "bond0".to_owned(),
            mtu: 1500,
            name: None,
            r#type: BondTag::Bond,
            parameters: BondParameters::try_new(parameters).unwrap(),
        }
    }

    fn sample() -> NetworkData {
        let route = Route {
            gateway: "192.0.2.1".to_owned(),
            netmask: "0.0.0.0".to_owned(),
            network: "0.0.0.0".to_owned(),
            services: vec![Service::dns("192.0.2.53")],
        };
        let vlan = Vlan {
            id: "v20".to_owned(),
            mtu: 9000,
            name: Some("storage".to_owned()),
            r#type: VlanTag::Vlan,
            vlan_id: 20,
            vlan_link: "bond0".to_owned(),
            vlan_mac_address: Some("52:54:00:AB:cd:01".to_owned()),
        };
        let interface = Interface {
            ethernet_mac_address: Some("52:54:00:AB:cd:02".to_owned()),
            id: "nic0".to_owned(),
            mtu: 1500,
            name: None,
            r#type: InterfaceType::HwVeb,
        };
        let fixed = StaticNetwork {
            id: "net0".to_owned(),
            ip_address: "192.0.2.50".to_owned(),
            link: "v20".to_owned(),
            netmask: "255.255.255.0".to_owned(),
            routes: vec![route],
            r#type: StaticType::Ipv4,
        };
        let found = DynamicNetwork {
            id: "net1".to_owned(),
            link: "nic0".to_owned(),
            routes: vec![],
            r#type: DynamicType::Ipv6Slaac,
        };
        NetworkData {
            links: vec![Link::Bond(bond()), Link::Interface(interface), Link::Vlan(vlan)],
            networks: vec![Network::Static(fixed), Network::Dynamic(found)],
            services: vec![Service::dns("192.0.2.54")],
        }
    }

    #[test]
    fn every_kind_serialises_to_openstack_keys() {
        let expected = json!({
            "links": [
                {"type": "bond", "id": "bond0", "mtu": 1500, "bond_mode": "802.3ad", "bond_xmit_hash_policy": "",
                 "bond_links": ["nic0", "nic1"], "bond_miimon": 100, "bond_downdelay": {"a": [1]}},
                {"type": "hw_veb", "id": "nic0", "mtu": 1500, "ethernet_mac_address": "52:54:00:AB:cd:02"},
                {"type": "vlan", "id": "v20", "mtu": 9000, "name": "storage", "vlan_id": 20, "vlan_link": "bond0",
                 "vlan_mac_address": "52:54:00:AB:cd:01"}
            ],
            "networks": [
                {"type": "ipv4", "id": "net0", "link": "v20", "ip_address": "192.0.2.50", "netmask": "255.255.255.0",
                 "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "192.0.2.1",
                             "services": [{"type": "dns", "address": "192.0.2.53"}]}]},
                {"type": "ipv6_slaac", "id": "net1", "link": "nic0", "routes": []}
            ],
            "services": [{"type": "dns", "address": "192.0.2.54"}]
        });
        assert_eq!(serde_json::to_value(sample()).unwrap(), expected);
    }

    #[test]
    fn decoding_gives_back_what_was_encoded() {
        let text = serde_json::to_string(&sample()).unwrap();
        assert_eq!(serde_json::from_str::<NetworkData>(&text).unwrap(), sample());
    }

    #[test]
    fn empty_lists_are_written() {
        let text = serde_json::to_string(&NetworkData::default()).unwrap();
        assert_eq!(text, r#"{"links":[],"networks":[],"services":[]}"#);
    }

    #[test]
    fn bond_without_links_is_encoded_with_null() {
        let value = serde_json::to_value(Bond {
            bond_links: None,
            ..bond()
        })
        .unwrap();
        assert_eq!(value["bond_links"], Value::Null);
        assert!(value.as_object().unwrap().contains_key("bond_links"));
    }

    #[test]
    fn keys_are_written_in_order() {
        let text = serde_json::to_string(&sample().links[2]).unwrap();
        let keys = ["id", "mtu", "name", "type", "vlan_id", "vlan_link", "vlan_mac_address"];
        let places: Vec<_> = keys
            .iter()
            .map(|key| text.find(&format!("\"{key}\":")).unwrap())
            .collect();
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn parameters_with_reserved_names_are_rejected() {
        let parameters = ["mode", "miimon", "links"].map(|name| (name.to_owned(), Value::Null));
        let error = BondParameters::try_new(BTreeMap::from(parameters)).unwrap_err();
        assert_eq!(error.names, ["links", "mode"]);
    }

    #[test]
    fn unknown_keys_are_refused() {
        for text in [
            r#"{"links": [], "networks": [], "services": [], "more": 1}"#,
            r#"{"links": [{"type": "phy", "id": "a", "mtu": 1500, "speed": 1}], "networks": [], "services": []}"#,
            r#"{"links": [], "networks": [{"type": "ipv5", "id": "a", "link": "b", "routes": []}], "services": []}"#,
        ] {
            assert!(serde_json::from_str::<NetworkData>(text).is_err(), "{text}");
        }
    }
}
