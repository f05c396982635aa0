//! Time as a value that is passed in.
//!
//! Decision code takes the time as a parameter; its caller reads a [`Clock`]. Wall time is for timestamps in objects,
//! [`Monotonic`] for measuring: it never runs backwards.

use std::fmt;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

/// A point of monotonic time, as the duration since the clock's start. Points of different clocks are not comparable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// The point `since_start` after the clock's start.
    #[must_use]
    pub const fn new(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// Time since the clock's start.
    #[must_use]
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// Time since an earlier point; zero when that point is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The point `later` after this one.
    #[must_use]
    pub const fn after(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}

/// A source of time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Wall time. May jump when the machine's clock is set.
    fn now(&self) -> DateTime<Utc>;

    /// Time that never runs backwards.
    fn monotonic(&self) -> Monotonic;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Starts the clock: its monotonic time counts from here.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the system time")]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the system time")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic(self.start.elapsed())
    }
}

/// A clock that moves only on request, for tests and simulations.
#[derive(Debug)]
pub struct ManualClock {
    time: Mutex<(DateTime<Utc>, Monotonic)>,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub const fn at(now: DateTime<Utc>) -> Self {
        Self {
            time: Mutex::new((now, Monotonic::new(Duration::ZERO))),
        }
    }

    /// Advances wall time and monotonic time.
    pub fn advance(&self, by: Duration) {
        self.change(|(now, monotonic)| {
            let passed = TimeDelta::from_std(by).unwrap_or(TimeDelta::MAX);
            *now = now.checked_add_signed(passed).unwrap_or(DateTime::<Utc>::MAX_UTC);
            *monotonic = monotonic.after(by);
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut (DateTime<Utc>, Monotonic)) -> T) -> T {
        change(&mut self.time.lock())
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        self.change(|time| time.0)
    }

    fn monotonic(&self) -> Monotonic {
        self.change(|time| time.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_only_on_request() {
        let clock = ManualClock::at(DateTime::UNIX_EPOCH);
        let before = (clock.now(), clock.monotonic());
        assert_eq!(before, (clock.now(), clock.monotonic()));
        clock.advance(Duration::from_secs(90));
        assert_eq!(clock.now(), DateTime::UNIX_EPOCH + TimeDelta::seconds(90));
        assert_eq!(clock.monotonic().since(before.1), Duration::from_secs(90));
    }

    #[test]
    fn advancing_beyond_the_calendar_stops_at_its_end() {
        let clock = ManualClock::at(DateTime::UNIX_EPOCH);
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), DateTime::<Utc>::MAX_UTC);
        assert_eq!(clock.monotonic().since_start(), Duration::MAX);
    }

    #[test]
    fn time_since_a_later_point_is_zero() {
        let (early, late) = (
            Monotonic::new(Duration::from_secs(1)),
            Monotonic::new(Duration::from_secs(2)),
        );
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn system_clock_never_runs_backwards() {
        let clock = SystemClock::start();
        let (first, second) = (clock.monotonic(), clock.monotonic());
        assert!(first <= second);
    }
}
