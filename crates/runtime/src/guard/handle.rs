//! The guard for the rest of the program: whether a group may be served now.

use tokio::sync::watch;

use super::status::GuardStatus;

/// The guard status of a group, and its changes; clones share it.
#[derive(Debug, Clone)]
pub struct Guard {
    pub(super) status: watch::Receiver<GuardStatus>,
}

impl Guard {
    /// A guard without checks, for `--force-controllers`.
    #[must_use]
    pub fn forced() -> Self {
        let (_, status) = watch::channel(GuardStatus::Forced);
        Self { status }
    }

    /// The current status.
    #[must_use]
    pub fn status(&self) -> GuardStatus {
        self.status.borrow().clone()
    }

    /// Waits until the group may be served.
    pub async fn clear(&self) {
        self.until(GuardStatus::is_clear).await;
    }

    /// Waits until the group may not be served any more; for ever with a forced guard.
    pub async fn blocked(&self) {
        self.until(|status| !status.is_clear()).await;
    }

    /// Waits for the next status. `None` when there will be none.
    pub async fn changed(&mut self) -> Option<GuardStatus> {
        self.status.changed().await.ok()?;
        Some(self.status.borrow_and_update().clone())
    }

    async fn until(&self, wanted: impl Fn(&GuardStatus) -> bool) {
        let mut status = self.status.clone();
        if status.wait_for(|status| wanted(status)).await.is_err() {
            // The watch has ended: there will be no change.
            std::future::pending::<()>().await;
        }
    }
}
