//! The Node of a machine that is remediated: read live, and changed at the version that was read.
//!
//! The cached Nodes contain neither labels nor taints, so these are read when they are needed. Texts of the server are
//! texts of a tenant: they reach no condition and no log.

use std::collections::BTreeMap;
use std::pin::Pin;

use k8s_openapi::api::core::v1::{Node, Pod, Secret, Taint};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::core::params::ListParams;
use kube_core::ObjectMeta;
use metal3_runtime::access::{Permits, Role, verb};
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::patch::Changes;
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{NoCache, WriteError, WriteErrorKind, Writer};
use serde_json::{Value, json};

use super::Workloads;
use super::remote::{Remote, Workload};

/// Objects in one page of a list.
const PAGE: u32 = 100;
/// Pages of a list that are read before it counts as too long.
const MOST_PAGES: usize = 100;

/// A future of an access to a workload cluster.
pub type Access<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

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

/// The fields of a Node that a remediation reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveNode {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its resource version.
    pub version: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// `spec.providerID`; empty for none.
    pub provider_id: String,
    /// The version of its kubelet; empty before the kubelet reported one.
    pub kubelet_version: String,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeChanged {
    /// It is done.
    Done,
    /// The Node changed since it was read, or does not exist any more.
    Stale,
    /// The server does not permit it, or considers it invalid.
    Rejected,
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
pub trait NodeRepair: Workloads {
    /// The Node now.
    fn live_node<'a>(&'a self, cluster: &'a Key, name: &'a str) -> Access<'a, NodeState>;

    /// Changes the Node that was read.
    fn change<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a LiveNode,
        change: &'a NodeChange,
    ) -> Access<'a, Result<NodeChanged, Fault>>;

    /// Whether Pods and volumes have left the Node.
    fn drained<'a>(&'a self, cluster: &'a Key, name: &'a str) -> Access<'a, Drained>;
}

impl<R: Role + Permits<verb::Get, Secret>> NodeRepair for Remote<R> {
    fn live_node<'a>(&'a self, cluster: &'a Key, name: &'a str) -> Access<'a, NodeState> {
        Box::pin(async move {
            let writer = match self.writer(cluster) {
                Ok(writer) => writer,
                Err(why) => return NodeState::Unknown(why),
            };
            match writer.read::<Node>(&NoCache, &key(name)).await {
                Ok(Some(node)) => live(node).map_or_else(
                    || NodeState::Unknown("the workload cluster sent a Node without identity".to_owned()),
                    |node| NodeState::Present(Box::new(node)),
                ),
                Ok(None) => NodeState::Absent,
                Err(fault) if fault.category() == Category::FORBIDDEN.as_str() => NodeState::Forbidden,
                Err(fault) => NodeState::Unknown(unanswered(fault.category())),
            }
        })
    }

    fn change<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a LiveNode,
        change: &'a NodeChange,
    ) -> Access<'a, Result<NodeChanged, Fault>> {
        Box::pin(async move {
            let op = || format!("change Node {}", node.name);
            let fault = |why: String| Fault::transient(op(), Category::UNREACHABLE, why);
            let writer = self.writer(cluster).map_err(fault)?;
            let version = metal3_runtime::version::ResourceVersion::parse(&node.version)
                .map_err(|_| fault("the Node has no resource version".to_owned()))?;
            let key = key(&node.name);
            let written = match change {
                NodeChange::Delete => {
                    let uid = node.uid.clone();
                    let last = Identity { key, uid, version };
                    writer.delete_at::<Node>(&NoCache, &last).await.map(drop)
                }
                NodeChange::Taints(_) | NodeChange::Add { .. } => {
                    let Some(patch) = Changes::between(&json!({}), &document(change)).main else {
                        return Ok(NodeChanged::Done);
                    };
                    let patch = patch.with_precondition(&version);
                    writer.patch::<Node>(&NoCache, &key, patch).await.map(drop)
                }
            };
            changed(written).map_err(|category| fault(unanswered(category)))
        })
    }

    fn drained<'a>(&'a self, cluster: &'a Key, name: &'a str) -> Access<'a, Drained> {
        Box::pin(async move {
            let Ok(writer) = self.writer(cluster) else {
                return Drained::Unknown;
            };
            match self.find_left(&writer, name).await {
                Ok(drained) => drained,
                // The texts of a tenant's server are not repeated.
                Err(_) => Drained::Unknown,
            }
        })
    }
}

