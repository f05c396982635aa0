//! Ironic, as one process knows it: what the change feed shows, since when, whose turn it is, and requests.
//!
//! What a request was answered with is newer than the feed; what a request without such an answer did is not seen until
//! the feed has come by. Both are measured on the clock of this process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metal3_api::meta::Time;
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::feed::{Feed, Wake};
use metal3_ironic::model::node::Node;
use metal3_ironic::request::Call;
use metal3_ironic::slots::{Slots, Turn};
use metal3_ironic::{Answered, Client, Error};
use metal3_runtime::cache::Key;
use metal3_runtime::queue::Waker;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::records::Records;
use crate::facts::{NodeSeen, OUTAGE_LASTS, Outage};

/// Wakes of the feed that may lie unread. The feed waits when there are more.
const WAKES: usize = 1000;
/// What stands in the boot interface of a node that needs no provisioning network.
const VIRTUAL_MEDIA: &str = "virtual-media";

/// One Ironic. Clones share it.
#[derive(Clone)]
pub(super) struct Metal(Arc<Shared>);

struct Shared {
    client: Client,
    feed: Feed,
    clock: Arc<dyn Clock>,
    records: Records,
    waker: Waker<Key>,
    /// When a request went out last whose effect only the feed will show.
    asked: Mutex<BTreeMap<NodeUuid, Monotonic>>,
    slots: Mutex<Slots<Key>>,
}

impl fmt::Debug for Metal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metal")
            .field("client", &self.0.client)
            .finish_non_exhaustive()
    }
}

impl Metal {
    /// An Ironic of which nothing is known. At most `limit` hosts load the provisioning network at once.
    pub(super) fn new(
        client: Client,
        clock: Arc<dyn Clock>,
        records: Records,
        waker: Waker<Key>,
        limit: usize,
    ) -> Self {
        let feed = Feed::new(client.clone(), Arc::clone(&clock));
        Self(Arc::new(Shared {
            client,
            feed,
            clock,
            records,
            waker,
            asked: Mutex::default(),
            slots: Mutex::new(Slots::uncounted(limit)),
        }))
    }

    /// Follows what changes in Ironic and wakes the hosts concerned, until `stop`. `known` is when all hosts are.
    pub(super) async fn follow(self, known: impl Future<Output = ()>, stop: CancellationToken) {
        let (sender, mut wakes) = mpsc::channel(WAKES);
        let feed = self.0.feed.clone();
        let listening = async {
            while let Some(wake) = wakes.recv().await {
                self.heed(wake);
            }
        };
        let work = futures::future::join3(feed.run(sender), self.count(known), listening);
        stop.run_until_cancelled(work).await;
    }

    /// Waits until every node was listed once, or until it is plain that this may take long.
    pub(super) async fn listed(self) {
        drop(tokio::time::timeout(OUTAGE_LASTS, self.0.feed.listed()).await);
    }

    /// Since when Ironic is not reached, if that is no news any more.
    pub(super) fn outage(&self) -> Option<Outage> {
        let (began, trouble) = (self.0.feed.troubled_since()?, self.0.feed.trouble()?);
        let lasts = self.0.clock.now().signed_duration_since(began);
        (lasts.to_std().unwrap_or_default() >= OUTAGE_LASTS).then(|| Outage {
            since: Time::new(began),
            reason: trouble.to_string(),
        })
    }

    /// The node of a host, by the identity that its status records, as it was last seen, and how new that is.
    pub(super) fn sight_of(&self, host: &Key, id: &str) -> Option<(Arc<Node>, NodeSeen)> {
        let uuid = NodeUuid::parse(id).ok()?;
        let node = self.0.feed.node(&uuid)?;
        let as_of = self.0.feed.as_of(&uuid)?;
        let asked = lock(&self.0.asked).get(&uuid).copied();
        let entered = self.0.records.entered(host);
        let seen = if asked.is_some_and(|asked| as_of <= asked) {
            NodeSeen::Stale
        } else if entered.is_some_and(|entered| as_of > entered) {
            NodeSeen::Abreast
        } else {
            NodeSeen::Current
        };
        Some((node, seen))
    }

    /// Sends a request that reads.
    pub(super) async fn read<T>(&self, call: &Call<T>) -> Result<T, Error> {
        self.0.client.send(call).await.map(|answered| answered.value)
    }

    /// Sends a request that is answered with the node. From then on the feed shows no older one.
    pub(super) async fn view(&self, call: &Call<Node>) -> Result<Answered<Node>, Error> {
        let answered = self.0.feed.view(call).await?;
        self.0.feed.manage(answered.value.uuid.clone());
        Ok(answered)
    }

    /// Sends a request whose effect on the node only the feed will show.
    pub(super) async fn ask<T>(&self, uuid: &NodeUuid, call: &Call<T>) -> Result<Answered<T>, Error> {
        let answer = self.0.client.send(call).await;
        // Refused or not: nobody looks at what the feed showed before.
        lock(&self.0.asked).insert(uuid.clone(), self.0.clock.monotonic());
        self.0.feed.hurry();
        answer
    }

    /// Asks for a host's turn to load the provisioning network.
    pub(super) fn turn(&self, host: &Key) -> Turn {
        lock(&self.0.slots).ask(host)
    }

    /// Gives back a host's place.
    pub(super) fn leave(&self, host: &Key) {
        let next = lock(&self.0.slots).leave(host);
        self.wake(next);
    }

    /// Forgets what belonged to a node that is gone.
    pub(super) fn forget(&self, uuid: &NodeUuid) {
        lock(&self.0.asked).remove(uuid);
        self.0.feed.release(uuid);
    }

    /// Once every node and every host was listed, counts who loads the provisioning network already. Until then nobody
    /// gets a turn: whose node is busy cannot be told.
    async fn count(&self, known: impl Future<Output = ()>) {
        futures::future::join(self.0.feed.listed(), known).await;
        let nodes = self.0.feed.nodes();
        let busy = nodes.iter().filter(|node| {
            let boots_from_media = node
                .boot_interface
                .as_deref()
                .is_some_and(|name| name.contains(VIRTUAL_MEDIA));
            node.provision_state.is_busy() && !boots_from_media
        });
        let holders: Vec<Key> = busy
            .filter_map(|node| self.0.records.host_of_node(node.uuid.as_str()))
            .collect();
        let next = lock(&self.0.slots).restore(holders);
        self.wake(next);
    }

    fn heed(&self, wake: Wake) {
        match wake {
            Wake::Changed(uuid) | Wake::Unreadable(uuid) => {
                if let Some(host) = self.0.records.host_of_node(uuid.as_str()) {
                    self.0.feed.manage(uuid);
                    self.0.waker.enqueue(host);
                }
            }
            Wake::Gone(uuid) => {
                self.forget(&uuid);
                self.wake(self.0.records.host_of_node(uuid.as_str()).into_iter().collect());
            }
            Wake::Everything => self.0.waker.enqueue_low_priority(self.0.records.registered()),
        }
    }

    fn wake(&self, hosts: Vec<Key>) {
        for host in hosts {
            self.0.waker.enqueue(host);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind it is changed in single steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
