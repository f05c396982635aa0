//! The decision for a host, from facts alone.
//!
//! Planning runs in layers: paused or moving, the Ironic of the host, missing metadata, deletion, detachment, and then the host's state. Each
//! layer may end the decision. The writes are ordered: requests and other objects, then the host, then its status. A
//! write of the host postpones the write of its status, because it changes the precondition. Metrics and the busy-host
//! slot come last.

pub(crate) mod agent_image;
pub(crate) mod agent_state;
mod agent_wait;
pub mod backoff;
mod cleaning_plan;
mod components_report;
pub(crate) mod conditions;
mod deletion;
mod detach;
pub(crate) mod disc;
mod disc_report;
pub(crate) mod error;
mod firmware_record;
mod ironic;
mod login;
pub(crate) mod object;
pub(crate) mod outage;
mod ownership;
mod planner;
mod power;
mod reported_node;
mod restore;
pub(crate) mod rules;
mod running_step;
mod safety;
mod secrets;
mod service_policy;
mod settings_report;
pub mod state;
mod status;
mod update_policy;
pub(crate) mod wait;

use std::collections::BTreeSet;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::{OperationalStatus, ProvisioningState as State};
use metal3_ironic::slots::SlotState;
use metal3_runtime::patch::Changes;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;

use crate::action::{Action, Count, Plan, Request};
use crate::facts::{Facts, NodeFreshness, PORT_RETRY};
use crate::names::reason;
use crate::plan::error::{Failure, Remedy, event_reason};
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld};
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
        may_report: false,
        has_new_settings: false,
        has_new_updates: false,
        actions: Vec::new(),
        events: Vec::new(),
        counts: Vec::new(),
        login: None,
        login_tried_after: None,
        agent_wait: None,
    };
    let decision = decide(&mut planner).unwrap_or_else(|decision| decision);
    planner.finish(decision)
}

fn decide(planner: &mut Planner<'_>) -> PlanResult {
    object::check_paused(planner)?;
    ironic::require(planner)?;
    restore::restore(planner)?;
    object::complete_object(planner)?;
    deletion::handle_deletion(planner)?;
    detach::handle_detached(planner)?;
    settings_report::require_settings(planner)?;
    outage::report(planner)?;
    components_report::require_versions(planner)?;
    state::run(planner)
}

