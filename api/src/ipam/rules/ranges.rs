//! The ranges of a pool at admission.
//!
//! Two similar checks differ. [`Ranges::admits`] follows the Go manager's webhook: `end` bounds an entry that has a
//! subnet only, an entry with `end` alone begins at the first address, the network address is included.
//! [`Ranges::grants`] follows the allocator. An address that is admitted but never granted causes a warning.
//!
//! A pool of the size that the API server accepts has tens of thousands of entries and addresses. So a rule reads the
//! entries once, and a check of an address is logarithmic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use metal3_domain::ip::{Address, AnyPrefix, AnyRange, EntryError, EntryText, IntervalSet, PoolEntry, Prefix, Range};

use crate::ipam::v1alpha1::{IPPoolSpec, PoolRange};

#[cfg(test)]
thread_local! {
    /// Entries that this thread has parsed: the tests compare their number.
    static PARSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Parses an entry.
pub(super) fn read(range: &PoolRange) -> Result<PoolEntry, EntryError> {
    #[cfg(test)]
    PARSED.set(PARSED.get() + 1);
    PoolEntry::parse(EntryText {
        start: range.start.as_ref().map(|text| text.as_str()),
        end: range.end.as_ref().map(|text| text.as_str()),
        subnet: range.subnet.as_ref().map(|text| text.as_str()),
    })
}

/// Addresses of both families.
#[derive(Debug, Default)]
struct Addresses {
    v4: IntervalSet<Ipv4Addr>,
    v6: IntervalSet<Ipv6Addr>,
}

impl Addresses {
    fn contain(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.v4.contains(address),
            IpAddr::V6(address) => self.v6.contains(address),
        }
    }

    fn insert(&mut self, range: AnyRange) {
        match range {
            AnyRange::V4(range) => self.v4.insert(range),
            AnyRange::V6(range) => self.v6.insert(range),
        }
    }
}

/// The addresses of all entries of a pool.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    admitted: Addresses,
    granted: Addresses,
}

impl Ranges {
    /// Reads the entries. Those that cannot be read have no address.
    pub(super) fn of(spec: &IPPoolSpec) -> Self {
        let mut ranges = Self::default();
        for entry in spec.pools.iter().filter_map(|range| read(range).ok()) {
            if let Some(range) = admitted(&entry) {
                ranges.admitted.insert(range);
            }
            if let Ok(Some(range)) = entry.range() {
                ranges.granted.insert(range);
            }
        }
        ranges
    }

    /// Whether the address passes admission. A pool without entries admits none.
    pub(super) fn admits(&self, address: IpAddr) -> bool {
        self.admitted.contain(address)
    }

    /// Whether the allocator can grant the address.
    pub(super) fn grants(&self, address: IpAddr) -> bool {
        self.granted.contain(address)
    }
}

/// The addresses of an entry that pass admission: none when the members that bound it are of two families.
fn admitted(entry: &PoolEntry) -> Option<AnyRange> {
    let (subnet_v4, subnet_v6) = (
        entry.subnet.and_then(AnyPrefix::v4),
        entry.subnet.and_then(AnyPrefix::v6),
    );
    // A start and an end that are both given bound the entry alone.
    match (entry.start, entry.end) {
        (Some(IpAddr::V4(start)), Some(IpAddr::V4(end))) => within(start, end, None).map(AnyRange::V4),
        (Some(IpAddr::V6(start)), Some(IpAddr::V6(end))) => within(start, end, None).map(AnyRange::V6),
        (Some(_), Some(_)) => None,
        (Some(IpAddr::V4(start)), None) => bounded(start, Ipv4Addr::HIGHEST, entry.subnet, subnet_v4).map(AnyRange::V4),
        (Some(IpAddr::V6(start)), None) => bounded(start, Ipv6Addr::HIGHEST, entry.subnet, subnet_v6).map(AnyRange::V6),
        (None, Some(IpAddr::V4(end))) => bounded(Ipv4Addr::UNSPECIFIED, end, entry.subnet, subnet_v4).map(AnyRange::V4),
        (None, Some(IpAddr::V6(end))) => bounded(Ipv6Addr::UNSPECIFIED, end, entry.subnet, subnet_v6).map(AnyRange::V6),
        (None, None) => match entry.subnet? {
            AnyPrefix::V4(subnet) => Some(AnyRange::V4(subnet.range())),
            AnyPrefix::V6(subnet) => Some(AnyRange::V6(subnet.range())),
        },
    }
}

/// The range inside the subnet, if there is one: `own` is the subnet when it is of the same family.
fn bounded<A: Address>(first: A, last: A, subnet: Option<AnyPrefix>, own: Option<Prefix<A>>) -> Option<Range<A>> {
    match (subnet, own) {
        (None, _) => within(first, last, None),
        (Some(_), Some(own)) => within(first, last, Some(own.range())),
        (Some(_), None) => None,
    }
}

fn within<A: Address>(first: A, last: A, bound: Option<Range<A>>) -> Option<Range<A>> {
    let range = Range::try_new(first, last).ok()?;
    match bound {
        Some(bound) => range.intersection(&bound),
        None => Some(range),
    }
}

#[cfg(test)]
mod tests {
    use metal3_domain::ip::parse_address;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::ipam::v1alpha1::IPPool;
    use crate::rules::{Change, review};

