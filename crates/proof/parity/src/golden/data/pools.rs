//! Simulated address providers: the first address of a pool, or the recorded address of another provider.

use metal3_api::cluster;
use metal3_api::ipam::v1alpha1::{IPAddress, IPAddressSpec, IPClaim, IPPool, PoolRange};
use metal3_api::meta::{IpText, ObjectReference};
use metal3_domain::ip::{AnyRange, EntryText, PoolEntry, address_text};
use serde_json::Value;

use super::objects::CaseObjects;
use crate::values::{list, text};

/// The claim after allocation by its pool, and the address.
pub(super) fn answer(stored: &CaseObjects, mut claim: IPClaim) -> (IPClaim, Option<IPAddress>) {
    let name = claim.spec.pool.name.clone().unwrap_or_default();
    let Some(pool) = stored.get::<IPPool>(&name) else {
        return (claim, None);
    };
    let granted = pool
        .spec
        .pools
        .iter()
        .find_map(|range| Some((first_address(range)?, range)));
    let Some((address, range)) = granted else {
        claim.status.error_message = Some("Exhausted IP Pools".to_owned());
        return (claim, None);
    };
    claim.status.address = Some(ObjectReference::default());
    let own_servers = Some(&range.dns_servers).filter(|servers| !servers.is_empty());
    let spec = IPAddressSpec {
        address: IpText(address),
        prefix: range.prefix.or(pool.spec.prefix),
        gateway: range.gateway.clone().or(pool.spec.gateway),
        dns_servers: own_servers.unwrap_or(&pool.spec.dns_servers).clone(),
        ..IPAddressSpec::default()
    };
    (
        claim,
        Some(IPAddress {
            spec,
            ..IPAddress::default()
        }),
    )
}

/// The claim after allocation by the other provider of the case, and the address.
pub(super) fn answer_elsewhere(
    stored: &CaseObjects,
    input: &Value,
    mut claim: cluster::IPAddressClaim,
) -> (cluster::IPAddressClaim, Option<cluster::IPAddress>) {
    let name = claim.metadata.name.clone().unwrap_or_default();
    let granted = list(input, "/externalIPAM").find(|grant| text(grant, "/claim") == name);
    let Some(address) = granted.map(|grant| text(grant, "/address")) else {
        return (claim, None);
    };
    claim.status.address_ref = Some(cluster::AddressName {
        name: address.to_owned(),
    });
    (claim, stored.get(address))
}

fn first_address(range: &PoolRange) -> Option<String> {
    let entry = PoolEntry::parse(EntryText {
        start: range.start.as_ref().map(IpText::as_str),
        end: range.end.as_ref().map(IpText::as_str),
        subnet: range.subnet.as_ref().map(|subnet| subnet.0.as_str()),
    });
    Some(match entry.ok()?.range().ok()?? {
        AnyRange::V4(range) => address_text(range.first().into()),
        AnyRange::V6(range) => address_text(range.first().into()),
    })
}
