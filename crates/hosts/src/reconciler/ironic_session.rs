//! The connection of this process to one Ironic: requests, the change feed and the busy-host slots.
//!
//! The response to a request is newer than the feed. The effect of a request without the node in its response is
//! observed with the next poll of the feed. Both are compared on the monotonic clock of this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metal3_api::meta::Time;
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::feed::{Feed, FeedEvent};
use metal3_ironic::model::node::Node;
use metal3_ironic::request::Call;
use metal3_ironic::slots::{SlotState, Slots};
use metal3_ironic::statistics::Statistics;
use metal3_ironic::version::Microversion;
use metal3_ironic::{Client, Error, Response, SendPermit};
use metal3_runtime::cache::Key;
use metal3_runtime::queue::Waker;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::index::HostIndex;
use super::login_seats::LoginSeats;
use super::refusals::Refusals;
use super::served_by::ServedBy;
use crate::facts::{NodeFreshness, OUTAGE_THRESHOLD, Outage, OutageKind};
use crate::ironics::{FOR_SEAT, Name, Place, Seats, keys_of};

/// Buffered feed events. The feed waits when the buffer is full.
const EVENT_BUFFER: usize = 1000;
/// Part of the boot interface of a node that needs no provisioning network.
const VIRTUAL_MEDIA: &str = "virtual-media";

/// The wait for the nodes of an Ironic.
pub(super) const FOR_LIST: &str = "the nodes of its Ironic are listed";

/// One Ironic. Clones share it.
#[derive(Clone)]
pub(super) struct IronicSession(Arc<Shared>);

/// What the sessions of all Ironics share.
#[derive(Clone)]
pub(super) struct SessionParts {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) index: HostIndex,
    pub(super) served_by: ServedBy,
    pub(super) refusals: Refusals,
    pub(super) waker: Waker<Key>,
    /// At most this many hosts of each Ironic get a busy-host slot.
    pub(super) slots: usize,
}

struct Shared {
    client: Client,
    feed: Feed,
    clock: Arc<dyn Clock>,
    index: HostIndex,
    served_by: ServedBy,
    refusals: Refusals,
    waker: Waker<Key>,
    /// The name and the seats, if it is one of several.
    of_several: Option<(Name, Seats)>,
    /// The first list of nodes is complete, or was waited for long enough.
    has_begun: AtomicBool,
    /// Time of the last request per node whose effect only the feed shows.
    changed_at: Mutex<BTreeMap<NodeUuid, Monotonic>>,
    slots: Mutex<Slots<Key>>,
    login_seats: LoginSeats,
    /// What the hosts in progress were woken for: the present outage, and its reason where the condition shows each.
    reported: Mutex<Option<String>>,
}

const fn kind_of_outage(error: &Error) -> OutageKind {
    match error {
        Error::Unauthorised(_) => OutageKind::Login,
        Error::Untrusted { .. } => OutageKind::Certificate,
        Error::NotReady { .. } => OutageKind::NotReady,
        Error::NotFound(_)
        | Error::Locked(_)
        | Error::WrongState(_)
        | Error::Exists(_)
        | Error::Invalid(_)
        | Error::Protected(_)
        | Error::Busy(_)
        | Error::NoCommonVersion(_)
        | Error::TooOld { .. }
        | Error::Unreachable { .. }
        | Error::Timeout { .. }
        | Error::Unexpected { .. } => OutageKind::Unreachable,
    }
}

/// The session of a host. Without one nothing is sent.
pub(super) fn chosen(ironic: Option<&IronicSession>) -> Result<&IronicSession, Error> {
    ironic.ok_or_else(|| Error::NotReady {
        operation: "choose an Ironic",
        reason: "none is chosen for this host".to_owned(),
    })
}

impl IronicSession {
    /// A session without observations.
    pub(super) fn new(client: Client, parts: SessionParts, of_several: Option<(Name, Seats)>) -> Self {
        let feed = match of_several {
            Some(_) => Feed::with_keys(client.clone(), Arc::clone(&parts.clock), keys_of),
            None => Feed::new(client.clone(), Arc::clone(&parts.clock)),
        };
        let slots = Slots::with_unknown_holders(parts.slots).grouped_by(|host: &Key| &host.namespace);
        Self(Arc::new(Shared {
            client,
            feed,
            clock: parts.clock,
            index: parts.index,
            served_by: parts.served_by,
            refusals: parts.refusals,
            waker: parts.waker,
            of_several,
            has_begun: AtomicBool::new(false),
            changed_at: Mutex::default(),
            slots: Mutex::new(slots),
            login_seats: LoginSeats::default(),
            reported: Mutex::default(),
        }))
    }

