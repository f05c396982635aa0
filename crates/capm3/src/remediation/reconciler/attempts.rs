//! How long attempts have lasted.
//!
//! An attempt begins at `status.lastRemediated`, in wall time. From the first observation on, this process measures with
//! the monotonic clock: a clock that is set neither ends an attempt early nor prolongs it. A time in the future counts as
//! the present. Pauses do not count. What happened between two observations is what the first one showed.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_api::infrastructure::conditions::remediation::PAUSED;
use metal3_api::infrastructure::v1beta2::Metal3Remediation;
use metal3_api::meta::{ConditionStatus, Time};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

use crate::remediation::facts::NodeStep;

/// The attempts of this process's keys.
#[derive(Default)]
pub(super) struct Attempts(Mutex<BTreeMap<Key, Attempt>>);

/// What determines whether times run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Whether Cluster or remediation are paused.
    pub(super) is_paused: bool,
    /// Whether Machine, Metal3Machine or host are.
    pub(super) is_machine_paused: bool,
    /// Whether the host is on; `None` without a host.
    pub(super) is_on: Option<bool>,
}

/// Times of an attempt, as the facts have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lasted {
    pub(super) elapsed: Duration,
    pub(super) off: Duration,
    pub(super) on: Duration,
    pub(super) awaited: Duration,
    pub(super) changed: Option<(NodeStep, Duration)>,
}

#[derive(Default)]
struct Attempt {
    begun: Option<Time>,
    elapsed: Stopwatch,
    off: Stopwatch,
    on: Stopwatch,
    awaited_off: Stopwatch,
    awaited_on: Stopwatch,
    /// The last change of the Node.
    changed: Option<(NodeStep, Monotonic)>,
    /// Since when its request waits for those of others.
    not_sent: Option<Monotonic>,
}

#[derive(Default)]
struct Stopwatch {
    total: Duration,
    /// The last observation, if it ran then.
    since: Option<Monotonic>,
}

impl Stopwatch {
    fn observe(&mut self, runs: bool, now: Monotonic) -> Duration {
        let passed = self.since.map_or(Duration::ZERO, |since| now.since(since));
        self.total = self.total.saturating_add(passed);
        self.since = runs.then_some(now);
        self.total
    }

    /// The same, and one that does not run begins again.
    fn observe_at_a_stretch(&mut self, runs: bool, now: Monotonic) -> Duration {
        if !runs {
            *self = Self::default();
        }
        self.observe(runs, now)
    }
}

impl Attempts {
    /// How long the attempt of the remediation has lasted.
    pub(super) fn observe(&self, key: &Key, remediation: &Metal3Remediation, seen: Seen, clock: &dyn Clock) -> Lasted {
        let (begun, now) = (remediation.status.last_remediated, clock.monotonic());
        let is_any_paused = seen.is_paused || seen.is_machine_paused;
        let is_deleted = remediation.metadata.deletion_timestamp.is_some();
        let mut attempts = self.0.lock();
        let attempt = attempts.entry(key.clone()).or_default();
        if attempt.begun != begun {
            *attempt = Attempt {
                begun,
                ..Attempt::default()
            };
            attempt.elapsed.total = before(remediation, is_any_paused, Time::new(clock.now()));
        }
        let is_awaited = is_deleted && !is_any_paused;
        let is_on = seen.is_on == Some(true);
        let (awaited_off, awaited_on) = (
            attempt.awaited_off.observe(is_awaited && !is_on, now),
            attempt.awaited_on.observe(is_awaited && is_on, now),
        );
        Lasted {
            elapsed: attempt.elapsed.observe(begun.is_some() && !is_any_paused, now),
            // A pause of the machine keeps no host off.
            off: attempt
                .off
                .observe_at_a_stretch(!seen.is_paused && seen.is_on == Some(false), now),
            on: attempt.on.observe_at_a_stretch(!is_any_paused && is_on, now),
            awaited: if is_on { awaited_on } else { awaited_off },
            changed: attempt.changed.map(|(step, at)| (step, now.since(at))),
        }
    }

    /// The request of the Node waits for those of others. That is no time of a deletion. Returns how long it has waited.
    pub(super) fn not_sent(&self, key: &Key, clock: &dyn Clock) -> Duration {
        let now = clock.monotonic();
        let mut attempts = self.0.lock();
        let Some(attempt) = attempts.get_mut(key) else {
            return Duration::ZERO;
        };
        attempt.awaited_off.since = None;
        attempt.awaited_on.since = None;
        now.since(*attempt.not_sent.get_or_insert(now))
    }

    /// The request of the Node was sent, or there is none to send.
    pub(super) fn sent(&self, key: &Key) {
        if let Some(attempt) = self.0.lock().get_mut(key) {
            attempt.not_sent = None;
        }
    }

