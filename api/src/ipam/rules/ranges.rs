//! The ranges of a pool at admission.
//!
//! Two similar checks differ. [`admits`] follows the Go manager's webhook: `end` bounds an entry that has a subnet
//! only, an entry with `end` alone begins at the first address, the network address is included. [`grants`] follows the
//! allocator. An address that is admitted but never granted causes a warning.

use std::net::IpAddr;

use metal3_domain::ip::{AnyPrefix, AnyRange, EntryError, EntryText, PoolEntry};

use crate::ipam::v1alpha1::{IPPoolSpec, PoolRange};

/// Parses an entry.
pub(super) fn read(range: &PoolRange) -> Result<PoolEntry, EntryError> {
    PoolEntry::parse(EntryText {
        start: range.start.as_ref().map(|text| text.as_str()),
        end: range.end.as_ref().map(|text| text.as_str()),
        subnet: range.subnet.as_ref().map(|text| text.as_str()),
    })
}

fn entries(spec: &IPPoolSpec) -> impl Iterator<Item = PoolEntry> {
    spec.pools.iter().filter_map(|range| read(range).ok())
}

/// Whether the address passes admission. A pool without entries admits none.
pub(super) fn admits(spec: &IPPoolSpec, address: IpAddr) -> bool {
    entries(spec).any(|entry| {
        let same_family = |other: IpAddr| other.is_ipv4() == address.is_ipv4();
        let above = match (entry.start, entry.subnet) {
            (Some(start), _) => same_family(start) && start <= address,
            (None, Some(subnet)) => contains(subnet, address),
            (None, None) => true,
        };
        let below = match (entry.end, entry.subnet) {
            (Some(end), _) => same_family(end) && address <= end,
            (None, Some(subnet)) => contains(subnet, address),
            (None, None) => true,
        };
        above && below
    })
}

/// Whether the allocator can grant the address.
pub(super) fn grants(spec: &IPPoolSpec, address: IpAddr) -> bool {
    entries(spec).any(|entry| matches!(entry.range(), Ok(Some(range)) if range.contains(address)))
}

fn contains(subnet: AnyPrefix, address: IpAddr) -> bool {
    let range = match subnet {
        AnyPrefix::V4(prefix) => AnyRange::V4(prefix.range()),
        AnyPrefix::V6(prefix) => AnyRange::V6(prefix.range()),
    };
    range.contains(address)
}