    /// Runs the change feed until `stop` and enqueues the hosts of changed nodes. `hosts_listed` ends with the first
    /// list of hosts.
    pub(super) async fn run(self, hosts_listed: impl Future<Output = ()>, stop: CancellationToken) {
        let (sender, mut receiver) = mpsc::channel(EVENT_BUFFER);
        let feed = self.0.feed.clone();
        let events = async {
            while let Some(event) = receiver.recv().await {
                self.on_feed_event(event);
            }
        };
        let restored = self.restore_slots(hosts_listed);
        let work = futures::future::join4(feed.run(sender), restored, events, self.begin());
        stop.run_until_cancelled(work).await;
    }

    /// Waits for the first complete list of nodes, at most as long as an outage takes to be reported.
    pub(super) async fn listed(&self) {
        drop(tokio::time::timeout(OUTAGE_THRESHOLD, self.0.feed.listed()).await);
    }

    /// Lets the hosts of one Ironic of several begin, each when its own has listed its nodes.
    async fn begin(&self) {
        let Some((name, _)) = &self.0.of_several else { return };
        self.listed().await;
        self.0.has_begun.store(true, Ordering::Release);
        self.wake(self.0.served_by.hosts_of(name));
    }

    /// A place for a reconcile of a host.
    pub(super) fn take_place(&self, host: &Key) -> Place {
        let Some((_, seats)) = &self.0.of_several else {
            return Place::Taken(None);
        };
        match self.has_begun() {
            true => seats
                .take(host)
                .map_or(Place::None(FOR_SEAT), |seat| Place::Taken(Some(seat))),
            false => Place::None(FOR_LIST),
        }
    }

    /// The host comes for no seat.
    pub(super) fn leave_seat(&self, host: &Key) {
        if let Some((_, seats)) = &self.0.of_several {
            seats.leave(host);
        }
    }

    /// Whether the first list of nodes is complete, or was waited for long enough.
    pub(super) fn has_begun(&self) -> bool {
        self.0.has_begun.load(Ordering::Acquire)
    }

    /// Whether both are the same session.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its change feed, with the nodes.
    pub(super) fn feed(&self) -> &Feed {
        &self.0.feed
    }

    /// Its client.
    pub(super) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Of these hosts, those that this Ironic serves.
    fn own(&self, mut hosts: Vec<Key>) -> Vec<Key> {
        if let Some((name, _)) = &self.0.of_several {
            hosts.retain(|host| self.0.served_by.is(host, name));
        }
        hosts
    }

    /// The outage, if it lasts long enough to be reported.
    pub(super) fn outage(&self) -> Option<Outage> {
        let (began, error) = (self.0.feed.failing_since()?, self.0.feed.last_error()?);
        let duration = self.0.clock.now().signed_duration_since(began);
        (duration.to_std().unwrap_or_default() >= OUTAGE_THRESHOLD).then(|| Outage {
            kind: kind_of_outage(&error),
            since: Time::new(began),
            ironic: self.0.of_several.as_ref().map(|(name, _)| Arc::clone(name)),
            reason: match error {
                // Without the operation, which differs from attempt to attempt.
                Error::NotReady { reason, .. } => reason,
                error => error.to_string(),
            },
        })
    }

    /// Whether the last poll of the change feed got a response.
    pub(super) fn is_answering(&self) -> bool {
        self.0.feed.failing_since().is_none()
    }

    /// The cached node with the UUID from the status of a host, and its freshness.
    pub(super) fn observed_node(&self, host: &Key, id: &str) -> Option<(Arc<Node>, NodeFreshness)> {
        let uuid = NodeUuid::parse(id).ok()?;
        let node = self.0.feed.node(&uuid)?;
        let observed_at = self.0.feed.as_of(&uuid)?;
        let changed_at = self.0.changed_at.lock().get(&uuid).copied();
        let entered = self.0.index.entered(host);
        let freshness = if changed_at.is_some_and(|changed_at| observed_at <= changed_at) {
            NodeFreshness::Stale
        } else if entered.is_some_and(|entered| observed_at > entered) {
            NodeFreshness::InState
        } else {
            NodeFreshness::Current
        };
        Some((node, freshness))
    }

    /// Whether this Ironic aborts a deployment, as far as it has responded.
    pub(super) fn aborts_deployments(&self) -> bool {
        self.0.client.known_features().abort_deployment()
    }

    /// The requests so far.
    pub(super) fn statistics(&self) -> Statistics {
        self.0.client.statistics()
    }

    /// How far the cached nodes may be behind Ironic, while the session runs.
    pub(super) fn lag(&self) -> Option<Duration> {
        self.0.feed.lag()
    }

    /// The API version in use.
    pub(super) fn microversion(&self) -> Option<Microversion> {
        self.0.client.microversion()
    }

