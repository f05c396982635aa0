//! Workload clusters over the network: one watch of Nodes for each cluster with a waiting key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use metal3_domain::clock::Clock;
use metal3_runtime::access::{Permits, Role, verb};
use metal3_runtime::cache::{Cache, Change, Key, SharedCache};
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::role;
use metal3_runtime::watch::{Failing, OnDemand, Scope, Watch, WatchSource};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{NoCache, Writer, Written};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::connect::{ConnectFn, kubeconfig_of};
use super::live::{SentNode, SentPod, SentVolume};
use super::places::{PLACES, Places, TURN};
use super::requests::{Place, Reconciled, Requests, in_time};
use super::waiter::{Waiter, Wakes};
use super::{LabelDigest, LabelledNode, Node, Nodes, Request, WakeFn, WorkloadNode, Workloads};

/// The interval between attempts to reach a cluster. No event reports that one can be reached.
const RETRY: Duration = Duration::from_secs(30);
/// Nodes that are kept of one cluster. Kubernetes supports 5,000.
const MOST_NODES: usize = 6_000;

role! {
    /// Permissions in workload clusters, with the credentials of their own kubeconfigs. The manager's role does not
    /// grant them.
    pub struct Workload {
        WorkloadNode: List, Watch, Patch, Delete;
        LabelledNode: Get;
        SentNode: Get;
        SentPod: List;
        SentVolume: List;
    }
}

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
pub(super) enum Interest {
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
    wakes: Arc<Wakes>,
    of_machines: Arc<Requests>,
    of_remediations: Arc<Requests>,
    of_clusters: Arc<Requests>,
}

impl<R: Role + Permits<verb::Get, Secret>> Remote<R> {
    /// Access that reads Secrets through `reader`. It connects after [`Remote::run`] is called.
    #[must_use]
    pub fn new(reader: Writer<R>, open: ConnectFn, clock: Arc<dyn Clock>) -> Self {
        let (places, wakes) = (Arc::<Places>::default(), Arc::<Wakes>::default());
        let nodes = OnDemand::new(KubeconfigSource {
            reader,
            open,
            clock,
            places: Arc::clone(&places),
        });
        let woken = Arc::clone(&wakes);
        nodes.set_wake(Box::new(move |waiter| woken.wake(waiter)));
        Self {
            nodes,
            places,
            of_machines: Requests::new(&wakes, Waiter::Machine),
            of_remediations: Requests::new(&wakes, Waiter::Remediation),
            of_clusters: Requests::new(&wakes, Waiter::Cluster),
            wakes,
        }
    }

    pub(super) fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    /// Runs the watches of clusters with waiting keys, until `stop`. Dropping the future ends them all.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = self.nodes.run(stop) => {}
            () = self.rotate() => {}
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
            self.of_machines.refresh();
            self.of_remediations.refresh();
            self.of_clusters.refresh();
        }
    }

    fn wake(&self, waiters: &[Waiter]) {
        waiters.iter().for_each(|waiter| self.wakes.wake(waiter));
    }
}

impl<R: Role + Permits<verb::Get, Secret>> WatchSource for KubeconfigSource<R> {
    type Name = Key;
    type Waiter = Waiter;
    type Object = WorkloadNode;
    type Interest = Interest;
    type Target = ClusterConnection;
    type Error = String;

    const RETRY: Duration = RETRY;

