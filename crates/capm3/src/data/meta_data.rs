//! The metadata of a machine: a map of text, filled list by list.
//!
//! A later list overwrites equal keys of an earlier one, and the provider ID overwrites every other value. The order is
//! part of the contract and differs from that of the template.

use std::collections::BTreeMap;

use metal3_api::infrastructure::v1beta2::{FromHostInterface, FromPool, IndexEntry, MetaData};
use serde_json::Value;

use super::pools::{Grants, PoolRef};
use super::subject::Subject;
use super::{DataError, Problem, yaml};

/// Key of the provider ID without its scheme.
const PROVIDER_ID: &str = "providerid";

#[derive(Clone, Copy)]
pub(super) enum PoolProperty {
    Address,
    Prefix,
    Gateway,
    DnsServers,
}

impl PoolProperty {
    /// The list in the template that requests it.
    pub(super) const fn list(self) -> &'static str {
        match self {
            Self::Address => "ipAddressesFromPool",
            Self::Prefix => "prefixesFromPool",
            Self::Gateway => "gatewaysFromPool",
            Self::DnsServers => "dnsServersFromPool",
        }
    }
}

pub(super) fn pool_entries(meta_data: &MetaData) -> [(PoolProperty, &[FromPool]); 4] {
    [
        (PoolProperty::Address, &meta_data.ip_addresses_from_pool),
        (PoolProperty::Prefix, &meta_data.prefixes_from_pool),
        (PoolProperty::Gateway, &meta_data.gateways_from_pool),
        (PoolProperty::DnsServers, &meta_data.dns_servers_from_pool),
    ]
}

pub(super) fn field(list: &str, position: usize) -> String {
    format!("spec.metaData.{list}[{position}]")
}

/// Renders the metadata.
///
/// # Errors
/// When the host lacks a requested property, or a pool has granted nothing.
pub fn render(meta_data: &MetaData, subject: &Subject<'_>, grants: &Grants) -> Result<String, DataError> {
    let entries = entries(meta_data, subject, grants)?;
    let map = entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), Value::from(value)));
    Ok(yaml::document(&Value::Object(map.collect())))
}

fn entries<'a>(
    meta_data: &'a MetaData,
    subject: &Subject<'_>,
    grants: &Grants,
) -> Result<BTreeMap<&'a str, String>, DataError> {
    let mut map = BTreeMap::new();
    for (position, entry) in meta_data.from_host_interfaces.iter().enumerate() {
        let mac = hardware_address(entry, subject, &field("fromHostInterfaces", position))?;
        map.insert(entry.key.as_str(), mac.to_owned());
    }
    for (property, entries) in pool_entries(meta_data) {
        for (position, entry) in entries.iter().enumerate() {
            map.insert(
                &entry.key,
                granted(property, entry, grants, &field(property.list(), position))?,
            );
        }
    }
    for entry in &meta_data.indexes {
        map.insert(&entry.key, number(entry, subject.index));
    }
    for entry in &meta_data.namespaces {
        map.insert(&entry.key, subject.namespace.to_owned());
    }
    for entry in &meta_data.object_names {
        map.insert(&entry.key, subject.name(entry.object).to_owned());
    }
    for entry in &meta_data.from_labels {
        map.insert(&entry.key, subject.label(entry.object, &entry.label).to_owned());
    }
    for entry in &meta_data.from_annotations {
        map.insert(
            &entry.key,
            subject.annotation(entry.object, &entry.annotation).to_owned(),
        );
    }
    for entry in &meta_data.strings {
        map.insert(&entry.key, entry.value.clone());
    }
    map.insert(PROVIDER_ID, subject.provider_id());
    Ok(map)
}

fn hardware_address<'a>(entry: &FromHostInterface, subject: &Subject<'a>, field: &str) -> Result<&'a str, DataError> {
    if entry.from_boot_mac == Some(true) {
        return subject.boot_mac(field);
    }
    let interface = entry.interface.as_deref().filter(|name| !name.is_empty());
    let interface = interface.ok_or_else(|| Problem::InterfaceUnnamed.of(field))?;
    subject.interface_mac(interface, field)
}

fn granted(property: PoolProperty, entry: &FromPool, grants: &Grants, field: &str) -> Result<String, DataError> {
    let pool = PoolRef::of_entry(entry, field)?;
    let grant = grants.of(&pool, field)?;
    match property {
        PoolProperty::Address => Ok(grant.address.clone()),
        PoolProperty::Prefix => {
            let missing = || Problem::NoPrefix { pool: pool.to_string() }.of(field);
            grant.prefix.map(|prefix| prefix.to_string()).ok_or_else(missing)
        }
        PoolProperty::Gateway => Ok(grant.gateway.clone()),
        // differs (`metadata-dns-servers`): the Go manager claims an address for such an entry and renders no value.
        PoolProperty::DnsServers => Ok(grant.dns_servers.join(",")),
    }
}

/// Offset plus step times index, between prefix and suffix. 64 bits hold the result of the three 32-bit numbers.
fn number(entry: &IndexEntry, index: i32) -> String {
    // A step of 0 would give every machine the same number; it counts as unset.
    let step = entry.step.filter(|step| *step != 0).unwrap_or(1);
    let number = i64::from(entry.offset.unwrap_or(0)) + i64::from(step) * i64::from(index);
    let (prefix, suffix) = (entry.prefix.as_deref(), entry.suffix.as_deref());
    format!("{}{number}{}", prefix.unwrap_or_default(), suffix.unwrap_or_default())
}
