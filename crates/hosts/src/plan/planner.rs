//! What every planning step works on: the facts, the decisions so far, and how a step ends.

use std::collections::BTreeSet;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::{
    BareMetalHost, BareMetalHostStatus, CredentialsStatus, ErrorType, OperationalStatus, ProvisioningState as State,
};
use metal3_domain::uri::public_text;
use metal3_ironic::model::node::Node;
use metal3_runtime::patch::Changes;
use metal3_runtime::plan::{Observed, PlannedEvent};
use metal3_runtime::reason::Reason;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;
use serde_json::Value;

use super::{backoff, status, wait};
use crate::action::{Action, Audit, Count, Order, Request};
use crate::facts::{Facts, FoundNode, LOCK_THRESHOLD, NodeFreshness, Read};
use crate::plan::agent_state::AgentWait;
use crate::plan::error::{Failure, is_of_inoperable_node};
use crate::plan::ownership::{is_of_another_instance, may_switch_power};
use crate::plan::rules::Rules;
use crate::plan::state::graph::Trigger;

/// The result of a planning step. A [`Decision`] as error ends planning early: a read, a wait or a failure.
pub(crate) type PlanResult<T = Decision> = Result<T, Decision>;

/// The result of a decision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    /// Reads are needed first. Nothing is written.
    Read(BTreeSet<Read>),
    /// Wait; nothing is written.
    WaitUnchanged(Next),
    /// Write what was decided, then wait.
    Wait(Next),
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

    /// Records a failure that only a change of the host resolves.
    pub(crate) fn reject(kind: ErrorType, message: impl Into<String>) -> Self {
        Self::Fail(Failure::until_host_changes(kind, message))
    }
}

/// Why an action of the host is withheld until the user allows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Withheld {
    pub(crate) reason: Reason,
    /// The cause and what the user can do.
    pub(crate) message: String,
}

