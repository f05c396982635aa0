//! `inspecting`: Ironic inspects the hardware.

use metal3_api::metal3::names::{INSPECT_ANNOTATION, INSPECTION_DISABLED, REBOOT_ANNOTATION};
use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::Observed;

use super::graph::Trigger;
use super::register::ensure_registered;
use super::shared::{
    abort, failure_reason, request_transition, require_operable, require_recoverable, require_slot, unexpected_state,
    wait_for_agent,
};
use crate::facts::Read;
use crate::names::reason;
use crate::node::inventory;
use crate::plan::agent_wait::require_ready;
use crate::plan::error::Failure;
use crate::plan::object::{record_hardware, remove_annotation};
use crate::plan::ownership::has_no_other_instance;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::{require_live, require_ownership};
use crate::plan::{status, wait};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    if planner.host().inspection_disabled() {
        planner.record_event(reason::INSPECTION_SKIPPED, "inspection is disabled");
        return Ok(Decision::ChangeState(Trigger::NotInspected));
    }
    let node = ensure_registered(planner)?;
    match &node.provision_state {
        // The annotation stays until the new inspection has begun: otherwise the abort would look like a failure.
        S::InspectWait if is_reboot_forced(planner) => abort(planner, node),
        S::Inspecting if is_reboot_forced(planner) => Ok(Decision::Wait(wait::on_node(
            "Ironic is busy; the inspection is aborted next",
        ))),
        S::InspectFailed if is_reboot_forced(planner) => start(planner, node),
        S::InspectWait => {
            remove_request_annotations(planner);
            wait_for_agent(planner, node, "Ironic is inspecting the hardware")
        }
        S::Inspecting => {
            remove_request_annotations(planner);
            Ok(Decision::Wait(wait::on_node("Ironic is inspecting the hardware")))
        }
        // differs: `host-available-known`. A free host that comes from another cluster has no status. The Go manager
        // takes its node out of `available`.
        S::Available if !is_inspection_requested(planner) => match planner.facts.inventory {
            Observed::Unknown(_) => Err(Decision::read(Read::Inventory)),
            Observed::Absent => request_transition(planner, node, Transition::Manage),
            Observed::Present(found) => done(planner, found),
        },
        S::Available => request_transition(planner, node, Transition::Manage),
        S::InspectFailed => {
            require_operable(planner, node)?;
            let error = match planner.recorded_error(ErrorType::Inspection) {
                Some(recorded) => recorded.to_owned(),
                None => failure_reason(planner, node)?,
            };
            planner.retry(&Failure::retryable(ErrorType::Inspection, error))?;
            start(planner, node)
        }
        S::Manageable => {
            require_operable(planner, node)?;
            match planner.facts.inventory {
                _ if is_inspection_requested(planner) => start(planner, node),
                Observed::Unknown(_) => Err(Decision::read(Read::Inventory)),
                Observed::Absent => start(planner, node),
                Observed::Present(found) => done(planner, found),
            }
        }
        S::CleanWait => super::shared::wait_for_cleaning(planner, node),
        S::Verifying | S::Cleaning | S::Adopting => Ok(Decision::Wait(wait::on_node("Ironic is busy"))),
        S::CleanFailed | S::AdoptFailed => {
            require_recoverable(planner, node)?;
            let error = node.last_error.as_deref().unwrap_or("no details");
            planner.retry_node_failure(Failure::retryable(ErrorType::Inspection, error))?;
            super::shared::recover(planner, node)
        }
        _ => Err(unexpected_state(
            planner,
            node,
            "If its system is not needed, undeploy the node in Ironic; to keep it, set spec.disablePowerOff, delete the \
             host and create it again with spec.externallyProvisioned",
        )),
    }
}

pub(super) fn is_inspection_requested(planner: &Planner<'_>) -> bool {
    let asks = |value: &str| value != INSPECTION_DISABLED;
    planner.host().annotation(INSPECT_ANNOTATION).is_some_and(asks)
}

/// Whether a forced reboot restarts the agent. A client annotation with a suffix does not: it would restart the agent
/// for as long as the client keeps it.
pub(super) fn is_reboot_forced(planner: &Planner<'_>) -> bool {
    // differs: `host-forced-reboot-once`. The Go manager aborts as long as any reboot annotation exists.
    let mut requests = planner.host().reboot_requests();
    requests.any(|(name, request)| name == REBOOT_ANNOTATION && request.is_ok_and(|request| request.force))
}

/// Removes the annotations of requests that are in progress.
fn remove_request_annotations(planner: &mut Planner<'_>) {
    remove_annotation(planner, INSPECT_ANNOTATION);
    remove_annotation(planner, REBOOT_ANNOTATION);
}

fn start(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    require_operable(planner, node)?;
    // differs: `host-external-not-inspected`. The Go manager inspects it.
    if planner.host().spec.externally_provisioned == Some(true) {
        return Err(Decision::reject(
            ErrorType::Inspection,
            "spec.externallyProvisioned is set, so the machine is not inspected, which would boot another system; remove the \
             field, or set spec.disablePowerOff, delete the host and create it again with spec.externallyProvisioned",
        ));
    }
    require_ready(planner)?;
    require_slot(planner)?;
    require_ownership(planner, node, has_no_other_instance(planner, node))?;
    // Of a machine that was never inspected the node needs no read: Ironic rejects the order in another state and in maintenance.
    let is_first = node.provision_state == S::Manageable && !is_inspection_requested(planner);
    let reads: &[Read] = if is_first {
        &[Read::Host]
    } else {
        &[Read::Node, Read::Host]
    };
    // differs: `host-inspection-live`. The Go manager inspects by its cache.
    require_live(planner, reads)?;
    remove_request_annotations(planner);
    status::clear_kind(&mut planner.draft.status, ErrorType::Inspection);
    planner.record_event(reason::INSPECTION_STARTED, "Hardware inspection started");
    request_transition(planner, node, Transition::Inspect)
}

fn done(planner: &mut Planner<'_>, found: &Inspection) -> PlanResult {
    let details = inventory::details(found);
    record_hardware(planner, &details)?;
    planner.draft.status.hardware = Some(details);
    planner.record_event(reason::INSPECTION_COMPLETE, "Hardware inspection completed");
    Ok(Decision::ChangeState(Trigger::Inspected))
}
