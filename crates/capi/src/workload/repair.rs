//! The Node of a machine that is remediated: read live, and changed at the version that was read.
//!
//! The cached Nodes contain neither labels nor taints, so these are read when they are needed. Texts of the server are
//! texts of a tenant: they reach no condition and no log.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::core::params::ListParams;
use kube_core::Resource;
use metal3_runtime::access::{Permits, Role, verb};
use metal3_runtime::cache::{Identity, Item, Key};
use metal3_runtime::patch::Changes;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{NoCache, WriteError, WriteErrorKind, Writer};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::live::{LiveNode, SentNode, SentPod, SentVolume};
use super::remote::{Interest, Remote, Workload, node_key};
use super::requests::{Place, Reconciled, in_time};
use super::waiter::Waiter;
use super::{Request, WakeFn, WorkloadNode};

/// Objects in one page of a list.
const PAGE: u32 = 100;
/// Pages of a list that are read before it counts as too long.
const MOST_PAGES: usize = 100;

/// What is known of a Node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeState {
    /// It exists.
    Present(Box<LiveNode>),
    /// The server states that it does not exist.
    Absent,
    /// The credentials of the kubeconfig may not read Nodes.
    Forbidden,
    /// The workload cluster does not answer, and why.
    Unknown(String),
}

/// A change of a Node, at the version that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeChange {
    /// Replaces the taints.
    Taints(Vec<Value>),
    /// Adds what a Node that registered again lacks.
    Add {
        /// Annotations.
        annotations: BTreeMap<String, String>,
        /// Labels.
        labels: BTreeMap<String, String>,
        /// The provider ID. A Node accepts one once.
        provider_id: Option<String>,
    },
    /// Deletes it.
    Delete,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeChanged {
    /// It is done.
    Done,
    /// The Node changed since it was read, or does not exist any more.
    Stale,
    /// The server does not permit it, or considers it invalid.
    Rejected,
    /// The workload cluster does not answer, or answers that it failed, and why.
    Failed(String),
    /// No request was sent, and why.
    NotSent(String),
}

/// Whether a Node still has something that must end before its machine starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Neither terminating Pods nor attached volumes.
    Yes,
    /// Pods are terminating on it.
    Pods,
    /// Volumes are attached to it.
    Volumes,
    /// It could not be read.
    Unknown,
}

/// Access to the Nodes of machines that are remediated.
pub trait NodeRepair: Send + Sync + 'static {
    /// Sets the function that enqueues waiting keys, and the number of workers that reconcile them.
    fn set_wake(&self, wake: WakeFn, workers: usize);

    /// Held during the reconcile of `waiter`: from the read of a Node to its change, its requests have one place.
    fn reconciled(&self, waiter: &Key) -> Reconciled;

    /// From now on `waiter` waits for Nodes of a cluster that appear or disappear.
    fn wait(&self, cluster: &Key, waiter: &Key);

    /// Ends the wait of `waiter`.
    fn remove_waiter(&self, waiter: &Key);

    /// The Node now.
    fn node<'a>(&'a self, cluster: &'a Key, name: &'a str, waiter: &'a Key) -> Request<'a, NodeState>;

    /// Changes the Node that was read.
    fn change<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a LiveNode,
        change: &'a NodeChange,
        waiter: &'a Key,
    ) -> Request<'a, NodeChanged>;

    /// Whether Pods and volumes have left the Node.
    fn drained<'a>(&'a self, cluster: &'a Key, name: &'a str, waiter: &'a Key) -> Request<'a, Drained>;
}

/// The connections of the controller of machines, for remediations.
pub struct Repairs<R: Role + Permits<verb::Get, Secret>>(Arc<Remote<R>>);

impl<R: Role + Permits<verb::Get, Secret>> Repairs<R> {
    /// Uses the connections and limits of `remote`.
    #[must_use]
    pub const fn new(remote: Arc<Remote<R>>) -> Self {
        Self(remote)
    }
}

impl<R: Role + Permits<verb::Get, Secret>> NodeRepair for Repairs<R> {
    fn set_wake(&self, wake: WakeFn, workers: usize) {
        self.0.wakes().set_of_remediations(wake);
        self.0.of_remediations().set_workers(workers);
    }

    fn reconciled(&self, waiter: &Key) -> Reconciled {
        Reconciled::new(self.0.of_remediations(), waiter)
    }

    fn wait(&self, cluster: &Key, waiter: &Key) {
        let waiter = Waiter::Remediation(waiter.clone());
        // Only the wait is of interest: the cached Nodes have neither labels nor taints.
        drop(self.0.watched(cluster, &waiter, Interest::Identities, |_| ()));
    }

    fn remove_waiter(&self, waiter: &Key) {
        self.0.end_wait(&Waiter::Remediation(waiter.clone()));
    }

    fn node<'a>(&'a self, cluster: &'a Key, name: &'a str, waiter: &'a Key) -> Request<'a, NodeState> {
        Box::pin(async move {
            let writer = match self.0.connected(cluster) {
                Ok((writer, _)) => writer,
                Err(why) => return Ok(NodeState::Unknown(why)),
            };
            let (op, key) = (|| format!("read Node {name}"), node_key(name));
            let place = self.0.of_remediations().begin(cluster, waiter, op)?;
            let read = place.measured(writer.read::<SentNode>(&NoCache, &key));
            Ok(match in_time(op, read).await {
                // Its name reaches conditions and logs.
                Ok(Ok(Some(sent))) if sent.node.name != name => {
                    NodeState::Unknown("the workload cluster sent another Node".to_owned())
                }
                Ok(Ok(Some(sent))) => NodeState::Present(Box::new(sent.node)),
                Ok(Ok(None)) => NodeState::Absent,
                Ok(Err(fault)) if fault.category() == Category::FORBIDDEN.as_str() => NodeState::Forbidden,
                // The texts of a tenant's server are not repeated.
                Ok(Err(fault)) | Err(fault) => NodeState::Unknown(unanswered(fault.category())),
            })
        })
    }

