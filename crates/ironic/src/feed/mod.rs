//! The change feed of one Ironic: instead of asking after every host, it asks which nodes changed.
//!
//! [`Tracker`] decides what to ask next and what an answer means; it is pure. [`Feed`] is the loop around it. A wake-up
//! says *that* a node changed, never what to do; whoever is woken reads the store, and Ironic itself before a decision
//! that writes.
//!
//! The store is a cache of what listings and [`Feed::view`] showed last. It may be behind Ironic by a period; since
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

mod pace;
mod round;
mod sighting;
mod step;
mod tracker;
mod watermark;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::ids::NodeUuid;
use tokio::sync::{Notify, mpsc};

use crate::client::{Answered, Client};
use crate::error::Error;
use crate::model::node::Node;
use crate::request::Call;

pub use sighting::Sighting;
pub use step::{Ask, Next, Wake};
pub use tracker::Tracker;

/// The feed of one endpoint. Cheap to clone; [`Feed::run`] belongs to one task.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    client: Client,
    clock: Arc<dyn Clock>,
    tracker: Mutex<Tracker>,
    troubled_since: Mutex<Option<DateTime<Utc>>>,
    nudged: Notify,
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
            tracker: Mutex::new(Tracker::new()),
            troubled_since: Mutex::default(),
            nudged: Notify::new(),
            listed: Notify::new(),
        }))
    }

    /// Asks, waits and wakes until nobody listens any more.
    pub async fn run(&self, wakes: mpsc::Sender<Wake>) {
        while !wakes.is_closed() {
            let next = self.tracker().next(self.0.clock.monotonic());
            let ask = match next {
                Next::Ask(ask) => ask,
                Next::Rest(rest) => {
                    tokio::select! {
                        biased;
                        () = wakes.closed() => {}
                        () = self.0.nudged.notified() => {}
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
            self.note_trouble();
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

    /// The node as it was last seen. `None` is unknown, not absent: absence is told by [`Wake::Gone`].
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
    pub async fn view(&self, call: &Call<Node>) -> Result<Answered<Node>, Error> {
        let asked = self.0.clock.monotonic();
        let answered = self.0.client.send(call).await?;
        self.tracker().observed(answered.value.clone(), asked);
        Ok(answered)
    }

    /// Says that something was just asked of Ironic: look soon.
    pub fn hurry(&self) {
        self.tracker().hurry(self.0.clock.monotonic());
        self.0.nudged.notify_one();
    }

    /// What went wrong at the last try, if it did.
    #[must_use]
    pub fn trouble(&self) -> Option<Error> {
        self.tracker().trouble().cloned()
    }

    /// When the first of the tries failed that have failed since the last answer.
    #[must_use]
    pub fn troubled_since(&self) -> Option<DateTime<Utc>> {
        *self.since()
    }

    fn note_trouble(&self) {
        let is_troubled = self.trouble().is_some();
        let mut since = self.since();
        *since = since.or_else(|| Some(self.0.clock.now())).filter(|_| is_troubled);
    }

    fn since(&self) -> MutexGuard<'_, Option<DateTime<Utc>>> {
        // It is set in one step.
        self.0.troubled_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        // Should a panic have left it half-changed, its next full listing puts it right.
        self.0.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
