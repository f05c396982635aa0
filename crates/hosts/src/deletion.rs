//! The way out: which state a deleted host goes to, how Ironic forgets it, and what is let go in the end.
//!
//! Deletion is looked at before everything else that may hold a host up: its turn, a back-off, a missing Secret. It is
//! bounded: what fails too often is passed over, in the order tear-down, switching off.

use metal3_api::metal3::names::HOST_FINALIZER;
use metal3_api::metal3::v1alpha1::{DetachedDelete, OperationalStatus, ProvisioningState as State};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use crate::action::{Count, Request, Wait};
use crate::brakes::{harm, may_tear_down, was_held};
use crate::claim::is_ours;
use crate::conditions::Held;
use crate::facts::{NodeSeen, NodeSight, Read};
use crate::names::{FORMER_ANNOTATION, reason};
use crate::object::release_hardware;
use crate::plan::{End, Pass};
use crate::state::graph::Why;
use crate::state::release_secrets;

/// A leaving host is no longer held up by what has failed more often than this. The Go manager's number.
pub(crate) const MOST_ATTEMPTS: i64 = 3;
/// What a node in use is told before it is forgotten.
const MAINTENANCE: &str = "forcing deletion in baremetal-operator";

/// Sends a deleted host on its way.
pub(crate) fn leave(pass: &mut Pass<'_>) -> Result<(), End> {
    if !pass.is_leaving() {
        return Ok(());
    }
    let finalizers = pass.host().metadata.finalizers.iter().flatten();
    if !finalizers.into_iter().any(|one| one == HOST_FINALIZER) {
        return Err(End::Rest(Wait::Settled));
    }
    out_of_reach(pass)?;
    if *pass.state() == State::Deleting {
        return Ok(());
    }
    let is_detached = pass.host().status.operational_status == OperationalStatus::Detached;
    match pass.host().detach_request() {
        Some(request) if request.delete == DetachedDelete::Delay && !request.force => {
            pass.count(Count::One("metal3_delete_delayed_for_detached_total"));
            return Err(End::Wait(Wait::OnUser(
                "the host is detached and its deletion waits; remove the annotation, or have it say deleteAction: delete",
            )));
        }
        Some(_) => return Err(End::Go(Why::DeletedDetached)),
        // Without its annotation the host is attached again first.
        None if is_detached => return Ok(()),
        None => {}
    }
    match pass.state() {
        State::Deprovisioning | State::PoweringOffBeforeDelete | State::Deleting | State::Other(_) => Ok(()),
        State::Provisioned => {
            if pass.host().spec.externally_provisioned == Some(true) && pass.rules.keep_external {
                return Err(End::Go(Why::External));
            }
            may_tear_down(pass)?;
            Err(End::Go(Why::Deleted))
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
        | State::ExternallyProvisioned => Err(End::Go(Why::Deleted)),
    }
}

/// A host that leaves while Ironic is not reached says so, instead of hanging without a word.
fn out_of_reach(pass: &mut Pass<'_>) -> Result<(), End> {
    // One that the budget holds waits for a person first, and its hold must not be forgotten for an outage.
    let Some(outage) = pass.facts.outage.filter(|_| !is_unheard_of(pass) && !was_held(pass)) else {
        return Ok(());
    };
    pass.held = Some(Held {
        reason: reason::IRONIC_UNREACHABLE,
        message: format!(
            "Ironic is not reached since {} ({}), and the host cannot go before Ironic has forgotten it. Bring Ironic back; if \
             it is gone for good, remove the finalizer {HOST_FINALIZER} from the host",
            outage.since, outage.reason
        ),
    });
    Err(End::Wait(Wait::After(
        crate::facts::OUTAGE_LOOK,
        "Ironic is not reached",
    )))
}

/// Whether Ironic was never told of the host: it has no BMC, and no node was recorded.
fn is_unheard_of(pass: &Pass<'_>) -> bool {
    pass.host().is_unmanaged() && pass.host().status.provisioning.id.is_empty()
}

/// Has Ironic forget the node. Passes when a search shows that it has none of the host.
pub(crate) fn forget(pass: &mut Pass<'_>) -> Result<(), End> {
    let node = match pass.facts.node {
        NodeSight::Absent | NodeSight::Foreign { .. } => return Ok(()),
        NodeSight::Unknown if pass.facts.outage.is_some() && is_unheard_of(pass) => return Ok(()),
        NodeSight::Unknown if pass.rules.search_before_release => return Err(End::read(Read::Node)),
        NodeSight::Unknown => return Ok(()),
        NodeSight::Found(_, NodeSeen::Stale) if pass.rules.wait_when_stale => {
            // The feed tells of changes, not of absence: only a look does.
            return Err(End::read(Read::Node));
        }
        NodeSight::Found(node, _) => node,
    };
    // A detach may be forced; a deletion that came this far has nothing left to lose.
    forget_node(pass, node, pass.is_leaving())
}

/// The next step to have a node forgotten. Passes when the node is not the host's, which leaves it as it is.
pub(crate) fn forget_node(pass: &mut Pass<'_>, node: &Node, is_forced: bool) -> Result<(), End> {
    // differs: `host-node-of-another`. The Go manager forgets whatever it finds.
    if !is_ours(pass, node) {
        let message = format!(
            "node {} in Ironic is not this host's, or serves another; it stays. If nothing else needs it, remove it in \
             Ironic. A host that moved between clusters names in the annotation {FORMER_ANNOTATION} whom its node served \
             before",
            node.uuid
        );
        pass.warn(reason::NODE_LEFT, message);
        return Ok(());
    }
    let id = &node.uuid;
    let wait = End::Wait(Wait::OnNode("Ironic is at work"));
    match &node.provision_state {
        S::Verifying | S::Deploying | S::Cleaning | S::Inspecting | S::Servicing | S::Deleting | S::Adopting => {
            return Err(wait);
        }
        S::InspectWait | S::CleanWait | S::ServiceWait | S::WaitCallBack if is_forced => {
            pass.ask(Request::Provision(id.clone(), Transition::Abort));
            return Err(wait);
        }
        S::InspectWait | S::CleanWait | S::ServiceWait | S::WaitCallBack => return Err(wait),
        S::Enroll => {}
        S::Manageable | S::Available => {
            let release = crate::node::instance::release(node);
            if !release.is_empty() {
                pass.ask(Request::PatchNode(id.clone(), release));
            }
        }
        _ if !node.maintenance => pass.ask(Request::SetMaintenance(id.clone(), MAINTENANCE)),
        _ => {}
    }
    let why = if pass.is_leaving() {
        "deletion of the host"
    } else {
        "the annotation that detaches the host"
    };
    harm(pass, node, Request::DeleteNode(id.clone()), why)?;
    Err(End::Wait(Wait::Again))
}

/// Lets go of everything that waited for the host, and last of the host.
pub(crate) fn release(pass: &mut Pass<'_>) -> Result<End, End> {
    release_hardware(pass)?;
    release_secrets(pass)?;
    if let Some(finalizers) = &mut pass.draft.metadata.finalizers {
        finalizers.retain(|one| one != HOST_FINALIZER);
    }
    Ok(End::Wait(Wait::Settled))
}
