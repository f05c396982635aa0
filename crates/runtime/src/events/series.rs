//! Event series as a state machine: which events belong together, and when each series is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::ObjectReference;
use metal3_domain::clock::Monotonic;

use super::recorder::{Event, Importance};
use crate::reason::Reason;

/// How often a continuing series is written.
pub const PERIOD: Duration = Duration::from_mins(1);
/// The number of series in memory. Beyond it the least recent ones are dropped and start again.
pub const SERIES: usize = 4096;
/// A series ends after this silence.
const SILENCE: Duration = Duration::from_mins(10);

/// Different notes of one reason on one object. Further ones form one combined series: a note with a changing number
/// must not cost a write each time.
pub const NOTES: usize = 10;
/// The note of the combined series.
const COMBINED: &str = "more of this reason, in other words each time; the log has them all";

/// What identifies a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EventKey {
    pub(super) uid: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) importance: Importance,
    pub(super) reason: Reason,
    pub(super) note: String,
}

/// Equal events of one object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) about: ObjectReference,
    pub(super) count: i32,
    pub(super) first: DateTime<Utc>,
    pub(super) last: DateTime<Utc>,
    /// How many events are written. Zero: the Event object does not exist yet.
    written: i32,
    next_write: Monotonic,
    last_event: Monotonic,
}

/// A write that is due.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Due {
    pub(super) key: EventKey,
    pub(super) series: Series,
    /// Whether the Event object exists.
    pub(super) exists: bool,
}

/// All active series.
///
/// Each is in one of two orders, so that an event costs the same however many series there are.
#[derive(Debug, Default)]
pub(super) struct EventAggregator {
    series: BTreeMap<Arc<EventKey>, Series>,
    /// Those with unwritten events, by their next write.
    owed: BTreeSet<(Monotonic, Arc<EventKey>)>,
    /// The others, by their last event.
    silent: BTreeSet<(Monotonic, Arc<EventKey>)>,
}

impl EventAggregator {
    /// One more event.
    pub(super) fn add(&mut self, event: Event, wall: DateTime<Utc>, now: Monotonic) {
        let Event {
            about,
            importance,
            reason,
            note,
        } = event;
        let mut key = EventKey {
            uid: about.uid.clone().unwrap_or_default(),
            namespace: about.namespace.clone().unwrap_or_default(),
            name: about.name.clone().unwrap_or_default(),
            importance,
            reason,
            note,
        };
        if !self.series.contains_key(&key) && self.notes(&key) >= NOTES {
            COMBINED.clone_into(&mut key.note);
        }
        let key = Arc::new(key);
        let series = self.series.entry(Arc::clone(&key)).or_insert(Series {
            about,
            count: 0,
            first: wall,
            last: wall,
            written: 0,
            next_write: now,
            last_event: now,
        });
        self.silent.remove(&(series.last_event, Arc::clone(&key)));
        series.count = series.count.saturating_add(1);
        series.last = wall;
        series.last_event = now;
        self.owed.insert((series.next_write, key));
    }

    /// The number of series that differ from `key` in their note alone.
    fn notes(&self, key: &EventKey) -> usize {
        let first = EventKey {
            note: String::new(),
            ..key.clone()
        };
        let alike = |other: &&EventKey| {
            let apart = (
                &other.uid,
                &other.namespace,
                &other.name,
                other.importance,
                other.reason,
            );
            apart == (&key.uid, &key.namespace, &key.name, key.importance, key.reason)
        };
        let from_first = self.series.range(Arc::new(first)..).map(|(key, _)| &**key);
        from_first.take_while(alike).count()
    }

    /// The writes that are due, each once.
    pub(super) fn due(&mut self, now: Monotonic) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some((next_write, key)) = self.owed.pop_first() {
            if next_write > now {
                self.owed.insert((next_write, key));
                break;
            }
            let Some(series) = self.series.get_mut(&key) else {
                continue;
            };
            due.push(Due {
                key: EventKey::clone(&key),
                series: series.clone(),
                exists: series.written > 0,
            });
            series.written = series.count;
            series.next_write = now.after(PERIOD);
            self.silent.insert((series.last_event, key));
        }
        self.forget(now);
        due
    }

    /// When the next write is due.
    pub(super) fn next_due(&self) -> Option<Monotonic> {
        self.owed.first().map(|(next_write, _)| *next_write)
    }

    /// Series without unwritten events may be dropped.
    fn forget(&mut self, now: Monotonic) {
        while let Some((last_event, key)) = self.silent.pop_first() {
            if self.series.len() <= SERIES && now.since(last_event) < SILENCE {
                self.silent.insert((last_event, key));
                return;
            }
            self.series.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASON: Reason = Reason::new("PoolExhausted");

    fn event(name: &str) -> Event {
        Event {
            about: ObjectReference {
                name: Some(name.to_owned()),
                ..ObjectReference::default()
            },
            importance: Importance::Normal,
            reason: REASON,
            note: "a note".to_owned(),
        }
    }

    /// Whether each series is in the order that its events require.
    fn is_in_order(events: &EventAggregator) -> bool {
        let expected = |owed: bool| {
            let of = events
                .series
                .iter()
                .filter(|(_, series)| (series.count > series.written) == owed);
            of.map(|(key, series)| {
                let at = if owed { series.next_write } else { series.last_event };
                (at, Arc::clone(key))
            })
            .collect::<BTreeSet<_>>()
        };
        events.owed == expected(true) && events.silent == expected(false)
    }

    #[test]
    fn each_series_is_in_one_order_whatever_happens() {
        let mut events = EventAggregator::default();
        let mut state = 1_u64;
        for step in 0..20_000_u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // More series than are kept, before any of them is silent for long enough.
            let now = Monotonic::new(Duration::from_millis(step * 10));
            if state >> 62 == 0 {
                events.due(now);
            } else {
                events.add(
                    event(&format!("object-{}", (state >> 40) % 6000)),
                    DateTime::UNIX_EPOCH,
                    now,
                );
            }
            assert!(step % 500 != 0 || is_in_order(&events), "step {step}");
        }
        events.due(Monotonic::new(Duration::from_secs(200)));
        assert_eq!(events.series.len(), SERIES);
        assert!(is_in_order(&events));
        events.due(Monotonic::new(Duration::from_secs(40_000)));
        assert!(events.series.is_empty() && events.silent.is_empty() && events.owed.is_empty());
    }
}
