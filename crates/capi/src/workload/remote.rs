//! Workload clusters over the network: one watch of Nodes for each cluster that somebody waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{self, Secret};
use kube::config::Kubeconfig;
use metal3_domain::clock::Clock;
use metal3_runtime::access::{May, Role, verb};
use metal3_runtime::hub::{Key, SharedHub};
use metal3_runtime::needs;
use metal3_runtime::patch::Changes;
use metal3_runtime::watch::{Pulse, Scope, Watch};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{Nowhere, Writer};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::{Node, Nodes, Wake, Workloads, kubeconfig};

/// Between attempts to reach a cluster. Nothing tells when one can be reached.
const RETRY: Duration = Duration::from_secs(30);
const HOST_UID_LABEL: &str = "metal3.io/uuid";
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

needs! {
    /// What is done in workload clusters, with the credentials of their own kubeconfigs. Nothing of it is granted here.
    pub struct Workload {
        v1::Node: List, Watch, Patch;
    }
}

/// Makes a client of a kubeconfig.
pub type Open =
    Box<dyn Fn(Kubeconfig) -> Pin<Box<dyn Future<Output = Result<kube::Client, String>> + Send>> + Send + Sync>;

/// One workload cluster that somebody waits for.
struct Link {
    waiters: BTreeSet<Key>,
    hub: SharedHub<v1::Node>,
    client: Option<kube::Client>,
    trouble: Option<String>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Links {
    of_cluster: BTreeMap<Key, Link>,
    wake: Option<Arc<Wake>>,
}

/// Access to workload clusters through the Secrets that Cluster API keeps for them.
pub struct Remote<R> {
    reader: Writer<R>,
    open: Open,
    clock: Arc<dyn Clock>,
    links: Arc<Mutex<Links>>,
    begin: UnboundedSender<Key>,
    begun: Mutex<Option<UnboundedReceiver<Key>>>,
}

impl<R> fmt::Debug for Remote<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

fn lock(links: &Mutex<Links>) -> MutexGuard<'_, Links> {
    links.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes all that wait for a cluster.
fn wake_all(links: &Mutex<Links>, cluster: &Key) {
    let (waiters, wake) = {
        let links = lock(links);
        let waiters = links.of_cluster.get(cluster).map(|link| link.waiters.clone());
        (waiters.unwrap_or_default(), links.wake.clone())
    };
    if let Some(wake) = wake {
        waiters.iter().for_each(|waiter| wake(waiter));
    }
}

impl<R: Role + May<verb::Get, Secret>> Remote<R> {
    /// Access that reads Secrets through `reader`. Nothing is reached before it [runs](Self::run).
    #[must_use]
    pub fn new(reader: Writer<R>, open: Open, clock: Arc<dyn Clock>) -> Self {
        let (begin, begun) = unbounded_channel();
        Self {
            reader,
            open,
            clock,
            links: Arc::default(),
            begin,
            begun: Mutex::new(Some(begun)),
        }
    }

    /// Keeps the connections that are wanted, until `stop`. Dropping the future ends them all.
    pub async fn run(&self, stop: CancellationToken) {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut begun) = begun else { return };
        let mut links = futures::stream::FuturesUnordered::new();
        let _ = stop
            .run_until_cancelled(async {
                loop {
                    tokio::select! {
                        Some(cluster) = begun.recv() => links.push(self.keep(cluster)),
                        Some(()) = futures::StreamExt::next(&mut links), if !links.is_empty() => {}
                        else => return,
                    }
                }
            })
            .await;
    }

