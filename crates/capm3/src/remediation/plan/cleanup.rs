//! The end of a remediation: no host stays off, and no Node stays fenced, because of it.
//!
//! differs (`remediation-released`): the Go manager keeps the finalizer of a remediation whose Node never returns, and of
//! one whose Machine is gone.

use metal3_api::infrastructure::conditions::remediation as reason;
use metal3_api::infrastructure::v1beta2::RemediationPhase;
use metal3_capi::workload::NodeState;
use metal3_runtime::plan::PlannedEvent;
use metal3_runtime::reason::Reason;

use super::{Decision, Planner, Reads, Wait, node};
use crate::reasons::remediation::NOT_RESTORED;
use crate::remediation::facts::Node;

pub(super) const FORBIDDEN: &str = "the workload cluster does not permit to read or to change it";

impl Planner<'_> {
    /// The remediation is in deletion: its creator considers the machine healthy, or does not want it to be repaired.
    pub(super) fn delete(&mut self) -> Decision {
        self.power_on_held();
        // A remediation that was moved has no status: only its finalizer shows that something may be restored.
        if !self.has_finalizer() {
            return self.release_or(Wait::deleting());
        }
        match &self.facts.node {
            Node::NotRead => self.read_node(),
            Node::Read(NodeState::Present(node)) if !self.is_of_another_machine(node) => self.restore(node),
            Node::Read(NodeState::Unknown(why)) if self.is_awaited_too_long() => self.release_unrestored(why),
            Node::Read(NodeState::Unknown(why)) => Decision::Wait(self.until_awaited_too_long(Wait::workload(why))),
            // That others go first is no reason to give the Node up.
            Node::Busy { is_reported: false } => Decision::Unreported(Wait::for_requests()),
            Node::Busy { is_reported: true } => Decision::Wait(Wait::for_requests()),
            Node::Read(NodeState::Forbidden) => self.release_unrestored(FORBIDDEN),
            Node::Read(NodeState::Absent | NodeState::Present(_)) if node::has_backup(self.before) => {
                if self.is_awaited_too_long() {
                    return self.release_unrestored("it did not return in time");
                }
                Decision::Wait(self.until_awaited_too_long(self.for_node()))
            }
            Node::NeverRegistered | Node::Read(_) => self.release(),
        }
    }

    fn for_node(&self) -> Wait {
        match self.facts.host.present() {
            Some(host) if !host.status.powered_on => {
                Wait::for_power_on(host.metadata.name.as_deref().unwrap_or_default())
            }
            _ => Wait::for_node(),
        }
    }

    /// No attempt is under way any more. What is saved of a Node that was deleted is kept while its Machine may have the
    /// Node again.
    pub(super) fn after_end(&mut self, wait: Wait) -> Decision {
        self.power_on_held();
        if !self.has_finalizer() {
            return self.release_or(wait);
        }
        match &self.facts.node {
            Node::NotRead => self.read_node(),
            Node::Read(NodeState::Present(node)) if !self.is_of_another_machine(node) => self.restore(node),
            Node::Read(NodeState::Unknown(why)) => Decision::Wait(Wait::workload(why)),
            Node::Busy { is_reported: false } => Decision::Unreported(Wait::for_requests()),
            Node::Busy { is_reported: true } => Decision::Wait(Wait::for_requests()),
            Node::Read(NodeState::Forbidden) => self.release_unrestored(FORBIDDEN),
            Node::Read(NodeState::Absent | NodeState::Present(_))
                if node::has_backup(self.before) && self.status.phase != Some(RemediationPhase::DeletingMachine) =>
            {
                Decision::Wait(wait)
            }
            Node::NeverRegistered | Node::Read(_) => self.release(),
        }
    }

    /// There is no Machine, or it is being deleted: its Node is not needed any more.
    pub(super) fn without_machine(&mut self, why: Reason) -> Decision {
        let has_work = self.has_finalizer() || !self.facts.held.is_empty();
        if has_work && !self.facts.is_confirmed {
            return Decision::Read(Reads::Everything);
        }
        self.power_on_held();
        self.release_or(match why {
            reason::REASON_OWNER_NOT_FOUND => Wait::without_owner(),
            _ => Wait::machine_deleting(),
        })
    }

    /// Removes the finalizer although the Node may not be as it was.
    pub(super) fn release_unrestored(&mut self, why: &str) -> Decision {
        let message = format!(
            "the Node is not restored: {why}; remove its taint node.kubernetes.io/out-of-service, and add the labels and annotations that it had"
        );
        self.events.push(PlannedEvent::warning(NOT_RESTORED, message));
        self.release()
    }

    fn power_on_held(&mut self) {
        let facts = self.facts;
        facts.held.iter().for_each(|host| self.power_on(host));
    }

    /// The Node is read after the hosts are powered on.
    fn read_node(&self) -> Decision {
        if self.actions.is_empty() {
            Decision::Read(Reads::Node)
        } else {
            Decision::Continue
        }
    }

    fn release_or(&mut self, wait: Wait) -> Decision {
        if self.has_finalizer() {
            return self.release();
        }
        if self.actions.is_empty() {
            Decision::Wait(wait)
        } else {
            Decision::Continue
        }
    }
}
