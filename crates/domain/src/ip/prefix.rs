//! Prefixes that keep the address as written.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Address, IpTextError, Range};

/// An address and a prefix length, like `192.0.2.10/26`. The host bits are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    address: A,
    length: u8,
}

impl<A: Address> Prefix<A> {
    /// Creates a prefix; `None` when the length exceeds the family's bits.
    #[must_use]
    pub fn try_new(address: A, length: u8) -> Option<Self> {
        (length <= A::BITS).then_some(Self { address, length })
    }

    /// The address as written, host bits included.
    #[must_use]
    pub const fn address(&self) -> A {
        self.address
    }

    /// Length in bits.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Every address of the network, its first and last included.
    #[must_use]
    pub fn range(&self) -> Range<A> {
        let hosts = Self::host_bits(self.length);
        let number = self.address.to_number();
        let at = |number| A::from_number(number).unwrap_or(A::HIGHEST);
        Range::spanning(at(number & !hosts), at(number | hosts))
    }

    /// The network mask as an address: the `netmask` of `network_data`.
    #[must_use]
    pub fn mask(length: u8) -> Option<A> {
        (length <= A::BITS)
            .then(|| A::from_number(A::HIGHEST.to_number() & !Self::host_bits(length)))
            .flatten()
    }

    /// The host bits, all set.
    fn host_bits(length: u8) -> u128 {
        A::HIGHEST.to_number().checked_shr(u32::from(length)).unwrap_or(0)
    }
}

impl<A: Address> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A prefix of either family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyPrefix {
    /// IPv4.
    V4(Prefix<Ipv4Addr>),
    /// IPv6.
    V6(Prefix<Ipv6Addr>),
}

impl AnyPrefix {
    /// The IPv4 prefix, when it is one.
    #[must_use]
    pub const fn v4(self) -> Option<Prefix<Ipv4Addr>> {
        match self {
            Self::V4(prefix) => Some(prefix),
            Self::V6(_) => None,
        }
    }

    /// The IPv6 prefix, when it is one.
    #[must_use]
    pub const fn v6(self) -> Option<Prefix<Ipv6Addr>> {
        match self {
            Self::V6(prefix) => Some(prefix),
            Self::V4(_) => None,
        }
    }

    /// Parses `address/length`. As in Go, leading zeros in the length and host bits are accepted.
    ///
    /// # Errors
    /// When there is no slash, the address is none, or the length is no number or too large. An IPv4 address written as
    /// IPv6 is rejected as ambiguous.
    pub fn parse(text: &str) -> Result<Self, IpTextError> {
        let malformed = || IpTextError::Prefix { text: text.to_owned() };
        let (address, length) = text.split_once('/').ok_or_else(malformed)?;
        let length = Some(length).filter(|length| !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()));
        let length: u8 = length.and_then(|length| length.parse().ok()).ok_or_else(malformed)?;
        let prefix = match address.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
                return Err(IpTextError::MappedPrefix { text: text.to_owned() });
            }
            Ok(IpAddr::V4(address)) => Prefix::try_new(address, length).map(Self::V4),
            Ok(IpAddr::V6(address)) => Prefix::try_new(address, length).map(Self::V6),
            Err(_) => {
                return Err(IpTextError::Address {
                    text: address.to_owned(),
                });
            }
        };
        prefix.ok_or_else(malformed)
    }
}

impl fmt::Display for AnyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}