/// Planning for one host: its input and the decisions so far.
pub(crate) struct Planner<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) rules: &'a Rules,
    pub(crate) version: ResourceVersion,
    pub(crate) uid: &'a str,
    pub(crate) draft: BareMetalHost,
    pub(crate) withheld: Option<Withheld>,
    /// The host is neither paused nor detached, so its HostFirmwareSettings and HostFirmwareComponents are reported about.
    pub(super) may_report: bool,
    /// The spec of the HostFirmwareSettings changed since their report, which this plan renews: what failed before may succeed now.
    pub(super) has_new_settings: bool,
    /// The same of the HostFirmwareComponents.
    pub(super) has_new_updates: bool,
    pub(super) actions: Vec<Action>,
    pub(super) events: Vec<PlannedEvent>,
    pub(super) counts: Vec<Count>,
    /// The present version of the credentials Secret, if it is new and has the recorded credentials, and how long that
    /// is known.
    pub(super) login: Option<(CredentialsStatus, Duration)>,
    /// When the login that the BMC has not answered to is tried again.
    pub(super) login_tried_after: Option<Duration>,
    /// Why an order that boots the agent waits.
    pub(super) agent_wait: Option<AgentWait>,
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
            Observed::Unknown(_) if self.rules.absent_by_search() => Err(Decision::read(Read::Node)),
            Observed::Present(FoundNode::Own(_, NodeFreshness::Stale)) if self.rules.wait_when_stale() => {
                Err(Decision::Wait(wait::on_node("the change feed must show the node")))
            }
            Observed::Present(FoundNode::Own(node, _)) => Ok(Some(node)),
            Observed::Unknown(_) | Observed::Absent | Observed::Present(FoundNode::Foreign(_)) => Ok(None),
        }
    }

    /// How long a reservation of the node may still be that of an ordinary operation. `None`: the node has none.
    ///
    /// The time of its last change is not compared with now: it is of Ironic's clock.
    pub(crate) fn remaining_reservation(&self, node: &Node) -> Option<Duration> {
        node.reservation.as_ref()?;
        Some(LOCK_THRESHOLD.saturating_sub(self.facts.reserved_for.unwrap_or_default()))
    }

    /// Requires that Ironic creates no node later: a search without a result says nothing before.
    pub(crate) fn require_no_creation(&self) -> PlanResult<()> {
        let status = &self.host().status;
        let was_registered = status.operation_history.register.start.is_some() || !status.provisioning.id.is_empty();
        match self.facts.creation_left.filter(|_| was_registered) {
            Some(left) => Err(Decision::Wait(wait::on_lost_response(left))),
            None => Ok(()),
        }
    }

    /// Whether the plan changes more than the record of the node.
    pub(super) fn changes_machine(&self) -> bool {
        let mut actions = self.actions.iter();
        actions.any(|action| matches!(action, Action::Ironic(order) if !order.request.is_of_record()))
    }

    /// Requires an observation of the node that is newer than the host's state.
    pub(crate) fn require_fresh_node(&self) -> PlanResult<()> {
        match self.facts.own_node() {
            Some((_, freshness)) if freshness < NodeFreshness::InState && self.rules.wait_when_stale() => {
                Err(Decision::read(Read::Node))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn add(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Adds what the other actions rely on.
    pub(crate) fn add_first(&mut self, action: Action) {
        self.actions.insert(0, action);
    }

    /// Adds a request without impact.
    pub(crate) fn request(&mut self, request: Request) {
        self.add(Action::Ironic(Order { request, audit: None }));
    }

    /// Adds a request with impact. Only [`crate::plan::safety`] calls this.
    pub(crate) fn request_audited(&mut self, request: Request, audit: Audit) {
        self.add(Action::Ironic(Order {
            request,
            audit: Some(audit),
        }));
    }

    pub(crate) fn record_event(&mut self, reason: Reason, message: impl Into<String>) {
        self.events
            .push(PlannedEvent::normal(reason, public_text(&message.into())));
    }

    pub(crate) fn record_warning(&mut self, reason: Reason, message: impl Into<String>) {
        self.events
            .push(PlannedEvent::warning(reason, public_text(&message.into())));
    }

    pub(crate) fn count(&mut self, count: Count) {
        self.counts.push(count);
    }

    /// Stores a version of the Secret with the recorded credentials. It is written with the next change of the status,
    /// or after a delay.
    pub(crate) fn record_login_version(&mut self, login: CredentialsStatus, known: Duration) {
        self.login = Some((login, known));
    }

    /// Has a login tried again later.
    pub(crate) const fn try_login_after(&mut self, left: Duration) {
        self.login_tried_after = Some(left);
    }

    /// The recorded error of this kind. A new attempt clears it, so the failure that the node shows is still this one,
    /// even if Ironic changed or erased its message.
    pub(crate) fn recorded_error(&self, kind: ErrorType) -> Option<&'a str> {
        let message = self.host().status.error_message.as_str();
        let is_failure = self.is_own_error(kind) && !message.is_empty() && !is_of_inoperable_node(message);
        is_failure.then_some(message)
    }

    /// Whether the recorded error is of this kind and of this state: not of the deployment, which is the reason for
    /// deprovisioning.
    pub(crate) fn is_own_error(&self, kind: ErrorType) -> bool {
        let status = &self.host().status;
        let is_from_deployment = *self.state() == State::Deprovisioning
            && status.error_count <= status.provisioning_fail_count
            && !is_of_inoperable_node(&status.error_message);
        status.error_type == Some(kind) && !is_from_deployment
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

    /// Whether a retry was due and waits for a slot: the error was cleared for it.
    const fn is_retry_delayed(&self) -> bool {
        let status = &self.facts.host.status;
        matches!(status.operational_status, OperationalStatus::Delayed) && status.error_type.is_none()
    }

    /// Whether the status names a reason for which Ironic did not operate the node, or not for this host, and that is over: the
    /// operation that failed before is due. Callers have compared maintenance and faults with the node.
    fn is_operable_again(&self, failure: &Failure) -> bool {
        let status = &self.facts.host.status;
        let message = status.error_message.as_str();
        let is_own = || matches!(self.facts.own_node(), Some((node, _)) if may_switch_power(self, node));
        let is_of_node = is_of_inoperable_node(message) || (is_of_another_instance(message) && is_own());
        status.error_type == Some(failure.kind) && is_of_node && !is_of_inoperable_node(&failure.message)
    }

    fn check_backoff(&self, failure: &Failure) -> PlanResult<()> {
        if self.is_retry_delayed() || self.is_operable_again(failure) {
            return Ok(());
        }
        if !failure.is_recorded_in(&self.host().status) {
            return Err(Decision::Fail(failure.clone()));
        }
        match self.remaining_delay(failure.backoff_step(self.host().status.error_count)) {
            Some(left) => Err(Decision::WaitUnchanged(wait::for_retry(left))),
            None => Ok(()),
        }
    }

    pub(crate) fn remaining_backoff(&self) -> Option<Duration> {
        self.remaining_delay(self.host().status.error_count)
    }

    /// What remains of the delay after this many failures.
    pub(super) fn remaining_delay(&self, failures: i64) -> Option<Duration> {
        if !self.rules.back_off() || self.has_new_generation() || self.has_new_settings || self.has_new_updates {
            return None;
        }
        let since = self.host().status.last_updated?;
        backoff::left(since, failures, self.facts.jitter, self.facts.now)
    }
}

/// What a plan changed of its host. Most plans change nothing, and most others the status alone: whole documents, with the
/// inspected hardware twice, are made only for the rest.
pub(crate) fn changes(from: &BareMetalHost, to: &BareMetalHost) -> Changes {
    if from.metadata != to.metadata || from.spec != to.spec {
        return Changes::between(&document(from), &document(to));
    }
    let status = |host: &BareMetalHost| (host.status != BareMetalHostStatus::default()).then(|| document(&host.status));
    if from.status == to.status {
        Changes::of_status(None, None)
    } else {
        Changes::of_status(status(from), status(to))
    }
}

/// The JSON of an object. Serialization of API types does not fail.
pub(crate) fn document<T: serde::Serialize>(object: &T) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
