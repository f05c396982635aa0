//! The one gate that every harmful request passes, and the budget of tear-downs.
//!
//! A request that erases leaves only when the host's own status said beforehand what is being done, host and node have
//! been read live in this pass, the node serves nobody else, and nothing says that the machine belongs to somebody
//! else. A request that interrupts needs the same looks; what asks for it is the spec. Each leaves a line on record.

use metal3_api::metal3::v1alpha1::{ErrorType, ProvisioningState as State};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;

use crate::action::{Audit, Harm, Request, Wait};
use crate::claim::{is_at_service, serves_no_other};
use crate::conditions::Held;
use crate::error::Failure;
use crate::facts::{HostSeen, NodeSeen, NodeSight, Read};
use crate::names::{CONFIRM_ANNOTATION, FORMER_ANNOTATION, HELD, reason};
use crate::plan::{End, Pass};
use crate::state::is_cancelled;

/// Adds a harmful request, if it may be made.
pub(crate) fn harm(pass: &mut Pass<'_>, node: &Node, request: Request, why: &str) -> Result<(), End> {
    let harm = request.harm();
    match harm {
        Harm::Erases => {
            recorded(pass, node, &request)?;
            own(pass, node, serves_no_other(pass, node))?;
            ours(pass)?;
        }
        Harm::Interrupts => own(pass, node, is_at_service(pass, node))?,
        Harm::Forgets | Harm::None => {}
    }
    look(pass, harm)?;
    let seen = format!(
        "host state {:?} at version {}, node {} in {}, instance {}",
        pass.state().to_string(),
        pass.version,
        node.uuid,
        node.provision_state,
        node.instance_uuid.as_deref().unwrap_or("none"),
    );
    let why = why.to_owned();
    pass.ask_on_record(request, Audit { why, seen });
    Ok(())
}

/// A transition that may erase what is on the disks.
pub(crate) fn transition(pass: &mut Pass<'_>, node: &Node, to: Transition, why: &str) -> Result<(), End> {
    let uuid: NodeUuid = node.uuid.clone();
    harm(pass, node, Request::Provision(uuid, to), why)
}

/// Asks for a live look at both, together, where one is missing.
pub(crate) fn look(pass: &Pass<'_>, harm: Harm) -> Result<(), End> {
    // Ironic itself refuses to forget a node that is in use, and nothing runs on one that nobody uses.
    let is_idle = *pass.state() == State::PoweringOffBeforeDelete && !was_external(pass);
    if harm == Harm::None || harm == Harm::Forgets || (harm == Harm::Interrupts && is_idle) {
        return Ok(());
    }
    let mut reads = std::collections::BTreeSet::new();
    if pass.facts.host_seen < HostSeen::Live && pass.rules.read_host_first {
        reads.insert(Read::Host);
    }
    let is_live = matches!(pass.facts.node, NodeSight::Found(_, seen) if seen >= NodeSeen::Live);
    if !is_live && pass.rules.read_node_first {
        reads.insert(Read::Node);
    }
    if reads.is_empty() {
        Ok(())
    } else {
        Err(End::Read(reads))
    }
}

/// Whether something may run on the machine that we did not deploy.
fn was_external(pass: &Pass<'_>) -> bool {
    let node_in_use = matches!(pass.facts.node, NodeSight::Found(node, _)
        if node.instance_uuid.is_some() || node.provision_state == ProvisionState::Active);
    node_in_use || pass.host().spec.externally_provisioned == Some(true)
}

/// Whether the status says that this is being done.
fn recorded(pass: &Pass<'_>, node: &Node, request: &Request) -> Result<(), End> {
    let is_recorded = match (pass.state(), request) {
        (State::Provisioning, Request::Provision(_, Transition::Provide | Transition::Deploy { .. })) => true,
        (State::Deprovisioning, Request::Provision(_, Transition::Provide | Transition::Delete)) => true,
        // A deployment whose agent is waited for is given up: nothing that was deployed runs.
        (State::Provisioning, Request::Provision(_, Transition::Delete)) => {
            node.provision_state == ProvisionState::WaitCallBack
        }
        _ => !pass.rules.record_first,
    };
    if is_recorded {
        return Ok(());
    }
    Err(End::Fail(Failure::standing(
        crate::error::kind_in(pass.state()),
        format!("{} is not done to a host in this state", request.verb()),
    )))
}

/// Passes when the node is at the service of this host or of nobody.
fn own(pass: &Pass<'_>, node: &Node, is_own: bool) -> Result<(), End> {
    let instance = match &node.instance_uuid {
        Some(instance) if !is_own => instance,
        _ => return Ok(()),
    };
    let kind = crate::error::kind_in(pass.state());
    let message = format!(
        "in Ironic the node serves instance {instance}, which is not this host; it is left as it is. If nothing needs that \
         instance, remove instance_uuid from node {}; if it is this host's own from before it moved between clusters, name \
         it in the annotation {FORMER_ANNOTATION}",
        node.uuid
    );
    // A host that leaves must not wait for ever: its attempts are counted.
    if pass.is_leaving() {
        return Err(pass.fails(Failure::attempt(kind, message)));
    }
    let wait = Wait::OnNode("the node serves another");
    Err(End::Fail(Failure::until(kind, message, wait)))
}

/// Whether the machine is ours to erase.
fn ours(pass: &Pass<'_>) -> Result<(), End> {
    if pass.host().spec.externally_provisioned == Some(true) && pass.rules.keep_external {
        return Err(End::Fail(Failure::standing(
            ErrorType::Provisioning,
            "spec.externallyProvisioned says that something else deployed the machine, so nothing on it is erased; \
             remove the field to have it deployed or cleaned",
        )));
    }
    Ok(())
}

/// Whether a host that runs something may begin to be torn down now.
pub(crate) fn may_tear_down(pass: &mut Pass<'_>) -> Result<(), End> {
    if !pass.rules.keep_budget {
        return Ok(());
    }
    let budget = pass.facts.budget;
    // What the budget once held waits for a person: a full budget after an hour says nothing about what was meant.
    if budget.left > 0 && !was_held(pass) {
        pass.spend_budget();
        return Ok(());
    }
    if pass.host().annotation(CONFIRM_ANNOTATION).is_some() {
        return Ok(());
    }
    pass.held = Some(Held {
        reason: reason::BUDGET_SPENT,
        message: format!(
            "{} provisioned hosts of the namespace were torn down within one {} before this one was to be, the most that \
             are without a confirmation; this one still runs. Annotate it with {CONFIRM_ANNOTATION} to go on, or take the change back",
            budget.limit, budget.period
        ),
    });
    Err(End::Wait(Wait::OnUser("too many hosts were torn down in a short time")))
}

/// Whether the status says that the budget holds the host.
pub(crate) fn was_held(pass: &Pass<'_>) -> bool {
    let mut conditions = pass.host().status.conditions.iter();
    conditions.any(|condition| condition.type_ == HELD && condition.reason == reason::BUDGET_SPENT.as_str())
}

/// Whether the budget holds the host still, whatever else this pass had to do first: nothing but the status remembers.
pub(crate) fn is_still_held(pass: &Pass<'_>) -> bool {
    let runs = pass.draft.status.provisioning.state == State::Provisioned;
    runs && was_held(pass) && (pass.is_leaving() || is_cancelled(pass.host()))
}
