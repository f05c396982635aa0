//! What a host's wait means for its key: when it is reconciled again, and the reason in logs and metrics.

use std::time::Duration;

use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

use crate::action::{IRONIC_UNREACHABLE, RETRY_AFTER_DEPLOYMENT, RETRY_AFTER_FAILURE, Wait};

/// Requeue delay after a request whose effect the feed has not shown, in case the node does not change: a little longer
/// than the poll interval of an idle feed.
const FEED_RECHECK: Duration = Duration::from_secs(12);

const WAITING_FOR_IRONIC: Reason = Reason::new("WaitingForIronic");
const WAITING_FOR_SECRET: Reason = Reason::new("WaitingForSecret");
const WAITING_FOR_SLOT: Reason = Reason::new("WaitingForSlot");
const WAITING_FOR_USER: Reason = Reason::new("WaitingForUser");
const BACKING_OFF: Reason = Reason::new("BackingOff");
const WAITING_FOR_TIME: Reason = Reason::new("WaitingForTime");

/// How the reconcile of a host ends. `is_node_stale` is whether the observed node is older than a request.
pub(super) fn next(wait: &Wait, is_node_stale: bool) -> Next {
    match wait {
        Wait::Settled => Next::Done,
        Wait::Replan => Next::Requeue,
        // The feed wakes the host on a change of the node; without a change the node must be checked.
        Wait::OnNode(why) if is_node_stale => Next::waiting_with_recheck(WAITING_FOR_IRONIC, *why, FEED_RECHECK),
        Wait::OnNode(why) => Next::waiting(WAITING_FOR_IRONIC, *why),
        Wait::OnSecret(name) => Next::waiting(WAITING_FOR_SECRET, format!("Secret {name} must be created or changed")),
        Wait::OnSlot => Next::waiting(WAITING_FOR_SLOT, "other hosts use all slots for busy hosts"),
        Wait::OnUser(why) => Next::waiting(WAITING_FOR_USER, *why),
        Wait::After(pause, why) => Next::waiting_with_recheck(reason_of_delay(why), *why, *pause),
    }
}

fn reason_of_delay(why: &str) -> Reason {
    match why {
        RETRY_AFTER_FAILURE | RETRY_AFTER_DEPLOYMENT => BACKING_OFF,
        IRONIC_UNREACHABLE => WAITING_FOR_IRONIC,
        _ => WAITING_FOR_TIME,
    }
}

#[cfg(test)]
mod tests {
    use metal3_runtime::queue::Outcome;
    use metal3_runtime::work::WaitingOn;

    use super::*;

    #[test]
    fn each_wait_has_a_reason_and_its_wake_up() {
        const PAUSE: Duration = Duration::from_secs(7);
        let secret = || Wait::OnSecret("bmc".to_owned());
        let delay = |why| Wait::After(PAUSE, why);
        let (done, after) = (Outcome::Done, Outcome::RequeueAfter);
        for (wait, is_node_stale, reason, outcome) in [
            (Wait::Settled, false, None, done),
            (Wait::Settled, true, None, done),
            (Wait::Replan, false, None, after(Duration::ZERO)),
            (Wait::Replan, true, None, after(Duration::ZERO)),
            (Wait::OnNode("busy"), false, Some("WaitingForIronic"), done),
            (
                Wait::OnNode("busy"),
                true,
                Some("WaitingForIronic"),
                after(FEED_RECHECK),
            ),
            (secret(), false, Some("WaitingForSecret"), done),
            (secret(), true, Some("WaitingForSecret"), done),
            (Wait::OnSlot, false, Some("WaitingForSlot"), done),
            (Wait::OnSlot, true, Some("WaitingForSlot"), done),
            (Wait::OnUser("paused"), false, Some("WaitingForUser"), done),
            (Wait::OnUser("paused"), true, Some("WaitingForUser"), done),
            (delay(RETRY_AFTER_FAILURE), false, Some("BackingOff"), after(PAUSE)),
            (delay(RETRY_AFTER_FAILURE), true, Some("BackingOff"), after(PAUSE)),
            (delay(RETRY_AFTER_DEPLOYMENT), false, Some("BackingOff"), after(PAUSE)),
            (delay(IRONIC_UNREACHABLE), false, Some("WaitingForIronic"), after(PAUSE)),
            (delay("later"), false, Some("WaitingForTime"), after(PAUSE)),
            (delay("later"), true, Some("WaitingForTime"), after(PAUSE)),
        ] {
            let next = next(&wait, is_node_stale);
            assert_eq!(next.outcome(), outcome, "{wait:?}");
            let shown = match &next {
                Next::Waiting(WaitingOn { reason, message, .. }) => {
                    assert!(!message.is_empty(), "{wait:?}");
                    Some(reason.as_str())
                }
                Next::Done | Next::Requeue | Next::RequeueAfter(_) => None,
            };
            assert_eq!(shown, reason, "{wait:?}");
        }
    }
}
