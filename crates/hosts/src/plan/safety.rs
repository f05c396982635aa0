//! The gate for disruptive requests, and the deprovision budget.
//!
//! A request that erases is sent only when the status records the action, host and node were read live in this
//! reconcile, the node serves no other instance, and the host is not externally provisioned. The same holds for each cleaning. A
//! request that interrupts needs the same reads and is caused by the spec. Before both, the node agrees with what the host
//! forbids and keeps, and for a host with `spec.cleaning` the status says what is erased. The record of a node is deleted only after the same reads. Each is logged for audit.

use std::collections::BTreeSet;

use metal3_api::metal3::names::host_error::SERVES_ANOTHER;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, ProvisioningState as State};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;
use metal3_runtime::work::Next;

use crate::action::{Action, Audit, Impact, Request};
use crate::facts::{HostFreshness, NodeFreshness, Read};
use crate::names::{CONFIRM_ANNOTATION, FORMER_ANNOTATION, HELD, reason};
use crate::node;
use crate::node::deployment::method;
use crate::node::firmware::{self, Files};
use crate::plan::cleaning_plan::{self, require_chosen};
use crate::plan::error::Failure;
use crate::plan::ownership::{has_no_other_instance, may_switch_power};
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld};
use crate::plan::state::firmware::require_none_left;
use crate::plan::wait;

pub(crate) fn request_disruptive(
    planner: &mut Planner<'_>,
    node: &Node,
    request: Request,
    why: &str,
) -> PlanResult<()> {
    let impact = request.impact();
    match &request {
        Request::Provision(_, Transition::Clean(steps) | Transition::Service(steps)) => {
            require_none_left(planner, node, &firmware::first_in(steps))?;
        }
        Request::Provision(_, Transition::Provide | Transition::Deploy { .. }) => {
            require_none_left(planner, node, &Files::new())?;
        }
        _ => {}
    }
    match impact {
        Impact::Erases => require_unused(planner, node, &request)?,
        // It may take long, and boots the machine several times.
        Impact::Interrupts if request.is_cleaning() => require_unused(planner, node, &request)?,
        Impact::Interrupts => require_ownership(planner, node, may_switch_power(planner, node))?,
        Impact::RemovesRecord | Impact::None => {}
    }
    require_live_reads(planner, impact)?;
    require_restrictions(planner, node, impact)?;
    require_chosen(planner, &request)?;
    let observed = format!(
        "host state {:?} at version {}, node {} in {}, instance {}",
        planner.state().to_string(),
        planner.version,
        node.uuid,
        node.provision_state,
        node.instance_uuid.as_deref().unwrap_or("none"),
    );
    let why = why.to_owned();
    planner.request_audited(request, Audit { why, observed });
    Ok(())
}

/// Requires that the host asks for this request in its present state, and that the machine is in no use.
fn require_unused(planner: &Planner<'_>, node: &Node, request: &Request) -> PlanResult<()> {
    require_recorded_state(planner, node, request)?;
    require_ownership(planner, node, has_no_other_instance(planner, node))?;
    require_not_external(planner)
}

/// Adds a transition that may erase the disks, or a cleaning.
pub(crate) fn disruptive_transition(
    planner: &mut Planner<'_>,
    node: &Node,
    to: Transition,
    why: &str,
) -> PlanResult<()> {
    let uuid: NodeUuid = node.uuid.clone();
    request_disruptive(planner, node, Request::Provision(uuid, to), why)
}

/// Requires the live reads that a request with this impact needs.
pub(crate) fn require_live_reads(planner: &Planner<'_>, impact: Impact) -> PlanResult<()> {
    match impact {
        Impact::None => Ok(()),
        // Ironic itself deletes a node in use if that is in maintenance.
        Impact::RemovesRecord | Impact::Interrupts | Impact::Erases => require_live(planner, &[Read::Node, Read::Host]),
    }
}

/// Requires live views of host and node; requests those that are missing together.
pub(crate) fn require_live(planner: &Planner<'_>, wanted: &[Read]) -> PlanResult<()> {
    let is_node_live = matches!(planner.facts.own_node(), Some((_, freshness)) if freshness >= NodeFreshness::Live);
    let is_missing = |read: &Read| match read {
        Read::Host => planner.facts.host_freshness < HostFreshness::Live && planner.rules.read_host_first(),
        Read::FirmwareSettings => planner.facts.firmware_settings_freshness < HostFreshness::Live,
        Read::UpdatePolicy => planner.facts.update_policy_freshness < HostFreshness::Live,
        Read::FirmwareComponents => planner.facts.firmware_components_freshness < HostFreshness::Live,
        _ => !is_node_live && planner.rules.read_node_first(),
    };
    let reads: BTreeSet<_> = wanted.iter().copied().filter(is_missing).collect();
    if reads.is_empty() {
        Ok(())
    } else {
        Err(Decision::Read(reads))
    }
}

/// Requires that the state of the host allows this request.
fn require_recorded_state(planner: &Planner<'_>, node: &Node, request: &Request) -> PlanResult<()> {
    let is_recorded = match (planner.state(), request) {
        (State::Provisioning, Request::Provision(_, Transition::Provide | Transition::Deploy { .. })) => true,
        (State::Deprovisioning, Request::Provision(_, Transition::Provide | Transition::Delete)) => true,
        (State::Preparing, Request::Provision(_, Transition::Clean(_))) => true,
        // The deployment waits for its agent: nothing of the image runs yet.
        (State::Provisioning | State::Deleting, Request::Provision(_, Transition::Delete)) => {
            node.provision_state == ProvisionState::WaitCallBack
        }
        _ => !planner.rules.record_first(),
    };
    if is_recorded {
        return Ok(());
    }
    Err(Decision::reject(
        crate::plan::error::kind_in(planner.state()),
        format!("{} is not allowed in this state of the host", request.verb()),
    ))
}

