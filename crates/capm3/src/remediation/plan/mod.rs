//! The plan for a remediation, from facts alone.
//!
//! An attempt powers the host off, fences the Node, powers the host on and restores the Node; then the Node has time to
//! become ready. A MachineHealthCheck deletes the remediation of a healthy machine. Invariants, with any cache lag and
//! any number of replicas:
//!
//! - A host is powered off, excluded or given up with its Machine only when live reads of the same reconcile show that
//!   the Machine has it and that neither is paused or deleted. Each write has the version that was read. A retry, which
//!   touches no host yet, is decided from the caches.
//! - The finalizer is set before the host is powered off, and removed after live reads show that the annotation is. A
//!   Node is changed only while its host is off, or to restore it.
//! - An attempt fails only when its time is over and something reports the failure: the host, or a Node that can be
//!   read and is not back although the host was on for half of the time, without a pause. A missing
//!   answer never fails an attempt.
//! - No pause uses up time, nor does a wait for the requests of others in a deletion. What a Node had is given up only
//!   after it was awaited in deletion for twice the time of an attempt, from the moment on at which its host is on.
//! - A change of a Node that another program undoes is repeated twice a minute: until those times are over, and while a
//!   remediation that has given up exists.
//! - A workload cluster that cannot be reached, or whose requests wait for others, keeps the host off for half of the time
//!   of an attempt: then the host is powered on. No Pod was moved meanwhile, so that is an ordinary reboot.

mod cleanup;
mod contended;
mod node;
mod progress;
mod running;
mod status;
mod waiting;

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Machine;
use metal3_api::cluster::names::OWNER_REMEDIATED;
use metal3_api::infrastructure::conditions::remediation as reason;
use metal3_api::infrastructure::names::{REMEDIATION_FINALIZER, UNHEALTHY_ANNOTATION, UNHEALTHY_NODE};
use metal3_api::infrastructure::v1beta2::{
    Metal3Machine, Metal3Remediation, Metal3RemediationStatus, RemediationPhase, RemediationStrategy, RemediationType,
};
use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationalStatus};
use metal3_capi::pause;
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};
use metal3_runtime::patch::{add_finalizer, has_finalizer};
use metal3_runtime::plan::{Observed, PlannedEvent};

use super::action::{Action, HostChange, Plan, Reads};
use super::facts::{Facts, power_off_annotation};
use crate::diff::{changes, version};
use crate::machine::facts::{associated, is_machine};
use crate::reasons::remediation::{GIVEN_UP, NOT_FENCED, RETRIED, STARTED, WAITING_FOR_REMEDIATION};

pub(super) use node::step;
pub(super) use status::Wait;

/// The time of an attempt when the strategy states none.
const USUAL_TIMEOUT: u64 = 600;

/// From a change of the Node to its next read.
const CHANGED: Duration = Duration::from_secs(1);

/// The plan for the facts.
#[must_use]
pub fn plan(facts: &Facts) -> Plan {
    let before = &*facts.remediation;
    if pause::is_moved_away(&before.metadata) {
        return Plan::default();
    }
    let mut planner = Planner {
        facts,
        before,
        status: before.status.clone(),
        actions: Vec::new(),
        events: Vec::new(),
    };
    let decision = planner.decide();
    planner.finish(decision)
}

/// How a plan ends.
enum Decision {
    /// Read before any action.
    Read(Reads),
    /// Another reconcile follows the writes.
    Continue,
    /// The same after this time: the server of a tenant may accept a change and not show it.
    After(Duration),
    /// The key waits.
    Wait(Wait),
    /// The same, and not written into the status.
    Unreported(Wait),
}

struct Planner<'a> {
    facts: &'a Facts,
    before: &'a Metal3Remediation,
    status: Metal3RemediationStatus,
    actions: Vec<Action>,
    events: Vec<PlannedEvent>,
}

/// The relation of the Machine to its host.
enum Host<'a> {
    /// The Metal3Machine is its consumer.
    Own(&'a BareMetalHost),
    /// There is no host that could be powered off.
    None(Wait),
    Unknown(Wait),
}

