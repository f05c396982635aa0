//! The ports of the host's node: created before the node is verified, and when its record may have none.

use std::borrow::Cow;

use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState as State};
use metal3_domain::mac::MacAddress;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use super::register::invalid;
use crate::action::Request;
use crate::facts::{Read, RefusalClass, Refused};
use crate::node::ports::{self, DesiredPort};
use crate::plan::planner::{Decision, PlanResult, Planner};

/// Whether Ironic rejected a port of a host that does not boot from it any more, as one that another node has. It is left
/// out: neither the power nor the removal of the machine depends on it.
pub(crate) fn is_port_left_out(host: &BareMetalHost, refused: &Refused) -> bool {
    // differs: `host-port-past`. The Go manager ends the reconcile, so the power is not managed and no image is removed.
    let is_rejected = refused.request == "create port" && refused.class == RefusalClass::Invalid;
    is_rejected && ports::is_boot_past(host)
}

/// The rejection of a port that is left out.
fn left_out<'a>(planner: &Planner<'a>) -> Option<&'a Refused> {
    let refused = planner.facts.refused;
    refused.filter(|refused| is_port_left_out(planner.host(), refused))
}

/// The addresses of the wanted ports that are left out: those that Ironic named, or all if it named none.
fn rejected(planner: &Planner<'_>, wanted: &[DesiredPort]) -> Vec<MacAddress> {
    let Some(refused) = left_out(planner) else {
        return Vec::new();
    };
    let message = refused.message.to_ascii_lowercase();
    let all = || wanted.iter().map(|port| port.address);
    let named: Vec<_> = all().filter(|address| message.contains(&address.to_string())).collect();
    if named.is_empty() { all().collect() } else { named }
}

/// Creates the missing ports. Ends the decision if there are any.
pub(super) fn ensure_ports(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    if create_missing_ports(planner, node)? {
        return Err(Decision::Wait(Next::Requeue));
    }
    Ok(())
}

/// Creates the ports of a node that may have none: one that is not verified yet, also when Ironic lost the former node of
/// a host that is long registered. The agent of a node without ports does not find it. The ports come before
/// verification, so a verified node has them.
pub(super) fn add_ports(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    if node.provision_state == S::Enroll {
        create_missing_ports(planner, node)?;
        return Ok(());
    }
    // The states before these read the ports themselves, and an inspection creates those of the cards that it finds.
    let is_prepared = !matches!(
        planner.state(),
        State::Registering | State::Inspecting | State::MatchProfile | State::Preparing
    );
    // The running machine needs none: they are not read again and again for the one that is left out.
    let is_running = matches!(planner.state(), State::Provisioned | State::ExternallyProvisioned);
    if is_running && left_out(planner).is_some() {
        return Ok(());
    }
    let is_unchecked =
        !planner.facts.boot_port_exists && ports::is_boot_port_unknown(&host_of_ports(planner)).map_err(invalid)?;
    if is_prepared && is_unchecked && !planner.is_deleting() {
        ensure_ports(planner, node)?;
    }
    Ok(())
}

/// The host whose ports are created. A boot MAC address that cannot be a port is left out once the host does not boot from
/// it, as that of a network card.
fn host_of_ports<'a>(planner: &Planner<'a>) -> Cow<'a, BareMetalHost> {
    let host = planner.host();
    if !ports::is_boot_past(host) || ports::boot_address(host).is_ok() {
        return Cow::Borrowed(host);
    }
    let mut host = host.clone();
    host.spec.boot_mac_address = None;
    Cow::Owned(host)
}

/// A plan creates at most this many ports: its requests are sent one after the other.
const PORTS_AT_ONCE: usize = 16;

/// Requests the missing ports. Returns whether there are any; ends the decision if more are left than one plan creates.
fn create_missing_ports(planner: &mut Planner<'_>, node: &Node) -> PlanResult<bool> {
    if !ports::may_be_created(&node.provision_state) {
        return Ok(false);
    }
    let host = host_of_ports(planner);
    let hardware = host.status.hardware.as_ref();
    let wanted = ports::wanted(&host, hardware).map_err(invalid)?;
    let rejected = rejected(planner, &wanted);
    if wanted.len() == rejected.len() {
        return Ok(false);
    }
    let found = match planner.facts.ports {
        Observed::Unknown(_) => return Err(Decision::read(Read::Ports)),
        Observed::Absent => &[],
        Observed::Present(found) => found,
    };
    let mut missing = ports::missing(&host, hardware, found).map_err(invalid)?;
    missing.retain(|port| !rejected.contains(&port.address));
    let number = missing.len();
    for port in missing.into_iter().take(PORTS_AT_ONCE) {
        planner.request(Request::CreatePort {
            node: node.uuid.clone(),
            address: port.address,
            pxe_enabled: port.pxe_enabled,
        });
    }
    if number > PORTS_AT_ONCE {
        return Err(Decision::Wait(Next::Requeue));
    }
    Ok(number > 0)
}
