//! What the queue can say about itself. Turning it into metrics is the caller's.

use std::time::Duration;

/// Durations seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latency {
    /// How many.
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
    /// Keys ready in the high lane.
    pub high: usize,
    /// Keys ready in the low lane.
    pub low: usize,
    /// Keys that wait for a time.
    pub delayed: usize,
    /// Keys that would be ready, did not a write of theirs have to show first.
    pub held: usize,
    /// Keys being worked on.
    pub working: usize,
    /// Keys with a failure that no success has followed yet.
    pub failing: usize,
    /// Adds that were news; the others found their key waiting already.
    pub adds: u64,
    /// Passes that failed.
    pub retries: u64,
    /// From ready to taken.
    pub waited: Latency,
    /// From taken to finished.
    pub worked: Latency,
    /// Sum of the time spent on passes that are not finished.
    pub unfinished: Duration,
    /// The longest of these.
    pub longest_unfinished: Duration,
}
