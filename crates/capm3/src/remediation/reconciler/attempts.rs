//! How long attempts have lasted.
//!
//! An attempt begins at `status.lastRemediated`, in wall time. From the first observation on, this process measures with
//! the monotonic clock: a clock that is set neither ends an attempt early nor prolongs it. A time in the future counts as
//! the present.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_api::meta::Time;
use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

/// The attempts of this process's keys.
#[derive(Default)]
pub(super) struct Attempts(Mutex<BTreeMap<Key, Attempt>>);

#[derive(Clone, Copy)]
struct Attempt {
    begun: Time,
    observed: Monotonic,
    /// How long it had lasted by then.
    before: Duration,
    /// Since when the host is observed to be off.
    off: Option<Monotonic>,
    /// Since when it is observed to be on, and nothing to be paused.
    on: Option<Monotonic>,
}

impl Attempts {
    /// How long the attempt that began at this time has lasted.
    pub(super) fn elapsed(&self, key: &Key, begun: Option<Time>, clock: &dyn Clock) -> Duration {
        let Some(begun) = begun else { return Duration::ZERO };
        let observed = clock.monotonic();
        let mut attempts = self.0.lock();
        let attempt = attempts.get(key).copied().filter(|attempt| attempt.begun == begun);
        let attempt = attempt.unwrap_or_else(|| {
            let before = clock.now().signed_duration_since(begun.get());
            Attempt {
                begun,
                observed,
                before: before.to_std().unwrap_or_default(),
                off: None,
                on: None,
            }
        });
        attempts.insert(key.clone(), attempt);
        attempt.before.saturating_add(observed.since(attempt.observed))
    }

    /// How long the host has been observed to be off in this attempt. To be called after [`Attempts::elapsed`].
    pub(super) fn off(&self, key: &Key, is_off: bool, clock: &dyn Clock) -> Duration {
        self.lasts(key, is_off, clock, |attempt| &mut attempt.off)
    }

    /// The same of a host that is on while nothing is paused.
    pub(super) fn on(&self, key: &Key, is_on: bool, clock: &dyn Clock) -> Duration {
        self.lasts(key, is_on, clock, |attempt| &mut attempt.on)
    }

    fn lasts(
        &self,
        key: &Key,
        holds: bool,
        clock: &dyn Clock,
        begin: fn(&mut Attempt) -> &mut Option<Monotonic>,
    ) -> Duration {
        let now = clock.monotonic();
        let mut attempts = self.0.lock();
        let Some(attempt) = attempts.get_mut(key) else {
            return Duration::ZERO;
        };
        let begin = begin(attempt);
        *begin = holds.then(|| begin.unwrap_or(now));
        begin.map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

    use chrono::{DateTime, Utc};

    use super::*;

    /// A clock whose two times are set.
    #[derive(Debug, Default)]
    struct SetClock {
        wall: AtomicI64,
        monotonic: AtomicU64,
    }

    impl Clock for SetClock {
        fn now(&self) -> DateTime<Utc> {
            DateTime::from_timestamp(self.wall.load(Ordering::Relaxed), 0).unwrap()
        }

        fn monotonic(&self) -> Monotonic {
            Monotonic::new(Duration::from_secs(self.monotonic.load(Ordering::Relaxed)))
        }
    }

    #[test]
    fn a_clock_that_is_set_neither_ends_an_attempt_nor_prolongs_it() {
        let (attempts, clock) = (Attempts::default(), SetClock::default());
        let key = Key {
            namespace: "metal".to_owned(),
            name: "w-0".to_owned(),
        };
        let elapsed = |wall: i64, monotonic: u64, begun: i64| {
            clock.wall.store(wall, Ordering::Relaxed);
            clock.monotonic.store(monotonic, Ordering::Relaxed);
            let begun = Time::new(DateTime::from_timestamp(begun, 0).unwrap());
            attempts.elapsed(&key, Some(begun), &clock).as_secs()
        };
        assert_eq!(elapsed(1000, 5, 900), 100, "a restart continues the time");
        assert_eq!(elapsed(1010, 15, 900), 110);
        assert_eq!(elapsed(90_000, 16, 900), 111, "the clock jumped ahead");
        assert_eq!(elapsed(10, 17, 900), 112, "the clock jumped back");
        assert_eq!(elapsed(10, 18, 2000), 0, "another attempt, recorded before the jump");
        assert_eq!(elapsed(10, 28, 2000), 10);
        assert_eq!(attempts.elapsed(&key, None, &clock), Duration::ZERO);
        let off = |monotonic: u64, is_off: bool| {
            clock.monotonic.store(monotonic, Ordering::Relaxed);
            attempts.off(&key, is_off, &clock).as_secs()
        };
        assert_eq!(
            [off(30, true), off(37, true), off(40, false), off(41, true)],
            [0, 7, 0, 0]
        );
        let on = |monotonic: u64, is_on: bool| {
            clock.monotonic.store(monotonic, Ordering::Relaxed);
            attempts.on(&key, is_on, &clock).as_secs()
        };
        assert_eq!([on(42, true), off(45, true), on(46, true), on(47, false)], [0, 4, 4, 0]);
        assert_eq!((elapsed(10, 50, 3000), off(51, true)), (0, 0), "another attempt");
        assert_eq!(on(52, true), 0);
    }
}
