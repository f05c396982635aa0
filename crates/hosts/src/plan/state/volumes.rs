//! The RAID volumes of a host that is prepared: a cleaning makes or removes them.
//!
//! The volumes are recorded when their cleaning is ordered, and again not when it failed. A process that ends between the
//! order and its record finds the node cleaning for the same volumes, or orders the cleaning once more: no disk of a host
//! in this state holds anything.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType};
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::work::Next;

use super::preparing::root_device_hints;
use super::shared::{clear_error, request_transition, require_slot};
use crate::action::Request;
use crate::node::BmcEndpoint;
use crate::node::raid::{self, RaidChange};
use crate::plan::error::Failure;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::disruptive_transition;
use crate::plan::wait;

/// Whether the volumes are not those that the host asks for.
pub(super) fn differ(host: &BareMetalHost) -> bool {
    raid::wanted(host) != host.status.provisioning.raid
}

/// Records what a cleaning that this process did not order, or whose order it did not record, does to the volumes.
pub(super) fn observe_cleaning(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    match &node.provision_state {
        // differs: `host-raid-recorded`. The Go manager makes them again after any error of this state.
        S::CleanFailed => planner.draft.status.provisioning.raid = raid::after_failure(planner.host()),
        S::Cleaning | S::CleanWait if differ(planner.host()) => {
            if let Some(change) = change(planner, node)?
                && !change.logical_disks.is_empty()
                && raid::is_ordered(node, &change.logical_disks)
            {
                planner.draft.status.provisioning.raid = Some(change.recorded);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Orders the cleaning that makes the wanted volumes. Ends the decision while they are not made.
pub(super) fn make(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    // The machine of another is not prepared.
    if planner.host().spec.externally_provisioned == Some(true) {
        return Ok(());
    }
    if !differ(planner.host()) {
        clear_order(planner, node);
        return Ok(());
    }
    let Some(change) = change(planner, node)? else {
        planner.draft.status.provisioning.raid = raid::wanted(planner.host());
        return Ok(());
    };
    require_slot(planner)?;
    if node.provision_state != S::Manageable {
        return Err(request_transition(planner, node, Transition::Manage));
    }
    if let Some(interface) = change.interface
        && node.raid_interface.as_deref() != Some(interface)
    {
        let patch = Patch::default().set(&["raid_interface"], interface);
        planner.request(Request::PatchNode(node.uuid.clone(), patch));
        return Err(Decision::Wait(Next::Requeue));
    }
    order(planner, node, change)
}

fn order(planner: &mut Planner<'_>, node: &Node, change: RaidChange) -> PlanResult<()> {
    let why = if change.logical_disks.is_empty() {
        "spec.raid asks for no volumes"
    } else {
        "spec.raid asks for other volumes"
    };
    if !change.logical_disks.is_empty() && !raid::is_ordered(node, &change.logical_disks) {
        planner.request(Request::SetRaid(node.uuid.clone(), change.logical_disks));
    }
    disruptive_transition(planner, node, Transition::Clean(change.steps), why)?;
    clear_error(planner);
    planner.draft.status.provisioning.root_device_hints = root_device_hints(planner)?;
    planner.draft.status.provisioning.raid = Some(change.recorded);
    Err(Decision::Wait(wait::on_node("Ironic is preparing the disks")))
}

/// After the removal of software volumes Ironic need not know of them: an order that is there means that they may exist.
fn clear_order(planner: &mut Planner<'_>, node: &Node) {
    let recorded = planner.host().status.provisioning.raid.as_ref();
    let are_removed = recorded.is_some_and(|raid| raid.software_raid_volumes.as_ref().is_some_and(Vec::is_empty));
    if are_removed && raid::may_have_software(node) {
        planner.request(Request::SetRaid(node.uuid.clone(), Vec::new()));
    }
}

fn change(planner: &Planner<'_>, node: &Node) -> PlanResult<Option<RaidChange>> {
    let host = planner.host();
    let address = host.spec.bmc.as_ref().map_or("", |bmc| &bmc.address);
    let endpoint = BmcEndpoint::of(address, &planner.facts.settings.node);
    let change = endpoint.and_then(|endpoint| raid::change(host, &endpoint.profile(), node));
    change.map_err(|error| Decision::Fail(Failure::until_host_changes(ErrorType::Preparation, error.to_string())))
}
