//! The two summary conditions of a machine, each by the rules of its generation.

use metal3_api::infrastructure::conditions::{legacy, machine, shared};
use metal3_api::meta::{Condition, ConditionStatus, LegacyCondition, Time};
use metal3_runtime::condition::{ConditionBuilder, Severity};

/// The conditions of the standard summary, in the order of its message.
pub(super) const SUMMARIZED: [&str; 3] = [
    machine::ASSOCIATE_HOST,
    machine::ASSOCIATE_META_DATA,
    machine::DATA_READY,
];
/// The conditions of the legacy summary.
pub(super) const SUMMARIZED_LEGACY: [&str; 3] = [legacy::ASSOCIATE_HOST, legacy::DATA_READY, legacy::NODE_READY];

/// The standard summary: false if any condition is false, else unknown if any is unknown or missing.
pub(super) fn standard_summary(conditions: &[Condition]) -> ConditionBuilder {
    let find = |condition_type| conditions.iter().find(|condition| condition.type_ == condition_type);
    let summarized = SUMMARIZED.map(|condition_type| (condition_type, find(condition_type)));
    let status =
        |condition: Option<&Condition>| condition.map_or(ConditionStatus::Unknown, |condition| condition.status);
    let any = |wanted| summarized.iter().any(|(_, condition)| status(*condition) == wanted);
    let not_true = summarized
        .iter()
        .filter(|(_, condition)| status(*condition) != ConditionStatus::True);
    let lines: Vec<String> = not_true
        .map(|(condition_type, condition)| {
            let text = condition.map_or(shared::REASON_NOT_YET_REPORTED.as_str(), |condition| {
                match condition.message.as_str() {
                    "" => &condition.reason,
                    message => message,
                }
            });
            format!("* {condition_type}: {text}")
        })
        .collect();
    let message = lines.join("\n");
    if any(ConditionStatus::False) {
        ConditionBuilder::mark_false(machine::READY, shared::REASON_NOT_READY, Severity::Info, message)
    } else if any(ConditionStatus::Unknown) {
        ConditionBuilder::mark_unknown(machine::READY, shared::REASON_READY_UNKNOWN, message)
    } else {
        ConditionBuilder::mark_true(machine::READY, shared::REASON_READY)
    }
}

/// The legacy summary: the worst existing condition with its reason and message; `None` when none exists.
pub(super) fn legacy_summary(conditions: &[LegacyCondition], now: Time) -> Option<LegacyCondition> {
    let rank = |condition: &LegacyCondition| match (condition.status.as_str(), condition.severity.as_str()) {
        ("False", legacy::SEVERITY_ERROR) => 0,
        ("False", legacy::SEVERITY_WARNING) => 1,
        ("False", _) => 2,
        ("True", _) => 3,
        _ => 4,
    };
    let summarized = SUMMARIZED_LEGACY
        .into_iter()
        .filter_map(|condition_type| conditions.iter().find(|condition| condition.type_ == condition_type));
    let worst = summarized.min_by_key(|condition| rank(condition))?;
    Some(LegacyCondition {
        type_: legacy::READY.to_owned(),
        last_transition_time: now,
        ..worst.clone()
    })
}