    fn same_family(one: IpAddr, other: IpAddr) -> bool {
        one.is_ipv4() == other.is_ipv4()
    }

    fn contains(subnet: AnyPrefix, address: IpAddr) -> bool {
        match subnet {
            AnyPrefix::V4(prefix) => AnyRange::V4(prefix.range()).contains(address),
            AnyPrefix::V6(prefix) => AnyRange::V6(prefix.range()).contains(address),
        }
    }

    /// The definition of the Go manager's webhook, for one entry and one address.
    fn is_admitted(entry: &PoolEntry, address: IpAddr) -> bool {
        let above = match (entry.start, entry.subnet) {
            (Some(start), _) => same_family(start, address) && start <= address,
            (None, Some(subnet)) => contains(subnet, address),
            (None, None) => true,
        };
        let below = match (entry.end, entry.subnet) {
            (Some(end), _) => same_family(end, address) && address <= end,
            (None, Some(subnet)) => contains(subnet, address),
            (None, None) => true,
        };
        above && below
    }

    #[test]
    fn ranges_contain_what_one_of_their_entries_contains() {
        let addresses = [
            "0.0.0.0",
            "10.0.0.0",
            "10.0.0.9",
            "10.0.0.255",
            "255.255.255.255",
            "::",
            "2001:db8::9",
            "2001:db8::1:0",
        ];
        let ends: Vec<Option<&str>> = addresses
            .iter()
            .copied()
            .map(Some)
            .chain([None, Some("router")])
            .collect();
        let subnets = [
            None,
            Some("10.0.0.4/24"),
            Some("0.0.0.0/0"),
            Some("2001:db8::/112"),
            Some("10.0.0.0/33"),
        ];
        let mut spec = IPPoolSpec::default();
        let mut checked = 0;
        for (start, end, subnet) in ends
            .iter()
            .flat_map(|start| ends.iter().map(move |end| (*start, *end)))
            .flat_map(|(start, end)| subnets.iter().map(move |subnet| (start, end, *subnet)))
        {
            spec.pools = vec![PoolRange {
                start: start.map(Into::into),
                end: end.map(Into::into),
                subnet: subnet.map(Into::into),
                ..PoolRange::default()
            }];
            let ranges = Ranges::of(&spec);
            let entry = read(&spec.pools[0]).ok();
            for address in addresses.map(|text| parse_address(text).unwrap()) {
                checked += 1;
                let case = format!("{start:?} {end:?} {subnet:?} {address}");
                assert_eq!(
                    ranges.admits(address),
                    entry.is_some_and(|entry| is_admitted(&entry, address)),
                    "{case}"
                );
                let granted = |entry: PoolEntry| matches!(entry.range(), Ok(Some(range)) if range.contains(address));
                assert_eq!(ranges.grants(address), entry.is_some_and(granted), "{case}");
            }
        }
        assert_eq!(checked, 10 * 10 * 5 * 8);
    }

    fn address(number: usize) -> String {
        format!("10.0.{}.{}", number / 256, number % 256)
    }

    fn pool(ranges: Vec<Value>, pre_allocated: Map<String, Value>, granted: Map<String, Value>) -> IPPool {
        let spec = json!({ "namePrefix": "p", "pools": ranges, "preAllocations": pre_allocated });
        let metadata = json!({ "name": "p", "namespace": "metal" });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": { "indexes": granted } })).unwrap()
    }

    fn addresses(count: usize, address: impl Fn(usize) -> String) -> Map<String, Value> {
        let named = |number: usize| (format!("claim-{number}"), Value::from(address(number)));
        (0..count).map(named).collect()
    }

    fn parsed(work: impl FnOnce()) -> usize {
        let before = PARSED.get();
        work();
        PARSED.get() - before
    }

    #[test]
    fn a_review_parses_each_entry_once_for_each_rule_whatever_the_number_of_addresses() {
        const COUNT: usize = 300;
        let single = |number| json!({ "start": address(number), "end": address(number), "gateway": "9.0.0.1" });
        let disjoint: Vec<Value> = (0..COUNT).map(single).collect();
        let wide = |number| json!({ "start": address(number), "end": address(4 * COUNT - number) });
        let nested: Vec<Value> = (0..COUNT).map(wide).collect();
        let outside = |number| address(5 * COUNT + number);
        let last = |_| address(COUNT - 1);
        // Each address is looked up in the last entry, or in all in vain.
        for (ranges, pre_allocated, granted) in [
            (disjoint, addresses(COUNT, address), addresses(COUNT, last)),
            (nested, addresses(COUNT, outside), addresses(COUNT, outside)),
        ] {
            let old = pool(vec![json!({ "subnet": "11.0.0.0/8" })], Map::new(), granted);
            let new = pool(ranges, pre_allocated, Map::new());
            let rules = <IPPool as crate::rules::AdmissionRules>::RULES.len();
            let created = parsed(|| drop(review(&Change::Create(&new))));
            let updated = parsed(|| drop(review(&Change::Update { old: &old, new: &new })));
            let compared = parsed(|| {
                drop(new.out_of_range((0..COUNT).map(address).collect::<Vec<_>>().iter().map(String::as_str)))
            });
            assert!((COUNT..=rules * COUNT).contains(&created), "{created}");
            assert!((COUNT..=rules * (COUNT + 1)).contains(&updated), "{updated}");
            assert_eq!(compared, COUNT);
        }
    }
}
