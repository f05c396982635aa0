//! Workload clusters over the network: one watch of Nodes for each cluster with a waiting key.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node as WholeNode, Pod, Secret};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::config::Kubeconfig;
use metal3_domain::clock::Clock;
use metal3_runtime::access::{Permits, Role, verb};
use metal3_runtime::cache::{Cache, Change, Key, SharedCache};
use metal3_runtime::object_reader::Erased;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::role;
use metal3_runtime::watch::{Failing, OnDemand, Scope, Watch, WatchSource};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{Mode, NoCache, Writer, Written};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::places::{PLACES, Places, TURN};
use super::{LabelDigest, LabelledNode, Node, Nodes, Request, WakeFn, WorkloadNode, Workloads, kubeconfig};

/// A request was not sent, because others are under way. It will be.
pub const BUSY: Category = Category::new("workload_busy");
/// The interval between attempts to reach a cluster. No event reports that one can be reached.
const RETRY: Duration = Duration::from_secs(30);
/// Nodes that are kept of one cluster. Kubernetes supports 5,000.
const MOST_NODES: usize = 6_000;
/// Requests to servers of tenants for which a worker may wait at the same time: fewer than there are workers.
const REQUESTS: usize = 4;
/// How long a worker waits for one.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

role! {
    /// Permissions in workload clusters, with the credentials of their own kubeconfigs. The manager's role does not
    /// grant them.
    pub struct Workload {
        WorkloadNode: List, Watch, Patch;
        WholeNode: Get, Patch, Delete;
        Pod: List;
        VolumeAttachment: List;
        LabelledNode: Get;
    }
}

/// Creates a client from a kubeconfig.
pub type ConnectFn =
    Box<dyn Fn(Kubeconfig) -> Pin<Box<dyn Future<Output = Result<kube::Client, String>> + Send>> + Send + Sync>;

/// A connection to one cluster. Another Secret means another connection: it contains address and credentials.
#[derive(Clone)]
struct ClusterConnection {
    secret: (Option<String>, Option<String>),
    client: kube::Client,
    pages: Arc<Semaphore>,
}

impl PartialEq for ClusterConnection {
    fn eq(&self, other: &Self) -> bool {
        self.secret == other.secret
    }
}

/// What a key waits for.
#[derive(Clone)]
enum Interest {
    /// A Node that may be its own.
    Identities,
    /// Changes of one Node.
    Node(String),
}

/// Connects through the kubeconfig Secrets of Cluster API.
struct KubeconfigSource<R> {
    reader: Writer<R>,
    open: ConnectFn,
    clock: Arc<dyn Clock>,
    places: Arc<Places>,
}

/// Access to workload clusters through the kubeconfig Secrets of Cluster API.
pub struct Remote<R: Role + Permits<verb::Get, Secret>> {
    nodes: OnDemand<KubeconfigSource<R>>,
    places: Arc<Places>,
    requests: Semaphore,
    wake: Mutex<Option<Arc<WakeFn>>>,
}

impl<R: Role + Permits<verb::Get, Secret>> Remote<R> {
    /// Access that reads Secrets through `reader`. It connects after [`Remote::run`] is called.
    #[must_use]
    pub fn new(reader: Writer<R>, open: ConnectFn, clock: Arc<dyn Clock>) -> Self {
        let places = Arc::<Places>::default();
        Self {
            nodes: OnDemand::new(KubeconfigSource {
                reader,
                open,
                clock,
                places: Arc::clone(&places),
            }),
            places,
            requests: Semaphore::new(REQUESTS),
            wake: Mutex::default(),
        }
    }

    /// Runs the watches of clusters with waiting keys, until `stop`. Dropping the future ends them all.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = self.nodes.run(stop) => {}
            () = self.rotate() => {}
        }
    }

    /// The client of a cluster with a waiting key, and whether writes are sent.
    pub(super) fn connection(&self, cluster: &Key) -> Result<(kube::Client, Mode), String> {
        let source = self.nodes.get(cluster);
        let target = source.as_ref().and_then(|source| source.target.clone());
        match (target, source.and_then(|source| source.error)) {
            // A watch that fails does not mean that another request fails.
            (Some(target), _) => Ok((target.client, self.nodes.source().reader.mode())),
            (None, Some(why)) => Err(why),
            (None, None) => Err("waiting for the workload cluster to answer".to_owned()),
        }
    }

    /// Ends turns. No event reports that one is over.
    async fn rotate(&self) {
        loop {
            sleep(RETRY).await;
            let is_failing = |cluster: &Key| self.nodes.get(cluster).is_some_and(|source| source.error.is_some());
            let (lost, woken) = self.places.rotate(Instant::now(), is_failing);
            for waiter in &lost {
                self.nodes.set_interest(waiter, &BTreeMap::new());
            }
            self.wake(&woken);
        }
    }

    fn wake(&self, waiters: &[Key]) {
        let wake = self.wake.lock().clone();
        if let Some(wake) = wake {
            waiters.iter().for_each(|waiter| wake(waiter));
        }
    }
}

