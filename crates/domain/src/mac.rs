//! Hardware addresses of network interfaces.
//!
//! Text is parsed by the rules of Go's `net.ParseMAC`: pairs of digits joined by `:` or `-`, or groups of four joined
//! by `.`, for 6, 8 or 20 octets. Addresses are printed as Ironic prints them: lower case with colons. Rendered network
//! data accepts fewer forms, see [`is_link_address`].

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Octets of the longest address.
const LONGEST: usize = 20;

/// Why text is no hardware address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{text:?} is not a MAC address; write 6 pairs of hexadecimal digits joined by ':' (8 or 20 pairs for EUI-64 and InfiniBand)"
)]
pub struct MacError {
    /// The text.
    pub text: String,
}

/// A hardware address of 6 (Ethernet), 8 (EUI-64) or 20 (InfiniBand) octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MacAddress {
    /// Ethernet.
    Ethernet([u8; 6]),
    /// EUI-64.
    Eui64([u8; 8]),
    /// IP over InfiniBand.
    InfiniBand([u8; LONGEST]),
}

impl MacAddress {
    /// Reads an address in any of the accepted forms.
    ///
    /// # Errors
    /// When the text has another form or mixes separators.
    pub fn parse(text: &str) -> Result<Self, MacError> {
        octets(text)
            .and_then(|octets| {
                let ethernet = <[u8; 6]>::try_from(octets.as_slice()).map(Self::Ethernet);
                let eui64 = || <[u8; 8]>::try_from(octets.as_slice()).map(Self::Eui64);
                let infiniband = || <[u8; LONGEST]>::try_from(octets.as_slice()).map(Self::InfiniBand);
                ethernet.or_else(|_| eui64()).or_else(|_| infiniband()).ok()
            })
            .ok_or_else(|| MacError { text: text.to_owned() })
    }

    /// The octets in order.
    #[must_use]
    pub const fn octets(&self) -> &[u8] {
        match self {
            Self::Ethernet(octets) => octets,
            Self::Eui64(octets) => octets,
            Self::InfiniBand(octets) => octets,
        }
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, octet) in self.octets().iter().enumerate() {
            let separator = if index == 0 { "" } else { ":" };
            write!(f, "{separator}{octet:02x}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for MacAddress {
    type Error = MacError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<MacAddress> for String {
    fn from(address: MacAddress) -> Self {
        address.to_string()
    }
}

/// Whether the text is a valid link address in rendered network data: six pairs joined by `:` or `-`, mixed or not.
///
/// Such text is rendered as written, so it is checked but not converted.
#[must_use]
pub fn is_link_address(text: &str) -> bool {
    let mut groups = 0;
    let pairs = text.split([':', '-']).all(|pair| {
        groups += 1;
        pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    pairs && groups == 6
}

fn octets(text: &str) -> Option<Vec<u8>> {
    let (separator, width) = match text.chars().find(|c| !c.is_ascii_hexdigit())? {
        '.' => ('.', 4),
        separator @ (':' | '-') => (separator, 2),
        _ => return None,
    };
    let mut octets = Vec::with_capacity(LONGEST);
    for group in text.split(separator) {
        if group.len() != width || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let number = u16::from_str_radix(group, 16).ok()?.to_be_bytes();
        // A pair is the low octet of the number, four digits are both octets.
        octets.extend(number.into_iter().skip(usize::from(width == 2)));
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFINIBAND: &str = "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0d:3b:5f";

    #[test]
    fn every_accepted_form_has_one_spelling() {
        for text in ["52:54:00:AB:cd:0f", "52-54-00-ab-cd-0f", "5254.00ab.cd0f"] {
            assert_eq!(
                MacAddress::parse(text).unwrap().to_string(),
                "52:54:00:ab:cd:0f",
                "{text:?}"
            );
        }
        assert_eq!(MacAddress::parse("02:00:5e:10:00:00:00:01").unwrap().octets().len(), 8);
        assert_eq!(
            MacAddress::parse("0200.5e10.0000.0001").unwrap().to_string(),
            "02:00:5e:10:00:00:00:01"
        );
        assert_eq!(MacAddress::parse(INFINIBAND).unwrap().to_string(), INFINIBAND);
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "525400abcd0f",
            "52:54:00",
            "52:54:00:ab:cd:0f:01",
            "52:54:00:ab:cd-0f",
            "5:54:00:ab:cd:0f",
            "+5:54:00:ab:cd:0f",
            "52:54:00:ab:cd:0g",
            "52:54:00:ab:cd:0f ",
            "52:54:00:ab:cd:",
            "525.400.abc.d0f",
        ] {
            assert_eq!(
                MacAddress::parse(text),
                Err(MacError { text: text.to_owned() }),
                "{text:?}"
            );
        }
    }

    #[test]
    fn link_address_is_six_pairs_with_either_separator() {
        for text in ["52:54:00:AB:CD:EF", "52-54-00-ab-cd-ef", "52:54-00:ab-cd:ef"] {
            assert!(is_link_address(text), "{text:?}");
        }
        for text in [
            "",
            "5254.00ab.cdef",
            "52:54:00:11:22",
            INFINIBAND,
            "52:54:00:11:22:3g",
            " 52:54:00:11:22:33",
        ] {
            assert!(!is_link_address(text), "{text:?}");
        }
    }

    #[test]
    fn decoding_normalises() {
        let address: MacAddress = serde_json::from_str("\"52-54-00-AB-CD-EF\"").unwrap();
        assert_eq!(serde_json::to_string(&address).unwrap(), "\"52:54:00:ab:cd:ef\"");
    }
}
