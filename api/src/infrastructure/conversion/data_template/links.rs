//! Links of a data template.

use serde_json::Value;

use crate::infrastructure::conversion::error::ConversionError;
use crate::infrastructure::conversion::value::{list, narrow, narrow_nonzero, non_default, text, widen_nonzero};
use crate::infrastructure::{v1beta1 as spoke, v1beta2 as hub};

pub(super) fn to_spoke(links: &hub::NetworkLinks) -> spoke::NetworkLinks {
    spoke::NetworkLinks {
        ethernets: links.ethernets.iter().map(ethernet_to_spoke).collect(),
        bonds: links.bonds.iter().map(bond_to_spoke).collect(),
        vlans: links.vlans.iter().map(vlan_to_spoke).collect(),
    }
}

pub(super) fn from_spoke(links: &spoke::NetworkLinks) -> Result<hub::NetworkLinks, ConversionError> {
    Ok(hub::NetworkLinks {
        ethernets: list(&links.ethernets, "ethernets", ethernet_from_spoke)?,
        bonds: list(&links.bonds, "bonds", bond_from_spoke)?,
        vlans: list(&links.vlans, "vlans", vlan_from_spoke)?,
    })
}

fn ethernet_to_spoke(link: &hub::Ethernet) -> spoke::Ethernet {
    spoke::Ethernet {
        type_: link.type_,
        id: link.id.clone(),
        name: link.name.clone(),
        mtu: widen_nonzero(link.mtu),
        mac_address: mac_to_spoke(link.mac_address.as_ref()),
    }
}

fn ethernet_from_spoke(link: &spoke::Ethernet) -> Result<hub::Ethernet, ConversionError> {
    Ok(hub::Ethernet {
        type_: link.type_,
        id: link.id.clone(),
        name: text(link.name.as_ref()),
        mtu: narrow_nonzero(link.mtu, "mtu")?,
        mac_address: Some(mac_from_spoke(&link.mac_address)),
    })
}

/// The older version holds one parameter per name: the last one is kept.
fn bond_to_spoke(link: &hub::Bond) -> spoke::Bond {
    let parameter = |parameter: &hub::BondParameter| {
        let value = parameter.value.clone().unwrap_or(Value::Null);
        (parameter.name.clone(), value)
    };
    spoke::Bond {
        id: link.id.clone(),
        name: link.name.clone(),
        mtu: widen_nonzero(link.mtu),
        mac_address: mac_to_spoke(link.mac_address.as_ref()),
        bond_mode: link.bond_mode,
        bond_xmit_hash_policy: link.bond_xmit_hash_policy.and_then(non_default),
        parameters: link.parameters.iter().map(parameter).collect(),
        bond_links: link.bond_links.clone(),
    }
}

fn bond_from_spoke(link: &spoke::Bond) -> Result<hub::Bond, ConversionError> {
    let parameter = |(name, value): (&String, &Value)| hub::BondParameter {
        name: name.clone(),
        value: Some(value.clone()),
    };
    Ok(hub::Bond {
        id: link.id.clone(),
        name: text(link.name.as_ref()),
        mtu: narrow_nonzero(link.mtu, "mtu")?,
        mac_address: Some(mac_from_spoke(&link.mac_address)),
        bond_mode: link.bond_mode,
        bond_xmit_hash_policy: link.bond_xmit_hash_policy.and_then(non_default),
        parameters: link.parameters.iter().map(parameter).collect(),
        bond_links: link.bond_links.clone(),
    })
}

fn vlan_to_spoke(link: &hub::Vlan) -> spoke::Vlan {
    spoke::Vlan {
        id: link.id.clone(),
        name: link.name.clone(),
        mtu: widen_nonzero(link.mtu),
        mac_address: mac_to_spoke(link.mac_address.as_ref()),
        vlan_id: link.vlan_id.into(),
        vlan_link: link.vlan_link.clone(),
    }
}

fn vlan_from_spoke(link: &spoke::Vlan) -> Result<hub::Vlan, ConversionError> {
    Ok(hub::Vlan {
        id: link.id.clone(),
        name: text(link.name.as_ref()),
        mtu: narrow_nonzero(link.mtu, "mtu")?,
        mac_address: Some(mac_from_spoke(&link.mac_address)),
        vlan_id: narrow(link.vlan_id, "vlanID")?,
        vlan_link: link.vlan_link.clone(),
    })
}

/// The older version requires the address, so an absent one is empty.
fn mac_to_spoke(mac: Option<&hub::MacAddress>) -> spoke::MacAddress {
    let Some(mac) = mac else {
        return spoke::MacAddress::default();
    };
    spoke::MacAddress {
        string: mac.string.clone(),
        from_host_interface: mac.from_host_interface.clone(),
        from_annotation: mac.from_annotation.as_ref().map(super::networks::annotation_to_spoke),
    }
}

fn mac_from_spoke(mac: &spoke::MacAddress) -> hub::MacAddress {
    hub::MacAddress {
        string: text(mac.string.as_ref()),
        from_host_interface: text(mac.from_host_interface.as_ref()),
        from_annotation: mac.from_annotation.as_ref().map(super::networks::annotation_from_spoke),
    }
}
