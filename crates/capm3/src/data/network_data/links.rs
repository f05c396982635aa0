//! Links: bonds, then interfaces, then VLANs.

use metal3_api::infrastructure::{EthernetType, v1beta2 as api};
use metal3_domain::mac::is_link_address;
use metal3_domain::network_data as model;
use serde::Serialize;
use serde_json::Value;

use crate::data::subject::Subject;
use crate::data::{DataError, Problem};

const MTU: i32 = 1500;

pub(super) fn all(links: &api::NetworkLinks, subject: &Subject<'_>) -> Result<Vec<model::Link>, DataError> {
    let mut rendered = Vec::new();
    for (position, link) in links.bonds.iter().enumerate() {
        rendered.push(model::Link::Bond(bond(link, subject, &field("bonds", position))?));
    }
    for (position, link) in links.ethernets.iter().enumerate() {
        rendered.push(model::Link::Interface(interface(
            link,
            subject,
            &field("ethernets", position),
        )?));
    }
    for (position, link) in links.vlans.iter().enumerate() {
        rendered.push(model::Link::Vlan(vlan(link, subject, &field("vlans", position))?));
    }
    Ok(rendered)
}

fn field(list: &str, position: usize) -> String {
    format!("spec.networkData.links.{list}[{position}]")
}

fn bond(link: &api::Bond, subject: &Subject<'_>, field: &str) -> Result<model::Bond, DataError> {
    let parameter = |parameter: &api::BondParameter| {
        let value = parameter.value.clone().unwrap_or(Value::Null);
        (parameter.name.clone(), value)
    };
    let parameters = model::BondParameters::try_new(link.parameters.iter().map(parameter).collect())
        .map_err(|error| Problem::BondParameters(error).of(format!("{field}.parameters")))?;
    // An unset list is null for consumers; a set list is never empty.
    let bond_links = Some(link.bond_links.clone()).filter(|links| !links.is_empty());
    Ok(model::Bond {
        bond_links,
        bond_mode: word(link.bond_mode),
        bond_xmit_hash_policy: word(link.bond_xmit_hash_policy.unwrap_or_default()),
        ethernet_mac_address: mac(link.mac_address.as_ref(), subject, field)?,
        id: link.id.clone(),
        mtu: link.mtu.unwrap_or(MTU),
        name: name(link.name.as_ref()),
        r#type: model::BondTag::Bond,
        parameters,
    })
}

fn interface(link: &api::Ethernet, subject: &Subject<'_>, field: &str) -> Result<model::Interface, DataError> {
    Ok(model::Interface {
        ethernet_mac_address: mac(link.mac_address.as_ref(), subject, field)?,
        id: link.id.clone(),
        mtu: link.mtu.unwrap_or(MTU),
        name: name(link.name.as_ref()),
        r#type: interface_type(link.type_),
    })
}

fn vlan(link: &api::Vlan, subject: &Subject<'_>, field: &str) -> Result<model::Vlan, DataError> {
    Ok(model::Vlan {
        id: link.id.clone(),
        mtu: link.mtu.unwrap_or(MTU),
        name: name(link.name.as_ref()),
        r#type: model::VlanTag::Vlan,
        vlan_id: link.vlan_id,
        vlan_link: link.vlan_link.clone(),
        vlan_mac_address: mac(link.mac_address.as_ref(), subject, field)?,
    })
}

/// The MAC address of a link, as written in its source. Only an object that bypassed the schema lacks the field; it
/// gets no address.
fn mac(source: Option<&api::MacAddress>, subject: &Subject<'_>, field: &str) -> Result<Option<String>, DataError> {
    let Some(source) = source else { return Ok(None) };
    let field = format!("{field}.macAddress");
    let stated = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
    let text = if let Some(text) = stated(&source.string) {
        text
    } else if let Some(interface) = stated(&source.from_host_interface) {
        subject
            .interface_mac(&interface, &format!("{field}.fromHostInterface"))?
            .to_owned()
    } else if let Some(source) = &source.from_annotation {
        subject
            .required_annotation(source, &format!("{field}.fromAnnotation"))?
            .to_owned()
    } else {
        return Err(Problem::MacUnset.of(field));
    };
    if is_link_address(&text) {
        Ok(Some(text))
    } else {
        Err(Problem::NoMac(text).of(field))
    }
}

fn name(name: Option<&String>) -> Option<String> {
    name.filter(|name| !name.is_empty()).cloned()
}

/// A word of the template, which has the spelling of OpenStack.
fn word<W: Serialize>(word: W) -> String {
    let text = serde_json::to_value(word).unwrap_or_default();
    text.as_str().unwrap_or_default().to_owned()
}

const fn interface_type(type_: EthernetType) -> model::InterfaceType {
    match type_ {
        EthernetType::Bridge => model::InterfaceType::Bridge,
        EthernetType::Dvs => model::InterfaceType::Dvs,
        EthernetType::HwVeb => model::InterfaceType::HwVeb,
        EthernetType::Hyperv => model::InterfaceType::Hyperv,
        EthernetType::Ovs => model::InterfaceType::Ovs,
        EthernetType::Tap => model::InterfaceType::Tap,
        EthernetType::Vhostuser => model::InterfaceType::Vhostuser,
        EthernetType::Vif => model::InterfaceType::Vif,
        EthernetType::Phy => model::InterfaceType::Phy,
    }
}

#[cfg(test)]
mod tests {
    use metal3_api::infrastructure::{BondHashPolicy, BondMode};
    use serde::de::DeserializeOwned;

    use super::*;

    /// Checks how words of the template are rendered.
    fn check<W: DeserializeOwned>(words: &str, rendered: impl Fn(W) -> String) {
        for text in words.split(' ') {
            assert_eq!(rendered(serde_json::from_value(text.into()).unwrap()), text);
        }
    }

    #[test]
    fn words_have_the_spelling_of_the_template() {
        let modes = "balance-rr active-backup balance-xor broadcast balance-tlb balance-alb 802.3ad";
        check::<BondMode>(modes, word);
        check::<BondHashPolicy>("layer2 layer3+4 layer2+3", word);
        assert_eq!(word(BondHashPolicy::Unset), "");
        let types = "bridge dvs hw_veb hyperv ovs tap vhostuser vif phy";
        check(types, |type_| word(interface_type(type_)));
    }
}