impl<'a> Planner<'a> {
    fn decide(&mut self) -> Decision {
        let cluster = match &self.facts.cluster {
            Observed::Present(cluster) => Some(&**cluster),
            Observed::Absent => None,
            Observed::Unknown(why) => return Decision::Wait(Wait::unreadable("the Cluster", why)),
        };
        // differs (`remediation-pause`): the Go manager ignores a pause.
        if let Some(message) = pause::why_paused(cluster, "Metal3Remediation", &self.before.metadata) {
            return Decision::Wait(Wait::paused(message));
        }
        let machine = match &self.facts.machine {
            Observed::Present(machine) => machine,
            Observed::Absent => return self.without_machine(reason::REASON_OWNER_NOT_FOUND),
            Observed::Unknown(why) => return Decision::Wait(Wait::unreadable("the Machine", why)),
        };
        let infrastructure = self.facts.metal3_machine.present();
        let is_deleting = |meta: &ObjectMeta| meta.deletion_timestamp.is_some();
        if is_deleting(&machine.metadata) || infrastructure.is_some_and(|one| is_deleting(&one.metadata)) {
            return self.without_machine(reason::REASON_MACHINE_DELETING);
        }
        if is_deleting(&self.before.metadata) {
            return self.delete();
        }
        if let Some(decision) = self.settle_progress(machine) {
            return decision;
        }
        match self.status.phase.clone() {
            Some(RemediationPhase::DeletingMachine) => self.after_end(Wait::given_up()),
            Some(RemediationPhase::Failed) => self.after_end(Wait::offline()),
            Some(RemediationPhase::Other(word)) => self.after_end(Wait::unknown_phase(&word)),
            phase => self.attempt(phase, machine),
        }
    }

    /// One step of an attempt.
    fn attempt(&mut self, phase: Option<RemediationPhase>, machine: &Machine) -> Decision {
        let host = self.host();
        if self.power_on_others(&host) {
            return Decision::Continue;
        }
        if let Host::Own(host) = &host
            && !host.spec.online
        {
            self.status.phase = Some(RemediationPhase::Failed);
            return Decision::Continue;
        }
        if self.strategy().and_then(|strategy| strategy.type_.as_ref()) != Some(&RemediationType::Reboot) {
            return self.after_end(Wait::without_strategy());
        }
        let Some(phase) = phase else {
            return self.begin();
        };
        let host = match host {
            Host::Own(host) => host,
            Host::Unknown(wait) => return Decision::Wait(wait),
            // differs (`remediation-without-host`): the Go manager retries for ever.
            Host::None(_) if self.is_over() => return self.end_attempt(machine, None),
            Host::None(wait) => return Decision::Wait(self.until_timeout(wait)),
        };
        if phase == RemediationPhase::Waiting {
            self.waiting(host, machine)
        } else {
            self.running(host, machine)
        }
    }

    /// Hosts that the machine had are not kept off any more.
    fn power_on_others(&mut self, own: &Host<'_>) -> bool {
        let own = match own {
            Host::Own(own) => own.metadata.name.as_deref(),
            Host::None(_) => None,
            Host::Unknown(_) => return false,
        };
        let facts = self.facts;
        let others = facts.held.iter().filter(|host| host.metadata.name.as_deref() != own);
        others.for_each(|host| self.power_on(host));
        !self.actions.is_empty()
    }

    /// The first attempt begins.
    fn begin(&mut self) -> Decision {
        self.set_finalizer();
        self.status.phase = Some(RemediationPhase::Running);
        self.status.last_remediated = Some(self.facts.now);
        let message = "the remediation begins: its host is powered off and on";
        self.events.push(PlannedEvent::normal(STARTED, message));
        Decision::Continue
    }

