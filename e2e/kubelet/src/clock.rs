//! The clock of the Node. Decisions take times as arguments; only the I/O code reads the clock.

use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

/// Wall time, for the API.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// Monotonic time, for durations.
pub(crate) fn instant() -> Instant {
    Instant::now()
}
