//! The ports of a node, by which Ironic identifies the machine when its agent connects.
//!
//! Ports are only created. An inspection by the agent creates the ports of all cards.

use std::collections::BTreeSet;

use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareDetails, ProvisioningState as State};
use metal3_domain::mac::MacAddress;
use metal3_ironic::model::port::Port;
use metal3_ironic::model::state::ProvisionState as S;

use super::invalid_host::InvalidHost;

/// A host has at most this many ports: more cards than any machine has. The cards come from the user, too.
pub const MOST: usize = 128;

/// A desired port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DesiredPort {
    /// The MAC address.
    pub address: MacAddress,
    /// Whether the machine may boot from the network through it.
    pub pxe_enabled: bool,
}

/// The boot MAC address.
///
/// # Errors
/// When it is invalid or not an Ethernet address, which is all that Ironic accepts.
pub fn boot_address(host: &BareMetalHost) -> Result<Option<MacAddress>, InvalidHost> {
    let text = host.spec.boot_mac_address.as_deref().filter(|text| !text.is_empty());
    match text.map(MacAddress::parse).transpose().map_err(InvalidHost::BootMac)? {
        Some(MacAddress::Eui64(_) | MacAddress::InfiniBand(_)) => Err(InvalidHost::BootMacLong),
        address => Ok(address),
    }
}

/// Whether the host does not boot from its boot address any more: neither its power nor its deletion depends on it. An
/// address that cannot be a port is reported before.
#[must_use]
pub fn is_boot_past(host: &BareMetalHost) -> bool {
    let state = &host.status.provisioning.state;
    host.metadata.deletion_timestamp.is_some()
        || matches!(
            state,
            State::Provisioned | State::ExternallyProvisioned | State::Deprovisioning
        )
}

/// The desired ports: the boot port, then the network cards with Ethernet addresses, up to [`MOST`].
///
/// # Errors
/// When the boot MAC address cannot be used.
pub fn wanted(host: &BareMetalHost, hardware: Option<&HardwareDetails>) -> Result<Vec<DesiredPort>, InvalidHost> {
    let boot = boot_address(host)?.map(|address| DesiredPort {
        address,
        pxe_enabled: true,
    });
    let cards = hardware.map(|hardware| hardware.nics.as_slice()).unwrap_or_default();
    let mut ports: Vec<DesiredPort> = boot.into_iter().collect();
    for card in cards {
        let address = card.mac.as_deref().and_then(|text| MacAddress::parse(text).ok());
        // differs: port-ethernet-only. The Go manager requests a port that Ironic rejects.
        let Some(address @ MacAddress::Ethernet(_)) = address else {
            continue;
        };
        let boots = card.pxe == Some(true);
        let is_full = ports.len() >= MOST;
        // A card with several IP addresses has several entries.
        match ports.iter_mut().find(|port| port.address == address) {
            Some(port) => port.pxe_enabled |= boots,
            // differs: port-limit. The Go manager creates a port for each card that the host names.
            None if is_full => {}
            None => ports.push(DesiredPort {
                address,
                pxe_enabled: boots,
            }),
        }
    }
    Ok(ports)
}

/// The missing ports. `found` are all existing ones.
///
/// # Errors
/// As [`wanted`].
pub fn missing(
    host: &BareMetalHost,
    hardware: Option<&HardwareDetails>,
    found: &[Port],
) -> Result<Vec<DesiredPort>, InvalidHost> {
    // differs: port-address-case. The Go manager compares case-sensitively, and creates the port again on every reconcile.
    let found: BTreeSet<_> = found
        .iter()
        .filter_map(|port| MacAddress::parse(&port.address).ok())
        .collect();
    let is_missing = |desired: &DesiredPort| !found.contains(&desired.address);
    Ok(wanted(host, hardware)?.into_iter().filter(is_missing).collect())
}

/// Whether the port has this address.
#[must_use]
pub fn has_address(port: &Port, address: &MacAddress) -> bool {
    MacAddress::parse(&port.address).is_ok_and(|found| found == *address)
}

/// Whether the boot MAC address is none of the known network cards, so that the ports made of them may not contain it: it
/// was set later, or nothing was inspected.
///
/// # Errors
/// As [`wanted`].
pub fn is_boot_port_unknown(host: &BareMetalHost) -> Result<bool, InvalidHost> {
    let cards = host.status.hardware.as_ref().map(|hardware| hardware.nics.as_slice());
    let mut known = cards.unwrap_or_default().iter().filter_map(|card| card.mac.as_deref());
    Ok(boot_address(host)?.is_some_and(|boot| !known.any(|text| MacAddress::parse(text).is_ok_and(|mac| mac == boot))))
}

/// Whether ports may be created in this state. In the other states the node is locked or its network is in use.
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
