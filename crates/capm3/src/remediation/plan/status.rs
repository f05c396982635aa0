//! What a remediation waits for, as its conditions state it.

use std::time::Duration;

use metal3_api::infrastructure::conditions::{remediation as reason, shared};
use metal3_api::infrastructure::names::REMEDIATION_PROGRESS_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3RemediationStatus;
use metal3_api::meta::{Condition, Time};
use metal3_capi::workload::{BUSY_MESSAGE, BUSY_POLL, Drained};
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};
use metal3_runtime::plan::UnknownReason;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

use super::super::action::{Plan, Reads};
use super::super::facts::NodeStep;
use super::{Decision, Planner};

/// Between attempts to reach a workload cluster whose watch works and that does not answer a request.
const UNREACHABLE_POLL: Duration = Duration::from_secs(30);

/// A wait, with its conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::remediation) struct Wait {
    reason: Reason,
    message: String,
    recheck: Option<Duration>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Paused,
    Done,
    Waiting,
    Unknown,
}

impl Wait {
    fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            recheck: None,
            kind: Kind::Waiting,
        }
    }

    fn of(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The key is reconciled after this time at the latest. Zero sets no time: then only an event ends the wait.
    pub(super) fn with_recheck(self, after: Duration) -> Self {
        let earliest = self.recheck.map_or(after, |before| before.min(after));
        Self {
            recheck: (!earliest.is_zero()).then_some(earliest).or(self.recheck),
            ..self
        }
    }

    pub(super) fn paused(message: String) -> Self {
        Self::new(shared::REASON_PAUSED, message).of(Kind::Paused)
    }

    pub(super) fn unreadable(what: &str, why: &UnknownReason) -> Self {
        let message = format!("{what} cannot be read: {why}; correct it");
        Self::new(reason::REASON_UNREADABLE, message).of(Kind::Unknown)
    }

    pub(super) fn unknown_phase(word: &str) -> Self {
        let message = format!(
            "the phase {word:?} is unknown; remove status.phase and the annotation {REMEDIATION_PROGRESS_ANNOTATION}, or delete the Metal3Remediation"
        );
        Self::new(reason::REASON_UNKNOWN_PHASE, message)
    }

    pub(super) fn unknown_progress(text: &str) -> Self {
        let start: String = text.chars().take(100).collect();
        let message = format!(
            "the annotation {REMEDIATION_PROGRESS_ANNOTATION} is not understood: {start:?}; remove it to begin again, or delete the Metal3Remediation"
        );
        Self::new(reason::REASON_UNKNOWN_PHASE, message)
    }

    pub(super) fn without_strategy() -> Self {
        let message = "spec.strategy.type is not Reboot, so nothing is done; set it";
        Self::new(reason::REASON_NO_STRATEGY, message)
    }

    pub(super) fn without_owner() -> Self {
        let message =
            "no Machine owns the Metal3Remediation; delete it, or set its owner reference to an existing Machine";
        Self::new(reason::REASON_OWNER_NOT_FOUND, message)
    }

    pub(super) fn machine_deleting() -> Self {
        Self::new(
            reason::REASON_MACHINE_DELETING,
            "the Machine is being deleted, so nothing is done",
        )
    }

    pub(super) fn deleting() -> Self {
        let message = "the Metal3Remediation is being deleted, and its host is not kept off";
        Self::new(shared::REASON_DELETING, message)
    }

    pub(super) fn without_metal3_machine() -> Self {
        let message = "the Metal3Machine of the Machine does not exist; delete the Machine";
        Self::new(reason::REASON_HOST_NOT_FOUND, message)
    }

    pub(super) fn without_host() -> Self {
        let message = "the Metal3Machine has no host that could be powered off; see its conditions";
        Self::new(reason::REASON_HOST_NOT_FOUND, message)
    }

    pub(super) fn host_missing(host: &str) -> Self {
        let message =
            format!("BareMetalHost {host}, which the machine had, does not exist; restore it, or delete the Machine");
        Self::new(reason::REASON_HOST_NOT_FOUND, message)
    }

    pub(super) fn host_in_use(host: &str) -> Self {
        let message = format!("BareMetalHost {host} does not belong to the machine any more; delete the Machine");
        Self::new(reason::REASON_HOST_IN_USE, message)
    }

    pub(super) fn host_paused(host: Option<&str>) -> Self {
        let message = match host {
            Some(host) => format!("BareMetalHost {host} or its machine is paused; resume it"),
            None => "the Machine or its Metal3Machine is paused; resume it".to_owned(),
        };
        Self::new(reason::REASON_HOST_PAUSED, message)
    }

    pub(super) fn power_off_disabled(host: &str) -> Self {
        let message = format!(
            "BareMetalHost {host} must not be powered off (spec.disablePowerOff); reboot it, or delete the Machine"
        );
        Self::new(reason::REASON_POWER_OFF_DISABLED, message)
    }

    pub(super) fn for_power_off(host: &str) -> Self {
        let message = format!("BareMetalHost {host} is not off yet; if this lasts, see its status");
        Self::new(reason::REASON_WAITING_FOR_POWER_OFF, message)
    }

    pub(super) fn for_power_on(host: &str) -> Self {
        let message = format!(
            "BareMetalHost {host} is not on yet; if this lasts, see its status and its annotations reboot.metal3.io"
        );
        Self::new(reason::REASON_WAITING_FOR_POWER_ON, message)
    }

    pub(super) fn for_drain(node: &str, left: Drained) -> Self {
        let what = match left {
            Drained::Pods => "Pods are terminating on it",
            Drained::Volumes => "volumes are attached to it",
            Drained::Yes | Drained::Unknown => "Pods and volumes are being read",
        };
        let message =
            format!("Node {node} is out of service: {what}; if this lasts, see its Pods and VolumeAttachments");
        Self::new(reason::REASON_WAITING_FOR_DRAIN, message)
    }

    pub(super) fn for_node_deletion(node: &str) -> Self {
        let message = format!("Node {node} is being deleted; if this lasts, see its finalizers");
        Self::new(reason::REASON_WAITING_FOR_NODE_DELETION, message)
    }

    pub(super) fn for_node() -> Self {
        let message =
            "the host is on, and its Node has not registered again; if this lasts, see the console of the machine";
        Self::new(reason::REASON_WAITING_FOR_NODE, message)
    }

    /// Another program undid this change of the Node.
    pub(super) fn undone(node: &str, step: NodeStep) -> Self {
        let what = match step {
            NodeStep::Taint => "removes its taint node.kubernetes.io/out-of-service",
            NodeStep::Untaint => "sets its taint node.kubernetes.io/out-of-service",
            NodeStep::Add => "removes its labels or annotations",
            NodeStep::Delete => "creates it",
        };
        let message = format!("another program changes Node {node}: it {what} again after each change; stop it");
        Self::new(reason::REASON_NODE_CHANGE_UNDONE, message)
    }

    pub(super) fn for_health() -> Self {
        Self::new(reason::REASON_NODE_RESTORED, "").of(Kind::Done)
    }

    pub(super) fn workload(why: &str) -> Self {
        let message = format!("the Node cannot be read or changed: {why}; see the API server of the workload cluster");
        Self::new(reason::REASON_WORKLOAD_CLUSTER_UNREACHABLE, message)
            .of(Kind::Unknown)
            .with_recheck(UNREACHABLE_POLL)
    }

    pub(super) fn for_requests() -> Self {
        let message = format!("the Node is not read: {BUSY_MESSAGE}");
        Self::new(reason::REASON_WAITING_FOR_REQUESTS, message)
            .of(Kind::Unknown)
            .with_recheck(BUSY_POLL)
    }

    pub(super) fn given_up() -> Self {
        let message = "the machine did not come back: its owner replaces it. Repair the host, then remove its annotation \
                       capm3.metal3.io/unhealthy";
        Self::new(reason::REASON_GIVEN_UP, message)
    }

    pub(super) fn offline() -> Self {
        let message = "spec.online of the host was false, so it was not powered off and on; set it to true, and delete the \
                       Metal3Remediation when the Node is back";
        Self::new(reason::REASON_HOST_OFFLINE, message)
    }

    fn record(&self, status: &mut Metal3RemediationStatus, generation: Option<i64>, now: Time) {
        let mut set = |condition: ConditionBuilder, message: &str| {
            let condition = condition.standard(generation, now);
            let message = message.to_owned();
            set_condition(&mut status.conditions, Condition { message, ..condition });
        };
        if self.kind == Kind::Paused {
            set(ConditionBuilder::mark_true(reason::PAUSED, self.reason), &self.message);
            return;
        }
        let not_paused = shared::REASON_NOT_PAUSED;
        set(
            ConditionBuilder::mark_false(reason::PAUSED, not_paused, Severity::Info, ""),
            "",
        );
        let (condition, message) = (reason::REMEDIATED, self.message.as_str());
        let stated = match self.kind {
            Kind::Done => ConditionBuilder::mark_true(condition, self.reason),
            Kind::Unknown => ConditionBuilder::mark_unknown(condition, self.reason, ""),
            Kind::Waiting | Kind::Paused => ConditionBuilder::mark_false(condition, self.reason, Severity::Info, ""),
        };
        set(stated, message);
    }

    fn next(self) -> Next {
        match self.recheck {
            Some(after) => Next::waiting_with_recheck(self.reason, self.message, after),
            None => Next::waiting(self.reason, self.message),
        }
        .quiet()
    }
}

impl Planner<'_> {
    pub(super) fn finish(mut self, decision: Decision) -> Plan {
        self.record_progress();
        let mut status = self.status;
        let next = match decision {
            Decision::Read(reads) => return Plan::reading(reads),
            Decision::Continue => Next::Requeue,
            Decision::After(pause) => Next::RequeueAfter(pause),
            Decision::Unreported(wait) => wait.next(),
            Decision::Wait(wait) => {
                wait.record(&mut status, self.before.metadata.generation, self.facts.now);
                wait.next()
            }
        };
        Plan {
            reads: Reads::Nothing,
            actions: self.actions,
            status: (status != self.before.status).then_some(status),
            events: self.events,
            next,
        }
    }
}