pub(crate) fn require_ownership(planner: &Planner<'_>, node: &Node, is_owned: bool) -> PlanResult<()> {
    let instance = match &node.instance_uuid {
        Some(instance) if !is_owned => instance,
        _ => return Ok(()),
    };
    let kind = crate::plan::error::kind_in(planner.state());
    let message = format!(
        "{SERVES_ANOTHER}{instance}, which is not this host; the node is not changed. If nothing \
         uses that instance, remove instance_uuid from node {}; if it is the former instance of this host from \
         before a move between clusters, set the annotation {FORMER_ANNOTATION} to it",
        node.uuid
    );
    // A deletion must not wait for ever: its attempts are counted.
    if planner.is_deleting() {
        return Err(planner.fail_with_backoff(Failure::retryable(kind, message)));
    }
    let wait = wait::on_node("the node serves another instance");
    Err(Decision::Fail(Failure::until(kind, message, wait)))
}

/// Requires that the node agrees with the fields of the host that forbid something. They may have changed in the same edit
/// as the reason of the request.
fn require_restrictions(planner: &mut Planner<'_>, node: &Node, impact: Impact) -> PlanResult<()> {
    if !matches!(impact, Impact::Erases | Impact::Interrupts) {
        return Ok(());
    }
    // differs: `host-restrictions-first`. The Go manager compares earlier, or not in this state.
    let changes = node::restrictions(planner.host(), node);
    if !changes.patch.is_empty() {
        planner.request(Request::PatchNode(node.uuid.clone(), changes.patch));
        return Err(Decision::Wait(Next::Requeue));
    }
    // No transition ends: a deletion must not wait for ever, so its attempts are counted.
    if !changes.postponed.is_empty() && planner.is_deleting() && !node.provision_state.is_transitional() {
        let message = format!(
            "Ironic accepts automatedCleaningMode and disablePowerOff of the host only when node {} leaves {}; end that \
             state in Ironic",
            node.uuid, node.provision_state
        );
        let kind = crate::plan::error::kind_in(planner.state());
        return Err(planner.fail_with_backoff(Failure::retryable(kind, message)));
    }
    if !changes.postponed.is_empty() {
        return Err(Decision::Wait(wait::on_node(
            "Ironic must first accept automatedCleaningMode and disablePowerOff, which it does after this transition",
        )));
    }
    Ok(())
}

fn require_not_external(planner: &Planner<'_>) -> PlanResult<()> {
    if planner.host().spec.externally_provisioned == Some(true) && planner.rules.keep_external() {
        return Err(Decision::reject(
            ErrorType::Provisioning,
            "spec.externallyProvisioned is set, so the machine is not erased; remove the field to allow deployment \
             and cleaning",
        ));
    }
    Ok(())
}

/// Checks whether deprovisioning of a running host may begin now.
pub(crate) fn check_deprovision_budget(planner: &mut Planner<'_>) -> PlanResult<()> {
    if !planner.rules.keep_budget() {
        return Ok(());
    }
    let budget = planner.facts.budget;
    // A host withheld once needs a confirmation: a refilled budget does not show that the change was intended.
    if budget.left > 0 && !was_withheld(planner) {
        planner.add(Action::ReserveBudget);
        return Ok(());
    }
    if planner.host().annotation(CONFIRM_ANNOTATION).is_some() {
        return Ok(());
    }
    let cleaning = planner.host().spec.cleaning.as_ref();
    let erased = cleaning.map(|_| format!("; {}", cleaning_plan::described(planner.host())));
    planner.withheld = Some(Withheld {
        reason: reason::BUDGET_SPENT,
        message: format!(
            "{} provisioned hosts of the namespace were deprovisioned within one {}, which is the limit without \
             confirmation; this host still runs. Annotate it with {CONFIRM_ANNOTATION} to continue, or revert the \
             change{}",
            budget.limit,
            budget.period,
            erased.unwrap_or_default()
        ),
    });
    Err(Decision::Wait(wait::on_user("the deprovision budget is spent")))
}

/// Whether the status records that the budget withholds the host.
pub(crate) fn was_withheld(planner: &Planner<'_>) -> bool {
    let mut conditions = planner.host().status.conditions.iter();
    conditions.any(|condition| condition.type_ == HELD && condition.reason == reason::BUDGET_SPENT.as_str())
}

/// Whether what runs is not requested any more. Of an image only the URL counts: a new checksum changes nothing on a
/// running machine. A deploy step that is requested for an image that runs without one does not run afterwards.
pub(crate) fn is_cancelled(host: &BareMetalHost) -> bool {
    let (asked, runs) = (
        method(host.spec.custom_deploy.as_ref()),
        method(host.status.provisioning.custom_deploy.as_ref()),
    );
    let url = host.spec.image.as_ref().map_or("", |image| &image.url);
    let deployed = host.status.provisioning.image.url.as_str();
    match (asked, runs) {
        (Some(asked), Some(runs)) if asked != runs => true,
        (Some(_), _) => !deployed.is_empty() && url != deployed,
        (None, Some(_)) => true,
        (None, None) => url.is_empty() || (!deployed.is_empty() && url != deployed),
    }
}

/// Whether the budget still withholds the host. Only the status records it, so it is kept even when this reconcile ends
/// elsewhere.
pub(crate) fn is_still_withheld(planner: &Planner<'_>) -> bool {
    let runs = planner.draft.status.provisioning.state == State::Provisioned;
    runs && was_withheld(planner) && (planner.is_deleting() || is_cancelled(planner.host()))
}
