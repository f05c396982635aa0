//! A Node on which another program undoes what a remediation does.
//!
//! Without a pause both would write it for as long as both run.

use std::time::Duration;

use metal3_capi::workload::LiveNode;

use super::{Decision, Planner, Wait, node};
use crate::remediation::facts::NodeStep;

/// Between two equal changes of a Node.
const INTERVAL: Duration = Duration::from_secs(30);

impl Planner<'_> {
    /// The rest of the pause before a change that was undone is made again; `None` when it is due.
    pub(super) fn pause_before(&self, step: NodeStep) -> Option<Duration> {
        let left = INTERVAL.saturating_sub(self.since(step)?);
        (!left.is_zero()).then_some(left)
    }

    /// Whether the Node is fenced although this process removed its taint.
    pub(super) fn is_fenced_again(&self, node: &LiveNode) -> bool {
        node::has_taint(node) && self.since(NodeStep::Untaint).is_some()
    }

    /// The taint that is there again is removed after a pause. A deleted remediation awaits that as it awaits a Node.
    pub(super) fn fenced_again(&mut self, node: &LiveNode) -> Option<Decision> {
        if !self.is_fenced_again(node) {
            return None;
        }
        let is_deleted = self.before.metadata.deletion_timestamp.is_some();
        if is_deleted && self.is_awaited_too_long() {
            return Some(self.release_unrestored("another program sets its taint again"));
        }
        let wait = Wait::undone(&node.name, NodeStep::Untaint).with_recheck(self.pause_before(NodeStep::Untaint)?);
        Some(Decision::Wait(if is_deleted {
            self.until_awaited_too_long(wait)
        } else {
            wait
        }))
    }

    /// How long ago the last change of the Node was, if it is this one.
    pub(super) fn since(&self, step: NodeStep) -> Option<Duration> {
        let changed = self.facts.changed.filter(|(last, _)| *last == step);
        changed.map(|(_, since)| since)
    }
}
