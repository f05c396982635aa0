//! The queue as a state machine.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_domain::clock::Monotonic;

use super::backoff::Backoff;
use super::stats::{Latency, QueueStats};

/// While keys wait in the low lane, this many keys of the high lane go first before one of the low lane is handed out:
/// a stream of events cannot starve the first list.
pub const HIGH_IN_A_ROW: u32 = 8;

/// The priority of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// An event.
    High,
    /// No event: the first list, a relist, a resync.
    Low,
}

/// How a reconcile of a key ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to do until something changes.
    Done,
    /// Reconcile again after this time, even if nothing changes.
    RequeueAfter(Duration),
    /// Retry after the key's back-off.
    Failed,
    /// Failed, and the server asks to wait for this time: retry after it, or after the key's back-off if that is
    /// longer.
    Throttled(Duration),
}

impl Outcome {
    const fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::Throttled(_) => true,
            Self::Done | Self::RequeueAfter(_) => false,
        }
    }
}

/// A key to reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken<K> {
    /// The key.
    pub key: K,
    /// The lane it came from.
    pub lane: Lane,
    /// How long it was ready.
    pub waited: Duration,
    /// How many failures count against it.
    pub failures: u32,
}

/// Order of arrival.
type Ticket = u64;

/// The place of a key. The type allows one at a time.
#[derive(Debug, Clone, Copy)]
enum Place {
    Ready {
        lane: Lane,
        ticket: Ticket,
        since: Monotonic,
    },
    Delayed {
        lane: Lane,
        ticket: Ticket,
        due: Monotonic,
    },
    /// Ready except for the holds on it.
    Held {
        lane: Lane,
        since: Monotonic,
    },
    Working {
        lane: Lane,
        since: Monotonic,
        /// Enqueued since the reconcile began, so that the observation may be out of date.
        again: Option<(Lane, Monotonic)>,
    },
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    place: Place,
    backoff: Option<Backoff>,
}

/// Keys to reconcile, each once.
///
/// A delay ends when the key is handed out for another reason: the reconcile returns a new wait, so an old timer never
/// causes an unexplained reconcile.
#[derive(Debug, Clone)]
pub struct WorkQueue<K> {
    entries: BTreeMap<K, Entry>,
    high: BTreeMap<Ticket, K>,
    low: BTreeMap<Ticket, K>,
    delayed: BTreeMap<(Monotonic, Ticket), K>,
    /// Keys that are held, with the number of holds.
    holds: BTreeMap<K, usize>,
    next_ticket: Ticket,
    high_in_a_row: u32,
    adds: u64,
    retries: u64,
    waited: Latency,
    worked: Latency,
}

