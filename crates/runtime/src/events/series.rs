//! Series as a state machine: which events are one, and when each is written.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::ObjectReference;
use metal3_domain::clock::Monotonic;

use super::sink::{Event, Importance};
use crate::reason::Reason;

/// A series that goes on is written this often: what people see is at most so old.
pub const PERIOD: Duration = Duration::from_mins(1);
/// How many series are remembered. Beyond, those that were silent longest are forgotten first and begin anew.
pub const SERIES: usize = 4096;
/// A series that was silent for so long is over.
const SILENCE: Duration = Duration::from_mins(10);

/// Notes of one reason on one object that are kept apart. Beyond, what is said is one series, whatever its words: a note
/// with a number that changes must not cost a write each time.
pub const NOTES: usize = 10;
/// What such a series says.
const COMBINED: &str = "more of this reason, in other words each time; the log has them all";

/// What makes events the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EventKey {
    pub(super) uid: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) importance: Importance,
    pub(super) reason: Reason,
    pub(super) note: String,
}

/// Events that say the same of the same object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) about: ObjectReference,
    pub(super) count: i32,
    pub(super) first: DateTime<Utc>,
    pub(super) last: DateTime<Utc>,
    /// How many of them are written. None: the object that shows the series has to be made.
    written: i32,
    next_write: Monotonic,
    heard: Monotonic,
}

/// A write that is due.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Due {
    pub(super) theme: EventKey,
    pub(super) series: Series,
    /// Whether the series has an object already.
    pub(super) shown: bool,
}

/// All series under way.
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
        let mut theme = EventKey {
            uid: about.uid.clone().unwrap_or_default(),
            namespace: about.namespace.clone().unwrap_or_default(),
            name: about.name.clone().unwrap_or_default(),
            importance,
            reason,
            note,
        };
        if !self.series.contains_key(&theme) && self.notes(&theme) >= NOTES {
            COMBINED.clone_into(&mut theme.note);
        }
        let series = self.series.entry(theme).or_insert(Series {
            about,
            count: 0,
            first: wall,
            last: wall,
            written: 0,
            next_write: now,
            heard: now,
        });
        series.count = series.count.saturating_add(1);
        series.last = wall;
        series.heard = now;
    }

    /// How many series there are that differ from `theme` in their note alone.
    fn notes(&self, theme: &EventKey) -> usize {
        let first = EventKey {
            note: String::new(),
            ..theme.clone()
        };
        let alike = |other: &&EventKey| {
            let apart = (
                &other.uid,
                &other.namespace,
                &other.name,
                other.importance,
                other.reason,
            );
            apart
                == (
                    &theme.uid,
                    &theme.namespace,
                    &theme.name,
                    theme.importance,
                    theme.reason,
                )
        };
        self.series
            .range(first..)
            .map(|(theme, _)| theme)
            .take_while(alike)
            .count()
    }

    /// The writes that are due, each once.
    pub(super) fn due(&mut self, now: Monotonic) -> Vec<Due> {
        let mut due = Vec::new();
        for (theme, series) in &mut self.series {
            if series.count > series.written && series.next_write <= now {
                due.push(Due {
                    theme: theme.clone(),
                    series: series.clone(),
                    shown: series.written > 0,
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

    /// What is written may be forgotten; what is owed may not.
    fn forget(&mut self, now: Monotonic) {
        self.series
            .retain(|_, series| series.count > series.written || now.since(series.heard) < SILENCE);
        let excess = self.series.len().saturating_sub(SERIES);
        let mut silent: Vec<(Monotonic, EventKey)> = self
            .series
            .iter()
            .filter(|(_, series)| series.count == series.written)
            .map(|(theme, series)| (series.heard, theme.clone()))
            .collect();
        silent.sort();
        for (_, theme) in silent.into_iter().take(excess) {
            self.series.remove(&theme);
        }
    }
}
