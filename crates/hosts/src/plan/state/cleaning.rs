//! The cleaning that prepares a host: it makes the RAID volumes, changes the BIOS settings, and updates the firmware.

use metal3_api::metal3::v1alpha1::FirmwareUpdate;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{Step, Transition};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::work::Next;

use super::bios as settings;
use super::firmware as updates;
use super::shared::{clear_error, request_transition, require_slot};
use super::volumes::{self, root_device_hints};
use crate::action::Request;
use crate::facts::Read;
use crate::node::bios::{self, Difference};
use crate::node::firmware;
use crate::node::raid::{self, RaidChange};
use crate::plan::agent_wait::require_ready;
use crate::plan::ownership::has_no_other_instance;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::{disruptive_transition, require_live, require_ownership};
use crate::plan::wait;

/// Orders what the host asks for. Ends the decision while it is not done.
pub(super) fn clean(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    // The machine of another is not prepared.
    if planner.host().spec.externally_provisioned == Some(true) {
        return Ok(());
    }
    let settings = settings::differing(planner)?;
    let updates = updates::due(planner, node)?;
    let is_left = !firmware::left(node).is_empty() && !updates.is_empty();
    let (differing, change) = match settings {
        // Ironic polls what an earlier cleaning left during the steps before the first one for the firmware.
        _ if is_left => (Vec::new(), None),
        Ok(differing) => (differing, volumes::required(planner, node)?),
        // The new firmware may have these settings.
        Err(_) if !updates.is_empty() => (Vec::new(), None),
        // A host with settings that its machine cannot have is not erased before.
        Err(failure) => return Err(Decision::Fail(failure)),
    };
    if change.is_none() && differing.is_empty() && updates.is_empty() {
        return Ok(());
    }
    updates::require_known(planner)?;
    updates::require_none_left(planner, node, &firmware::of_all(&updates))?;
    require_ownership(planner, node, has_no_other_instance(planner, node))?;
    if change.is_some() {
        volumes::require_repeatable(planner, node)?;
    } else if updates.is_empty() {
        settings::require_untried(planner, node, &differing)?;
    }
    require_ready(planner)?;
    require_slot(planner)?;
    if node.provision_state != S::Manageable {
        return Err(request_transition(planner, node, Transition::Manage)?);
    }
    if let Some(interface) = change.as_ref().and_then(|change| change.interface)
        && node.raid_interface.as_deref() != Some(interface)
    {
        let patch = Patch::default().set(&["raid_interface"], interface);
        planner.request(Request::PatchNode(node.uuid.clone(), patch));
        return Err(Decision::Wait(Next::Requeue));
    }
    order(planner, node, change, (&differing, &updates))
}

fn order(
    planner: &mut Planner<'_>,
    node: &Node,
    change: Option<RaidChange>,
    (differing, updates): (&[Difference], &[FirmwareUpdate]),
) -> PlanResult<()> {
    // A host that is rejected is not erased before.
    let hints = root_device_hints(planner)?;
    let why = cause(change.as_ref(), differing, updates);
    let mut steps: Vec<Step> = change.iter().flat_map(|change| change.steps.clone()).collect();
    updates::require_readable(planner)?;
    if !differing.is_empty() {
        // An edit may have taken them back.
        require_live(planner, &[Read::Node, Read::Host, Read::FirmwareSettings])?;
        steps.push(bios::step(differing));
    }
    if !updates.is_empty() {
        require_live(planner, &[Read::Node, Read::Host, Read::FirmwareComponents])?;
        // What cannot be recorded is not ordered.
        updates::require_recordable(planner)?;
        steps.push(firmware::step(updates));
    }
    let disks = change.as_ref().map(|change| &change.logical_disks);
    if let Some(disks) = disks.filter(|disks| !disks.is_empty() && !raid::is_ordered(node, disks)) {
        planner.request(Request::SetRaid(node.uuid.clone(), disks.clone()));
    }
    disruptive_transition(planner, node, Transition::Clean(steps), &why)?;
    if !updates.is_empty() {
        updates::record_order(planner, node, updates)?;
    }
    clear_error(planner);
    planner.draft.status.provisioning.root_device_hints = hints;
    let waits = match change {
        Some(change) => {
            planner.draft.status.provisioning.raid = Some(change.recorded);
            "Ironic is preparing the disks"
        }
        None if !updates.is_empty() => "Ironic is updating the firmware",
        None => "Ironic is changing the BIOS settings",
    };
    Err(Decision::Wait(wait::on_node(waits)))
}

fn cause(change: Option<&RaidChange>, differing: &[Difference], updates: &[FirmwareUpdate]) -> String {
    let volumes = change.map(|change| match change.logical_disks.is_empty() {
        true => "spec.raid asks for no volumes",
        false => "spec.raid asks for other volumes",
    });
    let settings = (!differing.is_empty()).then_some("the HostFirmwareSettings ask for other BIOS settings");
    let updates = (!updates.is_empty()).then_some("the HostFirmwareComponents ask for updates");
    let all = volumes.into_iter().chain(settings).chain(updates);
    all.collect::<Vec<_>>().join(", and ")
}
