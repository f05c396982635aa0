//! Steps that last: what waits meanwhile is explained once a minute.

use std::time::Duration;

use anyhow::Result;
use metal3_scenario::{Expectation, ExpectedCause};
use tokio::time::{Instant, sleep};

use super::run::Runner;

/// Timeout of every wait.
const TIMEOUT: Duration = Duration::from_secs(3_600);
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(3);
/// Once a minute: each explanation reads all objects.
const POLLS_PER_EXPLANATION: u32 = 20;

impl Runner<'_> {
    pub(super) async fn wait(&self, expectation: &Expectation) -> Result<()> {
        let (end, mut poll) = (Instant::now() + TIMEOUT, 0_u32);
        loop {
            let Err(why) = self.performer.check(expectation).await else {
                return Ok(());
            };
            if Instant::now() > end {
                return Err(why.context(format!("not within {TIMEOUT:?}")));
            }
            self.pause(&mut poll).await;
        }
    }

    pub(super) async fn holds(&self, expectation: &Expectation, during: Duration) -> Result<()> {
        let (end, mut poll) = (Instant::now() + during, 0_u32);
        while Instant::now() < end {
            self.performer.check(expectation).await?;
            self.pause(&mut poll).await;
        }
        Ok(())
    }

    pub(super) async fn wait_for_cause(&self, cause: &ExpectedCause) -> Result<()> {
        let end = Instant::now() + TIMEOUT;
        loop {
            let Err(why) = cause.check(&self.recorder.objects_in(&self.performer.namespace)) else {
                return Ok(());
            };
            if Instant::now() > end {
                return Err(why.context(format!("not within {TIMEOUT:?}")));
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// The pause between two polls. It explains what waits, once a minute.
    async fn pause(&self, poll: &mut u32) {
        if self.explains && poll.is_multiple_of(POLLS_PER_EXPLANATION) {
            self.recorder.explain(&self.performer.namespace);
        }
        *poll = poll.saturating_add(1);
        sleep(POLL_INTERVAL).await;
    }
}