impl Planner<'_> {
    fn finish(mut self, decision: Decision) -> Plan {
        // differs: `host-lost-responses`. The Go manager repeats the request at once.
        let left = self.order_left(&decision);
        if let Some(left) = left.or_else(|| self.facts.unanswered.filter(|_| self.changes_machine())) {
            return Plan {
                next: self.recheck_stale_node(wait::on_lost_response(left)),
                ..Plan::default()
            };
        }
        let mut is_backing_off = false;
        let next = match decision {
            Decision::Read(reads) => return Plan::reading(reads),
            Decision::WaitUnchanged(next) => {
                let mut actions: Vec<_> = self.release_slot(true, &next).into_iter().collect();
                self.actions.clear();
                let next = self.recheck_stale_node(next);
                let next = self.recheck_login(next);
                let next = settings_report::add(&self, &mut actions, next);
                let next = components_report::add(&self, &mut actions, next);
                update_policy::add(&self, &mut actions);
                return Plan {
                    actions,
                    status: outage::change(&self).map(|patch| patch.with_precondition(&self.version)),
                    next,
                    ..Plan::default()
                };
            }
            Decision::Wait(next) => {
                if !wait::is_on_slot(&next) {
                    status::end_delay(&mut self.draft.status);
                }
                next
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
        let release_slot = self.release_slot(is_backing_off, &next);
        self.build(next, release_slot)
    }

    /// How long an order may still begin that contradicts the end of an operation: what the node shows is not its end before.
    fn order_left(&self, decision: &Decision) -> Option<Duration> {
        match decision {
            Decision::ChangeState(Trigger::Deprovisioned | Trigger::Provisioned | Trigger::Prepared) => {
                self.facts.unanswered
            }
            Decision::ChangeState(Trigger::PoweredOff) if *self.state() == State::Deprovisioning => {
                self.facts.unanswered
            }
            // The removal that is taken back may have been ordered by a process that was replaced.
            Decision::ChangeState(Trigger::ImageRestored) => self.facts.creation_left.max(self.facts.unanswered),
            _ => None,
        }
    }

    fn record_failure(&mut self, failure: &Failure) -> Next {
        let recorded = &self.host().status;
        let is_new_failure =
            !failure.is_recorded_in(recorded) || recorded.operational_status != OperationalStatus::Error;
        let is_retried = matches!(failure.remedy, Remedy::Retry | Remedy::RetryUncounted);
        if is_retried {
            // The backoff counts from here, also when nothing else changes.
            self.draft.status.last_updated = Some(self.facts.now);
        }
        if is_new_failure || is_retried {
            status::record_failure(&mut self.draft.status, failure);
            let event = failure.event.unwrap_or_else(|| event_reason(failure.kind));
            self.record_warning(event, failure.message.clone());
            self.count(Count::Error(event_reason(failure.kind)));
        } else {
            // Planning cleared an error that still holds: a lasting cause is written once.
            status::restore_error(&mut self.draft.status, recorded);
        }
        match &failure.remedy {
            Remedy::WaitFor(next) => next.clone(),
            Remedy::Retry | Remedy::RetryUncounted => {
                let delay = backoff::delay(failure.backoff_step(self.draft.status.error_count), self.facts.jitter);
                wait::for_retry(delay)
            }
        }
    }

    fn change_state(&mut self, trigger: Trigger) -> Next {
        let Some(edge) = graph::edge_for(self.state(), trigger) else {
            // A property of all plans is that every trigger has an edge; without one the host stays as it is.
            return wait::on_user(&format!(
                "no transition for {trigger:?}; return to the version that wrote the state"
            ));
        };
        let (boot_mode, now) = (self.host().boot_mode(), self.facts.now);
        if self.facts.refused.is_some() {
            self.add(Action::EndRefusal);
        }
        // Its RAID volumes are made again before the image is tried again.
        let is_between_attempts = self.draft.status.provisioning_fail_count > 0
            && matches!(trigger, Trigger::Prepare | Trigger::Prepared)
            && !self.has_new_generation();
        if edge.clears_errors && !is_between_attempts {
            status::clear(&mut self.draft.status);
            // Failures of deprovisioning are counted on top of the failed deployments.
            let kept = self.draft.status.provisioning_fail_count.max(0);
            self.draft.status.error_count = if edge.to == State::Deprovisioning { kept } else { 0 };
        }
        let counts = status::enter(&mut self.draft.status, &edge.to, boot_mode, now);
        self.counts.extend(counts);
        state::on_enter(self, &edge.to);
        Next::Requeue
    }

    /// Builds the plan. Only what changed is written.
    fn build(mut self, next: Next, release_slot: Option<Action>) -> Plan {
        let mut next = next;
        if let Some(login) = self.login.take() {
            let recorded = &self.host().status;
            next = status::record_login_version(&mut self.draft.status, recorded, &login, next);
        }
        if self.draft.status != self.host().status {
            self.draft.status.last_updated = Some(self.facts.now);
        }
        let is_port = |held: &Withheld| held.reason == reason::BOOT_PORT_REFUSED;
        if next == Next::Done && self.withheld.as_ref().is_some_and(is_port) {
            next = wait::for_time(PORT_RETRY, "a port that Ironic rejected is requested again");
        }
        let Changes { main, status } = planner::changes(self.host(), &self.draft);
        let is_split = main.is_some() && status.is_some();
        let status = status.filter(|_| !is_split);
        if let Some(main) = main {
            self.add(Action::PatchHost(main.with_precondition(&self.version)));
        }
        if is_split {
            next = Next::Requeue;
            // A released host has no next round.
            let is_released = self.is_deleting() && !object::has_finalizer(&self.draft);
            if !is_released && !self.actions.iter().any(|action| matches!(action, Action::Ironic(_))) {
                // These are reported together with the status, in the next round.
                self.events.clear();
                self.counts.clear();
            }
        }
        let next = self.recheck_stale_node(next);
        let next = self.recheck_login(next);
        let mut actions = std::mem::take(&mut self.actions);
        let next = settings_report::add(&self, &mut actions, next);
        let next = components_report::add(&self, &mut actions, next);
        update_policy::add(&self, &mut actions);
        actions.extend(self.counts.into_iter().map(Action::Count));
        actions.extend(release_slot);
        Plan {
            reads: BTreeSet::new(),
            actions,
            status: status.map(|patch| patch.with_precondition(&self.version)),
            events: self.events,
            next,
        }
    }

    /// Ends a wait when a login is tried again.
    fn recheck_login(&self, next: Next) -> Next {
        match self.login_tried_after {
            Some(left) => wait::with_end(next, left, "the login of the BMC is tried again"),
            None => next,
        }
    }

    /// Completes a wait for the node when the plan ends with an observation of it that is older than a request, or when the
    /// status names the node for the first time: the feed wakes only hosts that name the node.
    fn recheck_stale_node(&self, next: Next) -> Next {
        let (recorded, now) = (&self.facts.host.status.provisioning, &self.draft.status.provisioning);
        let is_unnamed = self.facts.own_node().is_some() && recorded.id != now.id;
        let was_stale = is_unnamed || matches!(self.facts.own_node(), Some((_, NodeFreshness::Stale)));
        let is_stale = self.actions.iter().fold(was_stale, |is_stale, action| match action {
            Action::Ironic(order) => match order.request {
                // The response is the node, or confirms that it is deleted.
                Request::CreateNode(_) | Request::PatchNode(..) | Request::DeleteNode(_) => false,
                Request::CreatePort { .. } => is_stale,
                Request::SetRaid(..)
                | Request::Provision(..)
                | Request::Power(..)
                | Request::InsertDisc(..)
                | Request::EjectDiscs(_)
                | Request::SetMaintenance(..)
                | Request::ClearMaintenance(_) => true,
            },
            _ => is_stale,
        });
        if is_stale {
            wait::with_stale_node(next, self.facts.settings.feed_recheck)
        } else {
            next
        }
    }

    /// A host that uses the provisioning network, or will, keeps its slot. A host that waits for a retry or for
    /// a person releases it.
    fn release_slot(&self, is_backing_off: bool, next: &Next) -> Option<Action> {
        let busy = matches!(self.facts.own_node(), Some((node, _)) if node.provision_state.is_busy());
        let will_load = matches!(
            self.draft.status.provisioning.state,
            State::Inspecting | State::Preparing | State::Provisioning | State::Deprovisioning
        );
        let is_detached = self.draft.status.operational_status == OperationalStatus::Detached;
        // A wait for a person may last for ever, and nothing looks at the node meanwhile.
        let is_idle = is_backing_off || wait::is_on_person(next);
        let will_load = will_load && !is_idle && !is_detached;
        // A delayed host that is skipped requests a slot again later.
        let is_waiting = self.draft.status.operational_status == OperationalStatus::Delayed && !is_idle;
        // The slot is used later in the same reconcile.
        let replans = self.facts.slot == Some(SlotState::Granted) && *next == Next::Requeue && !is_backing_off;
        let is_kept = busy || will_load || is_waiting || replans;
        (!is_kept).then_some(Action::ReleaseSlot)
    }
}
