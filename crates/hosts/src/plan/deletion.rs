//! Deletion: the state that a deleted host enters, the deletion of its node, and the removal of finalizers.
//!
//! Deletion is handled before everything that may delay a host: slots, backoff, a missing Secret. It is bounded: after
//! too many failures deprovisioning is skipped, then powering off.

use metal3_api::metal3::names::{DETACHED_ANNOTATION, HOST_FINALIZER};
use metal3_api::metal3::v1alpha1::{DetachedDelete, OperationalStatus, ProvisioningState as State};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;
use serde_json::Value;

use crate::action::{Count, Impact, Request};
use crate::facts::{ForeignNode, FoundNode, NodeFreshness, Read};
use crate::names::{FORMER_ANNOTATION, reason};
use crate::plan::object::{has_finalizer, release_hardware};
use crate::plan::ownership::is_owned_node;
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld};
use crate::plan::safety::{
    check_deprovision_budget, disruptive_transition, request_disruptive, require_live_reads, was_withheld,
};
use crate::plan::secrets::release_secrets;
use crate::plan::state::graph::Trigger;
use crate::plan::{agent_image, disc, ironic, outage, wait};

/// After more failures than this a deletion skips the failed operation. The Go manager's number.
pub(crate) const MAX_ATTEMPTS: i64 = 3;

/// The failed attempts to remove the system. Failed deployments are part of the count of errors, and are none of them.
pub(crate) fn failed_removals(planner: &Planner<'_>) -> i64 {
    planner.draft.status.error_count - planner.host().status.provisioning_fail_count.max(0)
}
/// The maintenance reason of a node in use before its deletion.
pub(crate) const MAINTENANCE: &str = "forcing deletion in baremetal-operator";

/// Selects the state of a deleted host.
pub(crate) fn handle_deletion(planner: &mut Planner<'_>) -> PlanResult<()> {
    if !planner.is_deleting() {
        return Ok(());
    }
    if !has_finalizer(planner.host()) {
        return Err(Decision::WaitUnchanged(Next::Done));
    }
    if *planner.state() == State::Deprovisioning {
        // Before everything that may delay the deletion: a status that is written meanwhile records the generation.
        count_attempts_from_deletion(planner);
    }
    require_ironic(planner)?;
    if *planner.state() == State::Deleting {
        return Ok(());
    }
    let is_detached = planner.host().status.operational_status == OperationalStatus::Detached;
    match planner.host().detach_request() {
        Some(request) if request.delete == DetachedDelete::Delay => {
            delay_deletion(planner);
            return Ok(());
        }
        // The state is reported as unsupported.
        Some(_) if matches!(planner.state(), State::Other(_)) => return Ok(()),
        Some(_) => return Err(Decision::ChangeState(Trigger::DeletedDetached)),
        // Without the annotation the host is attached first.
        None if is_detached => return Ok(()),
        None => {}
    }
    match planner.state() {
        State::Deprovisioning | State::PoweringOffBeforeDelete | State::Deleting | State::Other(_) => Ok(()),
        State::Provisioned => {
            if planner.host().spec.externally_provisioned == Some(true) && planner.rules.keep_external() {
                return Err(Decision::ChangeState(Trigger::External));
            }
            check_deprovision_budget(planner)?;
            Err(Decision::ChangeState(Trigger::Deleted))
        }
        State::None
        | State::Unmanaged
        | State::Registering
        | State::MatchProfile
        | State::Inspecting
        | State::Preparing
        | State::Available
        | State::Ready
        | State::Provisioning
        | State::ExternallyProvisioned => Err(Decision::ChangeState(Trigger::Deleted)),
    }
}

/// The failures of a host that was deprovisioned before its deletion are no attempts of the deletion: many of them sent
/// no request. The deletion changes the generation, as an edit does, after which the attempts start again, too.
fn count_attempts_from_deletion(planner: &mut Planner<'_>) {
    if planner.has_new_generation() {
        // differs: `host-deletion-attempts`. The Go manager counts all errors since the host was last without one.
        let status = &mut planner.draft.status;
        status.error_count = status.provisioning_fail_count.max(0);
    }
}

