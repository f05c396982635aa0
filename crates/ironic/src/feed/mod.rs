//! The change feed of one Ironic: instead of asking after every host, it asks which nodes changed.
//!
//! [`ChangeTracker`] decides what to ask next and what an answer means; it is pure. [`Feed`] is the loop around it. A wake-up
//! says *that* a node changed, never what to do; whoever is woken reads the store, and Ironic itself before a decision
//! that writes.
//!
//! The store is a cache of what listings and [`Feed::send_and_record`] showed last. It may be behind Ironic by a period; since
//! when a record is known to be so is [`Feed::as_of`]. It never falls behind an answer that was handed in.
//!
//! # What the feed does not see
//!
//! | Fact | Why | The read that covers it |
//! |---|---|---|
//! | a node that was created and never changed | its `updated_at` is null, it has no place in that order | the answer of its creation; the next full listing |
//! | a deleted node | it is in no page | the next full listing, at once when it was the newest |
//! | power switched behind Ironic's back | Ironic forces its own record on the machine and writes only what differs from it | none: Ironic looks every two minutes and what it finds different moves `updated_at` |
//! | ports, port groups, traits | records of their own | read once at registration and after an inspection |
//! | BIOS settings, firmware versions | records of their own | read after cleaning, service and inspection, when the node moves |
//! | inventory | a record of its own | read when the node leaves `inspecting` |
//! | virtual media, boot device | known to the BMC alone | read when needed; asking for the boot device moves `updated_at` of the node |
//! | drivers, conductors | not nodes | listed when an endpoint is taken into use, and after it could not be reached |

mod listed_node;
mod round;
mod step;
mod timing;
mod tracker;
mod watermark;

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::ids::NodeUuid;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};

use crate::client::{Client, Response};
use crate::error::Error;
use crate::model::node::Node;
use crate::request::Call;

pub use listed_node::ListedNode;
pub use step::{FeedEvent, PageRequest, Step};
pub use tracker::ChangeTracker;

/// The feed of one endpoint. Cheap to clone; [`Feed::run`] belongs to one task.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    client: Client,
    clock: Arc<dyn Clock>,
    tracker: Mutex<ChangeTracker>,
    failing_since: Mutex<Option<DateTime<Utc>>>,
    poll_requested: Notify,
    /// It wakes those who wait in the order in which they came.
    listed: Notify,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("client", &self.0.client)
            .finish_non_exhaustive()
    }
}

impl Feed {
    /// A feed that has seen nothing.
    #[must_use]
    pub fn new(client: Client, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            client,
            clock,
            tracker: Mutex::new(ChangeTracker::new()),
            failing_since: Mutex::default(),
            poll_requested: Notify::new(),
            listed: Notify::new(),
        }))
    }

    /// Asks, waits and wakes until nobody listens any more.
    pub async fn run(&self, wakes: mpsc::Sender<FeedEvent>) {
        while !wakes.is_closed() {
            let next = self.tracker().next(self.0.clock.monotonic());
            let ask = match next {
                Step::Fetch(ask) => ask,
                Step::Wait(rest) => {
                    tokio::select! {
                        biased;
                        () = wakes.closed() => {}
                        () = self.0.poll_requested.notified() => {}
                        () = tokio::time::sleep(rest) => {}
                    }
                    continue;
                }
            };
            let answer = self.0.client.send(&ask.call()).await;
            let now = self.0.clock.monotonic();
            let woken = match answer {
                Ok(answered) => self.tracker().answered(now, answered.value, answered.server_time),
                Err(error) => {
                    self.tracker().failed(now, error);
                    Vec::new()
                }
            };
            self.note_error();
            if self.tracker().has_listed() {
                self.0.listed.notify_waiters();
            }
            for wake in woken {
                if wakes.send(wake).await.is_err() {
                    return;
                }
            }
        }
    }

    /// The node as it was last seen. `None` is unknown, not absent: absence is told by [`FeedEvent::Deleted`].
    #[must_use]
    pub fn node(&self, uuid: &NodeUuid) -> Option<Arc<Node>> {
        self.tracker().node(uuid)
    }

    /// Since when the node is known to be as [`Feed::node`] shows it, on the clock of this process.
    #[must_use]
    pub fn as_of(&self, uuid: &NodeUuid) -> Option<Monotonic> {
        self.tracker().as_of(uuid)
    }

    /// Every node as it was last seen.
    #[must_use]
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.tracker().nodes().cloned().collect()
    }

    /// Waits until every node was listed once.
    pub async fn listed(&self) {
        // Made before the look, it hears of what comes after the look.
        let listed = self.0.listed.notified();
        if !self.tracker().has_listed() {
            listed.await;
        }
    }

    /// Takes a node of ours to heart: while it moves, the feed is quick.
    pub fn manage(&self, uuid: NodeUuid) {
        self.tracker().manage(uuid);
    }

    /// No longer.
    pub fn release(&self, uuid: &NodeUuid) {
        self.tracker().release(uuid);
    }

    /// Sends a call that is answered with the node: its creation, a change, or a read. From then on no older view of it
    /// is shown.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_and_record(&self, call: &Call<Node>) -> Result<Response<Node>, Error> {
        let asked = self.0.clock.monotonic();
        let answered = self.0.client.send(call).await?;
        self.tracker().observed(answered.value.clone(), asked);
        Ok(answered)
    }

    /// Says that something was just asked of Ironic: look soon.
    pub fn poll_soon(&self) {
        self.tracker().poll_soon(self.0.clock.monotonic());
        self.0.poll_requested.notify_one();
    }

    /// What went wrong at the last try, if it did.
    #[must_use]
    pub fn last_error(&self) -> Option<Error> {
        self.tracker().last_error().cloned()
    }

    /// When the first of the tries failed that have failed since the last answer.
    #[must_use]
    pub fn failing_since(&self) -> Option<DateTime<Utc>> {
        *self.since()
    }

    fn note_error(&self) {
        let is_troubled = self.last_error().is_some();
        let mut since = self.since();
        *since = since.or_else(|| Some(self.0.clock.now())).filter(|_| is_troubled);
    }

    fn since(&self) -> MutexGuard<'_, Option<DateTime<Utc>>> {
        self.0.failing_since.lock()
    }

    fn tracker(&self) -> MutexGuard<'_, ChangeTracker> {
        self.0.tracker.lock()
    }
}

#[cfg(test)]
mod tests;
