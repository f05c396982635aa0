//! The network ports of a node: which it must have so that Ironic knows the machine when its agent calls.
//!
//! Ports are only ever created. An inspection by the agent creates those of every card by itself.

use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareDetails};
use metal3_domain::mac::MacAddress;
use metal3_ironic::model::port::Port;
use metal3_ironic::model::state::ProvisionState as S;

use super::Refusal;

/// A port that a node must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortWish {
    /// Its address.
    pub address: MacAddress,
    /// Whether the machine may boot from the network through it.
    pub pxe_enabled: bool,
}

/// The address from which the host boots.
///
/// # Errors
/// When it is no address, or none of Ethernet, which is all that Ironic takes.
pub fn boot_address(host: &BareMetalHost) -> Result<Option<MacAddress>, Refusal> {
    let text = host.spec.boot_mac_address.as_deref().filter(|text| !text.is_empty());
    match text.map(MacAddress::parse).transpose().map_err(Refusal::BootMac)? {
        Some(MacAddress::Eui64(_) | MacAddress::InfiniBand(_)) => Err(Refusal::BootMacLong),
        address => Ok(address),
    }
}

/// The ports that the node is to have: the one it boots from, then those of its network cards. A card whose address is
/// none of Ethernet has no port.
///
/// # Errors
/// When the address from which the host boots cannot be used.
pub fn wanted(host: &BareMetalHost, hardware: Option<&HardwareDetails>) -> Result<Vec<PortWish>, Refusal> {
    let boot = boot_address(host)?.map(|address| PortWish {
        address,
        pxe_enabled: true,
    });
    let cards = hardware.map(|hardware| hardware.nics.as_slice()).unwrap_or_default();
    let mut ports: Vec<PortWish> = boot.into_iter().collect();
    for card in cards {
        let address = card.mac.as_deref().and_then(|text| MacAddress::parse(text).ok());
        // differs: port-ethernet-only. The Go manager asks for a port that Ironic refuses.
        let Some(address @ MacAddress::Ethernet(_)) = address else {
            continue;
        };
        let boots = card.pxe == Some(true);
        // A card with several IP addresses has as many entries.
        match ports.iter_mut().find(|port| port.address == address) {
            Some(port) => port.pxe_enabled |= boots,
            None => ports.push(PortWish {
                address,
                pxe_enabled: boots,
            }),
        }
    }
    Ok(ports)
}

/// The ports that the node lacks. `found` are all that it has.
///
/// # Errors
/// As [`wanted`].
pub fn missing(
    host: &BareMetalHost,
    hardware: Option<&HardwareDetails>,
    found: &[Port],
) -> Result<Vec<PortWish>, Refusal> {
    let has = |wish: &PortWish| {
        // differs: port-address-case. The Go manager compares the letters' case, and asks again on every pass.
        found
            .iter()
            .any(|port| MacAddress::parse(&port.address).is_ok_and(|address| address == wish.address))
    };
    Ok(wanted(host, hardware)?.into_iter().filter(|wish| !has(wish)).collect())
}

/// Whether ports may be created while the node is in this state. In the others it is locked, or at work on its network.
#[must_use]
pub const fn may_be_created(state: &S) -> bool {
    matches!(
        state,
        S::Enroll
            | S::Manageable
            | S::Available
            | S::Active
            | S::AdoptFailed
            | S::InspectFailed
            | S::CleanFailed
            | S::DeployFailed
            | S::ServiceFailed
            | S::Error
    )
}