impl<R: Role + Permits<verb::Get, Secret>> Remote<R> {
    /// Writes to a connected workload cluster.
    fn writer(&self, cluster: &Key) -> Result<Writer<Workload>, String> {
        let (client, mode) = self.connection(cluster)?;
        Ok(Writer::new(client, mode))
    }

    async fn find_left(&self, writer: &Writer<Workload>, node: &str) -> Result<Drained, Fault> {
        let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let is_terminating = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        match find::<Pod>(writer, on_node, is_terminating).await? {
            Some(true) => return Ok(Drained::Pods),
            Some(false) => {}
            None => return Ok(Drained::Unknown),
        }
        // The API server has no field selector for them.
        let is_attached = |volume: &VolumeAttachment| volume.spec.node_name == node;
        match find::<VolumeAttachment>(writer, ListParams::default(), is_attached).await {
            Ok(Some(true)) => Ok(Drained::Volumes),
            Ok(Some(false)) => Ok(Drained::Yes),
            Ok(None) => Ok(Drained::Unknown),
            // A server that does not serve the kind has none.
            Err(fault) if fault.category() == Category::NOT_FOUND.as_str() => Ok(Drained::Yes),
            Err(fault) => Err(fault),
        }
    }
}

/// Whether an object of a list matches; `None` when the list is longer than what is read of it.
async fn find<K>(
    writer: &Writer<Workload>,
    mut params: ListParams,
    matches: impl Fn(&K) -> bool,
) -> Result<Option<bool>, Fault>
where
    K: metal3_runtime::write::Writable,
    Workload: Permits<verb::List, K>,
{
    params = params.limit(PAGE);
    for _ in 0..MOST_PAGES {
        let page = writer.page::<K>(None, &params).await?;
        if page.items.iter().any(&matches) {
            return Ok(Some(true));
        }
        match page.metadata.continue_.filter(|rest| !rest.is_empty()) {
            Some(rest) => params = params.continue_token(&rest),
            None => return Ok(Some(false)),
        }
    }
    Ok(None)
}

fn key(name: &str) -> Key {
    Key {
        namespace: String::new(),
        name: name.to_owned(),
    }
}

fn live(node: Node) -> Option<LiveNode> {
    let ObjectMeta {
        name,
        uid,
        resource_version,
        deletion_timestamp,
        annotations,
        labels,
        ..
    } = node.metadata;
    let spec = node.spec.unwrap_or_default();
    let info = node.status.and_then(|status| status.node_info);
    Some(LiveNode {
        name: name?,
        uid: uid?,
        version: resource_version?,
        is_deleting: deletion_timestamp.is_some(),
        provider_id: spec.provider_id.unwrap_or_default(),
        kubelet_version: info.map(|info| info.kubelet_version).unwrap_or_default(),
        annotations: annotations.unwrap_or_default(),
        labels: labels.unwrap_or_default(),
        taints: spec.taints.unwrap_or_default(),
    })
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

fn changed(written: Result<(), WriteError>) -> Result<NodeChanged, &'static str> {
    match written {
        Ok(()) => Ok(NodeChanged::Done),
        Err(error) => match error.kind {
            WriteErrorKind::Conflict | WriteErrorKind::NotFound => Ok(NodeChanged::Stale),
            WriteErrorKind::Invalid | WriteErrorKind::Forbidden => Ok(NodeChanged::Rejected),
            other => Err(other.category().as_str()),
        },
    }
}

fn unanswered(category: &str) -> String {
    format!("the workload cluster cannot be reached: {category}")
}
