//! Conditions: what a controller says of an aspect of an object, in both generations of the API.
//!
//! A [`Statement`] is made once and written as either generation: the standard one, and the older Cluster API form with
//! a severity. A reason is a [`Reason`], so none is ever empty; the older form leaves it out where the aspect holds, as
//! its readers expect.
//!
//! Putting a condition into a list is pure and moves the time only with the status. Lists that others write too are
//! merged by [`merge_conditions`](crate::patch::merge_conditions).
//!
//! ```
//! use metal3_api::meta::{Condition, LegacyCondition, Time};
//! use metal3_runtime::condition::{Severity, Statement, put};
//! use metal3_runtime::reason::Reason;
//!
//! const NO_POOL: Reason = Reason::new("PoolNotFound");
//! let now = Time::default();
//! let ready = Statement::fails("Ready", NO_POOL, Severity::Warning, "create IPPool ns/p");
//!
//! let (mut newer, mut older): (Vec<Condition>, Vec<LegacyCondition>) = Default::default();
//! assert!(put(&mut newer, ready.standard(Some(3), now)));
//! assert!(put(&mut older, ready.legacy(now)));
//! assert_eq!(older[0].severity, "Warning");
//! assert!(!put(&mut newer, ready.standard(Some(3), now)), "it says so already");
//! ```

use metal3_api::meta::{Condition, ConditionStatus, LegacyCondition, Time};

use crate::patch::AnyCondition;
use crate::reason::Reason;
use crate::work::WaitingOn;

/// How bad it is that an aspect does not hold. The older generation only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Somebody has to act.
    Error,
    /// It may go away by itself, or somebody may have to act.
    Warning,
    /// It is on its way.
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

/// Whether an aspect holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Holds,
    Fails(Severity),
    Unknown,
}

/// What is said of one aspect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a statement says nothing until it is put somewhere"]
pub struct Statement {
    aspect: &'static str,
    verdict: Verdict,
    reason: Reason,
    message: String,
}

impl Statement {
    /// The aspect holds.
    pub const fn holds(aspect: &'static str, reason: Reason) -> Self {
        Self {
            aspect,
            verdict: Verdict::Holds,
            reason,
            message: String::new(),
        }
    }

    /// The aspect does not hold; `message` says what to do about it.
    pub fn fails(aspect: &'static str, reason: Reason, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            aspect,
            verdict: Verdict::Fails(severity),
            reason,
            message: message.into(),
        }
    }

    /// Nobody can say; `message` says why.
    pub fn unknown(aspect: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            aspect,
            verdict: Verdict::Unknown,
            reason,
            message: message.into(),
        }
    }

    /// The aspect does not hold yet, because of what a pass waits for: its words are the message.
    pub fn waits(aspect: &'static str, on: &WaitingOn) -> Self {
        Self::fails(aspect, on.reason, Severity::Info, on.message.clone())
    }

    /// As a standard condition, computed from this generation of the object.
    #[must_use]
    pub fn standard(&self, generation: Option<i64>, now: Time) -> Condition {
        Condition {
            type_: self.aspect.to_owned(),
            status: match self.verdict {
                Verdict::Holds => ConditionStatus::True,
                Verdict::Fails(_) => ConditionStatus::False,
                Verdict::Unknown => ConditionStatus::Unknown,
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
        let (status, severity) = match self.verdict {
            Verdict::Holds => ("True", ""),
            Verdict::Fails(severity) => ("False", severity.as_str()),
            Verdict::Unknown => ("Unknown", ""),
        };
        let reason = match self.verdict {
            // parity: the Go managers write none where the aspect holds.
            Verdict::Holds => "",
            Verdict::Fails(_) | Verdict::Unknown => self.reason.as_str(),
        };
        LegacyCondition {
            type_: self.aspect.to_owned(),
            status: status.to_owned(),
            severity: severity.to_owned(),
            last_transition_time: now,
            reason: reason.to_owned(),
            message: self.message.clone(),
        }
    }
}

/// Puts `condition` in the place of the one of its aspect, or at the end. The time stays where the status does. Says
/// whether the list changed.
pub fn put<C: AnyCondition>(list: &mut Vec<C>, condition: C) -> bool {
    let Some(place) = list.iter_mut().find(|old| old.aspect() == condition.aspect()) else {
        list.push(condition);
        return true;
    };
    let condition = if place.same_status(&condition) {
        condition.at(place.since())
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
        let fails = Statement::fails("Ready", WAITS, Severity::Error, "create it");
        let unknown = Statement::unknown("Ready", WAITS, "ask again");
        let holds = Statement::holds("Ready", READY);
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
        let holds = serde_json::to_value(Statement::holds("Ready", READY).legacy(second(1))).unwrap();
        assert_eq!(holds.get("reason"), None, "{holds}");
    }

    #[test]
    fn time_moves_only_with_the_status_and_other_aspects_stay() {
        let mut list = vec![Statement::holds("Theirs", READY).standard(None, second(1))];
        let waits = WaitingOn {
            reason: WAITS,
            message: "create it".to_owned(),
            recheck: None,
        };
        assert!(put(
            &mut list,
            Statement::waits("Ready", &waits).standard(None, second(2))
        ));
        let other = Statement::fails("Ready", READY, Severity::Info, "");
        assert!(put(&mut list, other.standard(None, second(3))));
        assert_eq!(list[1].last_transition_time, second(2));
        assert!(!put(&mut list, other.standard(None, second(4))));
        assert!(put(
            &mut list,
            Statement::holds("Ready", READY).standard(None, second(5))
        ));
        assert_eq!(list[1].last_transition_time, second(5));
        assert_eq!((list.len(), list[0].last_transition_time), (2, second(1)));
    }
}
