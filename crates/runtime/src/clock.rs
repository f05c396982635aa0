//! A clock that follows the timers of the async runtime, so that paused time moves both together.
//!
//! For tests and simulations. The program itself uses [`metal3_domain::clock::SystemClock`]. Here wall time is the
//! start plus the time that the timers have passed.

use chrono::{DateTime, TimeDelta, Utc};
use metal3_domain::clock::{Clock, Monotonic};
use tokio::time::Instant;

/// Time of the async runtime's timers.
#[derive(Debug, Clone, Copy)]
pub struct TimerClock {
    start: Instant,
    wall: DateTime<Utc>,
}

impl TimerClock {
    /// Starts the clock, showing `wall`.
    #[must_use]
    pub fn start(wall: DateTime<Utc>) -> Self {
        Self {
            start: Instant::now(),
            wall,
        }
    }
}

impl Clock for TimerClock {
    fn now(&self) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(self.start.elapsed()).unwrap_or(TimeDelta::MAX);
        self.wall.checked_add_signed(passed).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn both_scales_follow_paused_timers() {
        let clock = TimerClock::start(DateTime::UNIX_EPOCH);
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.now(), DateTime::UNIX_EPOCH + TimeDelta::seconds(90));
        assert_eq!(clock.monotonic(), Monotonic::new(Duration::from_secs(90)));
    }
}
