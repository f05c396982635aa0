//! Merges conditions that several controllers write to one list.
//!
//! A three-way merge of the list as read, as wanted, and as it is now. Owned types become what is wanted; all others
//! stay. The result replaces the list, so it is written with the version of the merged list as its precondition.

use metal3_api::meta::{Condition, LegacyCondition, Time};

/// A condition of either generation.
pub trait AnyCondition: Clone + PartialEq {
    /// The condition type.
    fn condition_type(&self) -> &str;
    /// Whether both have the same status, whatever their reasons.
    fn has_same_status(&self, other: &Self) -> bool;
    /// When the status last changed.
    fn last_transition(&self) -> Time;
    /// The same with another transition time.
    #[must_use]
    fn with_transition(self, at: Time) -> Self;
}

macro_rules! any_condition {
    ($($condition:ty),+) => {$(
        impl AnyCondition for $condition {
            fn condition_type(&self) -> &str {
                &self.type_
            }

            fn has_same_status(&self, other: &Self) -> bool {
                self.status == other.status
            }

            fn last_transition(&self) -> Time {
                self.last_transition_time
            }

            fn with_transition(self, at: Time) -> Self {
                Self {
                    last_transition_time: at,
                    ..self
                }
            }
        }
    )+};
}

any_condition!(Condition, LegacyCondition);

/// The changes to merge.
#[derive(Debug)]
pub struct ConditionMerge<'a, C> {
    /// The list as it was read.
    pub before: &'a [C],
    /// The wanted list.
    pub after: &'a [C],
    /// The condition types that this controller alone writes.
    pub owned: &'a [&'a str],
}

/// Another controller changed the same condition concurrently, and its type is not owned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "condition {condition_type} was changed by someone else at the same time; read the object again, or own the type"
)]
pub struct Conflict {
    /// The condition type.
    pub condition_type: String,
}

/// The list to write in place of `latest`. Equal to `latest` if there is nothing to write.
///
/// The order of `latest` stays; new conditions follow. A transition time becomes `now` only where the status differs
/// from that in `latest`.
///
/// # Errors
/// When another controller changed the same condition concurrently to another value, and its type is not owned.
pub fn merge_conditions<C: AnyCondition>(
    latest: &[C],
    merge: &ConditionMerge<'_, C>,
    now: Time,
) -> Result<Vec<C>, Conflict> {
    let added = merge
        .after
        .iter()
        .filter(|c| find(latest, c.condition_type()).is_none());
    let mut merged: Vec<C> = Vec::with_capacity(latest.len());
    for condition_type in latest.iter().chain(added).map(C::condition_type) {
        // No server accepts a list with one type twice; the first counts.
        if find(&merged, condition_type).is_some() {
            continue;
        }
        let current = find(latest, condition_type);
        let Some(wanted) = wanted(condition_type, current, merge)? else {
            continue;
        };
        let since = current
            .filter(|current| current.has_same_status(wanted))
            .map_or(now, C::last_transition);
        merged.push(wanted.clone().with_transition(since));
    }
    Ok(merged)
}

fn wanted<'a, C: AnyCondition>(
    condition_type: &str,
    current: Option<&'a C>,
    merge: &ConditionMerge<'a, C>,
) -> Result<Option<&'a C>, Conflict> {
    let (before, after) = (find(merge.before, condition_type), find(merge.after, condition_type));
    if merge.owned.contains(&condition_type) {
        Ok(after)
    } else if same(before, after) {
        Ok(current)
    } else if same(current, before) || same(current, after) {
        Ok(after)
    } else {
        Err(Conflict {
            condition_type: condition_type.to_owned(),
        })
    }
}

