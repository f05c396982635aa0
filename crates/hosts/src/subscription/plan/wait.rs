//! The waits: what is true, what is missing, and what to do.

use std::time::Duration;

use metal3_runtime::reason::Reason;

use super::{Step, Wait};
use crate::live::{GoManager, Reading};
use crate::names::subscription_reason::{
    GO_MANAGER_RUNS, HOST_DELETED, HOST_DETACHED, HOST_NOT_REGISTERED, HOST_PAUSED, MOVING, NODE_LOCKED, STATE_UNKNOWN,
};
use crate::plan::backoff::delay;
use crate::subscription::facts::{Bar, Facts, Failure, FailureClass, Read};

/// A wait that usually ends by itself is reported after this time: a task of Ironic takes seconds, a move minutes.
pub(in crate::subscription) const PATIENCE: Duration = Duration::from_mins(5);
/// A Go manager is not watched by this controller.
const GO_MANAGER_RECHECK: Duration = Duration::from_mins(5);
/// More failures in a row do not increase the delay of a retry: about an hour.
const MOST_FAILURES: i64 = 6;
/// A lock usually ends within seconds: the delay doubles from the first one to the last.
const LOCK_DELAYS: [Duration; 4] = [
    Duration::from_secs(15),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(2),
];

/// What a decision was about to do, as the Go manager writes it.
pub(super) const CREATE: &str = "failed to create a subscription";
pub(super) const DELETE: &str = "failed to delete a subscription";
pub(super) const HEADERS: &str = "failed to retrieve HTTP headers secret";

/// A wait until a watched object changes.
pub(super) fn reported(reason: Reason, message: String) -> Step {
    Step::Wait(Wait {
        reason,
        message,
        recheck: None,
        is_reported: true,
        is_failure: false,
    })
}

/// The same, and not part of the status.
pub(super) fn quiet(reason: Reason, message: String, recheck: Option<Duration>) -> Step {
    Step::Wait(Wait {
        reason,
        message,
        recheck,
        is_reported: false,
        is_failure: false,
    })
}

/// A wait that usually ends by itself, with an event that enqueues the key.
pub(super) fn passing(facts: &Facts, reason: Reason, message: String) -> Step {
    let waited = facts.attempts.waiting.filter(|(last, _)| *last == reason);
    let left = PATIENCE.saturating_sub(waited.map_or(Duration::ZERO, |(_, waited)| waited));
    match left.is_zero() {
        true => reported(reason, message),
        false => quiet(reason, message, Some(left)),
    }
}

/// A failure, or a state that no event ends: tried again after a delay that grows.
pub(super) fn failed(facts: &Facts, reason: Reason, message: String) -> Step {
    let failures = facts.attempts.failures.saturating_add(1).min(MOST_FAILURES);
    Step::Wait(Wait {
        reason,
        message,
        recheck: Some(delay(failures, facts.attempts.jitter)),
        is_reported: true,
        is_failure: true,
    })
}

/// A task of Ironic uses the node. It is reported when it lasts.
pub(super) fn locked(facts: &Facts, verb: &str) -> Step {
    let failures = usize::try_from(facts.attempts.failures).unwrap_or_default();
    let [.., longest] = LOCK_DELAYS;
    let message = format!(
        "{verb}: a task of Ironic has locked the node of the host; wait until the task ends; a lock that stays goes with \
         a restart of the conductor that holds it"
    );
    Step::Wait(Wait {
        reason: NODE_LOCKED,
        message,
        recheck: Some(LOCK_DELAYS.get(failures).copied().unwrap_or(longest)),
        is_reported: failures >= LOCK_DELAYS.len(),
        is_failure: true,
    })
}

/// The delay after a failure is over.
pub(super) fn require_no_delay(facts: &Facts) -> Result<(), Step> {
    let Some((wait, left)) = &facts.attempts.delayed else {
        return Ok(());
    };
    Err(Step::Wait(Wait {
        recheck: Some(*left),
        // It is counted already.
        is_failure: false,
        ..wait.clone()
    }))
}

/// A request that failed.
pub(super) fn refused(facts: &Facts, verb: &str, failure: &Failure, (reason, remedy): (Reason, &str)) -> Step {
    match failure.class {
        FailureClass::Locked => locked(facts, verb),
        FailureClass::Invalid | FailureClass::Rejected | FailureClass::Unconfirmed => {
            let message = format!("{verb}: {}; {remedy}", failure.text);
            failed(facts, reason, message)
        }
    }
}

/// What a failed read of Ironic or the BMC leads to.
pub(super) fn unread(facts: &Facts, verb: &str, failure: &Failure) -> Step {
    refused(facts, verb, failure, (STATE_UNKNOWN, RETRIED))
}

pub(super) const RETRIED: &str = "it is tried again within an hour";

/// Why others must be done with the object first, in both directions.
pub(super) fn require_go_manager_absent(facts: &Facts, verb: &str) -> Result<(), Step> {
    match &facts.go_manager {
        Reading::NotRead => Err(Step::Read(Read::GoManager)),
        Reading::Failed(why) => {
            let message = format!(
                "{verb}: whether a Go manager serves it is not known ({why}); let this program list its Deployment"
            );
            Err(failed(facts, STATE_UNKNOWN, message))
        }
        Reading::Known(GoManager::Running(who)) => Err(quiet(GO_MANAGER_RUNS, who.clone(), Some(GO_MANAGER_RECHECK))),
        Reading::Known(GoManager::Absent) => Ok(()),
    }
}

/// What of the host forbids a request to its BMC.
pub(super) fn barred(facts: &Facts, bar: Bar) -> Step {
    match bar {
        Bar::Paused => passing(
            facts,
            HOST_PAUSED,
            "its host is paused; when the move or the work on the host is over, remove the annotation \
             baremetalhost.metal3.io/paused of the host"
                .to_owned(),
        ),
        Bar::Moving => passing(
            facts,
            MOVING,
            "clusterctl moves its host to another cluster; if that move was interrupted, repeat it".to_owned(),
        ),
        Bar::Deleted => reported(
            HOST_DELETED,
            "its host is being deleted; delete the subscription too, or wait until a host of this name exists again"
                .to_owned(),
        ),
        Bar::Detached => reported(
            HOST_DETACHED,
            "its host is detached from Ironic; remove the annotation baremetalhost.metal3.io/detached of the host"
                .to_owned(),
        ),
        Bar::Unregistered => reported(
            HOST_NOT_REGISTERED,
            "its host is not registered in Ironic yet; if that lasts, see the conditions of the host".to_owned(),
        ),
    }
}
