//! A rate limit with a burst: when the next request may be sent.

use std::time::Duration;

use metal3_domain::clock::Monotonic;

/// A rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    interval: Duration,
    burst: u32,
}

impl RateLimit {
    /// Requests per second, and `burst` of them at once after a pause. `None` when `per_second` is not positive, which
    /// means no limit.
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Option<Self> {
        let interval = Duration::try_from_secs_f64(per_second.recip()).ok()?;
        Some(Self {
            interval,
            burst: burst.max(1),
        })
    }
}

/// The state of a rate limit. Pure: the caller passes the time and waits.
#[derive(Debug)]
pub(super) struct RateLimiter {
    rate_limit: RateLimit,
    /// When the next request would be sent at the plain rate.
    next: Monotonic,
}

impl RateLimiter {
    pub(super) const fn new(rate_limit: RateLimit) -> Self {
        Self {
            rate_limit,
            next: Monotonic::new(Duration::ZERO),
        }
    }

    /// Takes the next slot and returns the wait for it. An unused slot is lost.
    pub(super) fn wait(&mut self, now: Monotonic) -> Duration {
        let ahead = self
            .rate_limit
            .interval
            .saturating_mul(self.rate_limit.burst.saturating_sub(1));
        let wait = self.next.since(now.after(ahead));
        self.next = self.next.max(now).after(self.rate_limit.interval);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::new(Duration::from_millis(millis))
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_keeps_the_interval() {
        let mut limiter = RateLimiter::new(RateLimit::new(20.0, 3).unwrap());
        let waits: Vec<_> = (0..6).map(|_| limiter.wait(at(1000)).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 50, 100, 150]);
    }

    #[test]
    fn a_rest_earns_one_burst_and_no_more() {
        let mut limiter = RateLimiter::new(RateLimit::new(20.0, 2).unwrap());
        for _ in 0..4 {
            limiter.wait(at(0));
        }
        let waits: Vec<_> = (0..4).map(|_| limiter.wait(at(60_000)).as_millis()).collect();
        assert_eq!(waits, [0, 0, 50, 100]);
    }

    #[test]
    fn no_positive_number_means_no_pace() {
        for per_second in [0.0, -1.0, f64::NAN] {
            assert_eq!(RateLimit::new(per_second, 30), None, "{per_second}");
        }
    }
}
