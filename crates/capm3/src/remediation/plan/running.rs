//! The phase in which the host is powered off and the Node is fenced.

use std::time::Duration;

use metal3_api::cluster::Machine;
use metal3_api::infrastructure::v1beta2::RemediationPhase;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::{Drained, LiveNode, NodeChange, NodeState};
use metal3_runtime::plan::PlannedEvent;

use super::{
    Action, CHANGED, Decision, HostChange, NOT_FENCED, Planner, Reads, Wait, node, power_off_annotation,
    reports_failure,
};
use crate::remediation::facts::{Node, NodeStep};

/// Label of a Node: the UID of its host.
const HOST_UID_LABEL: &str = "metal3.io/uuid";
/// parity: members, order and values of the Go manager.
const POWER_OFF: &str = r#"{"mode":"hard","force":false}"#;
/// Between reads of what is left on a Node. Pods and volumes are not watched.
const DRAIN_POLL: Duration = Duration::from_secs(5);
/// From the taint to the first read: the control plane of the workload cluster needs a moment to delete the Pods.
const TAINTED: Duration = Duration::from_secs(1);

impl Planner<'_> {
    pub(super) fn running(&mut self, host: &BareMetalHost, machine: &Machine) -> Decision {
        if !self.has_finalizer() {
            self.set_finalizer();
            return Decision::Continue;
        }
        let name = host.metadata.name.as_deref().unwrap_or_default();
        if self.is_over() && host.status.powered_on && reports_failure(host) {
            return self.end_attempt(machine, Some(host));
        }
        if !self.is_held(host) {
            if host.spec.disable_power_off == Some(true) {
                if self.is_over() {
                    return self.end_attempt(machine, Some(host));
                }
                return Decision::Wait(self.until_timeout(Wait::power_off_disabled(name)));
            }
            if let Some(wait) = self.paused(Some(host)) {
                return Decision::Wait(wait);
            }
            if !self.facts.is_confirmed {
                return Decision::Read(Reads::Everything);
            }
            return self.power_off(host, name);
        }
        if host.status.powered_on {
            return Decision::Wait(self.until_timeout(Wait::for_power_off(name)));
        }
        self.fence(host)
    }

    /// A pause of the machine or the host forbids that the host is powered off, that its Node is tainted or deleted, and
    /// the end of an attempt. It does not forbid what ends a remediation: powering on and restoring the Node.
    pub(super) fn paused(&self, host: Option<&BareMetalHost>) -> Option<Wait> {
        let name = host.and_then(|host| host.metadata.name.as_deref());
        let is_paused = self.facts.is_machine_paused(host);
        is_paused.then(|| Wait::host_paused(name))
    }

    fn power_off(&mut self, host: &BareMetalHost, name: &str) -> Decision {
        let key = power_off_annotation(self.before);
        self.patch_host(host, HostChange::PowerOff, |host| {
            let annotations = host.metadata.annotations.get_or_insert_default();
            annotations.insert(key, POWER_OFF.to_owned());
        });
        if host.status.powered_on {
            return Decision::Wait(self.until_timeout(Wait::for_power_off(name)));
        }
        Decision::Continue
    }

    /// The host is off: nothing runs on the Node any more.
    fn fence(&mut self, host: &BareMetalHost) -> Decision {
        let name = host.metadata.name.as_deref().unwrap_or_default();
        match &self.facts.node {
            Node::NotRead => Decision::Read(Reads::Node),
            // differs (`remediation-node-unknown`): the Go manager does not even power the host off.
            Node::Read(NodeState::Unknown(why)) if self.is_fencing_over() => self.end_unknown(name, why),
            Node::Read(NodeState::Unknown(why)) => Decision::Wait(self.until_fenced(Wait::workload(why))),
            Node::Busy { .. } if self.is_fencing_over() => {
                self.end_unknown(name, "other requests to workload clusters are under way")
            }
            Node::Busy { is_reported: false } => Decision::Unreported(self.until_fenced(Wait::for_requests())),
            Node::Busy { is_reported: true } => Decision::Wait(self.until_fenced(Wait::for_requests())),
            Node::Read(NodeState::Forbidden) => self.end_unfenced(&format!(
                "{name} is powered on, and its Node is not fenced, as after a reboot: the workload cluster does not permit \
                 to read or to change it"
            )),
            // differs (`remediation-without-node`): the Go manager retries for ever.
            Node::NeverRegistered | Node::Read(NodeState::Absent) => self.end_fencing(),
            Node::Read(NodeState::Present(node)) if self.is_of_another_machine(node) => self.end_fencing(),
            Node::Read(NodeState::Present(node)) => self.fence_node(host, node),
        }
    }

    fn fence_node(&mut self, host: &BareMetalHost, node: &LiveNode) -> Decision {
        let is_tainted = node::has_taint(node);
        if is_tainted && self.facts.drained == Some(Drained::Yes) {
            return self.end_fencing();
        }
        // Before another request: each may fail, or succeed without an effect.
        if self.is_fencing_over() {
            let what = match (is_tainted, node.is_deleting) {
                (true, _) => "all Pods and volumes left its Node",
                (false, true) => "the deletion of its Node ends",
                (false, false) => "its Node is fenced",
            };
            let name = host.metadata.name.as_deref().unwrap_or_default();
            return self.end_unfenced(&format!("{name} is powered on before {what}, as after a reboot"));
        }
        if is_tainted {
            return match self.facts.drained {
                None => Decision::Read(Reads::Drained),
                Some(left) => Decision::Wait(
                    self.until_fenced(Wait::for_drain(&node.name, left))
                        .with_recheck(DRAIN_POLL),
                ),
            };
        }
        if let Some(wait) = self.paused(Some(host)) {
            return Decision::Wait(self.until_fenced(wait));
        }
        if node::permits_taint(node) && !node::has_backup(self.before) {
            if let Some(pause) = self.pause_before(NodeStep::Taint) {
                let wait = Wait::undone(&node.name, NodeStep::Taint).with_recheck(pause);
                return Decision::Wait(self.until_fenced(wait));
            }
            return self.taint(node);
        }
        if node.is_deleting {
            return Decision::Wait(self.until_fenced(Wait::for_node_deletion(&node.name)));
        }
        if let Some(pause) = self.pause_before(NodeStep::Delete) {
            let wait = Wait::undone(&node.name, NodeStep::Delete).with_recheck(pause);
            return Decision::Wait(self.until_fenced(wait));
        }
        if !self.facts.is_confirmed {
            return Decision::Read(Reads::Everything);
        }
        let backup = node::backup(self.before, node);
        self.actions.extend(backup.map(Action::PatchRemediation));
        self.actions.push(Action::ChangeNode(NodeChange::Delete));
        Decision::After(CHANGED)
    }

    fn taint(&mut self, node: &LiveNode) -> Decision {
        if !self.facts.is_confirmed {
            return Decision::Read(Reads::Everything);
        }
        let change = NodeChange::Taints(node::with_taint(node, self.facts.now));
        self.actions.push(Action::ChangeNode(change));
        let wait = match self.since(NodeStep::Taint) {
            Some(_) => Wait::undone(&node.name, NodeStep::Taint),
            None => Wait::for_drain(&node.name, Drained::Unknown),
        };
        Decision::Wait(wait.with_recheck(TAINTED))
    }

    /// A Node of the name that the Machine has, with the provider ID or the host of another machine.
    pub(super) fn is_of_another_machine(&self, node: &LiveNode) -> bool {
        let own = self.facts.metal3_machine.present();
        let own = own.and_then(|machine| machine.spec.provider_id.as_deref());
        // A host that was moved has another UID, and the label keeps the one before.
        if let Some(own) = own.filter(|own| !own.is_empty() && !node.provider_id.is_empty()) {
            return own != node.provider_id;
        }
        let host = self.facts.host.present().and_then(|host| host.metadata.uid.as_deref());
        let labelled = node.labels.get(HOST_UID_LABEL).filter(|labelled| !labelled.is_empty());
        labelled.is_some_and(|labelled| host.is_some_and(|host| host != labelled))
    }

    fn end_unknown(&mut self, host: &str, why: &str) -> Decision {
        self.end_unfenced(&format!(
            "{host} is powered on before its Node is fenced, as after a reboot: {why}"
        ))
    }

    /// The host is powered on although something may still use what its Node had.
    fn end_unfenced(&mut self, message: &str) -> Decision {
        self.events.push(PlannedEvent::warning(NOT_FENCED, message));
        self.end_fencing()
    }

    fn end_fencing(&mut self) -> Decision {
        self.status.phase = Some(RemediationPhase::Waiting);
        Decision::Continue
    }

    fn until_fenced(&self, wait: Wait) -> Wait {
        wait.with_recheck((self.timeout() / 2).saturating_sub(self.facts.off))
    }
}
