//! When a workload cluster is looked at: after a change of what the answer depends on, and again after a while as long as
//! something is missing or not known. No event reports that a user created it, since nothing of the cluster is watched.

use std::sync::Arc;
use std::time::Duration;

use metal3_api::meta::{Condition, ConditionStatus};
use metal3_domain::clock::Monotonic;

use super::{Answer, Bootstraps};

/// Delay after the first look. Each further one doubles it.
const FIRST: Duration = Duration::from_mins(1);
/// The longest delay.
const LONGEST: Duration = Duration::from_hours(1);

/// What an answer depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    /// UID and version of the Secret with the kubeconfig.
    pub(crate) secret: Option<(Option<String>, Option<String>)>,
    /// The endpoint of the Cluster.
    pub(crate) endpoint: Option<(String, u16)>,
    /// Who joins.
    pub(crate) bootstraps: Bootstraps,
}

/// The last look.
#[derive(Debug, Clone)]
pub(crate) struct Looked {
    pub(crate) cause: Cause,
    /// Looks with this cause.
    pub(crate) count: u32,
    pub(crate) at: Monotonic,
    /// Whether everything was found.
    pub(crate) is_final: bool,
    /// The answer, until the next look: its condition may not be written yet. `None` for a look of an earlier process.
    pub(crate) answer: Option<Arc<Answer>>,
}

/// When to look.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Now, for the n-th time with this cause.
    Now(u32),
    /// After this time.
    Later(Duration),
    /// After a change of the cause.
    Settled,
}

/// When to look. After a start only the condition is known of an earlier look: one that found everything counts.
pub(crate) fn due(looked: Option<&Looked>, cause: &Cause, reported: Option<&Condition>, now: Monotonic) -> Due {
    let Some(looked) = looked else {
        let is_found = reported.is_some_and(|condition| condition.status == ConditionStatus::True);
        return if is_found { Due::Settled } else { Due::Now(1) };
    };
    if looked.cause != *cause {
        return Due::Now(1);
    }
    if looked.is_final {
        return Due::Settled;
    }
    let doubled = 1_u32.checked_shl(looked.count.saturating_sub(1));
    let delay = doubled.map_or(LONGEST, |times| FIRST.saturating_mul(times).min(LONGEST));
    match delay.checked_sub(now.since(looked.at)) {
        Some(rest) if !rest.is_zero() => Due::Later(rest),
        _ => Due::Now(looked.count.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(version: &str) -> Cause {
        Cause {
            secret: Some((Some("u".to_owned()), Some(version.to_owned()))),
            endpoint: None,
            bootstraps: Bootstraps::default(),
        }
    }

    fn reported(status: ConditionStatus) -> Condition {
        Condition {
            status,
            ..serde_json::from_value(serde_json::json!({
                "type": "WorkerJoinPreflight", "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }))
            .unwrap()
        }
    }

    fn at(minutes: u64) -> Monotonic {
        Monotonic::new(Duration::from_mins(minutes))
    }

    #[test]
    fn after_a_start_a_cluster_is_looked_at_unless_everything_was_found() {
        let now = at(9);
        assert_eq!(due(None, &cause("1"), None, now), Due::Now(1));
        for (status, expected) in [
            (ConditionStatus::True, Due::Settled),
            (ConditionStatus::False, Due::Now(1)),
            (ConditionStatus::Unknown, Due::Now(1)),
        ] {
            assert_eq!(due(None, &cause("1"), Some(&reported(status)), now), expected);
        }
    }

    #[test]
    fn change_of_the_cause_is_followed_by_a_look_and_nothing_is_once_everything_is_found() {
        for is_final in [false, true] {
            let looked = Looked {
                cause: cause("1"),
                count: 7,
                at: at(9),
                is_final,
                answer: None,
            };
            assert_eq!(due(Some(&looked), &cause("2"), None, at(9)), Due::Now(1));
        }
        let looked = Looked {
            cause: cause("1"),
            count: 1,
            at: at(9),
            is_final: true,
            answer: None,
        };
        assert_eq!(due(Some(&looked), &cause("1"), None, at(90_000)), Due::Settled);
    }

    #[test]
    fn delay_doubles_up_to_an_hour() {
        for (count, minutes) in [
            (1, 1),
            (2, 2),
            (3, 4),
            (6, 32),
            (7, 60),
            (8, 60),
            (33, 60),
            (u32::MAX, 60),
        ] {
            let looked = Looked {
                cause: cause("1"),
                count,
                at: at(9),
                is_final: false,
                answer: None,
            };
            let after = |minutes| due(Some(&looked), &cause("1"), None, at(9 + minutes));
            assert_eq!(after(0), Due::Later(Duration::from_mins(minutes)), "{count}");
            assert_eq!(after(minutes), Due::Now(count.saturating_add(1)), "{count}");
        }
    }
}
