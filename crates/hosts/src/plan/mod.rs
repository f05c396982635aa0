//! The decision for a host, from facts alone.
//!
//! Planning runs in layers: paused or moving, missing metadata, deletion, detachment, and then the host's state. Each
//! layer may end the decision. The writes are ordered: requests and other objects, then the host, then its status. A
//! write of the host postpones the write of its status, because it changes the precondition.

pub mod backoff;
pub(crate) mod conditions;
mod deletion;
mod detach;
pub(crate) mod error;
pub(crate) mod object;
mod ownership;
mod power;
pub(crate) mod rules;
mod safety;
pub mod state;
mod status;

use std::collections::BTreeSet;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::{
    BareMetalHost, CredentialsStatus, ErrorType, OperationalStatus, ProvisioningState as State,
};
use metal3_ironic::model::node::Node;
use metal3_ironic::slots::SlotState;
use metal3_runtime::events::Importance;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::reason::Reason;
use metal3_runtime::version::ResourceVersion;
use serde_json::Value;

use crate::action::{Audit, Count, Event, Order, Plan, RETRY_AFTER_FAILURE, Request, SlotUse, Step, Wait};
use crate::facts::{Facts, NodeFreshness, ObservedNode, Read};
use crate::plan::conditions::Withheld;
use crate::plan::error::{Failure, Remedy, event_reason};
use crate::plan::rules::Rules;
use crate::plan::state::graph::{self, Trigger};

/// Plans for the given facts.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    plan_under(facts, &Rules::ALL)
}

/// Plans with a subset of the rules. Only tests use one.
pub(crate) fn plan_under(facts: &Facts<'_>, rules: &Rules) -> Plan {
    let meta = &facts.host.metadata;
    let version = meta.resource_version.as_deref();
    let version = version.and_then(|text| ResourceVersion::parse(text).ok());
    let (Some(version), Some(uid)) = (version, meta.uid.as_deref()) else {
        return Plan::default();
    };
    let mut planner = Planner {
        facts,
        rules,
        version,
        uid,
        draft: facts.host.clone(),
        withheld: None,
        steps: Vec::new(),
        events: Vec::new(),
        counts: Vec::new(),
        spends_budget: false,
        login: None,
    };
    let decision = decide(&mut planner).unwrap_or_else(|decision| decision);
    planner.finish(decision)
}

fn decide(planner: &mut Planner<'_>) -> PlanResult {
    object::check_paused(planner)?;
    object::restore(planner)?;
    object::complete_object(planner)?;
    deletion::handle_deletion(planner)?;
    detach::handle_detached(planner)?;
    state::run(planner)
}

/// The result of a planning step. A [`Decision`] as error ends planning early, as a read, a wait or a failure does.
pub(crate) type PlanResult<T = Decision> = Result<T, Decision>;

/// The result of a decision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    /// Reads are needed first. Nothing is written.
    Read(BTreeSet<Read>),
    /// Wait; nothing is written.
    WaitUnchanged(Wait),
    /// Write what was decided, then wait.
    Wait(Wait),
    /// Record a failure.
    Fail(Failure),
    /// Record a failure and change the state because of it.
    FailAndChangeState(Failure, Trigger),
    /// Change the state.
    ChangeState(Trigger),
}

impl Decision {
    pub(crate) fn read(read: Read) -> Self {
        Self::Read(BTreeSet::from([read]))
    }
}

/// Planning for one host: its input and the decisions so far.
pub(crate) struct Planner<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) rules: &'a Rules,
    pub(crate) version: ResourceVersion,
    pub(crate) uid: &'a str,
    pub(crate) draft: BareMetalHost,
    pub(crate) withheld: Option<Withheld>,
    steps: Vec<Step>,
    events: Vec<Event>,
    counts: Vec<Count>,
    spends_budget: bool,
    /// The credentials Secret in its present version, with the recorded credentials, and how long that is known.
    login: Option<(CredentialsStatus, Duration)>,
}

