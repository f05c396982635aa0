//! When an attempt that failed is made again.
//!
//! The delay doubles with every failure in a row, up to some hours. Within each step it is spread, so that hosts that
//! failed together do not come back together. It counts from the status, so a restart changes nothing.

use std::time::Duration;

use chrono::TimeDelta;
use metal3_api::meta::Time;

/// Failures beyond this many wait no longer.
const MOST: u32 = 9;
/// What the delays are multiples of.
const UNIT: Duration = Duration::from_secs(60);
/// Parts that a step is divided into to spread the hosts.
const PARTS: u32 = 256;

/// How long to wait after so many failures in a row: more than half of a step that doubles each time, and at most all
/// of it. `jitter` is the host's own number.
#[must_use]
pub fn delay(failures: i64, jitter: u64) -> Duration {
    let failures = u32::try_from(failures.max(1)).unwrap_or(MOST).min(MOST);
    let step = UNIT.saturating_mul(2_u32.saturating_pow(failures));
    let half = step / 2;
    // Another part for each failure, or a host that is late once were late for ever.
    let mixed = (jitter ^ u64::from(failures)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    let part = u32::try_from(mixed).unwrap_or(0) + 1;
    half + half / PARTS * part
}

/// How long it still is until an attempt is due; nothing when it is.
#[must_use]
pub fn left(since: Time, failures: i64, jitter: u64, now: Time) -> Option<Duration> {
    let delay = TimeDelta::from_std(delay(failures, jitter)).unwrap_or(TimeDelta::MAX);
    let due = since.get().checked_add_signed(delay)?;
    (due - now.get()).to_std().ok().filter(|left| !left.is_zero())
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
        fn delay_lies_in_the_upper_half_of_a_step_that_doubles(failures in -3_i64..40, jitter: u64) {
            let step = Duration::from_secs(60 * 2_u64.pow(u32::try_from(failures.clamp(1, 9)).unwrap()));
            let delay = delay(failures, jitter);
            prop_assert!(delay > step / 2 && delay <= step, "{delay:?} of {step:?}");
        }

        #[test]
        fn an_attempt_is_due_when_its_delay_is_over(failures in 1_i64..12, jitter: u64, waited in 0_i64..100_000) {
            let left = left(second(1_000), failures, jitter, second(1_000 + waited));
            let delay = delay(failures, jitter);
            let over = Duration::from_secs(u64::try_from(waited).unwrap()) >= delay;
            prop_assert_eq!(left.is_none(), over);
        }
    }

    #[test]
    fn hosts_that_failed_together_come_back_apart() {
        let delays: std::collections::BTreeSet<_> = (0..100).map(|jitter| delay(3, jitter)).collect();
        assert!(delays.len() > 50, "{}", delays.len());
    }
}