    /// The Node was changed. A repetition of the same change waits.
    pub(super) fn changed(&self, key: &Key, step: NodeStep, clock: &dyn Clock) {
        if let Some(attempt) = self.0.lock().get_mut(key) {
            attempt.changed = Some((step, clock.monotonic()));
        }
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

/// How long an attempt had lasted, for certain, when this process first observes it: as far as its condition shows that it was not
/// paused. A pause of the machine is in no such condition.
fn before(remediation: &Metal3Remediation, is_paused: bool, now: Time) -> Duration {
    let Some(begun) = remediation.status.last_remediated else {
        return Duration::ZERO;
    };
    let paused = remediation.status.conditions.iter().find(|one| one.type_ == PAUSED);
    let changed = paused.map(|one| (one.status, one.last_transition_time));
    let (from, to) = match changed {
        Some((ConditionStatus::True, paused)) => (begun, paused),
        _ if is_paused => return Duration::ZERO,
        Some((ConditionStatus::False, resumed)) => (begun.max(resumed), now),
        Some((ConditionStatus::Unknown, _)) | None => (begun, now),
    };
    to.get().signed_duration_since(from.get()).to_std().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

    use chrono::{DateTime, Utc};
    use serde_json::{Value, json};

    use super::*;

    /// A clock whose two times are set.
    #[derive(Debug, Default)]
    struct SetClock {
        wall: AtomicI64,
        monotonic: AtomicU64,
    }

    impl Clock for SetClock {
        fn now(&self) -> DateTime<Utc> {
            at(self.wall.load(Ordering::Relaxed))
        }

        fn monotonic(&self) -> Monotonic {
            Monotonic::new(Duration::from_secs(self.monotonic.load(Ordering::Relaxed)))
        }
    }

    const RUNS: Seen = Seen {
        is_paused: false,
        is_machine_paused: false,
        is_on: None,
    };

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn begun(seconds: i64, rest: Value) -> Metal3Remediation {
        let mut status = json!({ "lastRemediated": Time::new(at(seconds)) });
        metal3_runtime::patch::apply(&rest, &mut status);
        serde_json::from_value(json!({ "metadata": { "name": "w-0", "namespace": "metal" }, "status": status }))
            .unwrap()
    }

    fn key() -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: "w-0".to_owned(),
        }
    }

    #[test]
    fn a_clock_that_is_set_neither_ends_an_attempt_nor_prolongs_it() {
        let (attempts, clock) = (Attempts::default(), SetClock::default());
        let elapsed = |wall: i64, monotonic: u64, at: i64| {
            clock.wall.store(wall, Ordering::Relaxed);
            clock.monotonic.store(monotonic, Ordering::Relaxed);
            let lasted = attempts.observe(&key(), &begun(at, json!({})), RUNS, &clock);
            lasted.elapsed.as_secs()
        };
        assert_eq!(elapsed(1000, 5, 900), 100, "a restart continues the time");
        assert_eq!(elapsed(1010, 15, 900), 110);
        assert_eq!(elapsed(90_000, 16, 900), 111, "the clock jumped ahead");
        assert_eq!(elapsed(10, 17, 900), 112, "the clock jumped back");
        assert_eq!(elapsed(10, 18, 2000), 0, "another attempt, recorded before the jump");
        assert_eq!(elapsed(10, 28, 2000), 10);
        let lasted = attempts.observe(&key(), &begun(0, json!({ "lastRemediated": null })), RUNS, &clock);
        assert_eq!(lasted.elapsed, Duration::ZERO);
    }

    /// Seconds of an attempt, of the host off and on, and of the deletion.
    fn lasted(rows: &[(u64, Seen)], remediation: &Metal3Remediation) -> Vec<[u64; 4]> {
        let (attempts, clock) = (Attempts::default(), SetClock::default());
        let observe = |(monotonic, seen): &(u64, Seen)| {
            clock.monotonic.store(*monotonic, Ordering::Relaxed);
            let lasted = attempts.observe(&key(), remediation, *seen, &clock);
            [lasted.elapsed, lasted.off, lasted.on, lasted.awaited].map(|time| time.as_secs())
        };
        rows.iter().map(observe).collect()
    }

    const ON: Seen = Seen {
        is_on: Some(true),
        ..RUNS
    };
    const OFF: Seen = Seen {
        is_on: Some(false),
        ..RUNS
    };

    #[test]
    fn host_is_off_or_on_at_a_stretch() {
        let rows = [(30, OFF), (37, OFF), (40, ON), (45, ON), (46, OFF), (47, RUNS)];
        let found = lasted(&rows, &begun(0, json!({})));
        let expected = [
            [0, 0, 0, 0],
            [7, 7, 0, 0],
            [10, 0, 0, 0],
            [15, 0, 5, 0],
            [16, 0, 0, 0],
            [17, 0, 0, 0],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn pause_uses_up_no_time_and_its_machine_keeps_no_host_off() {
        let paused = |seen| Seen {
            is_paused: true,
            ..seen
        };
        let machine_paused = |seen| Seen {
            is_machine_paused: true,
            ..seen
        };
        let mut deleted = begun(0, json!({}));
        deleted.metadata.deletion_timestamp = Some(serde_json::from_value(json!("1970-01-01T00:00:00Z")).unwrap());
        let rows = [
            (0, ON),
            (10, paused(ON)),
            (710, ON),
            (720, machine_paused(ON)),
            (1420, OFF),
            (1430, machine_paused(OFF)),
            (1440, ON),
            (1450, ON),
        ];
        let expected = [
            [0, 0, 0, 0],
            [10, 0, 0, 10],
            [10, 0, 0, 10],
            [20, 0, 0, 20],
            [20, 0, 0, 0],
            [30, 10, 0, 10],
            [30, 0, 0, 20],
            [40, 0, 10, 30],
        ];
        let found = lasted(&rows, &deleted);
        assert_eq!(found, expected);
    }

    #[test]
    fn pause_before_a_restart_uses_up_no_time() {
        let condition = |status: &str, since: i64| json!({ "conditions": [{ "type": "Paused", "status": status, "reason": "x", "message": "", "lastTransitionTime": Time::new(at(since)) }] });
        for (rest, is_paused, expected) in [
            (json!({}), false, 900),
            (json!({}), true, 0),
            (condition("True", 150), true, 50),
            (condition("True", 150), false, 50),
            (condition("True", 50), true, 0),
            (condition("False", 600), false, 400),
            (condition("False", 50), false, 900),
        ] {
            let found = before(&begun(100, rest.clone()), is_paused, Time::new(at(1000)));
            assert_eq!(found.as_secs(), expected, "{rest} {is_paused}");
        }
    }
}