    /// An attempt failed: another one begins, or the Machine is given up.
    ///
    /// differs (`remediation-limit-lowered`): the Go manager compares for equality, so a limit below the count never ends.
    fn end_attempt(&mut self, machine: &Machine, host: Option<&BareMetalHost>) -> Decision {
        if let Some(wait) = self.paused(host) {
            return Decision::Wait(wait);
        }
        let (tried, limit) = (self.status.retry_count.unwrap_or(0), self.retry_limit());
        if tried < limit {
            let next = tried.saturating_add(1);
            self.status.phase = Some(RemediationPhase::Running);
            self.status.last_remediated = Some(self.facts.now);
            self.status.retry_count = Some(next);
            let message = format!("the machine did not come back in time: retry {next} of {limit} begins");
            self.events.push(PlannedEvent::warning(RETRIED, message));
            return Decision::Continue;
        }
        if !self.facts.is_confirmed {
            return Decision::Read(Reads::Everything);
        }
        // Before the Machine is deleted and its host is free. The Go manager does it in the other order.
        if let Some(host) = host {
            let key = power_off_annotation(self.before);
            self.patch_host(host, HostChange::Exclude, |host| {
                let annotations = host.metadata.annotations.get_or_insert_default();
                annotations.remove(&key);
                annotations.insert(UNHEALTHY_ANNOTATION.to_owned(), UNHEALTHY_NODE.to_owned());
            });
        }
        self.give_up(machine);
        self.status.phase = Some(RemediationPhase::DeletingMachine);
        let message = format!("the machine did not come back after {limit} retries: its owner has to replace it");
        self.events.push(PlannedEvent::warning(GIVEN_UP, message));
        Decision::Continue
    }

    /// The owner of the Machine replaces a Machine with this condition.
    ///
    /// differs (`remediation-owner-condition`): the Go manager writes the older condition only.
    fn give_up(&mut self, machine: &Machine) {
        let condition = |message: &str| {
            ConditionBuilder::mark_false(OWNER_REMEDIATED, WAITING_FOR_REMEDIATION, Severity::Warning, message)
        };
        let mut after = machine.clone();
        let (generation, now) = (machine.metadata.generation, self.facts.now);
        let name = self.before.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Metal3Remediation {name} did not bring the machine back");
        set_condition(
            &mut after.status.conditions,
            condition(&message).standard(generation, now),
        );
        let older = after.status.deprecated.get_or_insert_default();
        let older = older.v1beta1.get_or_insert_default();
        set_condition(&mut older.conditions, condition("").legacy(now));
        let patch = changes(machine, &after).status;
        if let (Some(patch), Some(at)) = (patch, version(&machine.metadata)) {
            self.actions
                .push(Action::PatchMachineStatus(patch.with_precondition(&at)));
        }
    }

