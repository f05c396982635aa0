//! Conditions in both generations of the API.
//!
//! A [`ConditionBuilder`] is built once and written as either generation: the standard one, and the older Cluster API
//! form with a severity. A reason is a [`Reason`], so none is empty; the older form omits it where the status is true,
//! as its readers expect.
//!
//! [`set_condition`] is pure and changes the time only with the status. Lists that other controllers write, too, are
//! merged by [`merge_conditions`](crate::patch::merge_conditions).
//!
//! ```
//! use metal3_api::meta::{Condition, LegacyCondition, Time};
//! use metal3_runtime::condition::{Severity, ConditionBuilder, set_condition};
//! use metal3_runtime::reason::Reason;
//!
//! const NO_POOL: Reason = Reason::new("PoolNotFound");
//! let now = Time::default();
//! let ready = ConditionBuilder::mark_false("Ready", NO_POOL, Severity::Warning, "create IPPool ns/p");
//!
//! let (mut newer, mut older): (Vec<Condition>, Vec<LegacyCondition>) = Default::default();
//! assert!(set_condition(&mut newer, ready.standard(Some(3), now)));
//! assert!(set_condition(&mut older, ready.legacy(now)));
//! assert_eq!(older[0].severity, "Warning");
//! assert!(!set_condition(&mut newer, ready.standard(Some(3), now)), "it is equal");
//! ```

use metal3_api::meta::{Condition, ConditionStatus, LegacyCondition, Time};

use crate::patch::AnyCondition;
use crate::reason::Reason;

/// The severity of a false condition. The older generation only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The user has to act.
    Error,
    /// It may pass, or the user has to act.
    Warning,
    /// Work in progress.
    Info,
}

impl Severity {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    True,
    False(Severity),
    Unknown,
}

/// A condition without generation and time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a condition has no effect until it is set"]
pub struct ConditionBuilder {
    condition_type: &'static str,
    status: Status,
    reason: Reason,
    message: String,
}

impl ConditionBuilder {
    /// The condition is true.
    pub const fn mark_true(condition_type: &'static str, reason: Reason) -> Self {
        Self {
            condition_type,
            status: Status::True,
            reason,
            message: String::new(),
        }
    }

    /// The condition is false; `message` states what to do about it.
    pub fn mark_false(
        condition_type: &'static str,
        reason: Reason,
        severity: Severity,
        message: impl Into<String>,
    ) -> Self {
        Self {
            condition_type,
            status: Status::False(severity),
            reason,
            message: message.into(),
        }
    }

    /// The status is unknown; `message` states why.
    pub fn mark_unknown(condition_type: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            condition_type,
            status: Status::Unknown,
            reason,
            message: message.into(),
        }
    }

    /// Type, reason and message while the condition is not true.
    #[must_use]
    pub fn not_true(&self) -> Option<(&'static str, Reason, &str)> {
        (self.status != Status::True).then_some((self.condition_type, self.reason, &self.message))
    }

    /// As a standard condition, observed at this generation of the object.
    #[must_use]
    pub fn standard(&self, generation: Option<i64>, now: Time) -> Condition {
        Condition {
            type_: self.condition_type.to_owned(),
            status: match self.status {
                Status::True => ConditionStatus::True,
                Status::False(_) => ConditionStatus::False,
                Status::Unknown => ConditionStatus::Unknown,
            },
            observed_generation: generation,
            last_transition_time: now,
            reason: self.reason.as_str().to_owned(),
            message: self.message.clone(),
        }
    }

    /// As a condition of the older generation.
    #[must_use]
    pub fn legacy(&self, now: Time) -> LegacyCondition {
        let (status, severity) = match self.status {
            Status::True => ("True", ""),
            Status::False(severity) => ("False", severity.as_str()),
            Status::Unknown => ("Unknown", ""),
        };
        let reason = match self.status {
            // parity: the Go managers write no reason where the condition is true.
            Status::True => "",
            Status::False(_) | Status::Unknown => self.reason.as_str(),
        };
        LegacyCondition {
            type_: self.condition_type.to_owned(),
            status: status.to_owned(),
            severity: severity.to_owned(),
            last_transition_time: now,
            reason: reason.to_owned(),
            message: self.message.clone(),
        }
    }
}

/// Replaces the condition of the same type, or appends it. The time changes with the status only. Returns whether the
/// list changed.
pub fn set_condition<C: AnyCondition>(list: &mut Vec<C>, condition: C) -> bool {
    let Some(place) = list
        .iter_mut()
        .find(|old| old.condition_type() == condition.condition_type())
    else {
        list.push(condition);
        return true;
    };
    let condition = if place.has_same_status(&condition) {
        condition.with_transition(place.last_transition())
    } else {
        condition
    };
    let changed = *place != condition;
    *place = condition;
    changed
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    const WAITS: Reason = Reason::new("WaitingForPool");
    const READY: Reason = Reason::new("Ready");

    fn second(second: i64) -> Time {
        Time::new(DateTime::from_timestamp(second, 0).unwrap())
    }

    #[test]
    fn both_generations_say_the_same_in_their_words() {
        let fails = ConditionBuilder::mark_false("Ready", WAITS, Severity::Error, "create it");
        let unknown = ConditionBuilder::mark_unknown("Ready", WAITS, "ask again");
        let holds = ConditionBuilder::mark_true("Ready", READY);
        let table = [
            (&holds, ConditionStatus::True, "Ready", ("True", "", "")),
            (
                &fails,
                ConditionStatus::False,
                "WaitingForPool",
                ("False", "Error", "WaitingForPool"),
            ),
            (
                &unknown,
                ConditionStatus::Unknown,
                "WaitingForPool",
                ("Unknown", "", "WaitingForPool"),
            ),
        ];
        for (statement, status, reason, older) in table {
            let standard = statement.standard(Some(2), second(1));
            assert_eq!((standard.status, standard.reason.as_str()), (status, reason));
            assert_eq!(standard.observed_generation, Some(2));
            let legacy = statement.legacy(second(1));
            assert_eq!(
                (legacy.status.as_str(), legacy.severity.as_str(), legacy.reason.as_str()),
                older
            );
            assert_eq!(legacy.message, standard.message);
        }
    }

    #[test]
    fn no_reason_is_written_as_empty_text() {
        let holds = serde_json::to_value(ConditionBuilder::mark_true("Ready", READY).legacy(second(1))).unwrap();
        assert_eq!(holds.get("reason"), None, "{holds}");
    }

    #[test]
    fn time_moves_only_with_the_status_and_other_aspects_stay() {
        let mut list = vec![ConditionBuilder::mark_true("Theirs", READY).standard(None, second(1))];
        let waits = ConditionBuilder::mark_false("Ready", WAITS, Severity::Info, "create it");
        assert!(set_condition(&mut list, waits.standard(None, second(2))));
        let other = ConditionBuilder::mark_false("Ready", READY, Severity::Info, "");
        assert!(set_condition(&mut list, other.standard(None, second(3))));
        assert_eq!(list[1].last_transition_time, second(2));
        assert!(!set_condition(&mut list, other.standard(None, second(4))));
        assert!(set_condition(
            &mut list,
            ConditionBuilder::mark_true("Ready", READY).standard(None, second(5))
        ));
        assert_eq!(list[1].last_transition_time, second(5));
        assert_eq!((list.len(), list[0].last_transition_time), (2, second(1)));
    }
}
