//! What follows the end of a container: another start, after how long, or none.

use std::time::Duration;

/// A container that ran this long has its crashes forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_mins(10);

/// The Pod's `restartPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Always,
    OnFailure,
    Never,
}

impl Policy {
    /// Absent is `Always`, as the API server fills it in.
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

/// Waits between restarts: none for the first, then doubling up to the limit.
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

    /// How long to wait before the restart of a container that has run for `ran`.
    pub(crate) fn after(&mut self, ran: Duration) -> Duration {
        if ran >= FORGIVEN_AFTER {
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
    fn the_policy_decides_by_exit_code() {
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
    fn waits_double_up_to_the_limit_and_a_long_run_is_forgiven() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(10), seconds(35));
        let waits: Vec<u64> = (0..5).map(|_| backoff.after(seconds(1)).as_secs()).collect();
        assert_eq!(waits, [0, 10, 20, 35, 35]);
        assert_eq!(backoff.after(FORGIVEN_AFTER), Duration::ZERO);
        assert_eq!(backoff.after(seconds(1)), seconds(10));
    }
}
