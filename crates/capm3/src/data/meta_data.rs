//! The metadata of a machine: a map of text, filled list by list.
//!
//! A later list overwrites equal keys of an earlier one, and the provider ID overwrites every other value. The order is
//! part of the contract and differs from that of the template.

use std::collections::BTreeMap;

use metal3_api::infrastructure::v1beta2::{FromHostInterface, FromPool, IndexEntry, MetaData};
use serde_json::Value;

use super::pools::{Grant, Grants, PoolRef};
use super::subject::Subject;
use super::{DataError, Problem, yaml};

/// Key of the provider ID without its scheme.
const PROVIDER_ID: &str = "providerid";

/// A property of a grant; `None` where the provider of the pool states none.
type Property = fn(&Grant) -> Option<String>;

/// The lists that request a property of pools.
pub(super) fn pool_lists(meta_data: &MetaData) -> [(&'static str, &[FromPool], Property); 4] {
    [
        ("ipAddressesFromPool", &meta_data.ip_addresses_from_pool, |grant| {
            Some(grant.address.clone())
        }),
        ("prefixesFromPool", &meta_data.prefixes_from_pool, |grant| {
            grant.prefix.map(|prefix| prefix.to_string())
        }),
        ("gatewaysFromPool", &meta_data.gateways_from_pool, |grant| {
            Some(grant.gateway.clone())
        }),
        // differs (`metadata-dns-servers`): the Go manager claims an address for such an entry and renders no value.
        ("dnsServersFromPool", &meta_data.dns_servers_from_pool, |grant| {
            Some(grant.dns_servers.join(","))
        }),
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
    for (list, entries, property) in pool_lists(meta_data) {
        for (position, entry) in entries.iter().enumerate() {
            let field = field(list, position);
            let pool = PoolRef::of_entry(entry, &field)?;
            let value = property(grants.of(&pool, &field)?);
            let value = value.ok_or_else(|| Problem::NoPrefix(pool.to_string()).of(&field))?;
            map.insert(&entry.key, value);
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
    subject.listed_mac(interface, field)
}

/// Offset plus step times index, between prefix and suffix. 64 bits hold the result of the three 32-bit numbers.
///
/// differs (`index-sums-exact`): the Go manager's sum wraps.
fn number(entry: &IndexEntry, index: i32) -> String {
    // A step of 0 would give every machine the same number; it counts as unset.
    let step = entry.step.filter(|step| *step != 0).unwrap_or(1);
    let number = i64::from(entry.offset.unwrap_or(0)) + i64::from(step) * i64::from(index);
    let (prefix, suffix) = (entry.prefix.as_deref(), entry.suffix.as_deref());
    format!("{}{number}{}", prefix.unwrap_or_default(), suffix.unwrap_or_default())
}
