//! The Node: its taint, and what is saved and restored of it.

use std::collections::BTreeMap;

use metal3_api::infrastructure::names::{NODE_ANNOTATIONS_BACKUP, NODE_LABELS_BACKUP, REMEDIATION_FINALIZER};
use metal3_api::infrastructure::v1beta2::Metal3Remediation;
use metal3_api::meta::Time;
use metal3_capi::workload::{LiveNode, NodeChange};
use metal3_runtime::patch::MergePatch;
use serde_json::{Value, json};

use crate::diff::{changes, version};
use crate::remediation::facts::NodeStep;

/// The taint that makes Kubernetes detach the volumes of a Node and delete its Pods.
const TAINT: [(&str, &str); 3] = [
    ("key", "node.kubernetes.io/out-of-service"),
    ("value", "nodeshutdown"),
    ("effect", "NoExecute"),
];
/// The first minor release of Kubernetes 1 that acts on the taint without a feature gate.
const TAINT_SINCE: u32 = 28;
/// Bytes of saved labels and annotations. Kubernetes permits 262144 bytes of annotations of one object.
const MOST_BACKUP: usize = 200 * 1024;

type Map = BTreeMap<String, String>;

/// Whether the control plane of the Node's cluster acts on the taint. It is at least as new as the kubelet.
///
/// differs (`remediation-taint-support`): the Go manager uses the version of the management cluster.
pub(super) fn permits_taint(node: &LiveNode) -> bool {
    let version = node.kubelet_version.strip_prefix('v').unwrap_or(&node.kubelet_version);
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(1), Some(minor)) => minor >= TAINT_SINCE,
        (Some(major), _) => major > 1,
        (None, _) => false,
    }
}

fn is_ours(taint: &Value) -> bool {
    // The API identifies a taint by key and effect.
    taint.get("key") == Some(&json!(TAINT[0].1)) && taint.get("effect") == Some(&json!(TAINT[2].1))
}

fn taints(node: &LiveNode) -> impl Iterator<Item = Value> + '_ {
    node.taints.iter().filter_map(|taint| serde_json::to_value(taint).ok())
}

pub(super) fn has_taint(node: &LiveNode) -> bool {
    taints(node).any(|taint| is_ours(&taint))
}

/// The purpose of a change.
pub(in crate::remediation) fn step(change: &NodeChange) -> NodeStep {
    match change {
        NodeChange::Taints(taints) if taints.iter().any(is_ours) => NodeStep::Taint,
        NodeChange::Taints(_) => NodeStep::Untaint,
        NodeChange::Add { .. } => NodeStep::Add,
        NodeChange::Delete => NodeStep::Delete,
    }
}

/// The taints with this one.
pub(super) fn with_taint(node: &LiveNode, now: Time) -> Vec<Value> {
    let mut added: serde_json::Map<String, Value> = TAINT
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    added.insert("timeAdded".to_owned(), json!(now));
    taints(node).chain([Value::Object(added)]).collect()
}

/// Whether annotations or labels of a deleted Node are saved.
pub(super) fn has_backup(remediation: &Metal3Remediation) -> bool {
    [NODE_ANNOTATIONS_BACKUP, NODE_LABELS_BACKUP]
        .iter()
        .any(|key| !saved(remediation, key).is_empty())
}

fn saved(remediation: &Metal3Remediation, key: &str) -> Map {
    let annotations = remediation.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(key)).map(String::as_str);
    // An unreadable text is not likely to become readable.
    serde_json::from_str(text.unwrap_or_default()).unwrap_or_default()
}

/// Saves annotations and labels of a Node that will be deleted. What an earlier attempt saved and has not restored
/// stays.
pub(super) fn backup(remediation: &Metal3Remediation, node: &LiveNode) -> Option<MergePatch> {
    let text = |key: &str, current: &Map| {
        let mut all = saved(remediation, key);
        all.extend(current.clone());
        // parity: the Go manager writes an empty text for none.
        if all.is_empty() {
            String::new()
        } else {
            json!(all).to_string()
        }
    };
    let mut labels = text(NODE_LABELS_BACKUP, &node.labels);
    let mut annotations = text(NODE_ANNOTATIONS_BACKUP, &node.annotations);
    // The API server would reject all of it.
    if labels.len() > MOST_BACKUP {
        labels.clear();
    }
    if labels.len().saturating_add(annotations.len()) > MOST_BACKUP {
        annotations.clear();
    }
    let mut after = remediation.clone();
    let all = after.metadata.annotations.get_or_insert_default();
    all.insert(NODE_ANNOTATIONS_BACKUP.to_owned(), annotations);
    all.insert(NODE_LABELS_BACKUP.to_owned(), labels);
    changes(remediation, &after).main
}

/// The next change that restores a Node: without the taint, then with the saved annotations and labels that it lacks,
/// and with the provider ID of its machine. A kubelet without the argument `--provider-id` registers without one.
pub(super) fn restore(
    remediation: &Metal3Remediation,
    node: &LiveNode,
    provider_id: Option<&str>,
) -> Option<NodeChange> {
    if has_taint(node) {
        return Some(NodeChange::Taints(
            taints(node).filter(|taint| !is_ours(taint)).collect(),
        ));
    }
    let missing = |key: &str, current: &Map| -> Map {
        let mut all = saved(remediation, key);
        all.retain(|name, _| !current.contains_key(name));
        all
    };
    let annotations = missing(NODE_ANNOTATIONS_BACKUP, &node.annotations);
    let labels = missing(NODE_LABELS_BACKUP, &node.labels);
    let provider_id = provider_id.filter(|id| !id.is_empty() && node.provider_id.is_empty());
    let is_needed = !annotations.is_empty() || !labels.is_empty() || provider_id.is_some();
    is_needed.then(|| NodeChange::Add {
        annotations,
        labels,
        provider_id: provider_id.map(ToOwned::to_owned),
    })
}

/// Removes the finalizer and what was saved, in one write.
pub(super) fn release(remediation: &Metal3Remediation) -> Option<MergePatch> {
    let mut after = remediation.clone();
    if let Some(annotations) = &mut after.metadata.annotations {
        annotations.retain(|key, _| key != NODE_ANNOTATIONS_BACKUP && key != NODE_LABELS_BACKUP);
    }
    if let Some(finalizers) = &mut after.metadata.finalizers {
        finalizers.retain(|name| name != REMEDIATION_FINALIZER);
    }
    let at = version(&remediation.metadata)?;
    Some(changes(remediation, &after).main?.with_precondition(&at))
}
