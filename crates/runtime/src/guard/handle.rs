//! The guard for the rest of the program: whether a group may be served now.

use futures::future::select_all;
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

    /// A guard with this status, for tests.
    #[cfg(test)]
    pub(crate) fn fixed(status: GuardStatus) -> Self {
        let (_, status) = watch::channel(status);
        Self { status }
    }

    /// A guard that is clear while all of these are, and the task that keeps it up to date. It has the status of the
    /// first one that is not clear.
    pub fn all(mut guards: Vec<Self>) -> (impl Future<Output = ()> + Send, Self) {
        let combined = |guards: &[Self]| {
            let mut statuses = guards.iter().map(Self::status);
            let first = statuses.next().unwrap_or(GuardStatus::Forced);
            std::iter::once(first.clone())
                .chain(statuses)
                .find(|status| !status.is_clear())
                .unwrap_or(first)
        };
        let (sender, status) = watch::channel(combined(&guards));
        let task = async move {
            loop {
                let now = combined(&guards);
                sender.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
                let changes: Vec<_> = guards.iter_mut().map(|guard| Box::pin(guard.changed())).collect();
                if changes.is_empty() || select_all(changes).await.0.is_none() {
                    // A watch ends with the process only: the status stays.
                    return;
                }
            }
        };
        (task, Self { status })
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
