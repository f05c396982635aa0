//! The handle to leadership: whether this process leads at this instant.

use std::sync::Arc;

use metal3_domain::clock::{Clock, Monotonic};
use tokio::sync::watch;

/// Whether this process leads; clones share it.
///
/// [`Leadership::check`] compares a deadline with the clock at each call. It needs no task, so a process that was
/// stopped for a minute is rejected at its first write afterwards.
#[derive(Debug, Clone)]
pub struct Leadership {
    name: Arc<str>,
    /// Where the Lease is; none without an election.
    namespace: Option<Arc<str>>,
    clock: Arc<dyn Clock>,
    until: watch::Receiver<Until>,
}

/// A write was rejected because another process may lead.
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
    pub(super) fn with_election(
        (namespace, name): (&str, &str),
        clock: Arc<dyn Clock>,
    ) -> (watch::Sender<Until>, Self) {
        let (sender, until) = watch::channel(Until::Never);
        let leadership = Self {
            name: name.into(),
            namespace: Some(namespace.into()),
            clock,
            until,
        };
        (sender, leadership)
    }

    /// The leadership of a program without election: it always leads.
    #[must_use]
    pub fn without_election(clock: Arc<dyn Clock>) -> Self {
        let (_, until) = watch::channel(Until::Always);
        Self {
            name: "none".into(),
            namespace: None,
            clock,
            until,
        }
    }

    /// Called immediately before each write.
    ///
    /// # Errors
    /// When this process does not lead, or its deadline has passed.
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

    /// Whether its Lease is in this namespace.
    #[must_use]
    pub fn is_in(&self, namespace: &str) -> bool {
        self.namespace.as_deref() == Some(namespace)
    }

    /// Waits until this process leads.
    pub async fn acquired(&self) {
        let mut until = self.until.clone();
        while self.check().is_err() {
            if until.changed().await.is_err() {
                // The election ended without leadership: there will be no change.
                std::future::pending::<()>().await;
            }
        }
    }
}