impl<'a> Planner<'a> {
    pub(crate) const fn host(&self) -> &'a BareMetalHost {
        self.facts.host
    }

    /// The state. `ready` is an older name of `available`.
    pub(crate) fn state(&self) -> &'a State {
        match &self.host().status.provisioning.state {
            State::Ready => &State::Available,
            state => state,
        }
    }

    pub(crate) const fn is_deleting(&self) -> bool {
        self.host().metadata.deletion_timestamp.is_some()
    }

    /// Whether the spec changed since the conditions were written: a failed operation may succeed now.
    pub(crate) fn has_new_generation(&self) -> bool {
        let ready = self.host().status.conditions.first();
        let observed = ready.and_then(|condition| condition.observed_generation);
        observed.is_some() && observed != self.host().metadata.generation
    }

    /// The node, unless it must be searched first or the effect of a request is not observed yet.
    pub(crate) fn node(&self) -> PlanResult<Option<&'a Node>> {
        match self.facts.node {
            ObservedNode::Unknown if self.rules.absent_by_search => Err(Decision::read(Read::Node)),
            ObservedNode::Found(_, NodeFreshness::Stale) if self.rules.wait_when_stale => {
                Err(Decision::Wait(Wait::OnNode("the change feed must show the node")))
            }
            ObservedNode::Found(node, _) => Ok(Some(node)),
            ObservedNode::Unknown | ObservedNode::Absent | ObservedNode::Foreign { .. } => Ok(None),
        }
    }

    /// Requires an observation of the node that is newer than the host's state.
    pub(crate) fn require_fresh_node(&self) -> PlanResult<()> {
        match self.facts.node {
            ObservedNode::Found(_, freshness) if freshness < NodeFreshness::InState && self.rules.wait_when_stale => {
                Err(Decision::read(Read::Node))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Adds a request without impact.
    pub(crate) fn request(&mut self, request: Request) {
        self.steps.push(Step::Ironic(Order { request, audit: None }));
    }

    /// Adds a request with impact. Only [`crate::plan::safety`] calls this.
    pub(crate) fn request_audited(&mut self, request: Request, audit: Audit) {
        self.steps.push(Step::Ironic(Order {
            request,
            audit: Some(audit),
        }));
    }

    pub(crate) fn record_event(&mut self, reason: Reason, message: impl Into<String>) {
        self.events.push(Event {
            importance: Importance::Normal,
            reason,
            message: message.into(),
        });
    }

    pub(crate) fn record_warning(&mut self, reason: Reason, message: impl Into<String>) {
        self.events.push(Event {
            importance: Importance::Warning,
            reason,
            message: message.into(),
        });
    }

    pub(crate) fn count(&mut self, count: Count) {
        self.counts.push(count);
    }

    /// The credentials equal the recorded ones under another version of the Secret. The version is written with the
    /// next change of the status.
    pub(crate) fn record_login_version(&mut self, login: CredentialsStatus, known: Duration) {
        self.login = Some((login, known));
    }

    pub(crate) const fn spend_budget(&mut self) {
        self.spends_budget = true;
    }

    /// The recorded error of this kind. A new attempt clears it, so the failure that the node shows is still this one,
    /// even if Ironic changed or erased its message.
    pub(crate) fn recorded_error(&self, kind: ErrorType) -> Option<&'a str> {
        let status = &self.host().status;
        // The error of the deployment, which is the reason for deprovisioning.
        let is_from_deployment =
            *self.state() == State::Deprovisioning && status.error_count <= status.provisioning_fail_count;
        let is_same = status.error_type == Some(kind) && !status.error_message.is_empty() && !is_from_deployment;
        is_same.then_some(status.error_message.as_str())
    }

    /// Returns `Ok` when a failed operation may be retried now. Otherwise records the failure or waits for its backoff.
    pub(crate) fn retry(&mut self, failure: &Failure) -> PlanResult<()> {
        self.check_backoff(failure)?;
        // The retry is a new attempt: its failure counts, even with the same message.
        status::clear(&mut self.draft.status);
        Ok(())
    }

    /// The same for a failure shown by the node. Ironic sets and erases its message while the node stays in the failed
    /// state.
    pub(crate) fn retry_node_failure(&mut self, failure: Failure) -> PlanResult<()> {
        let message = self
            .recorded_error(failure.kind)
            .map(str::to_owned)
            .unwrap_or(failure.message);
        self.retry(&Failure { message, ..failure })
    }

    /// Records a failure that was detected without a request, repeatedly until it is resolved.
    pub(crate) fn fail_with_backoff(&self, failure: Failure) -> Decision {
        match self.check_backoff(&failure) {
            Err(decision) => decision,
            Ok(()) => Decision::Fail(failure),
        }
    }

    fn check_backoff(&self, failure: &Failure) -> PlanResult<()> {
        if !failure.is_recorded_in(&self.host().status) {
            return Err(Decision::Fail(failure.clone()));
        }
        match self.remaining_backoff() {
            Some(left) => Err(Decision::WaitUnchanged(Wait::After(left, RETRY_AFTER_FAILURE))),
            None => Ok(()),
        }
    }

    pub(crate) fn remaining_backoff(&self) -> Option<Duration> {
        let status = &self.host().status;
        if !self.rules.back_off || self.has_new_generation() {
            return None;
        }
        let since = status.last_updated?;
        backoff::left(since, status.error_count, self.facts.jitter, self.facts.now)
    }

    fn finish(mut self, decision: Decision) -> Plan {
        let mut is_backing_off = false;
        let wait = match decision {
            Decision::Read(reads) => return Plan::reading(reads),
            Decision::WaitUnchanged(wait) => {
                return Plan {
                    slot_use: self.slot_use(true, &wait),
                    ..Plan::waiting(wait)
                };
            }
            Decision::Wait(wait) => {
                if wait != Wait::OnSlot {
                    status::end_delay(&mut self.draft.status);
                }
                wait
            }
            Decision::Fail(failure) => {
                is_backing_off = true;
                self.record_failure(&failure)
            }
            Decision::FailAndChangeState(failure, trigger) => {
                self.record_failure(&failure);
                self.change_state(trigger)
            }
            Decision::ChangeState(trigger) => self.change_state(trigger),
        };
        conditions::renew(&mut self);
        let slot_use = self.slot_use(is_backing_off, &wait);
        self.build(wait, slot_use)
    }

    fn record_failure(&mut self, failure: &Failure) -> Wait {
        let recorded = &self.host().status;
        let is_new_failure =
            !failure.is_recorded_in(recorded) || recorded.operational_status != OperationalStatus::Error;
        if is_new_failure || failure.remedy == Remedy::Retry {
            status::record_failure(&mut self.draft.status, failure);
            let event = failure.event.unwrap_or_else(|| event_reason(failure.kind));
            self.record_warning(event, failure.message.clone());
            self.count(Count::Error(event_reason(failure.kind)));
        } else {
            // Planning cleared an error that still holds: a lasting cause is written once.
            status::restore_error(&mut self.draft.status, recorded);
        }
        match &failure.remedy {
            Remedy::WaitFor(wait) => wait.clone(),
            Remedy::Retry => {
                let delay = backoff::delay(self.draft.status.error_count, self.facts.jitter);
                Wait::After(delay, RETRY_AFTER_FAILURE)
            }
        }
    }

    fn change_state(&mut self, trigger: Trigger) -> Wait {
        let Some(edge) = graph::edge_for(self.state(), trigger) else {
            // A test covers that every trigger has an edge; without one the host stays as it is.
            return Wait::Settled;
        };
        let (boot_mode, now) = (self.host().boot_mode(), self.facts.now);
        if edge.clears_errors {
            status::clear(&mut self.draft.status);
            // Failures of deprovisioning are counted on top of the failed deployments.
            let kept = self.draft.status.provisioning_fail_count.max(0);
            self.draft.status.error_count = if edge.to == State::Deprovisioning { kept } else { 0 };
        }
        let counts = status::enter(&mut self.draft.status, &edge.to, boot_mode, now);
        self.counts.extend(counts);
        state::on_enter(self, &edge.to);
        Wait::Replan
    }

    /// Adds the writes, and none when nothing changed.
    fn build(mut self, wait: Wait, slot_use: SlotUse) -> Plan {
        let mut wait = wait;
        if let Some(login) = self.login.take() {
            let recorded = &self.host().status;
            wait = status::record_login_version(&mut self.draft.status, recorded, &login, wait);
        }
        if self.draft.status != self.host().status {
            self.draft.status.last_updated = Some(self.facts.now);
        }
        let changes = Changes::between(&document(self.host()), &document(&self.draft));
        let is_split = changes.main.is_some() && changes.status.is_some();
        match changes {
            Changes { main: Some(main), .. } => self.steps.push(Step::PatchHost(main.with_precondition(&self.version))),
            Changes { status, .. } => {
                let patch: Option<MergePatch> = status.map(|patch| patch.with_precondition(&self.version));
                self.steps.extend(patch.map(Step::PatchStatus));
            }
        }
        if is_split {
            wait = Wait::Replan;
            if !self.steps.iter().any(|step| matches!(step, Step::Ironic(_))) {
                // These are reported together with the status, in the next round.
                self.events.clear();
                self.counts.clear();
            }
        }
        Plan {
            reads: BTreeSet::new(),
            steps: self.steps,
            events: self.events,
            counts: self.counts,
            wait,
            slot_use,
            spends_budget: self.spends_budget,
        }
    }

    /// A host that uses the provisioning network, or will, keeps its slot. A host that waits for a retry releases it.
    fn slot_use(&self, is_backing_off: bool, wait: &Wait) -> SlotUse {
        let busy = matches!(self.facts.node, ObservedNode::Found(node, _) if node.provision_state.is_busy());
        let will_load = matches!(
            self.draft.status.provisioning.state,
            State::Inspecting | State::Provisioning | State::Deprovisioning
        );
        let will_load = will_load && !is_backing_off;
        // A delayed host that is skipped requests a slot again later.
        let is_waiting = self.draft.status.operational_status == OperationalStatus::Delayed && !is_backing_off;
        // The slot is used later in the same reconcile.
        let replans = self.facts.slot == Some(SlotState::Granted) && *wait == Wait::Replan && !is_backing_off;
        if busy || will_load || is_waiting || replans {
            SlotUse::Keep
        } else {
            SlotUse::Release
        }
    }
}

/// The JSON of an object. Serialization of API types does not fail.
pub(crate) fn document<T: serde::Serialize>(object: &T) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