    /// Reaches one cluster, and watches its Nodes while somebody waits.
    async fn keep(&self, cluster: Key) {
        let link = lock(&self.links)
            .of_cluster
            .get(&cluster)
            .map(|link| (link.hub.clone(), link.stop.clone()));
        let Some((hub, stop)) = link else { return };
        let keeping = async {
            let mut trouble = None;
            loop {
                match self.reach(&cluster).await {
                    Ok(client) => {
                        self.note(&cluster, Some(client.clone()), trouble.take());
                        let clock = Arc::clone(&self.clock);
                        let watch = Watch::whole::<Workload>(client, hub.clone(), &(), Scope::everywhere(), clock);
                        let pulse = watch.pulse();
                        let why = tokio::select! {
                            () = watch.run(stop.clone()) => return,
                            why = sick(&pulse) => why,
                        };
                        // Address or credentials may be others by now: the Secret is read again.
                        trouble = Some(format!("the workload cluster cannot be reached: {why}"));
                        self.note(&cluster, None, trouble.clone());
                        wake_all(&self.links, &cluster);
                    }
                    Err(why) => {
                        self.note(&cluster, None, Some(why));
                        wake_all(&self.links, &cluster);
                        tokio::time::sleep(RETRY).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(keeping).await;
    }

    async fn reach(&self, cluster: &Key) -> Result<kube::Client, String> {
        let secret = Key {
            namespace: cluster.namespace.clone(),
            name: format!("{}{}", cluster.name, kubeconfig::SUFFIX),
        };
        let found = self.reader.read::<Secret>(&Nowhere, &secret).await;
        let found = found.map_err(|fault| format!("Secret {} cannot be read: {}", secret.name, fault.report()))?;
        let found = found.ok_or_else(|| {
            format!(
                "waiting for Secret {} with the way into the workload cluster",
                secret.name
            )
        })?;
        let config = kubeconfig::read(&found).map_err(|why| format!("Secret {}: {why}", secret.name))?;
        (self.open)(config)
            .await
            .map_err(|why| format!("the workload cluster cannot be reached: {why}"))
    }

    fn note(&self, cluster: &Key, client: Option<kube::Client>, trouble: Option<String>) {
        if let Some(link) = lock(&self.links).of_cluster.get_mut(cluster) {
            (link.client, link.trouble) = (client, trouble);
        }
    }

    /// A link that nobody has asked for yet.
    fn link(&self, cluster: &Key) -> Link {
        let (hub, links, of) = (SharedHub::default(), Arc::downgrade(&self.links), cluster.clone());
        hub.on(move |change| {
            // Nodes tell every few seconds that they are there.
            if change.is_same(|old, new| node_of(old) == node_of(new)) {
                return;
            }
            if let Some(links) = links.upgrade() {
                wake_all(&links, &of);
            }
        });
        Link {
            waiters: BTreeSet::new(),
            hub,
            client: None,
            trouble: None,
            stop: CancellationToken::new(),
        }
    }
}

impl<R: Role + May<verb::Get, Secret>> Workloads for Remote<R> {
    fn wake_with(&self, wake: Wake) {
        lock(&self.links).wake = Some(Arc::new(wake));
    }

    fn nodes(&self, cluster: &Key, waiter: &Key) -> Nodes {
        let (hub, trouble, is_new) = {
            let mut links = lock(&self.links);
            let is_new = !links.of_cluster.contains_key(cluster);
            let link = links
                .of_cluster
                .entry(cluster.clone())
                .or_insert_with(|| self.link(cluster));
            link.waiters.insert(waiter.clone());
            (link.hub.clone(), link.trouble.clone(), is_new)
        };
        if is_new {
            // Nobody listens only when this program ends.
            let _ = self.begin.send(cluster.clone());
        }
        let nodes = hub.read(|hub| {
            hub.synced()
                .then(|| hub.objects().map(|(_, node)| node_of(node)).collect::<Vec<_>>())
        });
        match (nodes, trouble) {
            (Some(nodes), _) => Nodes::Seen(nodes.into()),
            (None, Some(trouble)) => Nodes::Unknown(trouble),
            (None, None) => Nodes::Unknown("waiting for the workload cluster to answer".to_owned()),
        }
    }

    fn dismiss(&self, waiter: &Key) {
        lock(&self.links).of_cluster.retain(|_, link| {
            let was_waiting = link.waiters.remove(waiter);
            let is_done = was_waiting && link.waiters.is_empty();
            if is_done {
                link.stop.cancel();
            }
            !is_done
        });
    }

    fn adopt<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        provider_id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>> {
        Box::pin(async move {
            let link = lock(&self.links)
                .of_cluster
                .get(cluster)
                .map(|link| (link.client.clone(), link.hub.clone()));
            let Some((Some(client), hub)) = link else {
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
            let writer: Writer<Workload> = Writer::new(client, self.reader.mode());
            // The server takes a provider ID once, and no other after it: no version is needed.
            writer.patch(&hub, &key, patch).await?;
            Ok(())
        })
    }
}

/// Waits until a watch does not succeed, and says why.
async fn sick(pulse: &Pulse) -> String {
    loop {
        tokio::time::sleep(RETRY).await;
        if let Some(trouble) = pulse.trouble() {
            return trouble;
        }
    }
}

fn node_of(node: &v1::Node) -> Node {
    let labels = node.metadata.labels.as_ref();
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).cloned().unwrap_or_default();
    Node {
        name: node.metadata.name.clone().unwrap_or_default(),
        provider_id: node
            .spec
            .as_ref()
            .and_then(|spec| spec.provider_id.clone())
            .unwrap_or_default(),
        host_uid: label(HOST_UID_LABEL),
        hostname: label(HOSTNAME_LABEL),
    }
}
