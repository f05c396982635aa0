//! The two summaries of a machine's conditions, each by the rules of its generation.

use metal3_api::infrastructure::conditions::{legacy, machine, shared};
use metal3_api::meta::{Condition, ConditionStatus, LegacyCondition, Time};
use metal3_runtime::condition::{ConditionBuilder, Severity};
use metal3_runtime::reason::Reason;

use super::READY;

const NOT_READY: Reason = Reason::new(shared::REASON_NOT_READY);
const READY_UNKNOWN: Reason = Reason::new(shared::REASON_READY_UNKNOWN);
/// What the standard summary is made of, in the order in which it tells them.
pub(super) const COUNTED: [&str; 3] = [
    machine::ASSOCIATE_HOST,
    machine::ASSOCIATE_META_DATA,
    machine::DATA_READY,
];
/// What the older summary is made of.
const COUNTED_LEGACY: [&str; 3] = [legacy::ASSOCIATE_HOST, legacy::DATA_READY, legacy::NODE_READY];

/// The standard summary: false if any aspect is, else unknown if any is or is missing.
pub(super) fn standard(conditions: &[Condition]) -> ConditionBuilder {
    let find = |aspect| conditions.iter().find(|condition| condition.type_ == aspect);
    let counted = COUNTED.map(|aspect| (aspect, find(aspect)));
    let status =
        |condition: Option<&Condition>| condition.map_or(ConditionStatus::Unknown, |condition| condition.status);
    let any = |wanted| counted.iter().any(|(_, condition)| status(*condition) == wanted);
    let told = counted
        .iter()
        .filter(|(_, condition)| status(*condition) != ConditionStatus::True);
    let lines: Vec<String> = told
        .map(|(aspect, condition)| {
            let text = condition.map_or(shared::REASON_NOT_YET_REPORTED, |condition| {
                match condition.message.as_str() {
                    "" => &condition.reason,
                    message => message,
                }
            });
            format!("* {aspect}: {text}")
        })
        .collect();
    let message = lines.join("\n");
    if any(ConditionStatus::False) {
        ConditionBuilder::mark_false(machine::READY, NOT_READY, Severity::Info, message)
    } else if any(ConditionStatus::Unknown) {
        ConditionBuilder::mark_unknown(machine::READY, READY_UNKNOWN, message)
    } else {
        ConditionBuilder::mark_true(machine::READY, READY)
    }
}

/// The older summary: the worst of what is there, in its own words. None if nothing is.
pub(super) fn older(conditions: &[LegacyCondition], now: Time) -> Option<LegacyCondition> {
    let rank = |condition: &LegacyCondition| match (condition.status.as_str(), condition.severity.as_str()) {
        ("False", legacy::SEVERITY_ERROR) => 0,
        ("False", legacy::SEVERITY_WARNING) => 1,
        ("False", _) => 2,
        ("True", _) => 3,
        _ => 4,
    };
    let counted = COUNTED_LEGACY
        .into_iter()
        .filter_map(|aspect| conditions.iter().find(|condition| condition.type_ == aspect));
    let worst = counted.min_by_key(|condition| rank(condition))?;
    Some(LegacyCondition {
        type_: legacy::READY.to_owned(),
        last_transition_time: now,
        ..worst.clone()
    })
}
