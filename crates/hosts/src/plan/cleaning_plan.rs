//! The condition `CleaningPlan`: what the next cleaning of a host erases and keeps, before it happens. Only hosts with
//! `spec.cleaning` have it.
//!
//! An order that may erase is sent only when the status, as it was read live, has the condition that holds now.

use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::v1alpha1::{BareMetalHost, Storage};
use metal3_domain::uri::public_text;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};
use metal3_runtime::work::Next;

use crate::action::{Impact, Request};
use crate::names::{CLEANING_PLAN, reason};
use crate::node::cleaning::is_kept_disk_postponed;
use crate::node::{is_cleaned, kept, raid};
use crate::plan::error::Failure;
use crate::plan::error::kind_in;
use crate::plan::planner::{Decision, PlanResult, Planner};

/// Sets the condition, or removes it.
// differs: `host-cleaning`. The Go manager has no such field, and cleans all disks.
pub(crate) fn renew(host: &mut BareMetalHost, node: Option<&Node>, now: Time) {
    let wanted = condition(host, node, now);
    let conditions = &mut host.status.conditions;
    if let Some(condition) = wanted {
        set_condition(conditions, condition);
    } else {
        conditions.retain(|condition| condition.type_ != CLEANING_PLAN);
    }
}

fn condition(host: &BareMetalHost, node: Option<&Node>, now: Time) -> Option<Condition> {
    host.spec.cleaning.as_ref()?;
    let generation = host.metadata.generation;
    if let Err(problem) = kept::require_protected(host).and_then(|()| require_known(host, node)) {
        let why = reason::DISKS_NOT_PROTECTED;
        let statement = ConditionBuilder::mark_false(CLEANING_PLAN, why, Severity::Error, public_text(&problem));
        return Some(statement.standard(generation, now));
    }
    let (why, message) = planned(host);
    let mut condition = ConditionBuilder::mark_true(CLEANING_PLAN, why).standard(generation, now);
    condition.message = public_text(&message);
    Some(condition)
}

/// Requires that what Ironic does with the node now spares the disks that are kept.
fn require_known(host: &BareMetalHost, node: Option<&Node>) -> Result<(), String> {
    match node.filter(|node| is_kept_disk_postponed(host, node)) {
        None => Ok(()),
        Some(node) => Err(format!(
            "Ironic takes no change of the node in state {}, so what it does now does not spare the disks that are kept since; the next              cleaning does",
            node.provision_state
        )),
    }
}

/// What is erased and kept, in words.
pub(crate) fn described(host: &BareMetalHost) -> String {
    planned(host).1
}

fn planned(host: &BareMetalHost) -> (metal3_runtime::reason::Reason, String) {
    if raid::differ(host) {
        let message = "making or removing the RAID volumes of the machine erases all its disks";
        return (reason::ALL_DISKS_ERASED, message.to_owned());
    }
    if !is_cleaned(host) {
        let why = if host.is_cleaned_first() {
            "spec.cleaning.when is first, and a deployment began before, or spec.automatedCleaningMode is disabled"
        } else {
            "spec.automatedCleaningMode is disabled"
        };
        return (
            reason::NO_DISK_ERASED,
            format!("Ironic erases no disk of the machine: {why}"),
        );
    }
    let (kept, erased): (Vec<_>, Vec<_>) = kept::found(host).iter().partition(|disk| kept::is_kept(host, disk));
    if erased.is_empty() && kept.is_empty() {
        let message = "the next cleaning by Ironic erases all disks of the machine, which are not known yet";
        return (reason::ALL_DISKS_ERASED, message.to_owned());
    }
    if kept.is_empty() {
        let message = format!(
            "the next cleaning by Ironic erases all disks of the machine: {}",
            list(&erased)
        );
        return (reason::ALL_DISKS_ERASED, message);
    }
    let message = format!(
        "the next cleaning by Ironic keeps {}, and arrays that it finds with their disks; it erases {} otherwise, and each disk that was added since the inspection",
        list(&kept),
        list(&erased)
    );
    (reason::DISKS_KEPT, message)
}

/// At most this many disks are named: the message of a condition has a limit.
const NAMED: usize = 100;

fn list(disks: &[&Storage]) -> String {
    let names: Vec<String> = disks.iter().take(NAMED).map(|disk| kept::described(disk)).collect();
    match disks.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Requires that a request which may erase spares what the host keeps, and that the status says what it erases.
pub(crate) fn require_chosen(planner: &Planner<'_>, request: &Request) -> PlanResult<()> {
    let host = planner.host();
    if host.spec.cleaning.is_none() || !matches!(request.impact(), Impact::Erases) {
        return Ok(());
    }
    // These erase only what Ironic cleans by itself.
    let is_of_cleaning = matches!(request, Request::Provision(_, Transition::Provide | Transition::Delete));
    if is_cleaned(host) || !is_of_cleaning {
        require_protected(planner, request)?;
    }
    if let Request::Provision(_, Transition::Deploy { .. }) = request {
        // The node gets the root device that the status records.
        kept::require_recorded_root(host).map_err(|problem| Decision::reject(kind_in(planner.state()), problem))?;
    }
    // Its status is live, as the host is.
    let recorded = host.status.conditions.iter().find(|one| one.type_ == CLEANING_PLAN);
    let node = planner.facts.own_node().map(|(node, _)| node);
    let wanted = condition(host, node, planner.facts.now);
    let said = |one: &Condition| {
        (
            one.status == ConditionStatus::True,
            one.reason.clone(),
            one.message.clone(),
        )
    };
    if wanted.as_ref().map(said) != recorded.map(said) {
        return Err(Decision::Wait(Next::Requeue));
    }
    Ok(())
}

fn require_protected(planner: &Planner<'_>, request: &Request) -> PlanResult<()> {
    let makes_volumes = request.is_cleaning() && !kept::asked(planner.host()).is_empty();
    let problem = match kept::require_protected(planner.host()) {
        Ok(()) if !makes_volumes => return Ok(()),
        Ok(()) => "the RAID volumes of the machine are removed by erasing disks, and spec.cleaning.keepDisks keeps some; remove \
                   spec.cleaning.keepDisks, which lets all disks be erased"
            .to_owned(),
        Err(problem) => problem,
    };
    let kind = kind_in(planner.state());
    let message = format!("{problem}; until then nothing is erased and no image is written");
    // A deletion must not wait for ever: its attempts are counted, and the disks stay as they are.
    if planner.is_deleting() {
        return Err(planner.fail_with_backoff(Failure::retryable(kind, message)));
    }
    Err(Decision::reject(kind, message))
}
