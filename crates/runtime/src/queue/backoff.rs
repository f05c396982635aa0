//! The back-off of a key that failed.
//!
//! A failure counts only when the window of the one before has passed: events may enqueue a key many times inside its
//! window, and each reconcile may fail for the same reason. Counting them would take a key to the longest delay within
//! milliseconds.

use std::time::Duration;

use metal3_domain::clock::Monotonic;

/// The delay after a first failure; it doubles.
pub const FIRST_DELAY: Duration = Duration::from_millis(5);
/// The longest delay: how late a recovery without an event is noticed.
pub const LONGEST_DELAY: Duration = Duration::from_secs(1000);

/// The failures of a key since its last success; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
    window_ends: Monotonic,
}

impl Backoff {
    /// After one more failure at `now`.
    pub(super) fn fail(before: Option<Self>, now: Monotonic) -> Self {
        match before {
            Some(running) if now < running.window_ends => running,
            _ => {
                let failures = before.map_or(0, |past| past.failures).saturating_add(1);
                Self {
                    failures,
                    window_ends: now.after(delay(failures)),
                }
            }
        }
    }

    /// When the key is retried unless an event enqueues it before.
    pub(super) const fn retry_at(self) -> Monotonic {
        self.window_ends
    }

    /// The number of failures that count.
    pub(super) const fn failures(self) -> u32 {
        self.failures
    }
}

fn delay(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_DELAY.saturating_mul(doubled).min(LONGEST_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::new(Duration::from_millis(millis))
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let millis: Vec<u128> = (1..=20).map(|n| delay(n).as_millis()).collect();
        assert_eq!(millis[..6], [5, 10, 20, 40, 80, 160]);
        assert_eq!(millis[17..], [655_360, 1_000_000, 1_000_000]);
        assert_eq!(delay(u32::MAX), LONGEST_DELAY);
    }

    #[test]
    fn failures_inside_the_window_neither_count_nor_move_it() {
        let first = Backoff::fail(None, at(0));
        assert_eq!((first.failures(), first.retry_at()), (1, at(5)));
        assert_eq!(Backoff::fail(Some(first), at(4)), first);
        let second = Backoff::fail(Some(first), at(5));
        assert_eq!((second.failures(), second.retry_at()), (2, at(15)));
    }
}
