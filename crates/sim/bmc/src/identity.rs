//! The identity of a machine, derived from its number.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// The number of a machine in its lab, from 1 on. Zero is unused, so that a default is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Number(pub u16);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Number {
    /// The system UUID, which is also the id of its Redfish resources.
    #[must_use]
    pub fn uuid(self) -> String {
        format!("00000000-0000-4000-8000-{:012x}", self.0)
    }

    /// The MAC address of a network card, from a locally administered range.
    #[must_use]
    pub fn mac(self, nic: usize) -> String {
        let [high, low] = self.0.to_be_bytes();
        let nic = u8::try_from(nic).unwrap_or(u8::MAX);
        format!("52:54:01:{high:02x}:{low:02x}:{nic:02x}")
    }

    /// The serial number on the chassis.
    #[must_use]
    pub fn serial(self) -> String {
        format!("LAB{:05}", self.0)
    }

    /// The address of the BMC: `network` plus the number.
    #[must_use]
    pub fn bmc_address(self, network: Ipv4Addr) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(network).wrapping_add(u32::from(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_share_no_identity() {
        let (a, b) = (Number(1), Number(257));
        assert_ne!(a.uuid(), b.uuid());
        assert_ne!(a.mac(0), b.mac(0));
        assert_ne!(a.mac(0), a.mac(1));
        assert_eq!(
            b.bmc_address(Ipv4Addr::new(127, 77, 0, 0)),
            Ipv4Addr::new(127, 77, 1, 1)
        );
    }
}
