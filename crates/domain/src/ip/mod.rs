//! IP addresses as text and as numbers: parsing, prefixes, ranges and sets of addresses.
//!
//! Text follows Go's `net.ParseIP` and `net.ParseCIDR`, because pools written for the Go managers must keep their
//! meaning. Arithmetic is done on `u128` and never iterates over addresses: the cost of a set depends on its intervals,
//! so a /64 is as cheap as a single address. The choice of addresses for claims is not part of this module.
//!
//! Invariant: IPv4 and IPv6 never mix. Ranges and sets are generic over one [`Address`] family; only values parsed from
//! text can be of either family, and [`PoolEntry`] rejects a mixture.

mod entry;
mod prefix;
mod range;
mod set;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

pub use entry::{EntryError, EntryText, PoolEntry};
pub use prefix::{AnyPrefix, Prefix};
pub use range::{AddressCount, AnyRange, Range, RangeError};
pub use set::IntervalSet;

mod sealed {
    /// Seals [`super::Address`] for the two families.
    pub trait Sealed {}
    impl Sealed for std::net::Ipv4Addr {}
    impl Sealed for std::net::Ipv6Addr {}
}

/// One of the two address families, as numbers.
pub trait Address: Copy + Ord + fmt::Debug + fmt::Display + Into<IpAddr> + sealed::Sealed {
    /// Bits of an address.
    const BITS: u8;
    /// The highest address.
    const HIGHEST: Self;

    /// The address as a number.
    fn to_number(self) -> u128;

    /// The address of a number; `None` beyond the highest.
    fn from_number(number: u128) -> Option<Self>;

    /// The address after this one; `None` after the highest.
    fn next(self) -> Option<Self> {
        self.to_number().checked_add(1).and_then(Self::from_number)
    }

    /// The address before this one; `None` before zero.
    fn previous(self) -> Option<Self> {
        self.to_number().checked_sub(1).and_then(Self::from_number)
    }
}

impl Address for Ipv4Addr {
    const BITS: u8 = 32;
    const HIGHEST: Self = Self::BROADCAST;

    fn to_number(self) -> u128 {
        u128::from(self.to_bits())
    }

    fn from_number(number: u128) -> Option<Self> {
        u32::try_from(number).ok().map(Self::from_bits)
    }
}

impl Address for Ipv6Addr {
    const BITS: u8 = 128;
    const HIGHEST: Self = Self::from_bits(u128::MAX);

    fn to_number(self) -> u128 {
        self.to_bits()
    }

    fn from_number(number: u128) -> Option<Self> {
        Some(Self::from_bits(number))
    }
}

/// Why text is no address or prefix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IpTextError {
    /// Not an address.
    #[error(
        "{text:?} is not an IP address; write four numbers without leading zeros (192.0.2.7) \
         or an IPv6 address without zone (2001:db8::7)"
    )]
    Address {
        /// The text.
        text: String,
    },
    /// No `/` or a length that is no number or too large.
    #[error("{text:?} is not a prefix; write an address, '/' and a length of at most 32 (IPv4) or 128 (IPv6)")]
    Prefix {
        /// The text.
        text: String,
    },
    /// An IPv4 address written as IPv6 where a prefix is expected.
    #[error("{text:?} is an IPv4 prefix written as IPv6; write it as IPv4")]
    MappedPrefix {
        /// The text.
        text: String,
    },
}

/// Parses an address. An IPv4 address written as IPv6 (`::ffff:192.0.2.7`) is that IPv4 address, as in Go.
///
/// # Errors
/// When the text is anything but one address: leading zeros, a zone or blanks are refused.
pub fn parse_address(text: &str) -> Result<IpAddr, IpTextError> {
    text.parse::<IpAddr>()
        .map(|address| address.to_canonical())
        .map_err(|_| IpTextError::Address { text: text.to_owned() })
}

/// Writes an address as Go does: IPv6 shortened and in lower case, an IPv4 address within IPv6 as IPv4.
///
/// The text parses to the same address.
#[must_use]
pub fn address_text(address: IpAddr) -> String {
    address.to_canonical().to_string()
}

#[cfg(test)]
mod tests;