    async fn resolve(&self, cluster: &Key) -> Result<ClusterConnection, String> {
        let found = kubeconfig_of(&self.reader, cluster).await;
        let (found, config) = found.map_err(|why| why.to_string())?;
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
    fn set_wake(&self, wake: WakeFn, workers: usize) {
        self.wakes.set_of_machines(wake);
        self.of_machines.set_workers(workers);
    }

    fn reconciled(&self, waiter: &Key) -> Reconciled {
        Reconciled::new(&self.of_machines, waiter)
    }

    fn nodes(&self, cluster: &Key, waiter: &Key) -> Observed<Nodes> {
        let all = |cache: &Cache<WorkloadNode>| {
            cache
                .objects()
                .map(|(_, node)| Arc::clone(node.fields()))
                .collect::<Vec<_>>()
        };
        let waiter = Waiter::Machine(waiter.clone());
        match self.watched(cluster, &waiter, Interest::Identities, all) {
            Ok(nodes) => Observed::Present(nodes.into()),
            Err(why) => Observed::Unknown(UnknownReason::Unreadable(why)),
        }
    }

    fn node(&self, cluster: &Key, name: &str, waiter: &Key) -> Observed<Arc<Node>> {
        let node = node_key(name);
        let one = |cache: &Cache<WorkloadNode>| cache.get(&node).into_present().map(|node| Arc::clone(node.fields()));
        let waiter = Waiter::Machine(waiter.clone());
        match self.watched(cluster, &waiter, Interest::Node(name.to_owned()), one) {
            Ok(node) => Observed::from(node),
            Err(why) => Observed::Unknown(UnknownReason::Unreadable(why)),
        }
    }

    fn remove_waiter(&self, waiter: &Key) {
        self.end_wait(&Waiter::Machine(waiter.clone()));
    }

    fn set_provider_id<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        provider_id: &'a str,
        waiter: &'a Key,
    ) -> Request<'a, ()> {
        Box::pin(async move {
            let before = json!({ "spec": {} });
            let after = json!({ "spec": { "providerID": provider_id } });
            let Some(patch) = Changes::between(&before, &after).main else {
                return Ok(());
            };
            let op = || format!("give Node {node} its provider ID");
            let (writer, cache) = self.reached(cluster, op)?;
            // The server accepts a provider ID once and never another one: no precondition is needed.
            let key = node_key(node);
            let place = self.of_machines.begin(cluster, waiter, op)?;
            accepted(place, op, writer.patch(&cache, &key, patch)).await.map(drop)
        })
    }

    fn read_labels<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        waiter: &'a Key,
    ) -> Request<'a, Option<LabelledNode>> {
        Box::pin(async move {
            let op = || format!("read the labels of Node {node}");
            let (writer, _) = self.reached(cluster, op)?;
            let key = node_key(node);
            let place = self.of_machines.begin(cluster, waiter, op)?;
            accepted(place, op, writer.read::<LabelledNode>(&NoCache, &key)).await
        })
    }

    fn patch_labels<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        patch: MergePatch,
        waiter: &'a Key,
    ) -> Request<'a, bool> {
        Box::pin(async move {
            let op = || format!("change the labels of Node {node}");
            let (writer, cache) = self.reached(cluster, op)?;
            let key = node_key(node);
            let place = self.of_machines.begin(cluster, waiter, op)?;
            let written = accepted(place, op, writer.patch(&cache, &key, patch)).await?;
            Ok(!matches!(written, Written::DryRun))
        })
    }
}

impl<R: Role + Permits<verb::Get, Secret>> Remote<R> {
    /// A part of the cache of a cluster, or why it is unknown.
    pub(super) fn watched<T>(
        &self,
        cluster: &Key,
        waiter: &Waiter,
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

    /// Ends all waits of a key.
    pub(super) fn end_wait(&self, waiter: &Waiter) {
        self.nodes.set_interest(waiter, &BTreeMap::new());
        self.wake(&self.places.leave(waiter, Instant::now()));
        match waiter {
            Waiter::Machine(key) => self.of_machines.leave(key),
            Waiter::Remediation(key) => self.of_remediations.leave(key),
            Waiter::Cluster(key) => self.of_clusters.leave(key),
        }
    }

    pub(super) const fn of_remediations(&self) -> &Arc<Requests> {
        &self.of_remediations
    }

    pub(super) const fn of_clusters(&self) -> &Arc<Requests> {
        &self.of_clusters
    }

    pub(super) const fn source(&self) -> (&Writer<R>, &ConnectFn) {
        let source = self.nodes.source();
        (&source.reader, &source.open)
    }

    fn reached(
        &self,
        cluster: &Key,
        op: impl Fn() -> String,
    ) -> Result<(Writer<Workload>, SharedCache<WorkloadNode>), Fault> {
        let unreachable = |why| Fault::transient(op(), Category::UNREACHABLE, why);
        self.connected(cluster).map_err(unreachable)
    }

    /// A writer for a cluster with a waiting key, and the cache of its Nodes; or why there is none.
    pub(super) fn connected(&self, cluster: &Key) -> Result<(Writer<Workload>, SharedCache<WorkloadNode>), String> {
        let waiting = || "waiting for the workload cluster to answer".to_owned();
        let source = self.nodes.get(cluster).ok_or_else(waiting)?;
        // A watch that fails does not mean that another request fails.
        let connection = source.target.ok_or_else(|| source.error.unwrap_or_else(waiting))?;
        let mode = self.nodes.source().reader.write_mode();
        Ok((Writer::new(connection.client, mode), source.cache))
    }
}

/// The response to a request that the cluster has to accept.
async fn accepted<T, E>(
    place: Place<'_>,
    op: impl Fn() -> String,
    request: impl Future<Output = Result<T, E>>,
) -> Result<T, Fault> {
    // The error of the server is text of a tenant, and is not repeated.
    let refused = |_| Fault::transient(op(), Category::UNREACHABLE, "the workload cluster did not accept it");
    in_time(&op, place.measured(request)).await?.map_err(refused)
}

pub(super) fn node_key(node: &str) -> Key {
    Key {
        namespace: String::new(),
        name: node.to_owned(),
    }
}