impl<R: Role + Permits<verb::Get, Secret>> WatchSource for KubeconfigSource<R> {
    type Name = Key;
    type Object = WorkloadNode;
    type Interest = Interest;
    type Target = ClusterConnection;
    type Error = String;

    const RETRY: Duration = RETRY;

    async fn resolve(&self, cluster: &Key) -> Result<ClusterConnection, String> {
        let secret = Key {
            namespace: cluster.namespace.clone(),
            name: format!("{}{}", cluster.name, kubeconfig::SUFFIX),
        };
        let found = self.reader.read::<Secret>(&NoCache, &secret).await;
        let found = found.map_err(|fault| format!("Secret {} cannot be read: {}", secret.name, fault.report()))?;
        let found = found.ok_or_else(|| {
            format!(
                "waiting for Secret {} with the way into the workload cluster",
                secret.name
            )
        })?;
        let found = Erased::new(found);
        let config = kubeconfig::read(&found).map_err(|why| format!("Secret {}: {why}", secret.name))?;
        let client = (self.open)(config).await.map_err(|why| unreachable_message(&why))?;
        Ok(ClusterConnection {
            secret: (found.metadata.uid.clone(), found.metadata.resource_version.clone()),
            client,
            pages: self.places.pages(&cluster.namespace),
        })
    }

    fn watch(&self, connection: &ClusterConnection, cache: SharedCache<WorkloadNode>) -> Watch<WorkloadNode> {
        let clock = Arc::clone(&self.clock);
        Watch::whole::<Workload>(connection.client.clone(), cache, &(), Scope::everywhere(), clock)
            .of_tenant(MOST_NODES, Arc::clone(&connection.pages))
    }

    fn error(&self, _: &ClusterConnection, failing: Failing) -> String {
        unreachable_message(&failing.why)
    }

    /// Heartbeats change a Node every few seconds and do not count.
    fn concerns(change: &Change<'_, WorkloadNode>) -> impl Fn(&Interest) -> bool {
        let identity = |node: &WorkloadNode| Node {
            labels: LabelDigest::default(),
            ..Node::clone(node.fields())
        };
        let is_any = !change.is_same(|old, new| identity(old) == identity(new));
        let is_relevant = !change.is_same(|old, new| old.fields() == new.fields());
        let changed = change.key().map(|node| node.name);
        move |interest| match interest {
            Interest::Identities => is_any,
            Interest::Node(name) => is_relevant && changed.as_ref().is_none_or(|changed| changed == name),
        }
    }
}

fn unreachable_message(why: &str) -> String {
    format!("the workload cluster cannot be reached: {why}")
}

/// differs: `workload-cluster-places`. The Go manager connects to all clusters at the same time.
fn waiting_message() -> String {
    format!(
        "waiting for a turn: machines of more than {PLACES} workload clusters of this namespace wait for their Nodes, and each \
         cluster is watched for {} minutes; see the conditions of machines whose clusters cannot be reached",
        TURN.as_secs() / 60,
    )
}

impl<R: Role + Permits<verb::Get, Secret>> Workloads for Remote<R> {
    fn set_wake(&self, wake: WakeFn) {
        let wake = Arc::new(wake);
        *self.wake.lock() = Some(Arc::clone(&wake));
        self.nodes.set_wake(Box::new(move |waiter| wake(waiter)));
    }

    fn nodes(&self, cluster: &Key, waiter: &Key) -> Observed<Nodes> {
        let all = |cache: &Cache<WorkloadNode>| {
            cache
                .objects()
                .map(|(_, node)| Arc::clone(node.fields()))
                .collect::<Vec<_>>()
        };
        match self.watched(cluster, waiter, Interest::Identities, all) {
            Ok(nodes) => Observed::Present(nodes.into()),
            Err(why) => Observed::Unknown(UnknownReason::Unreadable(why)),
        }
    }

    fn node(&self, cluster: &Key, name: &str, waiter: &Key) -> Observed<Arc<Node>> {
        let node = node_key(name);
        let one = |cache: &Cache<WorkloadNode>| cache.get(&node).into_present().map(|node| Arc::clone(node.fields()));
        match self.watched(cluster, waiter, Interest::Node(name.to_owned()), one) {
            Ok(node) => Observed::from(node),
            Err(why) => Observed::Unknown(UnknownReason::Unreadable(why)),
        }
    }

