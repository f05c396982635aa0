//! The ranges of a pool: its addresses, their settings, and the next free address.
//!
//! All arithmetic uses IPv6 positions, with IPv4 addresses mapped as Go does: each address has one position in any
//! notation, and a range from IPv4 into IPv6 counts no address twice. Nothing iterates over addresses; lookup is a
//! search among the entries.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use metal3_api::ipam::v1alpha1::{AllocationStrategy, IPPoolSpec, PoolRange};
use metal3_domain::ip::{AddressCount, AnyRange, EntryText, IntervalSet, PoolEntry, Range, parse_address};

/// Settings of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Prefix length.
    pub prefix: Option<i64>,
    /// Gateway, as written in the pool.
    pub gateway: Option<String>,
    /// Name servers, as written in the pool.
    pub dns_servers: Vec<String>,
}

#[derive(Debug, Clone)]
struct Entry {
    range: Range<Ipv6Addr>,
    settings: Settings,
    /// Whether new addresses are granted from it.
    is_granted_from: bool,
}

/// The ranges of a pool.
#[derive(Debug, Clone)]
pub struct Ranges {
    entries: Vec<Entry>,
    /// First position of a run to its last position and to its first entry in the order of the pool.
    runs: BTreeMap<Ipv6Addr, (Ipv6Addr, usize)>,
    covered: IntervalSet<Ipv6Addr>,
    /// The part from which new addresses are granted.
    grantable: IntervalSet<Ipv6Addr>,
    default: Settings,
    strategy: AllocationStrategy,
    pre_allocated: BTreeMap<String, Option<IpAddr>>,
}

impl Ranges {
    /// Parses the ranges of a pool. Invalid entries contribute no address.
    #[must_use]
    pub fn of(spec: &IPPoolSpec) -> Self {
        let default = settings(
            spec.prefix,
            spec.gateway.as_ref(),
            &spec.dns_servers,
            &Settings::default(),
        );
        let mut ranges = Self {
            entries: Vec::new(),
            runs: BTreeMap::new(),
            covered: IntervalSet::new(),
            grantable: IntervalSet::new(),
            default,
            strategy: spec.allocation_strategy.unwrap_or_default(),
            pre_allocated: spec
                .pre_allocations
                .iter()
                .map(|(claim, text)| (claim.clone(), parse_address(text.as_str()).ok()))
                .collect(),
        };
        for written in &spec.pools {
            if let Some(range) = range_of(written) {
                ranges.append(range, written);
            }
        }
        ranges
    }

    fn append(&mut self, range: Range<Ipv6Addr>, written: &PoolRange) {
        let number = self.entries.len();
        let settings = settings(
            written.prefix,
            written.gateway.as_ref(),
            &written.dns_servers,
            &self.default,
        );
        let gaps: Vec<_> = self.covered.gaps(range).collect();
        self.runs
            .extend(gaps.iter().map(|run| (run.first(), (run.last(), number))));
        self.covered.insert(range);
        // An entry with only a start ends with the address family: a random choice would leave the user's network.
        let is_bounded = written.end.is_some() || written.subnet.is_some();
        let is_granted_from = is_bounded || self.strategy == AllocationStrategy::Sequential;
        if is_granted_from {
            self.grantable.insert(range);
        }
        self.entries.push(Entry {
            range,
            settings,
            is_granted_from,
        });
    }

    /// All positions of the pool.
    #[must_use]
    pub const fn covered(&self) -> &IntervalSet<Ipv6Addr> {
        &self.covered
    }

    /// Number of addresses.
    #[must_use]
    pub fn capacity(&self) -> AddressCount {
        self.covered.count()
    }

