//! How long a wait is kept to oneself.
//!
//! Most waits end with the next event, a moment later: telling them costs a write each, and nobody could read them. A
//! wait that lasts is told. It does not know what is waited for, and it is no reason to put off anything but words: what
//! a later pass has to find must be written at once.
//!
//! Invariant: from the first pass that has something to tell, no more than [`DEBOUNCE`] goes by until a pass may tell it,
//! however often what is waited for changes meanwhile. What is kept here a restart may lose: it starts the moment anew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::{Mutex, MutexGuard};

/// The longest that a wait is kept back: what one controller asks of another in the same process is there by then.
pub const DEBOUNCE: Duration = Duration::from_secs(1);

/// Since when each key has a status to report.
#[derive(Debug)]
pub struct StatusDebounce<K> {
    clock: Arc<dyn Clock>,
    since: Mutex<BTreeMap<K, Monotonic>>,
}

impl<K: Ord + Clone> StatusDebounce<K> {
    /// Nothing is kept back yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            since: Mutex::default(),
        }
    }

    /// How much longer a wait of `key` is kept back: a pass that heeds this ends with
    /// [`Next::RequeueAfter`](super::Next::RequeueAfter). Nothing once it has lasted.
    pub fn remaining(&self, key: &K) -> Option<Duration> {
        let now = self.clock.monotonic();
        let since = *self.since().entry(key.clone()).or_insert(now);
        Some(DEBOUNCE.saturating_sub(now.since(since))).filter(|left| !left.is_zero())
    }

    /// Everything of `key` is told.
    pub fn clear(&self, key: &K) {
        self.since().remove(key);
    }

    fn since(&self) -> MutexGuard<'_, BTreeMap<K, Monotonic>> {
        self.since.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TimerClock;

    #[tokio::test(start_paused = true)]
    async fn wait_is_told_after_a_moment_however_it_changes_and_the_next_one_has_its_own() {
        let debounce = StatusDebounce::new(Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH)));
        assert_eq!(debounce.remaining(&"m0"), Some(DEBOUNCE));
        tokio::time::sleep(DEBOUNCE / 4).await;
        assert_eq!(
            (debounce.remaining(&"m0"), debounce.remaining(&"m1")),
            (Some(DEBOUNCE / 4 * 3), Some(DEBOUNCE))
        );
        tokio::time::sleep(DEBOUNCE / 4 * 3).await;
        assert_eq!(
            (debounce.remaining(&"m0"), debounce.remaining(&"m0")),
            (None, None),
            "until it is told"
        );
        debounce.clear(&"m0");
        assert_eq!(debounce.remaining(&"m0"), Some(DEBOUNCE));
    }
}
