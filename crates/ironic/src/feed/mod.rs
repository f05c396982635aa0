//! The change feed of one Ironic: it polls for changed nodes instead of reading each node.
//!
//! [`ChangeTracker`] decides what to request and interprets the response; it is pure. [`Feed`] is the loop around it.
//! An event reports *that* a node changed, not what to do: the receiver reads the store, and Ironic itself before a
//! decision that writes.
//!
//! The store is a cache of the last lists and of [`Feed::send_and_record`]. It may be behind Ironic by one poll
//! interval; [`Feed::as_of`] is the age of a record. It is never older than a recorded response.
//!
//! # What the feed does not see
//!
//! | Fact | Why | The read that covers it |
//! |---|---|---|
//! | a node that was created and never changed | its `updated_at` is null, the order by change does not contain it | the response to its creation; the next complete list |
//! | a deleted node | no page contains it | the next complete list, at once when it was the newest |
//! | power switched without Ironic | Ironic enforces its own record and writes only differences | none: Ironic checks every two minutes, and a difference changes `updated_at` |
//! | ports, port groups, traits | separate records | read once at registration and after an inspection |
//! | BIOS settings, firmware versions | separate records | read after cleaning, service and inspection, when the state changes |
//! | inventory | a separate record | read when the node leaves `inspecting` |
//! | virtual media, boot device | only the BMC knows them | read when required; reading the boot device changes `updated_at` of the node |
//! | drivers, conductors | not nodes | listed at the first use of an endpoint, and after an outage |

mod keys;
mod listed_node;
mod round;
mod step;
mod timing;
mod tracker;
mod watermark;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::ids::NodeUuid;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};

use crate::client::{Client, Response};
use crate::error::Error;
use crate::model::node::Node;
use crate::request::Call;
use crate::send_permit::SendPermit;

pub use keys::KeysOf;
use listed_node::LastPage;
pub use listed_node::ListedNode;
pub use step::{FeedEvent, PageRequest, Step};
pub use tracker::ChangeTracker;

/// The feed of one endpoint. Cheap to clone; one task calls [`Feed::run`].
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    client: Client,
    clock: Arc<dyn Clock>,
    tracker: Mutex<ChangeTracker>,
    /// The destination that the nodes are of, counted by the client.
    destination: Mutex<u64>,
    failing_since: Mutex<Option<DateTime<Utc>>>,
    /// When the loop began, while it runs.
    running_since: Mutex<Option<Monotonic>>,
    poll_requested: Notify,
    /// Notified when every node was listed once.
    listed: Notify,
}

impl Feed {
    /// A feed without nodes.
    #[must_use]
    pub fn new(client: Client, clock: Arc<dyn Clock>) -> Self {
        let tracker = ChangeTracker::polling_within(client.quick_poll());
        Self::of(client, clock, tracker)
    }

    /// The same, which finds nodes by these keys, too.
    #[must_use]
    pub fn with_keys(client: Client, clock: Arc<dyn Clock>, keys: KeysOf) -> Self {
        let tracker = ChangeTracker::polling_within(client.quick_poll()).with_keys(keys);
        Self::of(client, clock, tracker)
    }

    fn of(client: Client, clock: Arc<dyn Clock>, tracker: ChangeTracker) -> Self {
        Self(Arc::new(Shared {
            destination: Mutex::new(client.destination()),
            client,
            clock,
            tracker: Mutex::new(tracker),
            failing_since: Mutex::default(),
            running_since: Mutex::default(),
            poll_requested: Notify::new(),
            listed: Notify::new(),
        }))
    }