/// Equal but for the time.
fn same<C: AnyCondition>(a: Option<&C>, b: Option<&C>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.clone().with_transition(b.last_transition()) == *b,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn find<'a, C: AnyCondition>(conditions: &'a [C], condition_type: &str) -> Option<&'a C> {
    conditions
        .iter()
        .find(|condition| condition.condition_type() == condition_type)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use metal3_api::meta::ConditionStatus::{self, False, True, Unknown};
    use proptest::prelude::*;

    use super::*;

    fn second(second: i64) -> Time {
        Time::new(DateTime::from_timestamp(second, 0).unwrap())
    }

    fn condition(condition_type: &str, status: ConditionStatus, reason: &str, since: i64) -> Condition {
        Condition {
            type_: condition_type.to_owned(),
            status,
            reason: reason.to_owned(),
            last_transition_time: second(since),
            ..Condition::default()
        }
    }

    fn merged(before: &[Condition], after: &[Condition], latest: &[Condition]) -> Result<Vec<Condition>, Conflict> {
        let merge = ConditionMerge {
            before,
            after,
            owned: &["Ready", "Bound"],
        };
        merge_conditions(latest, &merge, second(100))
    }

    #[test]
    fn time_moves_only_with_the_status() {
        let latest = [condition("Ready", False, "Waiting", 5)];
        let reason = merged(&latest, &[condition("Ready", False, "Other", 77)], &latest);
        assert_eq!(reason, Ok(vec![condition("Ready", False, "Other", 5)]));
        let status = merged(&latest, &[condition("Ready", True, "Done", 77)], &latest);
        assert_eq!(status, Ok(vec![condition("Ready", True, "Done", 100)]));
    }

    #[test]
    fn owned_types_win_and_foreign_ones_survive() {
        let before = [condition("Ready", False, "Waiting", 5)];
        let after = [
            condition("Bound", True, "Found", 0),
            condition("Ready", True, "Done", 0),
        ];
        let latest = [
            condition("Ready", Unknown, "Meddled", 9),
            condition("Theirs", True, "New", 8),
        ];
        let expected = vec![
            condition("Ready", True, "Done", 100),
            condition("Theirs", True, "New", 8),
            condition("Bound", True, "Found", 100),
        ];
        assert_eq!(merged(&before, &after, &latest), Ok(expected));
    }

    #[test]
    fn owned_type_that_we_dropped_goes_and_a_foreign_one_we_never_saw_stays() {
        let before = [
            condition("Ready", True, "Done", 5),
            condition("Bound", True, "Found", 5),
        ];
        let after = [condition("Ready", True, "Done", 5)];
        let latest = [
            before[0].clone(),
            before[1].clone(),
            condition("Theirs", False, "No", 6),
        ];
        assert_eq!(
            merged(&before, &after, &latest),
            Ok(vec![latest[0].clone(), latest[2].clone()])
        );
    }

    #[test]
    fn two_writers_of_a_type_that_neither_owns_conflict() {
        let before = [condition("Shared", Unknown, "Start", 1)];
        let after = [condition("Shared", True, "We", 1)];
        let current = [condition("Shared", False, "They", 2)];
        let conflict = merged(&before, &after, &current).unwrap_err();
        assert_eq!(conflict.condition_type, "Shared");
        // A change of one controller, or the same change of both, is no conflict.
        assert_eq!(
            merged(&before, &after, &before),
            Ok(vec![condition("Shared", True, "We", 100)])
        );
        let agreed = [condition("Shared", True, "We", 2)];
        assert_eq!(merged(&before, &after, &agreed), Ok(agreed.to_vec()));
    }

    #[test]
    fn older_generation_merges_by_the_same_rules() {
        let legacy = |status: &str, since| LegacyCondition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            last_transition_time: second(since),
            ..LegacyCondition::default()
        };
        let latest = [legacy("False", 3)];
        let merged = |status| {
            let merge = ConditionMerge {
                before: &[],
                after: &[legacy(status, 9)],
                owned: &["Ready"],
            };
            merge_conditions(&latest, &merge, second(100))
        };
        assert_eq!(merged("False"), Ok(vec![legacy("False", 3)]));
        assert_eq!(merged("True"), Ok(vec![legacy("True", 100)]));
    }

    fn conditions() -> impl Strategy<Value = Vec<Condition>> {
        let status = prop_oneof![Just(True), Just(False), Just(Unknown)];
        let entry = (
            prop_oneof![Just("Ready"), Just("Bound"), Just("A"), Just("B")],
            status,
            "[xy]",
            0_i64..5,
        );
        prop::collection::vec(entry, 0..5).prop_map(|entries| {
            let mut list: Vec<Condition> = Vec::new();
            for (condition_type, status, reason, since) in entries {
                if find(&list, condition_type).is_none() {
                    list.push(condition(condition_type, status, &reason, since));
                }
            }
            list
        })
    }

    proptest! {
        #[test]
        fn merging_again_into_the_result_changes_nothing(
            before in conditions(), after in conditions(), latest in conditions(),
        ) {
            if let Ok(once) = merged(&before, &after, &latest) {
                prop_assert_eq!(merged(&before, &after, &once), Ok(once.clone()));
            }
        }

        #[test]
        fn foreign_conditions_we_did_not_touch_are_kept_to_the_letter(merge in conditions(), latest in conditions()) {
            let after: Vec<_> = merge.iter().filter(|c| c.type_ != "Ready").cloned().collect();
            let result = merged(&merge, &after, &latest).unwrap();
            for condition_type in ["A", "B"] {
                prop_assert_eq!(find(&result, condition_type), find(&latest, condition_type));
            }
            prop_assert!(find(&result, "Ready").is_none());
        }
    }
}