    /// The host that the Machine has.
    fn host(&self) -> Host<'a> {
        let machine: &Metal3Machine = match &self.facts.metal3_machine {
            Observed::Present(machine) => machine,
            Observed::Absent => return Host::None(Wait::without_metal3_machine()),
            Observed::Unknown(why) => return Host::Unknown(Wait::unreadable("the Metal3Machine", why)),
        };
        let Some(name) = associated(machine) else {
            return Host::None(Wait::without_host());
        };
        let host: &BareMetalHost = match &self.facts.host {
            Observed::Present(host) => host,
            Observed::Absent => return Host::None(Wait::host_missing(name)),
            Observed::Unknown(why) => return Host::Unknown(Wait::unreadable(&format!("BareMetalHost {name}"), why)),
        };
        let text = |value: &'a Option<String>| value.as_deref().unwrap_or_default();
        let (namespace, own) = (text(&machine.metadata.namespace), text(&machine.metadata.name));
        match &host.spec.consumer_ref {
            Some(consumer) if is_machine(consumer, namespace, own) => Host::Own(host),
            _ => Host::None(Wait::host_in_use(name)),
        }
    }

    fn strategy(&self) -> Option<&'a RemediationStrategy> {
        self.before.spec.strategy.as_ref()
    }

    /// 0 and less are no retry, as in objects that were stored before the schema refused them.
    fn retry_limit(&self) -> i32 {
        let limit = self.strategy().and_then(|strategy| strategy.retry_limit);
        limit.unwrap_or(1).max(0)
    }

    fn timeout(&self) -> Duration {
        timeout(self.before)
    }

    /// Whether the time of the attempt is over.
    ///
    /// differs (`remediation-timeout`): the Go manager's time runs only while the host is on again.
    fn is_over(&self) -> bool {
        self.facts.elapsed >= self.timeout()
    }

    /// Whether the time for fencing the Node is over: half of that of an attempt.
    fn is_fencing_over(&self) -> bool {
        self.facts.off >= self.timeout() / 2
    }

    /// Whether a deleted remediation has awaited its Node for long enough. Attempts may last longer than their time, and the
    /// deletion may begin after it.
    fn is_awaited_too_long(&self) -> bool {
        self.facts.awaited >= self.longest_wait()
    }

    fn longest_wait(&self) -> Duration {
        self.timeout().saturating_mul(2)
    }

    fn until_awaited_too_long(&self, wait: Wait) -> Wait {
        wait.with_recheck(self.longest_wait().saturating_sub(self.facts.awaited))
    }

    /// Whether the machine had its time to come back: that of the attempt is over, and its host was on for half of it at
    /// least while nothing was paused. A pause, or a host that went off or on late, uses up no time of its Node.
    fn is_node_late(&self) -> bool {
        self.is_over() && self.facts.on >= self.timeout() / 2
    }

    fn until_node_is_late(&self, wait: Wait) -> Wait {
        let timeout = self.timeout();
        let left = timeout.saturating_sub(self.facts.elapsed);
        wait.with_recheck(left.max((timeout / 2).saturating_sub(self.facts.on)))
    }

    /// The wait ends with the attempt at the latest.
    fn until_timeout(&self, wait: Wait) -> Wait {
        wait.with_recheck(self.timeout().saturating_sub(self.facts.elapsed))
    }

    fn is_held(&self, host: &BareMetalHost) -> bool {
        host.annotation(&power_off_annotation(self.before)).is_some()
    }

    fn has_finalizer(&self) -> bool {
        has_finalizer(self.before, REMEDIATION_FINALIZER)
    }

    fn set_finalizer(&mut self) {
        let present = self.before.metadata.finalizers.as_deref().unwrap_or_default();
        let patch = version(&self.before.metadata).and_then(|at| add_finalizer(present, REMEDIATION_FINALIZER, &at));
        self.actions.extend(patch.map(Action::PatchRemediation));
    }

    /// The annotation is removed from a host, which is powered on if its spec says so.
    fn power_on(&mut self, host: &BareMetalHost) {
        let key = power_off_annotation(self.before);
        self.patch_host(host, HostChange::PowerOn, |host| {
            host.metadata.annotations.get_or_insert_default().remove(&key);
        });
    }

    /// Adds a patch of a host, if it changes anything. The API server rejects it when the host's version differs.
    fn patch_host(&mut self, host: &BareMetalHost, change: HostChange, apply: impl FnOnce(&mut BareMetalHost)) {
        let mut after = host.clone();
        apply(&mut after);
        if let (Some(patch), Some(at)) = (changes(host, &after).main, version(&host.metadata)) {
            let host = host.metadata.name.clone().unwrap_or_default();
            let patch = patch.with_precondition(&at);
            self.actions.push(Action::PatchHost { host, change, patch });
        }
    }
}

fn timeout(remediation: &Metal3Remediation) -> Duration {
    let strategy = remediation.spec.strategy.as_ref();
    let stated = strategy.and_then(|strategy| strategy.timeout_seconds);
    let stated = stated.and_then(|seconds| u64::try_from(seconds).ok());
    Duration::from_secs(stated.filter(|seconds| *seconds > 0).unwrap_or(USUAL_TIMEOUT))
}

/// Whether the host itself reports that it cannot do what it is asked for.
fn reports_failure(host: &BareMetalHost) -> bool {
    host.status.operational_status == OperationalStatus::Error || host.spec.disable_power_off == Some(true)
}
