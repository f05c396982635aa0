//! What to do for a host: the decision, from facts alone.
//!
//! A plan is made in layers: whether the host is to be left alone, what its object lacks, whether it leaves, whether it
//! stands aside, and then what its state asks for. Each layer may end the decision. What was decided until then is
//! written in the order: requests and other objects, the host, its status; a write of the host puts off that of its
//! status, whose precondition it changes.

use std::collections::BTreeSet;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::{
    BareMetalHost, CredentialsStatus, ErrorType, OperationalStatus, ProvisioningState as State,
};
use metal3_ironic::model::node::Node;
use metal3_ironic::slots::Turn;
use metal3_runtime::events::Importance;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::reason::Reason;
use metal3_runtime::version::ResourceVersion;
use serde_json::Value;

use crate::action::{Audit, Count, Event, Order, Place, Plan, Request, Step, Wait};
use crate::conditions::Held;
use crate::error::{Failure, Remedy, word};
use crate::facts::{Facts, NodeSeen, NodeSight, Read};
use crate::rules::Rules;
use crate::state::graph::{self, Why};
use crate::{backoff, conditions, deletion, detach, object, state, status};

/// What to do, given the facts.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    plan_under(facts, &Rules::ALL)
}

/// The same under a part of the rules. Only tests leave any out.
pub(crate) fn plan_under(facts: &Facts<'_>, rules: &Rules) -> Plan {
    let meta = &facts.host.metadata;
    let version = meta.resource_version.as_deref();
    let version = version.and_then(|text| ResourceVersion::parse(text).ok());
    let (Some(version), Some(uid)) = (version, meta.uid.as_deref()) else {
        return Plan::default();
    };
    let mut pass = Pass {
        facts,
        rules,
        version,
        uid,
        draft: facts.host.clone(),
        held: None,
        steps: Vec::new(),
        events: Vec::new(),
        counts: Vec::new(),
        spends_budget: false,
        login: None,
    };
    let end = decide(&mut pass).unwrap_or_else(|end| end);
    pass.finish(end)
}

fn decide(pass: &mut Pass<'_>) -> Result<End, End> {
    object::rest(pass)?;
    object::restore(pass)?;
    object::complete(pass)?;
    deletion::leave(pass)?;
    detach::stand_aside(pass)?;
    state::run(pass)
}

/// How a decision ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// Something must be looked at first. Nothing is written.
    Read(BTreeSet<Read>),
    /// Nothing is written.
    Rest(Wait),
    /// What was decided is written.
    Wait(Wait),
    /// Something went wrong.
    Fail(Failure),
    /// Something went wrong, and the host leaves its state for it.
    FailAndGo(Failure, Why),
    /// The host leaves its state.
    Go(Why),
}

impl End {
    /// One thing must be looked at first.
    pub(crate) fn read(read: Read) -> Self {
        Self::Read(BTreeSet::from([read]))
    }
}

/// One pass over one host: what it sees, and what it has decided so far.
pub(crate) struct Pass<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) rules: &'a Rules,
    pub(crate) version: ResourceVersion,
    pub(crate) uid: &'a str,
    /// The host as it is to be.
    pub(crate) draft: BareMetalHost,
    /// What is not done on purpose.
    pub(crate) held: Option<Held>,
    steps: Vec<Step>,
    events: Vec<Event>,
    counts: Vec<Count>,
    spends_budget: bool,
    /// The Secret that holds the login which the status records, in its present version, and for how long that is known.
    login: Option<(CredentialsStatus, Duration)>,
}

