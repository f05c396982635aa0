//! What everybody but the contender holds: whether we lead, at this very instant.

use std::sync::Arc;

use metal3_domain::clock::{Clock, Monotonic};
use tokio::sync::watch;

/// Whether we lead; clones share it.
///
/// [`Leadership::check`] compares a deadline with the clock each time. It needs no task to run, so a process that was
/// stopped for a minute gets a refusal at its first write after, before anybody had a turn to tell it.
#[derive(Debug, Clone)]
pub struct Leadership {
    name: Arc<str>,
    clock: Arc<dyn Clock>,
    until: watch::Receiver<Until>,
}

/// A write was refused because another may lead by now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write only while the lease {lease} is held: it is not, or no longer")]
pub struct NotLeading {
    /// Which lease.
    pub lease: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Not leading.
    Never,
    /// Leading before this instant.
    Deadline(Monotonic),
    /// Leading for ever: there is no election.
    Always,
}

impl Leadership {
    pub(super) fn with_election(name: &str, clock: Arc<dyn Clock>) -> (watch::Sender<Until>, Self) {
        let (sender, until) = watch::channel(Until::Never);
        let leadership = Self {
            name: name.into(),
            clock,
            until,
        };
        (sender, leadership)
    }

    /// The leadership of a program that runs without election: it leads from the start and for ever.
    #[must_use]
    pub fn without_election(clock: Arc<dyn Clock>) -> Self {
        let (_, until) = watch::channel(Until::Always);
        Self {
            name: "none".into(),
            clock,
            until,
        }
    }

    /// Asked immediately before each write.
    ///
    /// # Errors
    /// When we do not lead, or our time has run out.
    pub fn check(&self) -> Result<(), NotLeading> {
        let until = *self.until.borrow();
        let leading = match until {
            Until::Never => false,
            Until::Deadline(deadline) => self.clock.monotonic() < deadline,
            Until::Always => true,
        };
        leading.then_some(()).ok_or_else(|| NotLeading {
            lease: Arc::clone(&self.name),
        })
    }

    /// Waits until we lead. For ever, if that never happens.
    pub async fn acquired(&self) {
        let mut until = self.until.clone();
        while self.check().is_err() {
            if until.changed().await.is_err() {
                // Whoever contended has ended without leading: nobody will be told anything any more.
                std::future::pending::<()>().await;
            }
        }
    }
}
