//! One entry of an address pool: the addresses that `start`, `end` and `subnet` define together.
//!
//! | Given | First | Last |
//! |---|---|---|
//! | start, end | start | end |
//! | start, end, subnet | start | the lower of end and the subnet's last; nothing when start is outside of the subnet |
//! | start, subnet | start | the subnet's last; nothing when start is outside of the subnet |
//! | start | start | the family's last |
//! | subnet, with or without end | the address written in the prefix, plus one | the subnet's last |
//! | end | nothing | |
//!
//! These are the rules of the Go manager, pitfalls included: no address is reserved for gateway or broadcast, and `end`
//! without `start` has no effect. Admission may warn about that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::{Address, AnyPrefix, AnyRange, IpTextError, Prefix, Range, RangeError, parse_address};

/// The members of an entry as written. Empty text counts as absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntryText<'a> {
    /// `start`.
    pub start: Option<&'a str>,
    /// `end`.
    pub end: Option<&'a str>,
    /// `subnet`.
    pub subnet: Option<&'a str>,
}

/// The parsed members of an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolEntry {
    /// First address.
    pub start: Option<IpAddr>,
    /// Last address.
    pub end: Option<IpAddr>,
    /// Bound, or source of addresses when there is no start.
    pub subnet: Option<AnyPrefix>,
}

/// Why an entry of a pool is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EntryError {
    /// `start` cannot be read.
    #[error("start: {0}")]
    Start(IpTextError),
    /// `end` cannot be read.
    #[error("end: {0}")]
    End(IpTextError),
    /// `subnet` cannot be read.
    #[error("subnet: {0}")]
    Subnet(IpTextError),
    /// All three are absent.
    #[error("start, end and subnet are all missing; give at least one")]
    Empty,
    /// IPv4 and IPv6 in one entry.
    #[error("start, end and subnet mix IPv4 and IPv6; write one entry for each family")]
    MixedFamilies,
    /// End before start.
    #[error("start and end: {0}")]
    Reversed(RangeError),
}

impl EntryError {
    /// The member of the entry that is wrong; `None` when it is the entry as a whole.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        match self {
            Self::Start(_) => Some("start"),
            Self::End(_) | Self::Reversed(_) => Some("end"),
            Self::Subnet(_) => Some("subnet"),
            Self::Empty | Self::MixedFamilies => None,
        }
    }
}

impl PoolEntry {
    /// Reads the members of an entry.
    ///
    /// # Errors
    /// When a member cannot be parsed or all three are missing. [`PoolEntry::range`] checks the combination.
    pub fn parse(text: EntryText<'_>) -> Result<Self, EntryError> {
        let address = |member: Option<&str>| member.filter(|text| !text.is_empty()).map(parse_address).transpose();
        let prefix = |member: Option<&str>| member.filter(|text| !text.is_empty()).map(AnyPrefix::parse).transpose();
        let entry = Self {
            start: address(text.start).map_err(EntryError::Start)?,
            end: address(text.end).map_err(EntryError::End)?,
            subnet: prefix(text.subnet).map_err(EntryError::Subnet)?,
        };
        if entry == Self::default() {
            Err(EntryError::Empty)
        } else {
            Ok(entry)
        }
    }

    /// The addresses of the entry; `None` when it has none.
    ///
    /// # Errors
    /// When the members are of different families, or end lies before start.
    pub fn range(&self) -> Result<Option<AnyRange>, EntryError> {
        let families = [
            self.start.map(|address| address.is_ipv4()),
            self.end.map(|address| address.is_ipv4()),
            self.subnet.map(|subnet| matches!(subnet, AnyPrefix::V4(_))),
        ];
        let mut families = families.into_iter().flatten();
        let Some(is_v4) = families.next() else { return Ok(None) };
        if families.any(|other| other != is_v4) {
            // differs (`pool-mixed-families`): the Go manager compares the two as 16 bytes, so such an entry ends only
            // with the last IPv4 address.
            return Err(EntryError::MixedFamilies);
        }
        if is_v4 {
            let subnet = self.subnet.and_then(AnyPrefix::v4);
            Ok(span(self.start.and_then(v4), self.end.and_then(v4), subnet)?.map(AnyRange::V4))
        } else {
            let subnet = self.subnet.and_then(AnyPrefix::v6);
            Ok(span(self.start.and_then(v6), self.end.and_then(v6), subnet)?.map(AnyRange::V6))
        }
    }
}

const fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

const fn v6(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V6(address) => Some(address),
        IpAddr::V4(_) => None,
    }
}

fn span<A: Address>(
    start: Option<A>,
    end: Option<A>,
    subnet: Option<Prefix<A>>,
) -> Result<Option<Range<A>>, EntryError> {
    let Some(first) = start else {
        let after_written = |subnet: Prefix<A>| Range::try_new(subnet.address().next()?, subnet.range().last()).ok();
        return Ok(subnet.and_then(after_written));
    };
    let range = Range::try_new(first, end.unwrap_or(A::HIGHEST)).map_err(EntryError::Reversed)?;
    Ok(match subnet.map(|subnet| subnet.range()) {
        None => Some(range),
        Some(network) if network.contains(first) => range.intersection(&network),
        Some(_) => None,
    })
}
