//! What a reconciler observes and what it decides: one shape for all controllers.
//!
//! A reconciler reads a snapshot of [`Observed`] objects, computes a [`Plan`] from it in a pure function, and carries the
//! plan out in the order of its fields.
//!
//! Invariants:
//! - Every prefix of the actions is a safe place to crash: the next reconcile observes what was done and plans the rest.
//! - The status is written once and last, so it never describes an action that did not happen. A status that must be
//!   recorded before another write is one of the actions.
//! - `act` performs a plan and never plans: a result that changes the facts ends the plan, and the reconciler plans again
//!   with the new facts.
//! - [`Plan::next`] states why a key waits; the controller logs it and counts it by reason.

mod observed;

use crate::events::Importance;
use crate::patch::MergePatch;
use crate::reason::Reason;
use crate::work::Next;

pub use observed::{Observed, UnknownReason};

/// What one reconcile of a key does. `R` lists live reads, `A` is a write of the product or a sequence of writes, `S` is
/// a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<R, A, S = MergePatch> {
    /// Live reads without which the reconciler cannot decide. A plan with reads has no actions: the reconciler reads and
    /// plans again.
    pub reads: R,
    /// The writes, in order. The first failure ends the reconcile.
    pub actions: Vec<A>,
    /// The new status, or its change, written after the last action.
    pub status: Option<S>,
    /// Recorded after the write that they report.
    pub events: Vec<PlannedEvent>,
    /// When the key is reconciled again, and what it waits for.
    pub next: Next,
}

impl<R: Default, A, S> Default for Plan<R, A, S> {
    /// Nothing to do until something changes.
    fn default() -> Self {
        Self {
            reads: R::default(),
            actions: Vec::new(),
            status: None,
            events: Vec::new(),
            next: Next::Done,
        }
    }
}

impl<R: Default, A, S> Plan<R, A, S> {
    /// Reads first, then plans again.
    #[must_use]
    pub fn reading(reads: R) -> Self {
        Self {
            reads,
            next: Next::Requeue,
            ..Self::default()
        }
    }

    /// Waits for a change of a watched object.
    #[must_use]
    pub fn waiting(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            next: Next::waiting(reason, message),
            ..Self::default()
        }
    }
}

/// An event to record on the object of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedEvent {
    /// Whether the user should act.
    pub importance: Importance,
    /// For programs.
    pub reason: Reason,
    /// For people. It contains no secrets.
    pub message: String,
}

impl PlannedEvent {
    /// An event for the record.
    #[must_use]
    pub fn normal(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(Importance::Normal, reason, message)
    }

    /// An event about a problem.
    #[must_use]
    pub fn warning(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(Importance::Warning, reason, message)
    }

    fn new(importance: Importance, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            importance,
            reason,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::queue::Outcome;

    const NO_POOL: Reason = Reason::new("PoolNotFound");

    type TestPlan = Plan<Vec<&'static str>, u8>;

    #[test]
    fn empty_plan_does_nothing_until_something_changes() {
        let plan = TestPlan::default();
        assert!(plan.reads.is_empty() && plan.actions.is_empty() && plan.status.is_none() && plan.events.is_empty());
        assert_eq!(plan.next.outcome(), Outcome::Done);
    }

    #[test]
    fn plan_with_reads_has_no_actions_and_requeues_at_once() {
        let plan = TestPlan::reading(vec!["Secret ns/s"]);
        assert!(plan.actions.is_empty() && plan.status.is_none());
        assert_eq!(plan.reads, ["Secret ns/s"]);
        assert_eq!(plan.next.outcome(), Outcome::RequeueAfter(Duration::ZERO));
    }

    #[test]
    fn waiting_plan_states_its_reason() {
        let plan = TestPlan::waiting(NO_POOL, "create IPPool ns/p");
        assert_eq!(plan.next, Next::waiting(NO_POOL, "create IPPool ns/p"));
        assert_eq!(plan.next.outcome(), Outcome::Done);
    }

    #[test]
    fn planned_event_has_an_importance() {
        assert_eq!(PlannedEvent::normal(NO_POOL, "m").importance, Importance::Normal);
        assert_eq!(PlannedEvent::warning(NO_POOL, "m").importance, Importance::Warning);
    }
}
