//! What a Metal3Cluster needs, and the plan that follows from it and from what this reconcile wrote.

use std::time::Duration;

use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3ClusterStatus};
use metal3_runtime::plan::PlannedEvent;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

use crate::cluster::action::{Action, Plan, Read};
use crate::cluster::facts::{Facts, Results};
use crate::diff::{changes, version};
use crate::endpoint::held_claims::HeldClaim;
use crate::endpoint::resolve::earlier;

/// Retry interval after a rejected write. No event reports when it is accepted.
const RETRY_REFUSED: Duration = Duration::from_mins(1);

/// What a Metal3Cluster needs.
#[derive(Default)]
pub(super) struct Draft {
    /// What to read before anything is done.
    pub(super) reads: Vec<Read>,
    /// The writes before the status, in order.
    pub(super) writes: Vec<Action>,
    /// The status, if it changes.
    pub(super) status: Option<Box<Metal3ClusterStatus>>,
    /// The events of its changes.
    pub(super) events: Vec<PlannedEvent>,
    /// Touches the idle control plane.
    pub(super) touch: Option<Action>,
    /// The address claims to release.
    pub(super) release: Vec<HeldClaim>,
    /// Delay until the next reconcile.
    pub(super) requeue_after: Option<Duration>,
    /// What the object waits for.
    pub(super) wait: Option<(Reason, String)>,
}

impl Draft {
    /// The plan. After a write without a result that decides, another reconcile plans the rest.
    pub(super) fn into_plan(self, results: &Results) -> Plan {
        if !self.reads.is_empty() {
            return Plan::reading(self.reads);
        }
        let is_idle = self.writes.is_empty() && self.status.is_none() && self.release.is_empty();
        // No idle reconcile follows a write of the endpoint, or a rejected write that is retried.
        let is_last = is_idle || !results.is_empty();
        let next = if !is_last || !self.release.is_empty() {
            Next::Requeue
        } else {
            let limit = results.has_refusal().then_some(RETRY_REFUSED);
            settled(self.wait, earlier(self.requeue_after, limit))
        };
        let released = self.release.into_iter().map(|claim| Action::Release(Box::new(claim)));
        let mut last: Vec<Action> = self.touch.filter(|_| is_last).into_iter().chain(released).collect();
        let (mut actions, mut status) = (self.writes, self.status);
        if !last.is_empty() {
            actions.extend(status.take().map(Action::Status));
            actions.append(&mut last);
        }
        Plan {
            reads: Vec::new(),
            actions,
            status,
            events: self.events,
            next,
        }
    }
}

/// What follows a reconcile when no other one must follow at once: a wait that a condition shows, a recheck, or nothing.
fn settled(wait: Option<(Reason, String)>, recheck: Option<Duration>) -> Next {
    let next = match (wait, recheck) {
        (Some((reason, message)), Some(recheck)) => Next::waiting_with_recheck(reason, message, recheck),
        (Some((reason, message)), None) => Next::waiting(reason, message),
        (None, Some(recheck)) => Next::RequeueAfter(recheck),
        (None, None) => Next::Done,
    };
    next.quiet()
}

/// The patch from the object to `after`, at its version. An object is patched once in a reconcile, before its other
/// writes.
pub(super) fn patch_object(facts: &Facts, after: &Metal3Cluster) -> Option<Action> {
    let before = &*facts.object;
    let version = version(&before.metadata).filter(|_| facts.results.is_empty())?;
    let patch = changes(before, after).main?;
    Some(Action::Patch(patch.with_precondition(&version)))
}