    fn change<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a LiveNode,
        change: &'a NodeChange,
        waiter: &'a Key,
    ) -> Request<'a, NodeChanged> {
        Box::pin(async move {
            let op = || format!("change Node {}", node.name);
            let writer = match self.0.connected(cluster) {
                Ok((writer, _)) => writer,
                Err(why) => return Ok(NodeChanged::NotSent(why)),
            };
            let Ok(version) = ResourceVersion::parse(&node.version) else {
                return Ok(NodeChanged::NotSent("the Node has no resource version".to_owned()));
            };
            let place = self.0.of_remediations().begin(cluster, waiter, op)?;
            let key = node_key(&node.name);
            let write = async {
                if *change == NodeChange::Delete {
                    let uid = node.uid.clone();
                    let last = Identity { key, uid, version };
                    return writer.delete_at::<WorkloadNode>(&NoCache, &last).await.map(drop);
                }
                match Changes::between(&json!({}), &document(change)).main {
                    Some(patch) => {
                        let patch = patch.with_precondition(&version);
                        writer.patch::<WorkloadNode>(&NoCache, &key, patch).await.map(drop)
                    }
                    None => Ok(()),
                }
            };
            match in_time(op, place.measured(write)).await {
                Ok(written) => changed(written),
                Err(fault) => Ok(NodeChanged::Failed(unanswered(fault.category()))),
            }
        })
    }

    fn drained<'a>(&'a self, cluster: &'a Key, name: &'a str, waiter: &'a Key) -> Request<'a, Drained> {
        Box::pin(async move {
            let Ok((writer, _)) = self.0.connected(cluster) else {
                return Ok(Drained::Unknown);
            };
            let op = || format!("list what is left on Node {name}");
            let place = self.0.of_remediations().begin(cluster, waiter, op)?;
            Ok(match in_time(op, find_left(&writer, &place, name)).await {
                Ok(Ok(drained)) => drained,
                // The texts of a tenant's server are not repeated.
                Ok(Err(_)) | Err(_) => Drained::Unknown,
            })
        })
    }
}

async fn find_left(writer: &Writer<Workload>, place: &Place<'_>, node: &str) -> Result<Drained, Fault> {
    let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    match find::<SentPod>(writer, place, on_node, |pod| pod.is_terminating).await? {
        Some(true) => return Ok(Drained::Pods),
        Some(false) => {}
        None => return Ok(Drained::Unknown),
    }
    // The API server has no field selector for them.
    let is_attached = |volume: &SentVolume| volume.node == node;
    match find(writer, place, ListParams::default(), is_attached).await {
        Ok(Some(true)) => Ok(Drained::Volumes),
        Ok(Some(false)) => Ok(Drained::Yes),
        Ok(None) => Ok(Drained::Unknown),
        // A server that does not serve the kind has none.
        Err(fault) if fault.category() == Category::NOT_FOUND.as_str() => Ok(Drained::Yes),
        Err(fault) => Err(fault),
    }
}

/// Whether an object of a list matches; `None` when one cannot be decoded, or the list is longer than what is read of it.
async fn find<K>(
    writer: &Writer<Workload>,
    place: &Place<'_>,
    mut params: ListParams,
    matches: impl Fn(&K) -> bool,
) -> Result<Option<bool>, Fault>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
    Workload: Permits<verb::List, K>,
{
    params = params.limit(PAGE);
    for _ in 0..MOST_PAGES {
        let page = place.measured(writer.page::<K>(None, &params)).await?;
        for item in &page.items {
            match item {
                Item::Object(object) if matches(object) => return Ok(Some(true)),
                Item::Object(_) => {}
                Item::Unreadable { .. } => return Ok(None),
            }
        }
        match page.rest {
            Some(rest) => params = params.continue_token(&rest),
            None => return Ok(Some(false)),
        }
    }
    Ok(None)
}

fn document(change: &NodeChange) -> Value {
    match change {
        NodeChange::Taints(taints) => json!({ "spec": { "taints": taints } }),
        NodeChange::Add {
            annotations,
            labels,
            provider_id,
        } => {
            let mut document = json!({ "metadata": { "annotations": annotations, "labels": labels } });
            if let (Some(id), Value::Object(members)) = (provider_id, &mut document) {
                members.insert("spec".to_owned(), json!({ "providerID": id }));
            }
            document
        }
        NodeChange::Delete => Value::Null,
    }
}

/// A write that was not sent says nothing about the cluster: another process leads.
fn changed(written: Result<(), WriteError>) -> Result<NodeChanged, Fault> {
    let Err(error) = written else {
        return Ok(NodeChanged::Done);
    };
    match error.kind {
        WriteErrorKind::Conflict | WriteErrorKind::NotFound => Ok(NodeChanged::Stale),
        WriteErrorKind::Invalid | WriteErrorKind::Forbidden => Ok(NodeChanged::Rejected),
        WriteErrorKind::WriteBlocked => Err(error.into()),
        // The texts of a tenant's server are not repeated.
        other => Ok(NodeChanged::Failed(unanswered(other.category().as_str()))),
    }
}

fn unanswered(category: &str) -> String {
    format!("the workload cluster cannot be reached: {category}")
}