    /// Polls and sends events until the receiver is closed.
    pub async fn run(&self, events: mpsc::Sender<FeedEvent>) {
        let _running = Running::begin(&self.0);
        let mut destination = self.0.client.destination_changes();
        let mut last = LastPage::default();
        while !events.is_closed() {
            let of = self.follow_destination();
            let next = self.tracker().next(self.0.clock.monotonic());
            let request = match next {
                Step::Fetch(request) => request,
                Step::Wait(pause) => {
                    tokio::select! {
                        biased;
                        () = events.closed() => {}
                        () = self.0.poll_requested.notified() => {}
                        _ = destination.changed() => {
                            self.tracker().destination_changed(self.0.clock.monotonic());
                        }
                        () = tokio::time::sleep(pause) => {}
                    }
                    continue;
                }
            };
            let call = request.call();
            let answer = self.0.client.send_reading(&call, |body| last.read(&call, body)).await;
            if self.0.client.destination() != of {
                // The response may be of the former one.
                continue;
            }
            let now = self.0.clock.monotonic();
            let new_events = match answer {
                Ok(answered) => self.tracker().answered(now, answered.value, answered.server_time),
                Err(error) => {
                    self.tracker().failed(now, error);
                    vec![FeedEvent::Failed]
                }
            };
            self.note_error();
            if self.tracker().has_listed() {
                self.0.listed.notify_waiters();
            }
            for event in new_events {
                if events.send(event).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Lists the nodes of another endpoint from the beginning. Returns the present one.
    fn follow_destination(&self) -> u64 {
        let now = self.0.client.destination();
        let before = std::mem::replace(&mut *self.0.destination.lock(), now);
        if before != now {
            self.tracker().endpoint_changed(self.0.clock.monotonic());
        }
        now
    }

    /// Whether every node that the present destination had at the last complete list is known.
    #[must_use]
    pub fn has_listed(&self) -> bool {
        self.tracker().has_listed() && *self.0.destination.lock() == self.0.client.destination()
    }

    /// The cached nodes with this key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Vec<NodeUuid> {
        self.tracker().with_key(key)
    }

    /// The cached node with the lowest UUID.
    #[must_use]
    pub fn first(&self) -> Option<NodeUuid> {
        let tracker = self.tracker();
        let mut nodes = tracker.nodes();
        nodes.next().map(|node| node.uuid.clone())
    }

    /// The cached node. `None` is unknown, not absent: [`FeedEvent::Deleted`] reports a deletion.
    #[must_use]
    pub fn node(&self, uuid: &NodeUuid) -> Option<Arc<Node>> {
        self.tracker().node(uuid)
    }

    /// Since when the node is known to be as [`Feed::node`] returns it, on the clock of this process.
    #[must_use]
    pub fn as_of(&self, uuid: &NodeUuid) -> Option<Monotonic> {
        self.tracker().as_of(uuid)
    }

    /// All cached nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.tracker().nodes().cloned().collect()
    }

    /// Waits until every node was listed once.
    pub async fn listed(&self) {
        // Created before the check, so that it does not miss a notification after it.
        let listed = self.0.listed.notified();
        if !self.tracker().has_listed() {
            listed.await;
        }
    }

    /// Marks a node as managed: while its state changes, the feed polls quickly.
    pub fn manage(&self, uuid: NodeUuid) {
        self.tracker().manage(uuid);
    }

    /// The node was deleted: it is not known any more.
    pub fn forget(&self, uuid: &NodeUuid) {
        self.tracker().forget(uuid, self.0.clock.monotonic());
    }

    /// Sends a call whose response is the node: its creation, a change, or a read. The store keeps no older record
    /// afterwards.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_and_record(&self, call: &Call<Node>) -> Result<Response<Node>, Error> {
        let send_permit = self.0.client.send_permit().await;
        self.send_and_record_with(&send_permit, call).await
    }

    /// The same, at once, with a permit of the caller.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_and_record_with(
        &self,
        send_permit: &SendPermit,
        call: &Call<Node>,
    ) -> Result<Response<Node>, Error> {
        let asked = self.0.clock.monotonic();
        let answered = self.0.client.send_with(send_permit, call).await?;
        self.tracker().observed(answered.value.clone(), asked);
        Ok(answered)
    }

    /// Reports a request to Ironic: the feed polls soon.
    pub fn poll_soon(&self) {
        self.tracker().poll_soon(self.0.clock.monotonic());
        self.0.poll_requested.notify_one();
    }

    /// The error of the last attempt, if it failed.
    #[must_use]
    pub fn last_error(&self) -> Option<Error> {
        self.tracker().last_error().cloned()
    }

    /// When the first attempt since the last success failed.
    #[must_use]
    pub fn failing_since(&self) -> Option<DateTime<Utc>> {
        *self.since()
    }

    /// How far the cached nodes may be behind Ironic: the time since the last completed poll began, or since the start of
    /// the loop. `None` while the loop does not run, as in a process that does not lead.
    #[must_use]
    pub fn lag(&self) -> Option<Duration> {
        let running = (*self.0.running_since.lock())?;
        let polled = self.tracker().polled().unwrap_or(running);
        Some(self.0.clock.monotonic().since(polled.max(running)))
    }

    fn note_error(&self) {
        let has_failed = self.last_error().is_some();
        let mut since = self.since();
        *since = since.or_else(|| Some(self.0.clock.now())).filter(|_| has_failed);
    }

    fn since(&self) -> MutexGuard<'_, Option<DateTime<Utc>>> {
        self.0.failing_since.lock()
    }

    fn tracker(&self) -> MutexGuard<'_, ChangeTracker> {
        self.0.tracker.lock()
    }
}

/// The loop runs while this exists, also when its future is dropped.
struct Running<'a>(&'a Shared);

impl<'a> Running<'a> {
    fn begin(shared: &'a Shared) -> Self {
        *shared.running_since.lock() = Some(shared.clock.monotonic());
        Self(shared)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.running_since.lock() = None;
    }
}

#[cfg(test)]
mod tests;
