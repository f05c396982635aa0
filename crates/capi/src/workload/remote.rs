//! Workload clusters over the network: one watch of Nodes for each cluster with a waiting key.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::config::Kubeconfig;
use metal3_domain::clock::Clock;
use metal3_runtime::access::{Permits, Role, verb};
use metal3_runtime::cache::{Change, Key, SharedCache};
use metal3_runtime::object_reader::Erased;
use metal3_runtime::patch::Changes;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::role;
use metal3_runtime::watch::{Failing, OnDemand, Scope, Watch, WatchSource};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{NoCache, Writer};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Nodes, WakeFn, WorkloadNode, Workloads, kubeconfig};

/// The interval between attempts to reach a cluster. No event reports that one can be reached.
const RETRY: Duration = Duration::from_secs(30);
/// Nodes that are kept of one cluster. Kubernetes supports half as many.
const MOST_NODES: usize = 10_000;

role! {
    /// Permissions in workload clusters, with the credentials of their own kubeconfigs. The manager's role does not
    /// grant them.
    pub struct Workload {
        WorkloadNode: List, Watch, Patch;
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
}

impl PartialEq for ClusterConnection {
    fn eq(&self, other: &Self) -> bool {
        self.secret == other.secret
    }
}

/// Connects through the kubeconfig Secrets of Cluster API.
struct KubeconfigSource<R> {
    reader: Writer<R>,
    open: ConnectFn,
    clock: Arc<dyn Clock>,
}

/// Access to workload clusters through the kubeconfig Secrets of Cluster API.
pub struct Remote<R: Role + Permits<verb::Get, Secret>> {
    nodes: OnDemand<KubeconfigSource<R>>,
}

impl<R: Role + Permits<verb::Get, Secret>> Remote<R> {
    /// Access that reads Secrets through `reader`. It connects after [`Remote::run`] is called.
    #[must_use]
    pub fn new(reader: Writer<R>, open: ConnectFn, clock: Arc<dyn Clock>) -> Self {
        Self {
            nodes: OnDemand::new(KubeconfigSource { reader, open, clock }),
        }
    }

    /// Runs the watches of clusters with waiting keys, until `stop`. Dropping the future ends them all.
    pub async fn run(&self, stop: CancellationToken) {
        self.nodes.run(stop).await;
    }
}

impl<R: Role + Permits<verb::Get, Secret>> WatchSource for KubeconfigSource<R> {
    type Name = Key;
    type Object = WorkloadNode;
    type Interest = ();
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
        })
    }

    fn watch(&self, connection: &ClusterConnection, cache: SharedCache<WorkloadNode>) -> Watch<WorkloadNode> {
        let clock = Arc::clone(&self.clock);
        Watch::whole::<Workload>(connection.client.clone(), cache, &(), Scope::everywhere(), clock)
            .of_tenant(MOST_NODES)
    }

    fn error(&self, _: &ClusterConnection, failing: Failing) -> String {
        unreachable_message(&failing.why)
    }

    /// Heartbeats change a Node every few seconds and do not count.
    fn concerns(change: &Change<'_, WorkloadNode>) -> impl Fn(&()) -> bool {
        let is_relevant = !change.is_same(|old, new| old.fields() == new.fields());
        move |()| is_relevant
    }
}

fn unreachable_message(why: &str) -> String {
    format!("the workload cluster cannot be reached: {why}")
}

impl<R: Role + Permits<verb::Get, Secret>> Workloads for Remote<R> {
    fn set_wake(&self, wake: WakeFn) {
        self.nodes.set_wake(wake);
    }

    fn nodes(&self, cluster: &Key, waiter: &Key) -> Observed<Nodes> {
        self.nodes
            .set_interest(waiter, &BTreeMap::from([(cluster.clone(), ())]));
        let source = self.nodes.get(cluster);
        let error = source.as_ref().and_then(|source| source.error.clone());
        let nodes = source.and_then(|source| {
            source.cache.read(|cache| {
                cache.synced().then(|| {
                    cache
                        .objects()
                        .map(|(_, node)| Arc::clone(node.fields()))
                        .collect::<Vec<_>>()
                })
            })
        });
        let why = match (nodes, error) {
            (Some(nodes), None) => return Observed::Present(nodes.into()),
            // After an error the cached Nodes may be out of date.
            (_, Some(error)) => error,
            (None, None) => "waiting for the workload cluster to answer".to_owned(),
        };
        Observed::Unknown(UnknownReason::Unreadable(why))
    }

    fn remove_waiter(&self, waiter: &Key) {
        self.nodes.set_interest(waiter, &BTreeMap::new());
    }

    fn set_provider_id<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        provider_id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>> {
        Box::pin(async move {
            let connection = self
                .nodes
                .get(cluster)
                .and_then(|source| Some((source.target?.client, source.cache)));
            let Some((client, cache)) = connection else {
                let op = format!("give Node {node} its provider ID");
                return Err(Fault::transient(
                    op,
                    Category::UNREACHABLE,
                    "the workload cluster is not reached",
                ));
            };
            let before = json!({ "spec": {} });
            let after = json!({ "spec": { "providerID": provider_id } });
            let Some(patch) = Changes::between(&before, &after).main else {
                return Ok(());
            };
            let key = Key {
                namespace: String::new(),
                name: node.to_owned(),
            };
            let writer: Writer<Workload> = Writer::new(client, self.nodes.source().reader.mode());
            // The server accepts a provider ID once and never another one: no precondition is needed.
            let written = writer.patch(&cache, &key, patch).await;
            // The error of the server is text of a tenant.
            written.map(drop).map_err(|_| {
                let op = format!("give Node {node} its provider ID");
                Fault::transient(op, Category::UNREACHABLE, "the workload cluster did not accept it")
            })
        })
    }
}