    /// Whether the pool contains the address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.entry_of(address).is_some()
    }

    /// Settings of an address: those of the first entry that contains it, else those of the pool.
    #[must_use]
    pub fn settings(&self, address: IpAddr) -> &Settings {
        self.entry_of(address).map_or(&self.default, |entry| &entry.settings)
    }

    /// The pre-allocated address of a claim: `Some(None)` when it cannot be parsed.
    #[must_use]
    pub fn pre_allocated(&self, claim: &str) -> Option<Option<IpAddr>> {
        self.pre_allocated.get(claim).copied()
    }

    /// The pre-allocated positions.
    pub fn reserved(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.pre_allocated.values().flatten().map(|address| position(*address))
    }

    /// The next free address. `random_offset` is the start position for the random strategy.
    #[must_use]
    pub fn next_free(&self, taken: &Taken<'_>, random_offset: u128) -> Option<IpAddr> {
        let mut entries = self.entries.iter().filter(|entry| entry.is_granted_from);
        entries.find_map(|entry| {
            let from = match self.strategy {
                AllocationStrategy::Sequential => entry.range.first(),
                AllocationStrategy::Random => {
                    let size = entry.range.count().saturating();
                    entry
                        .range
                        .nth(random_offset.checked_rem(size).unwrap_or(0))
                        .unwrap_or(entry.range.first())
                }
            };
            let free = taken.first_free(entry.range, from);
            free.or_else(|| taken.first_free(entry.range, entry.range.first()))
                .map(address)
        })
    }

    fn entry_of(&self, address: IpAddr) -> Option<&Entry> {
        let at = position(address);
        let (_, (last, number)) = self.runs.range(..=at).next_back()?;
        self.entries.get(*number).filter(|_| at <= *last)
    }
}

/// Positions that cannot be allocated: those in use, and those added during this reconcile.
#[derive(Debug)]
pub struct Taken<'a> {
    used: &'a IntervalSet<Ipv6Addr>,
    added: IntervalSet<Ipv6Addr>,
}

impl<'a> Taken<'a> {
    /// The positions in use, and `added`.
    #[must_use]
    pub const fn by(used: &'a IntervalSet<Ipv6Addr>, added: IntervalSet<Ipv6Addr>) -> Self {
        Self { used, added }
    }

    /// Adds an address.
    pub fn add(&mut self, address: IpAddr) {
        self.added.insert(Range::single(position(address)));
    }

    /// Whether the address cannot be allocated.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let at = position(address);
        self.used.contains(at) || self.added.contains(at)
    }

    fn first_free(&self, range: Range<Ipv6Addr>, from: Ipv6Addr) -> Option<Ipv6Addr> {
        let mut from = from;
        loop {
            let unused = self.used.first_free(range, from)?;
            let free = self.added.first_free(range, unused)?;
            if free == unused {
                return Some(free);
            }
            from = free;
        }
    }

    /// Number of positions of the pool that can still be granted.
    #[must_use]
    pub fn free_of(&self, ranges: &Ranges) -> AddressCount {
        let runs = ranges.grantable.ranges();
        let free = runs
            .flat_map(|run| self.used.gaps(run))
            .flat_map(|gap| self.added.gaps(gap));
        free.fold(AddressCount::ZERO, |sum, gap| sum.plus(gap.count()))
    }
}

/// The position of an address.
#[must_use]
pub fn position(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The address at a position.
#[must_use]
pub fn address(position: Ipv6Addr) -> IpAddr {
    IpAddr::V6(position).to_canonical()
}

fn range_of(written: &PoolRange) -> Option<Range<Ipv6Addr>> {
    let entry = PoolEntry::parse(EntryText {
        start: written.start.as_ref().map(|text| text.as_str()),
        end: written.end.as_ref().map(|text| text.as_str()),
        subnet: written.subnet.as_ref().map(|text| text.as_str()),
    });
    match entry.ok()?.range().ok()?? {
        AnyRange::V4(range) => Some(Range::spanning(
            range.first().to_ipv6_mapped(),
            range.last().to_ipv6_mapped(),
        )),
        AnyRange::V6(range) => Some(range),
    }
}

fn settings(
    prefix: Option<i64>,
    gateway: Option<&metal3_api::meta::IpText>,
    dns_servers: &[metal3_api::meta::IpText],
    default: &Settings,
) -> Settings {
    let texts: Vec<String> = dns_servers.iter().map(ToString::to_string).collect();
    Settings {
        // A prefix of 0 counts as unset: an entry cannot remove the prefix of the pool.
        prefix: prefix.filter(|length| *length != 0).or(default.prefix),
        gateway: gateway
            .map(ToString::to_string)
            .filter(|text| !text.is_empty())
            .or_else(|| default.gateway.clone()),
        dns_servers: if texts.is_empty() {
            default.dns_servers.clone()
        } else {
            texts
        },
    }
}
