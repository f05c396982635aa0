//! Event series as a state machine: which events belong together, and when each series is written.

use std::collections::BTreeMap;
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
#[derive(Debug, Default)]
pub(super) struct EventAggregator {
    series: BTreeMap<EventKey, Series>,
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
        let series = self.series.entry(key).or_insert(Series {
            about,
            count: 0,
            first: wall,
            last: wall,
            written: 0,
            next_write: now,
            last_event: now,
        });
        series.count = series.count.saturating_add(1);
        series.last = wall;
        series.last_event = now;
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
        self.series.range(first..).map(|(key, _)| key).take_while(alike).count()
    }

    /// The writes that are due, each once.
    pub(super) fn due(&mut self, now: Monotonic) -> Vec<Due> {
        let mut due = Vec::new();
        for (key, series) in &mut self.series {
            if series.count > series.written && series.next_write <= now {
                due.push(Due {
                    key: key.clone(),
                    series: series.clone(),
                    exists: series.written > 0,
                });
                series.written = series.count;
                series.next_write = now.after(PERIOD);
            }
        }
        self.forget(now);
        due
    }

    /// When the next write is due.
    pub(super) fn next_due(&self) -> Option<Monotonic> {
        let owed = self.series.values().filter(|series| series.count > series.written);
        owed.map(|series| series.next_write).min()
    }

    /// Series without unwritten events may be dropped.
    fn forget(&mut self, now: Monotonic) {
        self.series
            .retain(|_, series| series.count > series.written || now.since(series.last_event) < SILENCE);
        let excess = self.series.len().saturating_sub(SERIES);
        let mut silent: Vec<(Monotonic, EventKey)> = self
            .series
            .iter()
            .filter(|(_, series)| series.count == series.written)
            .map(|(key, series)| (series.last_event, key.clone()))
            .collect();
        silent.sort();
        for (_, key) in silent.into_iter().take(excess) {
            self.series.remove(&key);
        }
    }
}
