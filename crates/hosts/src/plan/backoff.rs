//! The delay before a retry.
//!
//! It doubles with every failure in a row, up to some hours, and is spread within each step so that hosts that failed
//! together do not retry together. It is computed from the status, so a restart does not change it.

use std::time::Duration;

use chrono::TimeDelta;
use metal3_api::meta::Time;

/// More failures do not increase the delay.
const MOST: u32 = 9;
/// The delay of a failure that is not counted is that of this many failures: some minutes, however long it lasts.
pub const UNCOUNTED: i64 = 3;
const UNIT: Duration = Duration::from_secs(60);
/// Number of parts of a step, to spread the hosts.
const PARTS: u32 = 256;

/// The delay after this many failures in a row: between half of the step and the whole step, which doubles each time.
/// `jitter` is the host's stable number.
#[must_use]
pub fn delay(failures: i64, jitter: u64) -> Duration {
    let failures = u32::try_from(failures.max(1)).unwrap_or(MOST).min(MOST);
    let step = UNIT.saturating_mul(2_u32.saturating_pow(failures));
    let half = step / 2;
    // Mixed with the number of failures: a host with a late part is not late every time.
    let mixed = (jitter ^ u64::from(failures)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    let part = u32::try_from(mixed).unwrap_or(0) + 1;
    half + half / PARTS * part
}

/// The remaining delay, at most the whole one; `None` when the retry is due. A time that is ahead of now by more than the
/// delay is from a clock that was wrong, so the retry is due.
#[must_use]
pub fn left(since: Time, failures: i64, jitter: u64, now: Time) -> Option<Duration> {
    let delay = delay(failures, jitter);
    let whole = TimeDelta::from_std(delay).unwrap_or(TimeDelta::MAX);
    let passed = now.get().signed_duration_since(since.get());
    if passed < -whole {
        return None;
    }
    let left = (whole - passed).to_std().ok().filter(|left| !left.is_zero())?;
    Some(left.min(delay))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use proptest::prelude::*;

    use super::*;

    fn second(second: i64) -> Time {
        Time::new(DateTime::from_timestamp(second, 0).unwrap())
    }

    proptest! {
        #[test]
        fn delay_is_in_the_upper_half_of_a_doubling_step(failures in -3_i64..40, jitter: u64) {
            let step = Duration::from_secs(60 * 2_u64.pow(u32::try_from(failures.clamp(1, 9)).unwrap()));
            let delay = delay(failures, jitter);
            prop_assert!(delay > step / 2 && delay <= step, "{delay:?} of {step:?}");
        }

        #[test]
        fn retry_is_due_when_its_delay_is_over(failures in 1_i64..12, jitter: u64, waited in 0_i64..100_000) {
            let left = left(second(1_000), failures, jitter, second(1_000 + waited));
            let delay = delay(failures, jitter);
            let over = Duration::from_secs(u64::try_from(waited).unwrap()) >= delay;
            prop_assert_eq!(left.is_none(), over);
        }
    }

    #[test]
    fn failure_recorded_by_a_clock_that_was_ahead_delays_a_retry_by_two_delays_at_most() {
        const YEAR: i64 = 31_536_000;
        for ahead in [1, 30, 60, 119, 120, 121, 600, YEAR] {
            let mut now = 1_000;
            while let Some(left) = left(second(1_000 + ahead), 1, 7, second(now)) {
                assert!(left <= delay(1, 7), "{left:?}");
                now += i64::try_from(left.as_secs()).unwrap() + 1;
                assert!(now < 1_000 + 241, "{ahead} s ahead");
            }
        }
    }

    #[test]
    fn hosts_that_failed_together_retry_at_different_times() {
        let delays: std::collections::BTreeSet<_> = (0..100).map(|jitter| delay(3, jitter)).collect();
        assert!(delays.len() > 50, "{}", delays.len());
    }
}