    fn remove_waiter(&self, waiter: &Key) {
        self.nodes.set_interest(waiter, &BTreeMap::new());
        self.wake(&self.places.leave(waiter, Instant::now()));
    }

    fn set_provider_id<'a>(&'a self, cluster: &'a Key, node: &'a str, provider_id: &'a str) -> Request<'a, ()> {
        Box::pin(async move {
            let before = json!({ "spec": {} });
            let after = json!({ "spec": { "providerID": provider_id } });
            let Some(patch) = Changes::between(&before, &after).main else {
                return Ok(());
            };
            let op = || format!("give Node {node} its provider ID");
            let (writer, cache) = self.connected(cluster, op)?;
            // The server accepts a provider ID once and never another one: no precondition is needed.
            let key = node_key(node);
            self.request(cluster, op, writer.patch(&cache, &key, patch))
                .await
                .map(drop)
        })
    }

    fn read_labels<'a>(&'a self, cluster: &'a Key, node: &'a str) -> Request<'a, Option<LabelledNode>> {
        Box::pin(async move {
            let op = || format!("read the labels of Node {node}");
            let (writer, _) = self.connected(cluster, op)?;
            let key = node_key(node);
            self.request(cluster, op, writer.read::<LabelledNode>(&NoCache, &key))
                .await
        })
    }

    fn patch_labels<'a>(&'a self, cluster: &'a Key, node: &'a str, patch: MergePatch) -> Request<'a, bool> {
        Box::pin(async move {
            let op = || format!("change the labels of Node {node}");
            let (writer, cache) = self.connected(cluster, op)?;
            let key = node_key(node);
            let written = self.request(cluster, op, writer.patch(&cache, &key, patch)).await?;
            Ok(!matches!(written, Written::DryRun))
        })
    }
}

impl<R: Role + Permits<verb::Get, Secret>> Remote<R> {
    /// A part of the cache of a cluster, or why it is unknown.
    fn watched<T>(
        &self,
        cluster: &Key,
        waiter: &Key,
        interest: Interest,
        read: impl Fn(&Cache<WorkloadNode>) -> T,
    ) -> Result<T, String> {
        let (has_place, woken) = self.places.enter(cluster, waiter, Instant::now());
        self.wake(&woken);
        let wanted = has_place.then(|| (cluster.clone(), interest));
        self.nodes.set_interest(waiter, &BTreeMap::from_iter(wanted));
        if !has_place {
            return Err(waiting_message());
        }
        let source = self.nodes.get(cluster);
        let error = source.as_ref().and_then(|source| source.error.clone());
        let found = source.and_then(|source| source.cache.read(|cache| cache.synced().then(|| read(cache))));
        match (found, error) {
            (Some(found), None) => Ok(found),
            // After an error the cached Nodes may be out of date.
            (_, Some(error)) => Err(error),
            (None, None) => Err("waiting for the workload cluster to answer".to_owned()),
        }
    }

    /// A request on a worker that all tenants share: one for each namespace, a few in all, and each for a short time.
    ///
    /// differs: `workload-requests`
    async fn request<T, E>(
        &self,
        cluster: &Key,
        op: impl Fn() -> String,
        request: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Fault> {
        let of_namespace = self.places.requests(&cluster.namespace);
        let permits = (of_namespace.try_acquire(), self.requests.try_acquire());
        let (Ok(_one), Ok(_other)) = permits else {
            let why = "requests to other workload clusters are under way; it is tried again";
            return Err(Fault::transient(op(), BUSY, why));
        };
        // The error of the server is text of a tenant, and is not repeated.
        match timeout(REQUEST_TIMEOUT, request).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err(Fault::transient(
                op(),
                Category::UNREACHABLE,
                "the workload cluster did not accept it",
            )),
            Err(_) => Err(Fault::transient(
                op(),
                Category::UNREACHABLE,
                "the workload cluster did not answer",
            )),
        }
    }

    /// A writer for a watched cluster, and the cache of its Nodes.
    fn connected(
        &self,
        cluster: &Key,
        op: impl Fn() -> String,
    ) -> Result<(Writer<Workload>, SharedCache<WorkloadNode>), Fault> {
        let source = self.nodes.get(cluster);
        let Some((connection, cache)) = source.and_then(|source| Some((source.target?, source.cache))) else {
            let why = "the workload cluster is not reached";
            return Err(Fault::transient(op(), Category::UNREACHABLE, why));
        };
        Ok((Writer::new(connection.client, self.nodes.source().reader.mode()), cache))
    }
}

fn node_key(node: &str) -> Key {
    Key {
        namespace: String::new(),
        name: node.to_owned(),
    }
}
