//! The ranges of a pool: which addresses it has, what comes with each, and which one is next.
//!
//! All arithmetic is on one line of places, where IPv4 lies inside of IPv6 as Go keeps it: an address has one place
//! however it is written, and a range that runs from the one into the other counts no address twice. Nothing here walks
//! over addresses; the place of an address is found in the time of a search among the entries.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use metal3_api::ipam::v1alpha1::{AllocationStrategy, IPPoolSpec, PoolRange};
use metal3_domain::ip::{AddressCount, AnyRange, EntryText, IntervalSet, PoolEntry, Range, parse_address};

/// What comes with an address.
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
}

/// The ranges of a pool.
#[derive(Debug, Clone)]
pub struct Ranges {
    entries: Vec<Entry>,
    /// First place of a run to its last and to the entry that comes first in the order of the pool.
    runs: BTreeMap<Ipv6Addr, (Ipv6Addr, usize)>,
    covered: IntervalSet<Ipv6Addr>,
    default: Settings,
    strategy: AllocationStrategy,
    pre_allocated: BTreeMap<String, Option<IpAddr>>,
}

impl Ranges {
    /// Reads the ranges of a pool. An entry that means nothing grants nothing.
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
            default,
            strategy: spec.allocation_strategy.unwrap_or_default(),
            pre_allocated: spec
                .pre_allocations
                .iter()
                .map(|(claim, text)| (claim.clone(), parse_address(text.as_str()).ok()))
                .collect(),
        };
        for written in &spec.pools {
            if let Some(range) = line(written) {
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
        let news: Vec<_> = self.covered.gaps(range).collect();
        self.runs
            .extend(news.iter().map(|run| (run.first(), (run.last(), number))));
        self.covered.insert(range);
        self.entries.push(Entry { range, settings });
    }

    /// Every place of the pool.
    #[must_use]
    pub const fn covered(&self) -> &IntervalSet<Ipv6Addr> {
        &self.covered
    }

    /// Number of addresses.
    #[must_use]
    pub fn capacity(&self) -> AddressCount {
        self.covered.count()
    }

    /// Whether the pool has the address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.entry_of(address).is_some()
    }

    /// What comes with an address: the first entry that has it decides. For an address of no entry, the pool does.
    #[must_use]
    pub fn settings(&self, address: IpAddr) -> &Settings {
        self.entry_of(address).map_or(&self.default, |entry| &entry.settings)
    }

    /// The address kept for a claim: absent, unreadable, or one.
    #[must_use]
    pub fn pre_allocated(&self, claim: &str) -> Option<Option<IpAddr>> {
        self.pre_allocated.get(claim).copied()
    }

    /// The places kept for claims of a given name.
    pub fn reserved(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.pre_allocated.values().flatten().map(|address| place(*address))
    }

    /// The next free address. `lot` is the claim's part in a random choice.
    #[must_use]
    pub fn next_free(&self, taken: &Taken<'_>, lot: u128) -> Option<IpAddr> {
        self.entries.iter().find_map(|entry| {
            let from = match self.strategy {
                AllocationStrategy::Sequential => entry.range.first(),
                AllocationStrategy::Random => {
                    let size = entry.range.count().saturating();
                    entry
                        .range
                        .nth(lot.checked_rem(size).unwrap_or(0))
                        .unwrap_or(entry.range.first())
                }
            };
            let free = taken.first_free(entry.range, from);
            free.or_else(|| taken.first_free(entry.range, entry.range.first()))
                .map(address)
        })
    }

    fn entry_of(&self, address: IpAddr) -> Option<&Entry> {
        let at = place(address);
        let (_, (last, number)) = self.runs.range(..=at).next_back()?;
        self.entries.get(*number).filter(|_| at <= *last)
    }
}

/// Places that cannot be granted: those held, and those that this pass adds to them.
#[derive(Debug)]
pub struct Taken<'a> {
    held: &'a IntervalSet<Ipv6Addr>,
    more: IntervalSet<Ipv6Addr>,
}

impl<'a> Taken<'a> {
    /// What is held, and nothing more so far.
    #[must_use]
    pub const fn by(held: &'a IntervalSet<Ipv6Addr>, more: IntervalSet<Ipv6Addr>) -> Self {
        Self { held, more }
    }

    /// Takes one more.
    pub fn add(&mut self, address: IpAddr) {
        self.more.insert(Range::single(place(address)));
    }

    /// Whether it cannot be granted.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let at = place(address);
        self.held.contains(at) || self.more.contains(at)
    }

    fn first_free(&self, range: Range<Ipv6Addr>, from: Ipv6Addr) -> Option<Ipv6Addr> {
        let mut from = from;
        loop {
            let unheld = self.held.first_free(range, from)?;
            let free = self.more.first_free(range, unheld)?;
            if free == unheld {
                return Some(free);
            }
            from = free;
        }
    }

    /// How many places of the pool can be granted.
    #[must_use]
    pub fn free_of(&self, ranges: &Ranges) -> AddressCount {
        let runs = ranges.covered.ranges();
        let free = runs
            .flat_map(|run| self.held.gaps(run))
            .flat_map(|gap| self.more.gaps(gap));
        free.fold(AddressCount::ZERO, |sum, gap| sum.plus(gap.count()))
    }
}

/// The place of an address on the line.
#[must_use]
pub fn place(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The address at a place.
#[must_use]
pub fn address(place: Ipv6Addr) -> IpAddr {
    IpAddr::V6(place).to_canonical()
}

fn line(written: &PoolRange) -> Option<Range<Ipv6Addr>> {
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
        // A prefix of 0 is none: an entry cannot take the pool's away.
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
