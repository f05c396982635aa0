//! The phase in which the host is powered on, the Node is restored, and the machine has time to become healthy.

use metal3_api::cluster::Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::{LiveNode, NodeChange, NodeState};
use metal3_runtime::plan::Observed;

use super::cleanup::FORBIDDEN;
use super::{Action, CHANGED, Decision, Planner, Reads, Wait, node, reports_failure};
use crate::remediation::facts::Node;

impl Planner<'_> {
    pub(super) fn waiting(&mut self, host: &BareMetalHost, machine: &Machine) -> Decision {
        let name = host.metadata.name.as_deref().unwrap_or_default();
        if self.is_held(host) {
            self.power_on(host);
            if host.status.powered_on {
                return Decision::Continue;
            }
        }
        if !host.status.powered_on {
            if self.is_over() && reports_failure(host) {
                return self.end_attempt(machine, Some(host));
            }
            return Decision::Wait(self.until_timeout(Wait::for_power_on(name)));
        }
        let has_finalizer = self.has_finalizer();
        if has_finalizer || self.is_node_late() {
            match &self.facts.node {
                Node::NotRead => return Decision::Read(Reads::Node),
                // differs (`remediation-node-unknown`)
                Node::Read(NodeState::Unknown(why)) => return Decision::Wait(Wait::workload(why)),
                Node::Busy { is_reported: false } => return Decision::Unreported(Wait::for_requests()),
                Node::Busy { is_reported: true } => return Decision::Wait(Wait::for_requests()),
                Node::Read(NodeState::Forbidden) if has_finalizer => return self.release_unrestored(FORBIDDEN),
                // One that is fenced again is not back.
                Node::Read(NodeState::Present(node)) if self.is_node_late() && self.is_fenced_again(node) => {}
                Node::Read(NodeState::Present(node)) if has_finalizer && !self.is_of_another_machine(node) => {
                    return self.restore(node);
                }
                Node::NeverRegistered | Node::Read(_) => {}
            }
        }
        if self.is_node_late() {
            return self.end_attempt(machine, Some(host));
        }
        let wait = if has_finalizer {
            Wait::for_node()
        } else {
            Wait::for_health()
        };
        Decision::Wait(self.until_node_is_late(wait))
    }

    /// The Node gets back what it had, then the finalizer is removed. What another program removes again is added once.
    pub(super) fn restore(&mut self, node: &LiveNode) -> Decision {
        if let Some(decision) = self.fenced_again(node) {
            return decision;
        }
        let machine = self.facts.metal3_machine.present();
        let provider_id = machine.and_then(|machine| machine.spec.provider_id.as_deref());
        if let Some(change) = node::restore(self.before, node, provider_id) {
            let is_last = matches!(change, NodeChange::Add { .. });
            self.actions.push(Action::ChangeNode(change));
            if !is_last {
                return Decision::After(CHANGED);
            }
        }
        self.release()
    }

    /// Removes the finalizer and the saved labels. The cached host may lack a request to keep it off, and what an object
    /// that cannot be decoded contains is unknown.
    pub(super) fn release(&mut self) -> Decision {
        if let Some(wait) = self.unreadable() {
            return Decision::Wait(wait);
        }
        if !self.facts.is_confirmed {
            return Decision::Read(Reads::Everything);
        }
        let patch = node::release(self.before);
        self.actions.extend(patch.map(Action::PatchRemediation));
        Decision::Continue
    }

    fn unreadable(&self) -> Option<Wait> {
        let (machine, host) = (&self.facts.metal3_machine, &self.facts.host);
        match (machine, host) {
            (Observed::Unknown(why), _) => Some(Wait::unreadable("the Metal3Machine", why)),
            (_, Observed::Unknown(why)) => Some(Wait::unreadable("the host of the machine", why)),
            _ => None,
        }
    }
}
