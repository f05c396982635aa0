//! How a pass ends when nothing went wrong.

use std::time::Duration;

use crate::queue::Outcome;
use crate::reason::Reason;

/// What happens to a key after a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing to do until something changes.
    Done,
    /// Look again at once: after a write whose outcome the next step needs. Writes of a pass do not wake its own key.
    Requeue,
    /// Look again after this time, even if nothing changes. Only where nothing could wake the key.
    RequeueAfter(Duration),
    /// Someone else must act first. This is no fault.
    Waiting(WaitingOn),
}

impl Next {
    /// Waiting for something whose change wakes the key.
    #[must_use]
    pub fn waiting(reason: Reason, message: impl Into<String>) -> Self {
        Self::Waiting(WaitingOn {
            reason,
            message: message.into(),
            recheck: None,
        })
    }

    /// Waiting for something that nothing watches: look every so often.
    #[must_use]
    pub fn waiting_with_recheck(reason: Reason, message: impl Into<String>, recheck: Duration) -> Self {
        Self::Waiting(WaitingOn {
            reason,
            message: message.into(),
            recheck: Some(recheck),
        })
    }

    /// What the queue makes of it.
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

/// What a pass waits for, in words for the user: the condition says the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingOn {
    /// For programs.
    pub reason: Reason,
    /// For people: what is missing, and who can provide it.
    pub message: String,
    /// Set where nothing tells when the other side is done.
    pub recheck: Option<Duration>,
}