impl<'a> Pass<'a> {
    /// The host as it is.
    pub(crate) const fn host(&self) -> &'a BareMetalHost {
        self.facts.host
    }

    /// The state it is in. An older word for available counts as that.
    pub(crate) fn state(&self) -> &'a State {
        match &self.host().status.provisioning.state {
            State::Ready => &State::Available,
            state => state,
        }
    }

    /// Whether the host is deleted.
    pub(crate) const fn is_leaving(&self) -> bool {
        self.host().metadata.deletion_timestamp.is_some()
    }

    /// Whether the host changed since its conditions were written: what could not be done may be possible now.
    pub(crate) fn is_changed(&self) -> bool {
        let ready = self.host().status.conditions.first();
        let seen = ready.and_then(|condition| condition.observed_generation);
        seen.is_some() && seen != self.host().metadata.generation
    }

    /// The node, unless it has to be looked for first or something of ours is still to show.
    pub(crate) fn node(&self) -> Result<Option<&'a Node>, End> {
        match self.facts.node {
            NodeSight::Unknown if self.rules.absent_by_search => Err(End::read(Read::Node)),
            NodeSight::Found(_, NodeSeen::Stale) if self.rules.wait_when_stale => {
                Err(End::Wait(Wait::OnNode("the change feed has to come by")))
            }
            NodeSight::Found(node, _) => Ok(Some(node)),
            NodeSight::Unknown | NodeSight::Absent | NodeSight::Foreign { .. } => Ok(None),
        }
    }

    /// Passes when the view of the node is from after the host entered its state.
    pub(crate) fn abreast(&self) -> Result<(), End> {
        match self.facts.node {
            NodeSight::Found(_, seen) if seen < NodeSeen::Abreast && self.rules.wait_when_stale => {
                Err(End::read(Read::Node))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// A request that harms nobody.
    pub(crate) fn ask(&mut self, request: Request) {
        self.steps.push(Step::Ironic(Order { request, audit: None }));
    }

    /// A request that harms. Only [`crate::brakes`] may add one.
    pub(crate) fn ask_on_record(&mut self, request: Request, audit: Audit) {
        self.steps.push(Step::Ironic(Order {
            request,
            audit: Some(audit),
        }));
    }

    pub(crate) fn tell(&mut self, reason: Reason, message: impl Into<String>) {
        self.events.push(Event {
            importance: Importance::Normal,
            reason,
            message: message.into(),
        });
    }

    pub(crate) fn warn(&mut self, reason: Reason, message: impl Into<String>) {
        self.events.push(Event {
            importance: Importance::Warning,
            reason,
            message: message.into(),
        });
    }

    pub(crate) fn count(&mut self, count: Count) {
        self.counts.push(count);
    }

    /// The login is the recorded one under another version, which is known for so long. The status takes that along when it
    /// changes anyway.
    pub(crate) fn record_login(&mut self, login: CredentialsStatus, known: Duration) {
        self.login = Some((login, known));
    }

    pub(crate) const fn spend_budget(&mut self) {
        self.spends_budget = true;
    }

    /// The failure of this sort that the host tells already. Another attempt would have cleared it, so what its node shows
    /// is the same failure still, whatever Ironic says or has erased by now.
    pub(crate) fn told(&self, kind: ErrorType) -> Option<&'a str> {
        let status = &self.host().status;
        // The error of the deployment, which is why the host is torn down.
        let came_along = *self.state() == State::Deprovisioning && status.error_count <= status.provisioning_fail_count;
        let is_same = status.error_type == Some(kind) && !status.error_message.is_empty() && !came_along;
        is_same.then_some(status.error_message.as_str())
    }

    /// Passes when a failed operation is to be attempted again now. Otherwise it is told, or it is waited on.
    pub(crate) fn attempt(&mut self, failure: &Failure) -> Result<(), End> {
        self.backed_off(failure)?;
        // What comes next is another attempt: its failure counts, even if it fails the same way.
        status::clear(&mut self.draft.status);
        Ok(())
    }

    /// The same for a failure that the node shows. Ironic sets and erases its words while the node stays as it is.
    pub(crate) fn attempt_on_failed(&mut self, failure: Failure) -> Result<(), End> {
        let message = self.told(failure.kind).map(str::to_owned).unwrap_or(failure.message);
        self.attempt(&Failure { message, ..failure })
    }

    /// Tells a failure that was found out without harm, again and again until it is cured.
    pub(crate) fn fails(&self, failure: Failure) -> End {
        match self.backed_off(&failure) {
            Err(end) => end,
            Ok(()) => End::Fail(failure),
        }
    }

    fn backed_off(&self, failure: &Failure) -> Result<(), End> {
        if !failure.is_told(&self.host().status) {
            return Err(End::Fail(failure.clone()));
        }
        match self.left_to_wait() {
            Some(left) => Err(End::Rest(Wait::After(left, "an attempt failed"))),
            None => Ok(()),
        }
    }

    /// How long the next attempt still has to wait.
    pub(crate) fn left_to_wait(&self) -> Option<Duration> {
        let status = &self.host().status;
        if !self.rules.back_off || self.is_changed() {
            return None;
        }
        let since = status.last_updated?;
        backoff::left(since, status.error_count, self.facts.jitter, self.facts.now)
    }

    fn finish(mut self, end: End) -> Plan {
        let mut is_idle = false;
        let wait = match end {
            End::Read(reads) => return Plan::asking(reads),
            End::Rest(wait) => {
                return Plan {
                    place: self.place(true, &wait),
                    ..Plan::waiting(wait)
                };
            }
            End::Wait(wait) => {
                if wait != Wait::OnTurn {
                    status::end_delay(&mut self.draft.status);
                }
                wait
            }
            End::Fail(failure) => {
                is_idle = true;
                self.fail(&failure)
            }
            End::FailAndGo(failure, why) => {
                self.fail(&failure);
                self.go(why)
            }
            End::Go(why) => self.go(why),
        };
        conditions::renew(&mut self);
        let place = self.place(is_idle, &wait);
        self.write(wait, place)
    }

    fn fail(&mut self, failure: &Failure) -> Wait {
        let told = &self.host().status;
        let is_news = !failure.is_told(told) || told.operational_status != OperationalStatus::Error;
        if is_news || failure.remedy == Remedy::Attempt {
            status::fail(&mut self.draft.status, failure);
            let event = failure.event.unwrap_or_else(|| word(failure.kind));
            self.warn(event, failure.message.clone());
            self.count(Count::Error(word(failure.kind)));
        } else {
            // What was cleared on the way here holds all the same: a lasting cause is written once.
            status::keep_error(&mut self.draft.status, told);
        }
        match &failure.remedy {
            Remedy::Change(wait) => wait.clone(),
            Remedy::Attempt => {
                let delay = backoff::delay(self.draft.status.error_count, self.facts.jitter);
                Wait::After(delay, "an attempt failed")
            }
        }
    }

    fn go(&mut self, why: Why) -> Wait {
        let Some(way) = graph::way(self.state(), why) else {
            // A test holds that no decision gets here; if one does, the host stays as it is.
            return Wait::Settled;
        };
        let (boot_mode, now) = (self.host().boot_mode(), self.facts.now);
        if way.forgets_errors {
            status::clear(&mut self.draft.status);
            // A tear-down counts its failures from those of the deployments before it.
            let kept = self.draft.status.provisioning_fail_count.max(0);
            self.draft.status.error_count = if way.to == State::Deprovisioning { kept } else { 0 };
        }
        let counts = status::enter(&mut self.draft.status, &way.to, boot_mode, now);
        self.counts.extend(counts);
        state::arrive(self, &way.to);
        Wait::Again
    }

    /// The writes, and nothing where nothing changed.
    fn write(mut self, wait: Wait, place: Place) -> Plan {
        let mut wait = wait;
        if let Some(login) = self.login.take() {
            let told = &self.host().status;
            wait = status::settle_login(&mut self.draft.status, told, &login, wait);
        }
        if self.draft.status != self.host().status {
            self.draft.status.last_updated = Some(self.facts.now);
        }
        let changes = Changes::between(&document(self.host()), &document(&self.draft));
        let is_split = changes.main.is_some() && changes.status.is_some();
        match changes {
            Changes { main: Some(main), .. } => self.steps.push(Step::PatchHost(main.only_at(&self.version))),
            Changes { status, .. } => {
                let patch: Option<MergePatch> = status.map(|patch| patch.only_at(&self.version));
                self.steps.extend(patch.map(Step::PatchStatus));
            }
        }
        if is_split {
            wait = Wait::Again;
            if !self.steps.iter().any(|step| matches!(step, Step::Ironic(_))) {
                // What goes with the status is told with it.
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
            place,
            spends_budget: self.spends_budget,
        }
    }

    /// A host that loads the provisioning network, or is about to, keeps its place among those that do. One that waits
    /// for another attempt does not.
    fn place(&self, is_idle: bool, wait: &Wait) -> Place {
        let busy = matches!(self.facts.node, NodeSight::Found(node, _) if node.provision_state.is_busy());
        let about_to = matches!(
            self.draft.status.provisioning.state,
            State::Inspecting | State::Provisioning | State::Deprovisioning
        );
        let about_to = about_to && !is_idle;
        // A host that is left alone while it waits asks for its turn again when it goes on.
        let waits = self.draft.status.operational_status == OperationalStatus::Delayed && !is_idle;
        // What its turn was asked for comes later in the same pass.
        let goes_on = self.facts.turn == Some(Turn::Granted) && *wait == Wait::Again && !is_idle;
        if busy || about_to || waits || goes_on {
            Place::Keep
        } else {
            Place::Leave
        }
    }
}

/// An object as the server would show it. Our own types always have a document.
pub(crate) fn document<T: serde::Serialize>(object: &T) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
