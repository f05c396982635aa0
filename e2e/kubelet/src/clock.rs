//! The clock of the Node. Everything that decides takes times as arguments; only the shell reads them here.

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
