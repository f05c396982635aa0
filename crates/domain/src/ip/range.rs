//! Address ranges.

use std::cmp::Ordering;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::Address;

/// A range with its first address after its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the range starts at {first} but ends at {last}, which is lower; swap them")]
pub struct RangeError {
    /// The given first address.
    pub first: IpAddr,
    /// The given last address.
    pub last: IpAddr,
}

/// Addresses from a first to a last one, both included. Never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range<A> {
    first: A,
    last: A,
}

impl<A: Address> Range<A> {
    /// Every address of the family.
    #[must_use]
    pub fn whole() -> Self {
        Self::spanning(A::HIGHEST, A::from_number(0).unwrap_or(A::HIGHEST))
    }

    /// The range from `first` to `last`.
    ///
    /// # Errors
    /// When `last` is lower than `first`.
    pub fn try_new(first: A, last: A) -> Result<Self, RangeError> {
        if first <= last {
            Ok(Self { first, last })
        } else {
            Err(RangeError {
                first: first.into(),
                last: last.into(),
            })
        }
    }

    /// The range between two addresses, whichever is lower.
    #[must_use]
    pub fn spanning(one: A, other: A) -> Self {
        Self {
            first: one.min(other),
            last: one.max(other),
        }
    }

    /// The range of one address.
    #[must_use]
    pub const fn single(address: A) -> Self {
        Self {
            first: address,
            last: address,
        }
    }

    /// First address.
    #[must_use]
    pub const fn first(&self) -> A {
        self.first
    }

    /// Last address.
    #[must_use]
    pub const fn last(&self) -> A {
        self.last
    }

    /// Whether the address lies inside.
    #[must_use]
    pub fn contains(&self, address: A) -> bool {
        self.first <= address && address <= self.last
    }

    /// The addresses in both ranges.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        Self::try_new(self.first.max(other.first), self.last.min(other.last)).ok()
    }

    /// Number of addresses.
    #[must_use]
    pub fn count(&self) -> AddressCount {
        AddressCount::of_span(self.last.to_number() - self.first.to_number())
    }

    /// The address `index` places after the first; `None` after the last.
    #[must_use]
    pub fn nth(&self, index: u128) -> Option<A> {
        let address = A::from_number(self.first.to_number().checked_add(index)?)?;
        self.contains(address).then_some(address)
    }
}

impl<A: Address> fmt::Display for Range<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// A range of either family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyRange {
    /// IPv4.
    V4(Range<Ipv4Addr>),
    /// IPv6.
    V6(Range<Ipv6Addr>),
}

impl AnyRange {
    /// Whether the address lies inside; never for the other family.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4(range), IpAddr::V4(address)) => range.contains(address),
            (Self::V6(range), IpAddr::V6(address)) => range.contains(address),
            (Self::V4(_), IpAddr::V6(_)) | (Self::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Number of addresses.
    #[must_use]
    pub fn count(&self) -> AddressCount {
        match self {
            Self::V4(range) => range.count(),
            Self::V6(range) => range.count(),
        }
    }
}

/// A number of addresses. The size of IPv6 exceeds `u128` by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressCount {
    /// Any smaller number.
    Exactly(u128),
    /// 2^128: every IPv6 address.
    AllOfV6,
}

impl AddressCount {
    /// No address.
    pub const ZERO: Self = Self::Exactly(0);

    /// One more than the distance between first and last.
    fn of_span(span: u128) -> Self {
        span.checked_add(1).map_or(Self::AllOfV6, Self::Exactly)
    }

    /// The sum, for disjoint sets; saturates at 2^128.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Exactly(one), Self::Exactly(other)) => one.checked_add(other).map_or(Self::AllOfV6, Self::Exactly),
            (Self::AllOfV6, _) | (_, Self::AllOfV6) => Self::AllOfV6,
        }
    }

    /// The number, saturated to `u128`.
    #[must_use]
    pub const fn saturating(self) -> u128 {
        match self {
            Self::Exactly(count) => count,
            Self::AllOfV6 => u128::MAX,
        }
    }
}

impl Ord for AddressCount {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Exactly(one), Self::Exactly(other)) => one.cmp(other),
            (Self::Exactly(_), Self::AllOfV6) => Ordering::Less,
            (Self::AllOfV6, Self::Exactly(_)) => Ordering::Greater,
            (Self::AllOfV6, Self::AllOfV6) => Ordering::Equal,
        }
    }
}

impl PartialOrd for AddressCount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for AddressCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(count) => count.fmt(f),
            Self::AllOfV6 => f.pad("340282366920938463463374607431768211456"),
        }
    }
}
