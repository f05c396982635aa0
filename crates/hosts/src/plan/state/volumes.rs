//! The RAID volumes of a host that is prepared: a cleaning ([`super::cleaning`]) makes or removes them.
//!
//! The volumes are recorded when their cleaning is ordered, and not any more when it failed. A process that ends between the
//! order and its record finds the node cleaning for the same volumes, or orders the cleaning once more. Another failure says
//! nothing about them: they may hold data.

use metal3_api::metal3::names::host_error::VOLUMES_UNKNOWN;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, ProvisioningState as State, RootDeviceHints};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::Observed;

use super::register::invalid;
use crate::action::Request;
use crate::facts::Read;
use crate::node::raid::{self, FailedCleaning, RaidChange};
use crate::node::{BmcEndpoint, FailedStep, bios, firmware, profile};
use crate::plan::error::{Failure, IN_IRONIC, REJECTED};
use crate::plan::firmware_record::is_of_firmware;
use crate::plan::ownership::has_no_other_instance;
use crate::plan::planner::{Decision, PlanResult, Planner};

/// Whether the volumes are not those that the host asks for.
pub(super) fn differ(planner: &Planner<'_>, node: &Node) -> bool {
    raid::differ(planner.host()) || raid::are_lost(planner.host(), node)
}

/// Records what a cleaning that this process did not order, or whose order it did not record, does to the volumes.
pub(super) fn observe_cleaning(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let host = planner.host();
    match &node.provision_state {
        // differs: `host-raid-recorded`. The Go manager makes them again after any error of this state.
        S::CleanFailed | S::Manageable => {
            if let Some(failed) = failed_cleaning(planner, node)? {
                planner.draft.status.provisioning.raid = raid::after_failure(host, node, failed);
            }
        }
        // One of an operator may destroy volumes that are reported already.
        // One for the BIOS or the firmware makes none, and Ironic's order may be that of an earlier one.
        S::Cleaning | S::CleanWait
            if raid::differ(host) && is_manual(node) && raid::is_made_now(node) && !raid::shows_wanted(host, node) =>
        {
            if let Some(change) = change(planner, host, node)?
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

/// The beginnings of this program's messages about the volumes.
const OTHER_VOLUMES: &str = "Ironic reports other software volumes than those that were ordered";

/// Requires that it is known whether hardware volumes are as recorded: nothing else shows it.
pub(super) fn require_known(planner: &Planner<'_>, node: &Node) -> PlanResult<()> {
    let is_relevant = raid::relies_on_record_of_hardware(planner.host(), node);
    if !is_relevant || failed_cleaning(planner, node)? != Some(FailedCleaning::Unknown) {
        return Ok(());
    }
    Err(unknown_cleaning())
}

fn unknown_cleaning() -> Decision {
    let message = format!(
        "{VOLUMES_UNKNOWN} of spec.raid.hardwareRAIDVolumes, so none is deleted or made; to keep them, remove spec.raid and set it \
         again once the host is available; to have them made again, change that list"
    );
    Decision::reject(ErrorType::Preparation, message)
}

/// Drops the record of hardware volumes whose cleaning may not have ended before Ironic lost the node: the new one says nothing of
/// them. While that is not known, the status keeps the ID of the lost node, so that no other error hides it.
pub(super) fn drop_unfinished(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let known = &planner.host().status.provisioning.id;
    let is_new = !known.is_empty() && *known != node.uuid.as_str();
    if !is_new || *planner.state() != State::Preparing || !raid::relies_on_record_of_hardware(planner.host(), node) {
        return Ok(());
    }
    match planner.facts.erasing {
        Observed::Present(()) => {
            planner.draft.status.provisioning.raid = raid::after_failure(planner.host(), node, FailedCleaning::Volumes);
            Ok(())
        }
        Observed::Absent => Ok(()),
        Observed::Unknown(_) => Err(unknown_cleaning()),
    }
}

/// What the cleaning that failed last was for, if one failed: as the node shows, or as another process recorded before the node
/// became manageable again.
fn failed_cleaning(planner: &Planner<'_>, node: &Node) -> PlanResult<Option<FailedCleaning>> {
    let has_failed = node.provision_state == S::CleanFailed;
    let recorded = planner.recorded_error(ErrorType::Preparation);
    let recorded = recorded.filter(|message| !is_of_this_program(message));
    // What this process ordered, it saw end.
    let is_left = recorded.is_some() && matches!(planner.facts.erasing, Observed::Unknown(_));
    if planner.host().status.provisioning.raid.is_none() || !(has_failed || is_left) {
        return Ok(None);
    }
    let step = match (node.last_error.as_deref().filter(|_| has_failed), recorded) {
        // Ironic erases the error of a node that it can operate.
        (None, None) => match planner.facts.last_history_error {
            Observed::Unknown(_) => return Err(Decision::read(Read::History)),
            Observed::Present(error) => FailedStep::of(error),
            Observed::Absent => FailedStep::Unnamed,
        },
        (shown, recorded) => FailedStep::of(&[shown, recorded].map(Option::unwrap_or_default).join(" ")),
    };
    // Ironic fails the step that runs for an update that an earlier cleaning left.
    let steps = node.last_steps();
    let is_polled = has_failed && raid::is_in(steps) && firmware::in_steps(steps).is_empty();
    let order = planner.facts.cleaning_order.as_ref();
    let is_of_bios = has_failed && order.is_some_and(|order| order.is_only);
    Ok(Some(match (step, &planner.facts.erasing) {
        (FailedStep::Unnamed, _) if is_of_bios => FailedCleaning::Other,
        (FailedStep::Raid, _) | (FailedStep::Unnamed, Observed::Present(())) => FailedCleaning::Volumes,
        (FailedStep::Firmware, _) if is_polled => FailedCleaning::Volumes,
        (FailedStep::Other | FailedStep::Firmware, _) | (FailedStep::Unnamed, Observed::Absent) => {
            FailedCleaning::Other
        }
        (FailedStep::Unnamed, Observed::Unknown(_)) => FailedCleaning::Unknown,
    }))
}

/// Whether an error is not of an operation: this program found it itself, or before it requested one.
fn is_of_this_program(message: &str) -> bool {
    let begins = ["spec.", REJECTED, IN_IRONIC, OTHER_VOLUMES];
    begins.iter().any(|begin| message.starts_with(begin)) || is_of_firmware(message) || is_of_settings(message)
}

fn is_of_settings(message: &str) -> bool {
    bios::is_of_settings(message) || firmware::is_of_updates(message)
}

/// Whether a client ordered the steps of the cleaning.
fn is_manual(node: &Node) -> bool {
    node.target_provision_state.as_deref() == Some(S::Manageable.as_str())
}

/// The cleaning that makes the wanted volumes. `None`: they are made, which is recorded.
pub(super) fn required(planner: &mut Planner<'_>, node: &Node) -> PlanResult<Option<RaidChange>> {
    // With what was observed in this reconcile.
    if !raid::differ(&planner.draft) && !raid::are_lost(&planner.draft, node) {
        clear_order(planner, node);
        return Ok(None);
    }
    let host = planner.draft.clone();
    let change = change(planner, &host, node)?;
    if change.is_none() {
        planner.draft.status.provisioning.raid = raid::settled(&host);
    }
    Ok(change)
}

/// Requires that volumes which another cleaning ended, or an agent reports otherwise, are made again after a delay only.
pub(super) fn require_repeatable(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    if raid::are_lost(&planner.draft, node) && raid::may_have_software(node) {
        let message = format!("{OTHER_VOLUMES}; look at the agent's log of the last cleaning, they are made again");
        planner.retry_node_failure(Failure::retryable(ErrorType::Preparation, message))?;
    }
    Ok(())
}

/// After the removal of software volumes Ironic need not know of them: an order that is there means that they may exist.
fn clear_order(planner: &mut Planner<'_>, node: &Node) {
    let recorded = planner.host().status.provisioning.raid.as_ref();
    let are_removed = recorded.is_some_and(|raid| raid.software_raid_volumes.as_ref().is_some_and(Vec::is_empty));
    if are_removed && raid::may_have_software(node) && has_no_other_instance(planner, node) {
        planner.request(Request::SetRaid(node.uuid.clone(), Vec::new()));
    }
}

fn change(planner: &Planner<'_>, host: &BareMetalHost, node: &Node) -> PlanResult<Option<RaidChange>> {
    let address = host.spec.bmc.as_ref().map_or("", |bmc| &bmc.address);
    let endpoint = BmcEndpoint::of(address, &planner.facts.settings.node);
    let change = endpoint.and_then(|endpoint| raid::change(host, &endpoint.profile(), node));
    change.map_err(|error| Decision::Fail(Failure::until_host_changes(ErrorType::Preparation, error.to_string())))
}

/// The root device of a deployment; `None` when it is a volume.
pub(super) fn root_device_hints(planner: &Planner<'_>) -> PlanResult<Option<RootDeviceHints>> {
    profile::root_device(planner.host()).map_err(invalid)
}
