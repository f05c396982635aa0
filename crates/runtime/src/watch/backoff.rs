//! The back-off of lists and watches.

use std::time::Duration;

/// The wait after a first failure; it doubles.
const FIRST: Duration = Duration::from_millis(800);
/// The longest wait: how late the end of an outage may be noticed.
const LONGEST: Duration = Duration::from_secs(30);

/// The back-off between attempts, with jitter from a seed, so that caches do not retry in step.
pub(super) struct Backoff {
    seed: u64,
    failures: u32,
}

impl Backoff {
    pub(super) const fn seeded(seed: u64) -> Self {
        Self { seed, failures: 0 }
    }

    pub(super) const fn seed(&self) -> u64 {
        self.seed
    }

    /// An attempt succeeded.
    pub(super) const fn succeed(&mut self) {
        self.failures = 0;
    }

    /// The number of failures since the last success.
    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }

    /// An attempt failed. Returns the wait: between half of the doubled delay and all of it.
    pub(super) fn fail(&mut self) -> Duration {
        let doubled = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        let whole = FIRST.saturating_mul(doubled).min(LONGEST);
        let spread = u32::try_from(mixed(self.seed ^ u64::from(self.failures)) % 1000).unwrap_or(0);
        whole / 2 + whole / 2000 * spread
    }
}

/// The last step of SplitMix64.
const fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(seed: u64, attempts: usize) -> Vec<Duration> {
        let mut backoff = Backoff::seeded(seed);
        (0..attempts).map(|_| backoff.fail()).collect()
    }

    #[test]
    fn waits_double_up_to_the_longest_and_lose_at_most_half() {
        for seed in 0..50 {
            for (failures, wait) in (0_u32..).zip(waits(seed, 40)) {
                let whole = FIRST.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST);
                assert!(wait >= whole / 2 && wait <= whole, "{seed} {failures} {wait:?}");
            }
        }
    }

    #[test]
    fn two_seeds_wait_differently_and_one_always_the_same() {
        assert_eq!(waits(1, 9), waits(1, 9));
        assert_ne!(waits(1, 9), waits(2, 9));
    }

    #[test]
    fn success_resets_the_backoff() {
        let mut backoff = Backoff::seeded(1);
        let first = backoff.fail();
        backoff.fail();
        backoff.succeed();
        assert_eq!((backoff.failures(), backoff.fail()), (0, first));
    }
}
