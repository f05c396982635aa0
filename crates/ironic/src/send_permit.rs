//! Permits to send: how many requests may be in flight at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The permits of one client. The longest waiting request gets the next one.
#[derive(Debug)]
pub(crate) struct SendPermits(Arc<Semaphore>);

/// The right to have one request in flight. Its owner sends requests one after another, and without waiting.
#[derive(Debug)]
pub struct SendPermit {
    /// The semaphore is never closed, so there always is one.
    _permit: Option<OwnedSemaphorePermit>,
}

impl SendPermits {
    pub(crate) fn new(number: usize) -> Self {
        Self(Arc::new(Semaphore::new(number)))
    }

    pub(crate) async fn next(&self) -> SendPermit {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        SendPermit { _permit: permit.ok() }
    }
}