/// Reports that the deletion waits on request. Until then the host is only detached.
fn delay_deletion(planner: &mut Planner<'_>) {
    planner.count(Count::One("metal3_delete_delayed_for_detached_total"));
    if !was_withheld(planner) {
        planner.withheld = Some(Withheld {
            reason: reason::DELETION_DELAYED,
            message: format!(
                "the annotation {DETACHED_ANNOTATION} delays the deletion; set its deleteAction to delete to delete the host and \
                 leave the machine as it is, or remove it to deprovision the machine first, which erases its disk unless \
                 spec.automatedCleaningMode is disabled"
            ),
        });
    }
}

/// Reports that a deletion waits for Ironic.
pub(crate) fn require_ironic(planner: &mut Planner<'_>) -> PlanResult<()> {
    // A deletion withheld by the budget waits for the user first, and an outage must not drop that condition.
    let Some(outage) = planner
        .facts
        .outage
        .filter(|_| !is_unknown_to_ironic(planner) && !was_withheld(planner))
    else {
        return Ok(());
    };
    let advice = format!(
        ", and the host cannot be deleted before its node. Restore Ironic; if it is lost permanently, switch the machine \
         off by hand, since its addresses are given to others, and then remove the finalizer {HOST_FINALIZER} from the host"
    );
    planner.withheld = Some(outage::withheld(planner, outage, &advice));
    Err(Decision::Wait(wait::on_unreachable_ironic()))
}

/// Whether Ironic never had a node of the host: it has no BMC, and no node is recorded.
fn is_unknown_to_ironic(planner: &Planner<'_>) -> bool {
    planner.host().is_unmanaged() && planner.host().status.provisioning.id.is_empty()
}

/// Requests the deletion of the node. Returns `Ok` when a search shows that Ironic has no node of the host.
fn ensure_node_deleted(planner: &mut Planner<'_>) -> PlanResult<()> {
    let node = match planner.facts.node {
        // The node may be created late.
        Observed::Absent => {
            planner.require_no_creation()?;
            return ironic::require_nowhere_else(planner, false);
        }
        Observed::Present(FoundNode::Foreign(found)) => {
            report_left_node(planner, found);
            return Ok(());
        }
        Observed::Unknown(_) if planner.facts.outage.is_some() && is_unknown_to_ironic(planner) => return Ok(()),
        Observed::Unknown(_) if planner.rules.search_before_release() => return Err(Decision::read(Read::Node)),
        Observed::Unknown(_) => return Ok(()),
        Observed::Present(FoundNode::Own(_, NodeFreshness::Stale)) if planner.rules.wait_when_stale() => {
            // The feed reports changes, not absence: only a search does.
            return Err(Decision::read(Read::Node));
        }
        Observed::Present(FoundNode::Own(node, _)) => node,
    };
    disc::before_removal(planner, node)?;
    // A detach is forced only on request; a deletion in this state has nothing left to protect.
    delete_node(planner, node, planner.is_deleting())
}

/// Reports the recorded node that is kept because it has not the name of the host. One with the boot address alone never
/// was the host's.
pub(crate) fn report_left_node(planner: &mut Planner<'_>, found: &ForeignNode) {
    if let ForeignNode::Recorded { uuid } = found {
        let message = format!(
            "node {uuid} in status.provisioning.ID has not the name of this host in Ironic and is kept: it may serve another \
             host, or may still operate this machine. If nothing else uses it, an administrator of Ironic deletes it"
        );
        planner.record_warning(reason::NODE_LEFT, message);
    }
}

