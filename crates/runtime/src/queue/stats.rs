//! Statistics of a queue. The caller turns them into metrics.

use std::time::Duration;

/// Measured durations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latency {
    /// Their number.
    pub count: u64,
    /// Their sum.
    pub total: Duration,
    /// The longest of them.
    pub longest: Duration,
}

impl Latency {
    pub(super) fn record(&mut self, seen: Duration) {
        self.count = self.count.saturating_add(1);
        self.total = self.total.saturating_add(seen);
        self.longest = self.longest.max(seen);
    }
}

/// The queue at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Ready keys in the high lane.
    pub high: usize,
    /// Ready keys in the low lane.
    pub low: usize,
    /// Keys that wait for a time.
    pub delayed: usize,
    /// Keys that are held until one of their writes is in the cache.
    pub held: usize,
    /// Keys in reconcile.
    pub working: usize,
    /// Keys with a failure and no success since.
    pub failing: usize,
    /// Adds of keys that were not enqueued already.
    pub adds: u64,
    /// Reconciles that failed.
    pub retries: u64,
    /// From ready to taken.
    pub waited: Latency,
    /// From taken to finished.
    pub worked: Latency,
    /// The time spent so far in running reconciles.
    pub unfinished: Duration,
    /// The longest of these.
    pub longest_unfinished: Duration,
    /// How long the oldest ready key has been ready.
    pub oldest_ready: Duration,
}
