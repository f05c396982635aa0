//! The clock of a simulation: wall time that follows tokio's clock, so that paused time controls both.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use metal3_domain::clock::{Clock, Monotonic};
use tokio::time::Instant;

/// A clock that starts at a given time and advances with tokio's clock.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    wall: DateTime<Utc>,
    start: Instant,
}

impl TokioClock {
    /// Starts the clock at a wall time.
    #[must_use]
    pub fn start_at(wall: DateTime<Utc>) -> Self {
        Self {
            wall,
            start: Instant::now(),
        }
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> DateTime<Utc> {
        let elapsed = TimeDelta::from_std(self.elapsed()).unwrap_or(TimeDelta::MAX);
        self.wall
            .checked_add_signed(elapsed)
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.elapsed())
    }
}
