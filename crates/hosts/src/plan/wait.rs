//! What a host waits for: the reason in logs and metrics, and what ends the wait.

use std::time::Duration;

use metal3_runtime::work::{Next, WaitingOn};

use crate::facts::OUTAGE_RECHECK;
use crate::names::wait_reason::{
    BACKING_OFF, WAITING_FOR_AGENT_IMAGE, WAITING_FOR_IRONIC, WAITING_FOR_SECRET, WAITING_FOR_SLOT, WAITING_FOR_TIME,
    WAITING_FOR_USER,
};

/// A change of the node in the change feed, or the first complete poll of the feed.
pub(crate) fn on_node(why: &str) -> Next {
    Next::waiting(WAITING_FOR_IRONIC, why).quiet()
}

/// The end of a reservation of the node, at most this long.
pub(crate) fn on_reservation(why: &str, left: Duration) -> Next {
    Next::waiting_with_recheck(WAITING_FOR_IRONIC, why, left).quiet()
}

/// The end of a change whose response is lost, which nothing reports unless the node changes.
pub(crate) fn on_lost_response(left: Duration) -> Next {
    let why = "Ironic may still perform a request whose response is lost, or that was sent before this program led";
    Next::waiting_with_recheck(WAITING_FOR_IRONIC, why, left).quiet()
}

/// The end of an outage, which nothing reports.
pub(crate) fn on_unreachable_ironic() -> Next {
    Next::waiting_with_recheck(WAITING_FOR_IRONIC, "Ironic is unreachable", OUTAGE_RECHECK).quiet()
}

/// A change of a Secret.
pub(crate) fn on_secret(name: &str) -> Next {
    Next::waiting(WAITING_FOR_SECRET, format!("Secret {name} must be created or changed"))
}

/// After a refusal nothing reports that the image is allowed.
pub(crate) const AGENT_IMAGE_RETRY: Duration = Duration::from_mins(5);

/// A change of the PreprovisioningImage or of the Secret with its network data.
pub(crate) fn on_agent_image(why: &str) -> Next {
    Next::waiting(WAITING_FOR_AGENT_IMAGE, why)
}

/// The same, tried again later.
pub(crate) fn for_agent_image(why: &str) -> Next {
    Next::waiting_with_recheck(WAITING_FOR_AGENT_IMAGE, why, AGENT_IMAGE_RETRY)
}

/// A busy-host slot.
pub(crate) fn on_slot() -> Next {
    Next::waiting(WAITING_FOR_SLOT, "other hosts use all slots for busy hosts").quiet()
}

/// A change of the host by the user.
pub(crate) fn on_user(why: &str) -> Next {
    Next::waiting(WAITING_FOR_USER, why)
}

/// A change of the configuration of this program. What it reads elsewhere may show that, too, and wakes no host.
pub(crate) fn on_configuration(why: &str) -> Next {
    Next::waiting_with_recheck(WAITING_FOR_USER, why, OUTAGE_RECHECK)
}

/// The backoff of a failed operation.
pub(crate) fn for_retry(left: Duration) -> Next {
    Next::waiting_with_recheck(BACKING_OFF, "retry after a failure", left).quiet()
}

/// The backoff of a failed deployment.
pub(crate) fn for_deployment_retry(left: Duration) -> Next {
    Next::waiting_with_recheck(BACKING_OFF, "retry after a failed deployment", left).quiet()
}

/// The end of another delay.
pub(crate) fn for_time(left: Duration, why: &str) -> Next {
    Next::waiting_with_recheck(WAITING_FOR_TIME, why, left).quiet()
}

/// Whether a user, an administrator or a builder of images must act first.
pub(crate) fn is_on_person(next: &Next) -> bool {
    matches!(next, Next::Waiting(on) if [WAITING_FOR_USER, WAITING_FOR_SECRET, WAITING_FOR_AGENT_IMAGE].contains(&on.reason))
}

pub(crate) fn is_on_slot(next: &Next) -> bool {
    matches!(next, Next::Waiting(on) if on.reason == WAITING_FOR_SLOT)
}

/// The same with the node checked again, for a plan that leaves the observation of the node older than a request: the
/// feed wakes the host on a change of the node only.
pub(crate) fn with_stale_node(next: Next, recheck: Duration) -> Next {
    match next {
        Next::Waiting(on) if on.reason == WAITING_FOR_IRONIC && on.recheck.is_none() => Next::Waiting(WaitingOn {
            recheck: Some(recheck),
            ..on
        }),
        other => other,
    }
}

/// The same wait, ended after this time at the latest.
pub(crate) fn with_end(next: Next, after: Duration, why: &str) -> Next {
    match next {
        Next::Done => for_time(after, why),
        Next::Waiting(on) => Next::Waiting(WaitingOn {
            recheck: Some(on.recheck.map_or(after, |before| before.min(after))),
            ..on
        }),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use metal3_runtime::queue::Outcome;

    use crate::settings::FEED_RECHECK;

    use super::*;

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn each_wait_has_a_reason_and_its_wake_up() {
        const PAUSE: Duration = Duration::from_secs(7);
        let (done, after) = (Outcome::Done, Outcome::RequeueAfter);
        for (wait, reason, outcome, with_stale) in [
            (Next::Done, None, done, done),
            (Next::Requeue, None, after(Duration::ZERO), after(Duration::ZERO)),
            (on_node("busy"), Some("WaitingForIronic"), done, after(FEED_RECHECK)),
            (on_secret("bmc"), Some("WaitingForSecret"), done, done),
            (
                on_agent_image("built"),
                Some("WaitingForPreprovisioningImage"),
                done,
                done,
            ),
            (on_slot(), Some("WaitingForSlot"), done, done),
            (on_user("paused"), Some("WaitingForUser"), done, done),
            (
                on_configuration("exchanged"),
                Some("WaitingForUser"),
                after(OUTAGE_RECHECK),
                after(OUTAGE_RECHECK),
            ),
            (for_retry(PAUSE), Some("BackingOff"), after(PAUSE), after(PAUSE)),
            (
                for_deployment_retry(PAUSE),
                Some("BackingOff"),
                after(PAUSE),
                after(PAUSE),
            ),
            (
                on_unreachable_ironic(),
                Some("WaitingForIronic"),
                after(OUTAGE_RECHECK),
                after(OUTAGE_RECHECK),
            ),
            (
                on_lost_response(PAUSE),
                Some("WaitingForIronic"),
                after(PAUSE),
                after(PAUSE),
            ),
            (
                on_reservation("switching", PAUSE),
                Some("WaitingForIronic"),
                after(PAUSE),
                after(PAUSE),
            ),
            (
                for_time(PAUSE, "later"),
                Some("WaitingForTime"),
                after(PAUSE),
                after(PAUSE),
            ),
        ] {
            assert_eq!(wait.outcome(), outcome, "{wait:?}");
            assert_eq!(
                with_stale_node(wait.clone(), FEED_RECHECK).outcome(),
                with_stale,
                "{wait:?}"
            );
            let shown = match &wait {
                Next::Waiting(WaitingOn {
                    reason,
                    message,
                    is_quiet,
                    ..
                }) => {
                    assert!(!message.is_empty(), "{wait:?}");
                    let is_for_a_person =
                        [WAITING_FOR_SECRET, WAITING_FOR_USER, WAITING_FOR_AGENT_IMAGE].contains(reason);
                    assert_eq!(*is_quiet, !is_for_a_person, "{wait:?}");
                    Some(reason.as_str())
                }
                Next::Done | Next::Requeue | Next::RequeueAfter(_) => None,
            };
            assert_eq!(shown, reason, "{wait:?}");
        }
    }
}