    /// Waits until a request can be sent at once.
    pub(super) async fn send_permit(&self) -> SendPermit {
        self.0.client.send_permit().await
    }

    /// Reads with this permit, or with the next one.
    pub(super) async fn read<T>(&self, send_permit: Option<&SendPermit>, call: &Call<T>) -> Result<T, Error> {
        let response = match send_permit {
            Some(send_permit) => self.0.client.send_with(send_permit, call).await,
            None => self.0.client.send(call).await,
        };
        response.map(|response| response.value)
    }

    /// Sends a request whose response is the node, with this permit or with the next one. The feed then returns no older
    /// one.
    pub(super) async fn send_for_node(
        &self,
        send_permit: Option<&SendPermit>,
        call: &Call<Node>,
    ) -> Result<Response<Node>, Error> {
        let response = match send_permit {
            Some(send_permit) => self.0.feed.send_and_record_with(send_permit, call).await?,
            None => self.0.feed.send_and_record(call).await?,
        };
        self.0.feed.manage(response.value.uuid.clone());
        Ok(response)
    }

    /// Sends a request whose effect on the node only the feed shows.
    pub(super) async fn send_change<T>(
        &self,
        send_permit: &SendPermit,
        uuid: &NodeUuid,
        call: &Call<T>,
    ) -> Result<Response<T>, Error> {
        let response = self.0.client.send_with(send_permit, call).await;
        // Also after an error: the earlier observation may be outdated.
        self.0.changed_at.lock().insert(uuid.clone(), self.0.clock.monotonic());
        self.0.feed.poll_soon();
        response
    }

    pub(super) fn login_seats(&self) -> &LoginSeats {
        &self.0.login_seats
    }

    pub(super) fn request_slot(&self, host: &Key) -> SlotState {
        self.0.slots.lock().request(host)
    }

    pub(super) fn release_slot(&self, host: &Key) {
        let next = self.0.slots.lock().release(host);
        self.wake(next);
    }

    pub(super) fn forget_node(&self, uuid: &NodeUuid) {
        self.0.changed_at.lock().remove(uuid);
        self.0.feed.forget(uuid);
    }

    /// Restores the slots of hosts whose nodes are busy, after the first list of nodes and hosts. Until then no slot is
    /// granted, because the busy nodes are unknown.
    async fn restore_slots(&self, hosts_listed: impl Future<Output = ()>) {
        futures::future::join(self.0.feed.listed(), hosts_listed).await;
        let nodes = self.0.feed.nodes();
        let busy = nodes.iter().filter(|node| {
            let boots_from_media = node
                .boot_interface
                .as_deref()
                .is_some_and(|name| name.contains(VIRTUAL_MEDIA));
            node.provision_state.is_busy() && !boots_from_media
        });
        let holders = busy.flat_map(|node| self.hosts_of_node(&node.uuid));
        let holders: Vec<Key> = holders.collect();
        let next = self.0.slots.lock().restore(holders);
        self.wake(next);
    }

    fn on_feed_event(&self, event: FeedEvent) {
        match event {
            FeedEvent::Changed(uuid) | FeedEvent::Unreadable(uuid) => {
                let hosts = self.hosts_of_node(&uuid);
                if !hosts.is_empty() {
                    self.0.feed.manage(uuid);
                }
                self.wake(hosts);
            }
            FeedEvent::Deleted(uuid) => {
                self.forget_node(&uuid);
                // Also those of another Ironic: they wait while this one has their node.
                self.wake(self.0.index.hosts_of_node(uuid.as_str()));
            }
            FeedEvent::Failed => {
                // Nothing else wakes a host that waits for its node, and its condition reports the outage.
                let shown = self.outage().map(|outage| match outage.kind {
                    OutageKind::NotReady => outage.reason,
                    OutageKind::Unreachable | OutageKind::Login | OutageKind::Certificate => String::new(),
                });
                if shown.is_some() && *self.0.reported.lock() != shown {
                    *self.0.reported.lock() = shown;
                    let waiting = self.own(self.0.index.in_progress());
                    self.0.waker.enqueue_low_priority(waiting);
                }
            }
            FeedEvent::Resync => {
                *self.0.reported.lock() = None;
                let mut hosts = self.own(self.0.index.registered());
                // A new host has no node that would name it.
                let is_own = |host: &Key| !self.own(vec![host.clone()]).is_empty();
                hosts.extend(self.0.refusals.end_failures_of_ironic(is_own));
                self.0.waker.enqueue_low_priority(hosts);
            }
        }
    }

    fn hosts_of_node(&self, uuid: &NodeUuid) -> Vec<Key> {
        self.own(self.0.index.hosts_of_node(uuid.as_str()))
    }

    fn wake(&self, hosts: Vec<Key>) {
        for host in hosts {
            self.0.waker.enqueue(host);
        }
    }
}
