//! The end of work that tells events: they have a moment once the work is done, and no more.

use std::time::Duration;

use futures::future::{Either, select};
use tokio::time::timeout;

/// How long events may take once the work that told them has ended. The end of a process has thirty seconds, and passes
/// under way, the lease and the servers need most of them.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(3);

/// Works until the work ends, and then tells what is left to tell, for a moment.
///
/// The telling ends by itself when the work, and with it everybody who tells, is gone.
pub(crate) async fn told(work: impl Future, telling: impl Future) {
    match select(Box::pin(work), Box::pin(telling)).await {
        Either::Left((_, telling)) => drop(timeout(LAST_WORDS, telling).await),
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
    async fn events_that_nobody_takes_hold_the_end_up_for_a_moment_only() {
        let began = Instant::now();
        told(sleep(Duration::from_secs(60)), pending::<()>()).await;
        let late = began.elapsed().saturating_sub(Duration::from_secs(60));
        assert!(late >= LAST_WORDS && late < LAST_WORDS * 2, "{late:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_to_tell_is_told() {
        let said = AtomicBool::new(false);
        let telling = async {
            sleep(Duration::from_secs(1)).await;
            said.store(true, Ordering::Relaxed);
        };
        told(ready(()), telling).await;
        assert!(said.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn work_goes_on_when_nobody_tells_any_more() {
        let began = Instant::now();
        told(sleep(Duration::from_secs(60)), ready(())).await;
        assert_eq!(began.elapsed(), Duration::from_secs(60));
    }
}
