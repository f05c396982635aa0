//! When a workload cluster is looked at: after a change of what the answer depends on, and again after a while as long as
//! something is missing or not known. No event reports that a user created it, since nothing of the cluster is watched.

use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::Monotonic;

use super::{Answer, Bootstraps};

/// Delay after the first look. Each further one doubles it.
const FIRST: Duration = Duration::from_mins(1);
/// The shortest time between two looks: who writes the Secret decides how often it changes.
const SHORTEST: Duration = Duration::from_secs(10);
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
    /// The answer, until the next look: its condition may not be written yet.
    pub(crate) answer: Arc<Answer>,
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

/// When to look. The condition of an earlier process does not say from which cause it follows.
pub(crate) fn due(looked: Option<&Looked>, cause: &Cause, now: Monotonic) -> Due {
    let Some(looked) = looked else {
        return Due::Now(1);
    };
    if looked.cause != *cause {
        let rest = SHORTEST.saturating_sub(now.since(looked.at));
        return if rest.is_zero() { Due::Now(1) } else { Due::Later(rest) };
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
    use metal3_capi::workload::join::{JoinReport, Server};

    use super::*;

    fn cause(version: &str) -> Cause {
        Cause {
            secret: Some((Some("u".to_owned()), Some(version.to_owned()))),
            endpoint: None,
            bootstraps: Bootstraps::default(),
        }
    }

    fn at(minutes: u64) -> Monotonic {
        Monotonic::new(Duration::from_mins(minutes))
    }

    fn looked(count: u32, is_final: bool) -> Looked {
        Looked {
            cause: cause("1"),
            count,
            at: at(9),
            is_final,
            answer: Arc::new(Answer {
                report: JoinReport::of(Server::Answers),
                endpoint: None,
                bootstraps: Bootstraps::default(),
            }),
        }
    }

    /// The condition of the last process does not name its cause.
    #[test]
    fn after_a_start_every_cluster_is_looked_at() {
        assert_eq!(due(None, &cause("1"), at(9)), Due::Now(1));
    }

    #[test]
    fn change_of_the_cause_is_followed_by_a_look_and_nothing_is_once_everything_is_found() {
        for is_final in [false, true] {
            let looked = looked(7, is_final);
            assert_eq!(due(Some(&looked), &cause("2"), at(10)), Due::Now(1));
            // A Secret that is written without end is read at this rate.
            let soon = Monotonic::new(Duration::from_mins(9) + Duration::from_secs(1));
            assert_eq!(
                due(Some(&looked), &cause("2"), soon),
                Due::Later(Duration::from_secs(9))
            );
        }
        assert_eq!(due(Some(&looked(1, true)), &cause("1"), at(90_000)), Due::Settled);
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
            let looked = looked(count, false);
            let after = |minutes| due(Some(&looked), &cause("1"), at(9 + minutes));
            assert_eq!(after(0), Due::Later(Duration::from_mins(minutes)), "{count}");
            assert_eq!(after(minutes), Due::Now(count.saturating_add(1)), "{count}");
        }
    }
}
