//! The time of a simulation: wall time that follows tokio's clock, so that paused time moves both.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use metal3_domain::clock::{Clock, Monotonic};
use tokio::time::Instant;

/// A clock that shows a given time at its start and then runs with tokio's.
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

    fn passed(&self) -> Duration {
        self.start.elapsed()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(self.passed()).unwrap_or(TimeDelta::MAX);
        self.wall.checked_add_signed(passed).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.passed())
    }
}
