//! How a reconcile without an error ends.

use std::time::Duration;

use crate::queue::Outcome;
use crate::reason::Reason;

/// What happens to a key after a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing to do until something changes.
    Done,
    /// Reconcile again at once: after a write whose result the next step needs. Writes of a reconcile do not enqueue
    /// its own key.
    Requeue,
    /// Reconcile again after this time, even if nothing changes. Only where no event could enqueue the key.
    RequeueAfter(Duration),
    /// Another actor must act first. This is not an error.
    Waiting(WaitingOn),
}

impl Next {
    /// Waits for an object whose change enqueues the key.
    #[must_use]
    pub fn waiting(reason: Reason, message: impl Into<String>) -> Self {
        Self::Waiting(WaitingOn {
            reason,
            message: message.into(),
            recheck: None,
            is_quiet: false,
        })
    }

    /// Waits for something that is not watched: reconciles again after `recheck`.
    #[must_use]
    pub fn waiting_with_recheck(reason: Reason, message: impl Into<String>, recheck: Duration) -> Self {
        Self::Waiting(WaitingOn {
            reason,
            message: message.into(),
            recheck: Some(recheck),
            is_quiet: false,
        })
    }

    /// The same, and a wait is logged at debug only: for one that ends by itself, or that a condition of the object
    /// shows. Otherwise each new reason of a key is logged once at info.
    #[must_use]
    pub fn quiet(self) -> Self {
        match self {
            Self::Waiting(on) => Self::Waiting(WaitingOn { is_quiet: true, ..on }),
            other => other,
        }
    }

    /// The same, and reconciles again after `recheck` at the latest.
    #[must_use]
    pub fn at_latest(self, recheck: Duration) -> Self {
        let earlier = |planned: Option<Duration>| planned.map_or(recheck, |planned| planned.min(recheck));
        match self {
            Self::Requeue => Self::Requeue,
            Self::Done => Self::RequeueAfter(recheck),
            Self::RequeueAfter(pause) => Self::RequeueAfter(earlier(Some(pause))),
            Self::Waiting(on) => Self::Waiting(WaitingOn {
                recheck: Some(earlier(on.recheck)),
                ..on
            }),
        }
    }

    /// The outcome for the queue.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Done | Self::Waiting(WaitingOn { recheck: None, .. }) => Outcome::Done,
            Self::Requeue => Outcome::RequeueAfter(Duration::ZERO),
            Self::RequeueAfter(pause)
            | Self::Waiting(WaitingOn {
                recheck: Some(pause), ..
            }) => Outcome::RequeueAfter(*pause),
        }
    }
}

/// What a key waits for, as the condition of the object states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingOn {
    /// For programs.
    pub reason: Reason,
    /// For people: what is missing, and who can provide it.
    pub message: String,
    /// Set where no event reports that the wait is over.
    pub recheck: Option<Duration>,
    /// Whether it is logged at debug only.
    pub is_quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_recheck_shortens_a_pause_and_keeps_what_is_waited_for() {
        let [short, long] = [10, 60].map(Duration::from_secs);
        let reason = Reason::new("Held");
        let waiting = |recheck| match recheck {
            Some(recheck) => Next::waiting_with_recheck(reason, "correct it", recheck),
            None => Next::waiting(reason, "correct it"),
        };
        for (next, expected) in [
            (Next::Requeue, Next::Requeue),
            (Next::Done, Next::RequeueAfter(short)),
            (Next::RequeueAfter(long), Next::RequeueAfter(short)),
            (Next::RequeueAfter(Duration::ZERO), Next::RequeueAfter(Duration::ZERO)),
            (waiting(None), waiting(Some(short))),
            (waiting(Some(long)), waiting(Some(short))),
        ] {
            assert_eq!(next.at_latest(short), expected);
        }
    }
}
