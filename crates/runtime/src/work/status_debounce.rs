//! Debounces the status of waits.
//!
//! Most waits end with the next event within a moment: reporting each would cost a write. A wait that lasts is
//! reported. The debounce may delay the report only: what a later reconcile has to find must be written at once.
//!
//! Invariant: from the first reconcile with a status to report, no more than [`DEBOUNCE`] passes until a reconcile may
//! report it, however often the reason changes meanwhile. A restart starts the debounce again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::Mutex;

/// The longest delay: by then another controller of the same process has done what this one waits for.
pub const DEBOUNCE: Duration = Duration::from_secs(1);

/// Since when each key has a status to report.
#[derive(Debug)]
pub struct StatusDebounce<K> {
    clock: Arc<dyn Clock>,
    since: Mutex<BTreeMap<K, Monotonic>>,
}

impl<K: Ord + Clone> StatusDebounce<K> {
    /// No key is debounced yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            since: Mutex::default(),
        }
    }

    /// How much longer the status of `key` is debounced, which is written `delay` after it differs: a reconcile ends with
    /// [`Next::RequeueAfter`](super::Next::RequeueAfter) meanwhile. `None` once it may be reported.
    pub fn remaining(&self, key: &K, delay: Duration) -> Option<Duration> {
        let now = self.clock.monotonic();
        let since = *self.since.lock().entry(key.clone()).or_insert(now);
        Some(delay.saturating_sub(now.since(since))).filter(|left| !left.is_zero())
    }

    /// The status of `key` is reported.
    pub fn clear(&self, key: &K) {
        self.since.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TimerClock;

    #[tokio::test(start_paused = true)]
    async fn status_is_reported_after_the_debounce_however_it_changes_and_the_next_one_has_its_own() {
        let debounce = StatusDebounce::new(Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH)));
        assert_eq!(debounce.remaining(&"m0", DEBOUNCE), Some(DEBOUNCE));
        tokio::time::sleep(DEBOUNCE / 4).await;
        assert_eq!(
            (debounce.remaining(&"m0", DEBOUNCE), debounce.remaining(&"m1", DEBOUNCE)),
            (Some(DEBOUNCE / 4 * 3), Some(DEBOUNCE))
        );
        tokio::time::sleep(DEBOUNCE / 4 * 3).await;
        assert_eq!(
            (debounce.remaining(&"m0", DEBOUNCE), debounce.remaining(&"m0", DEBOUNCE)),
            (None, None),
            "until it is reported"
        );
        debounce.clear(&"m0");
        assert_eq!(debounce.remaining(&"m0", DEBOUNCE), Some(DEBOUNCE));
    }
}
