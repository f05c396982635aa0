//! The clock of the Node. Decisions take times as arguments; only the I/O code reads the clock.

use std::time::Duration;

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

/// A request to the API server, or an error when it takes too long.
pub(crate) async fn bounded<T>(request: impl Future<Output = kube::Result<T>>) -> anyhow::Result<T> {
    const LIMIT: Duration = Duration::from_secs(30);
    Ok(tokio::time::timeout(LIMIT, request).await??)
}