impl<K> Default for WorkQueue<K> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            high: BTreeMap::new(),
            low: BTreeMap::new(),
            delayed: BTreeMap::new(),
            holds: BTreeMap::new(),
            next_ticket: 0,
            high_in_a_row: 0,
            adds: 0,
            retries: 0,
            waited: Latency::default(),
            worked: Latency::default(),
        }
    }
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// Enqueues `key`. Returns whether it was not enqueued already.
    ///
    /// A ready key stays in its lane, or moves to the end of the high lane when it was low. A key in reconcile is
    /// reconciled once more.
    pub fn add(&mut self, key: K, lane: Lane, now: Monotonic) -> bool {
        self.release_due(now);
        let entry = self.entries.get(&key).copied();
        let backoff = entry.and_then(|entry| entry.backoff);
        let is_new = match entry.map(|entry| entry.place) {
            None => {
                self.make_ready(key, lane, now, backoff);
                true
            }
            Some(Place::Delayed { due, ticket, .. }) => {
                self.delayed.remove(&(due, ticket));
                self.make_ready(key, lane, now, backoff);
                true
            }
            Some(Place::Ready {
                lane: waiting,
                ticket,
                since,
            }) => {
                if lane < waiting {
                    self.low.remove(&ticket);
                    self.make_ready(key, lane, since, backoff);
                }
                false
            }
            Some(Place::Held { lane: waiting, since }) => {
                let lane = lane.min(waiting);
                let place = Place::Held { lane, since };
                self.entries.insert(key, Entry { place, backoff });
                false
            }
            Some(Place::Working {
                lane: taken_from,
                since,
                again,
            }) => {
                let merged = again.map_or((lane, now), |(wanted, asked)| (wanted.min(lane), asked));
                let place = Place::Working {
                    lane: taken_from,
                    since,
                    again: Some(merged),
                };
                self.entries.insert(key, Entry { place, backoff });
                again.is_none()
            }
        };
        self.adds = self.adds.saturating_add(u64::from(is_new));
        is_new
    }

    /// The next ready key. It counts as in work until [`WorkQueue::finish`].
    pub fn take(&mut self, now: Monotonic) -> Option<Taken<K>> {
        self.release_due(now);
        let lane = self.next_lane()?;
        let (_, key) = match lane {
            Lane::High => self.high.pop_first(),
            Lane::Low => self.low.pop_first(),
        }?;
        let entry = self.entries.get_mut(&key)?;
        let waited = match entry.place {
            Place::Ready { since, .. } => now.since(since),
            Place::Delayed { .. } | Place::Held { .. } | Place::Working { .. } => Duration::ZERO,
        };
        entry.place = Place::Working {
            lane,
            since: now,
            again: None,
        };
        self.waited.record(waited);
        Some(Taken {
            lane,
            waited,
            failures: entry.backoff.map_or(0, Backoff::failures),
            key,
        })
    }

    /// Ends the reconcile of `key`. Returns its duration, or `None` when the key was not in work.
    pub fn finish(&mut self, key: &K, outcome: Outcome, now: Monotonic) -> Option<Duration> {
        self.release_due(now);
        let entry = self.entries.get(key).copied()?;
        let Place::Working { lane, since, again } = entry.place else {
            return None;
        };
        let backoff = outcome.is_failure().then(|| Backoff::fail(entry.backoff, now));
        let due = match outcome {
            Outcome::Failed => backoff.map(Backoff::retry_at),
            Outcome::Throttled(pause) => backoff.map(|backoff| backoff.retry_at().max(now.after(pause))),
            Outcome::RequeueAfter(pause) => Some(now.after(pause)),
            Outcome::Done => None,
        };
        match (again, due) {
            (Some((wanted, asked)), _) => self.make_ready(key.clone(), wanted, asked, backoff),
            (None, Some(due)) => self.delay(key.clone(), lane, due, backoff),
            (None, None) => {
                self.entries.remove(key);
            }
        }
        let worked = now.since(since);
        self.worked.record(worked);
        self.retries = self.retries.saturating_add(u64::from(outcome.is_failure()));
        Some(worked)
    }

    /// Holds `key` until [`WorkQueue::release`] was called for each hold. The key may be enqueued meanwhile.
    pub fn hold(&mut self, key: K, now: Monotonic) {
        self.release_due(now);
        if let Some(entry) = self.entries.get_mut(&key)
            && let Place::Ready { lane, ticket, since } = entry.place
        {
            entry.place = Place::Held { lane, since };
            match lane {
                Lane::High => self.high.remove(&ticket),
                Lane::Low => self.low.remove(&ticket),
            };
        }
        let holds = self.holds.entry(key).or_default();
        *holds = holds.saturating_add(1);
    }

    /// Removes one hold of `key`. Returns whether the key became ready.
    pub fn release(&mut self, key: &K, now: Monotonic) -> bool {
        self.release_due(now);
        match self.holds.get_mut(key) {
            Some(holds) if *holds > 1 => {
                *holds = holds.saturating_sub(1);
                return false;
            }
            Some(_) => self.holds.remove(key),
            None => return false,
        };
        let Some(Entry {
            place: Place::Held { lane, since },
            backoff,
        }) = self.entries.get(key).copied()
        else {
            return false;
        };
        self.make_ready(key.clone(), lane, since, backoff);
        true
    }

    /// When the next delayed key becomes ready.
    #[must_use]
    pub fn next_due(&self) -> Option<Monotonic> {
        self.delayed.first_key_value().map(|((due, _), _)| *due)
    }

    /// The number of ready keys.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.high.len().saturating_add(self.low.len())
    }

    /// The statistics of the queue. Visits every key: call it per scrape, not per reconcile.
    #[must_use]
    pub fn stats(&self, now: Monotonic) -> QueueStats {
        let mut stats = QueueStats {
            high: self.high.len(),
            low: self.low.len(),
            delayed: self.delayed.len(),
            adds: self.adds,
            retries: self.retries,
            waited: self.waited,
            worked: self.worked,
            ..QueueStats::default()
        };
        for entry in self.entries.values() {
            stats.held = stats
                .held
                .saturating_add(usize::from(matches!(entry.place, Place::Held { .. })));
            stats.failing = stats.failing.saturating_add(usize::from(entry.backoff.is_some()));
            if let Place::Ready { since, .. } = entry.place {
                stats.oldest_ready = stats.oldest_ready.max(now.since(since));
            }
            if let Place::Working { since, .. } = entry.place {
                let so_far = now.since(since);
                stats.working = stats.working.saturating_add(1);
                stats.unfinished = stats.unfinished.saturating_add(so_far);
                stats.longest_unfinished = stats.longest_unfinished.max(so_far);
            }
        }
        stats
    }

    fn next_lane(&mut self) -> Option<Lane> {
        let (high, low) = (!self.high.is_empty(), !self.low.is_empty());
        let lane = match (high, low) {
            (false, false) => return None,
            (true, false) => Lane::High,
            (false, true) => Lane::Low,
            (true, true) if self.high_in_a_row < HIGH_IN_A_ROW => Lane::High,
            (true, true) => Lane::Low,
        };
        self.high_in_a_row = match lane {
            Lane::High if low => self.high_in_a_row.saturating_add(1),
            Lane::High | Lane::Low => 0,
        };
        Some(lane)
    }

    /// Also called before an add: a key that was due earlier goes before a new one.
    fn release_due(&mut self, now: Monotonic) {
        while let Some(first) = self.delayed.first_entry() {
            let (due, _) = *first.key();
            if now < due {
                return;
            }
            let key = first.remove();
            let Some(Entry {
                place: Place::Delayed { lane, .. },
                backoff,
            }) = self.entries.get(&key).copied()
            else {
                continue;
            };
            self.make_ready(key, lane, due, backoff);
        }
    }

    fn make_ready(&mut self, key: K, lane: Lane, since: Monotonic, backoff: Option<Backoff>) {
        if self.holds.contains_key(&key) {
            let place = Place::Held { lane, since };
            self.entries.insert(key, Entry { place, backoff });
            return;
        }
        let ticket = self.ticket();
        let place = Place::Ready { lane, ticket, since };
        match lane {
            Lane::High => self.high.insert(ticket, key.clone()),
            Lane::Low => self.low.insert(ticket, key.clone()),
        };
        self.entries.insert(key, Entry { place, backoff });
    }

    fn delay(&mut self, key: K, lane: Lane, due: Monotonic, backoff: Option<Backoff>) {
        let ticket = self.ticket();
        self.delayed.insert((due, ticket), key.clone());
        let place = Place::Delayed { lane, ticket, due };
        self.entries.insert(key, Entry { place, backoff });
    }

    const fn ticket(&mut self) -> Ticket {
        let ticket = self.next_ticket;
        // Wraps after five centuries at one key a nanosecond.
        self.next_ticket = ticket.wrapping_add(1);
        ticket
    }
}