/// The next step of deleting a node. Returns `Ok` and leaves the node when it does not belong to the host.
pub(crate) fn delete_node(planner: &mut Planner<'_>, node: &Node, is_forced: bool) -> PlanResult<()> {
    // differs: `host-node-of-another`. The Go manager deletes any node that it finds.
    if !is_owned_node(planner, node) {
        let message = format!(
            "node {} in Ironic does not belong to this host or serves another instance, and is kept. If nothing \
             else uses it, delete it in Ironic. If the host moved between clusters, set the annotation \
             {FORMER_ANNOTATION} to the instance that its node serves",
            node.uuid
        );
        planner.record_warning(reason::NODE_LEFT, message);
        return Ok(());
    }
    let id = &node.uuid;
    match &node.provision_state {
        S::Verifying | S::Deploying | S::Cleaning | S::Inspecting | S::Servicing | S::Deleting | S::Adopting => {
            return Err(wait_for_end(planner, node));
        }
        // Before its API 1.110 Ironic does not abort a deployment.
        S::WaitCallBack if is_forced && !planner.facts.aborts_deployments => {
            disruptive_transition(planner, node, Transition::Delete, reason_of_deletion(planner))?;
            return Err(wait_for_end(planner, node));
        }
        // Ironic aborts it after a step that cannot be interrupted, unless the node is in maintenance, in which it deletes it.
        S::CleanWait if node.clean_step.get("abort_after") == Some(&Value::Bool(true)) => {
            if !node.maintenance || !planner.is_deleting() {
                return Err(wait_for_end(planner, node));
            }
            require_live_reads(planner, Impact::RemovesRecord)?;
        }
        // The BMC writes firmware, which an abort would cut by a power-off. Ironic gives it up after two hours.
        S::ServiceWait if !node.firmware_left().is_empty() => return Err(wait_for_end(planner, node)),
        S::InspectWait | S::CleanWait | S::ServiceWait | S::WaitCallBack if is_forced => {
            require_live_reads(planner, Impact::RemovesRecord)?;
            planner.request(Request::Provision(id.clone(), Transition::Abort));
            return Err(wait_for_end(planner, node));
        }
        S::InspectWait | S::CleanWait | S::ServiceWait | S::WaitCallBack => return Err(wait_for_end(planner, node)),
        S::Enroll => {}
        S::Manageable | S::Available => {
            let release = crate::node::instance::release(node);
            if !release.is_empty() {
                require_live_reads(planner, Impact::RemovesRecord)?;
                planner.request(Request::PatchNode(id.clone(), release));
            }
        }
        _ => {
            require_live_reads(planner, Impact::RemovesRecord)?;
            if !node.maintenance {
                planner.request(Request::SetMaintenance(id.clone(), MAINTENANCE));
            }
        }
    }
    let why = reason_of_deletion(planner);
    request_disruptive(planner, node, Request::DeleteNode(id.clone()), why)?;
    Err(Decision::Wait(Next::Requeue))
}

/// Waits for the end of what Ironic does with the node. The change feed wakes the hosts that record a node: one that is
/// deleted while it is registered, or whose status could not be written then, does not record it yet.
fn wait_for_end(planner: &mut Planner<'_>, node: &Node) -> Decision {
    node.uuid.as_str().clone_into(&mut planner.draft.status.provisioning.id);
    Decision::Wait(wait::on_node("Ironic is busy"))
}

fn reason_of_deletion(planner: &Planner<'_>) -> &'static str {
    if planner.is_deleting() {
        "deletion of the host"
    } else {
        "the detached annotation"
    }
}

/// `deleting`: Ironic deletes the node, then the finalizers of the dependent objects are removed, and last the one of
/// the host.
pub(crate) fn finish(planner: &mut Planner<'_>) -> PlanResult {
    ensure_node_deleted(planner)?;
    release_hardware(planner)?;
    release_secrets(planner)?;
    agent_image::release(planner);
    if let Some(finalizers) = &mut planner.draft.metadata.finalizers {
        finalizers.retain(|one| one != HOST_FINALIZER);
    }
    Ok(Decision::Wait(Next::Done))
}
