//! Restarts of a container: the policy and the back-off.

use std::time::Duration;

/// After this run time the back-off is reset.
const RESET_AFTER: Duration = Duration::from_mins(10);

/// The Pod's `restartPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Always,
    OnFailure,
    Never,
}

impl Policy {
    /// Default: `Always`.
    pub(crate) fn of(text: Option<&str>) -> Self {
        match text {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    pub(crate) fn restarts(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

/// The delay before a restart: zero at first, then doubled up to the limit.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    limit: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, limit: Duration) -> Self {
        Self {
            first,
            limit,
            next: Duration::ZERO,
        }
    }

    /// The delay before the restart of a container after this run time.
    pub(crate) fn after(&mut self, ran: Duration) -> Duration {
        if ran >= RESET_AFTER {
            self.next = Duration::ZERO;
        }
        let wait = self.next;
        self.next = if wait.is_zero() {
            self.first
        } else {
            wait.saturating_mul(2).min(self.limit)
        };
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_decides_by_exit_code() {
        let table = [
            (Some("Always"), 0, true),
            (None, 1, true),
            (Some("OnFailure"), 0, false),
            (Some("OnFailure"), 137, true),
            (Some("Never"), 1, false),
        ];
        for (text, code, restarts) in table {
            assert_eq!(Policy::of(text).restarts(code), restarts, "{text:?} {code}");
        }
    }

    #[test]
    fn back_off_doubles_up_to_the_limit_and_a_long_run_resets_it() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(10), seconds(35));
        let waits: Vec<u64> = (0..5).map(|_| backoff.after(seconds(1)).as_secs()).collect();
        assert_eq!(waits, [0, 10, 20, 35, 35]);
        assert_eq!(backoff.after(RESET_AFTER), Duration::ZERO);
        assert_eq!(backoff.after(seconds(1)), seconds(10));
    }
}
