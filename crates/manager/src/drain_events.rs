//! Drains queued events after the work that recorded them, within a time limit.

use std::time::Duration;

use futures::future::{Either, select};
use tokio::time::timeout;

/// Time limit for the remaining events. A Pod has thirty seconds to stop, and reconciles, the lease and the servers need
/// most of them.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs the work to its end, then publishes the remaining events within the time limit.
///
/// The publisher ends on its own once the work has dropped every recorder.
pub(crate) async fn run_then_drain(work: impl Future, publishing: impl Future) {
    match select(Box::pin(work), Box::pin(publishing)).await {
        Either::Left((_, publishing)) => drop(timeout(DRAIN_TIMEOUT, publishing).await),
        Either::Right((_, work)) => drop(work.await),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn unpublished_events_delay_the_end_by_the_time_limit_only() {
        let began = Instant::now();
        run_then_drain(sleep(Duration::from_secs(60)), pending::<()>()).await;
        let late = began.elapsed().saturating_sub(Duration::from_secs(60));
        assert!(late >= DRAIN_TIMEOUT && late < DRAIN_TIMEOUT * 2, "{late:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn remaining_events_are_published() {
        let published = AtomicBool::new(false);
        let publishing = async {
            sleep(Duration::from_secs(1)).await;
            published.store(true, Ordering::Relaxed);
        };
        run_then_drain(ready(()), publishing).await;
        assert!(published.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn work_continues_after_the_publisher_ended() {
        let began = Instant::now();
        run_then_drain(sleep(Duration::from_secs(60)), ready(())).await;
        assert_eq!(began.elapsed(), Duration::from_secs(60));
    }
}
