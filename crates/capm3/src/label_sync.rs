//! The labels of a host that its Node gets.
//!
//! A Metal3Cluster selects them by prefix. They are copied in one direction: on the Node, a label with a selected prefix that
//! the host does not have is removed.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::infrastructure::names::LABEL_PREFIXES_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::infrastructure::{LabelPrefixError, label_prefixes};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::{LabelDigest, LabelledNode, NODE_HOST_UID_LABEL};
use metal3_runtime::patch::MergePatch;

use crate::diff::{changes, version};

/// Prefixes, and their subdomains, of labels that Kubernetes itself and its projects, such as Cluster API, set on Nodes.
const OF_KUBERNETES: [&str; 3] = ["kubernetes.io", "k8s.io", "x-k8s.io"];

/// The labels that a Node has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedLabels<'a> {
    text: &'a str,
    prefixes: BTreeSet<&'a str>,
    labels: BTreeMap<&'a str, &'a str>,
}

/// What was copied to a Node. While all of it stays the same, the Node is not read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedLabels {
    /// Name of the Node.
    pub node: String,
    /// The prefixes, as the annotation has them.
    pub prefixes: String,
    /// The labels of the host.
    pub wanted: LabelDigest,
    /// All labels of the Node.
    pub found: LabelDigest,
}

impl<'a> WantedLabels<'a> {
    /// The labels of the host that the Metal3Cluster selects; `None` when it selects none by any prefix.
    ///
    /// # Errors
    /// When its annotation cannot be read.
    pub fn select(cluster: &'a Metal3Cluster, host: &'a BareMetalHost) -> Result<Option<Self>, LabelPrefixError> {
        let annotations = cluster.metadata.annotations.as_ref();
        let text = annotations.and_then(|annotations| annotations.get(LABEL_PREFIXES_ANNOTATION));
        let Some(text) = text.map(String::as_str) else {
            return Ok(None);
        };
        let prefixes = label_prefixes(text)?;
        let labels = host.metadata.labels.iter().flatten();
        let labels = labels.map(|(key, value)| (key.as_str(), value.as_str()));
        let labels = labels.filter(|(key, _)| is_selected(&prefixes, key)).collect();
        Ok(Some(Self { text, prefixes, labels }).filter(|wanted| !wanted.prefixes.is_empty()))
    }

    /// What is copied when a Node has these labels.
    #[must_use]
    pub fn copied_to(&self, node: &str, found: LabelDigest) -> CopiedLabels {
        CopiedLabels {
            node: node.to_owned(),
            prefixes: self.text.to_owned(),
            wanted: LabelDigest::of(self.labels.iter().map(|(key, value)| (*key, *value))),
            found,
        }
    }

    /// Whether a host with these labels was copied before, whatever happened to the Node since.
    #[must_use]
    pub fn were_copied(&self, copied: &CopiedLabels) -> bool {
        *copied == self.copied_to(&copied.node, copied.found)
    }

    /// The patch that gives the Node the labels, at the version that was read, and the digest of its labels afterwards.
    #[must_use]
    pub fn change(&self, node: &LabelledNode) -> (Option<MergePatch>, LabelDigest) {
        let keeps =
            |key: &str| !is_selected(&self.prefixes, key) || self.labels.contains_key(key) || is_of_kubernetes(key);
        let mut labels: BTreeMap<&str, &str> = node.labels().filter(|(key, _)| keeps(key)).collect();
        labels.extend(&self.labels);
        let digest = LabelDigest::of(labels.iter().map(|(key, value)| (*key, *value)));
        let patch = changes(node, &node.with_labels(&labels)).main;
        let at = version(node.metadata());
        (patch.zip(at).map(|(patch, at)| patch.with_precondition(&at)), digest)
    }
}

/// The label by which a machine finds its Node is never copied.
fn is_selected(prefixes: &BTreeSet<&str>, key: &str) -> bool {
    let prefix = key.split_once('/').map(|(prefix, _)| prefix);
    key != NODE_HOST_UID_LABEL && prefix.is_some_and(|prefix| prefixes.contains(prefix))
}

/// Whether Kubernetes, or a controller of its projects, may have set the label: it is set and changed, but never removed.
///
/// differs (`label-sync-kubernetes`): the Go manager removes it, such as the role of a control plane.
fn is_of_kubernetes(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    OF_KUBERNETES.iter().any(|reserved| {
        prefix
            .strip_suffix(reserved)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(prefixes: Option<&str>) -> Metal3Cluster {
        let annotations = prefixes.map(|prefixes| json!({ LABEL_PREFIXES_ANNOTATION: prefixes }));
        serde_json::from_value(json!({ "metadata": { "name": "edge", "annotations": annotations } })).unwrap()
    }

    fn host(labels: Value) -> BareMetalHost {
        serde_json::from_value(json!({ "metadata": { "name": "h0", "labels": labels } })).unwrap()
    }

    fn node(labels: &Value) -> LabelledNode {
        let metadata = json!({ "name": "n", "uid": "u", "resourceVersion": "7", "labels": labels });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    /// The patch of the labels, or nothing.
    fn patched(prefixes: &str, of_host: Value, of_node: &Value) -> Value {
        let (cluster, host, before) = (cluster(Some(prefixes)), host(of_host), node(of_node));
        let wanted = WantedLabels::select(&cluster, &host).unwrap().unwrap();
        let (patch, digest) = wanted.change(&before);
        let patch = patch.map_or(Value::Null, MergePatch::into_document);
        let mut after = serde_json::to_value(&before).unwrap();
        metal3_runtime::patch::apply(&patch, &mut after);
        if patch.is_null() {
            after = serde_json::to_value(&before).unwrap();
        }
        let after: LabelledNode = serde_json::from_value(after).unwrap();
        assert_eq!(
            digest,
            LabelDigest::of(after.labels()),
            "the digest is of what the patch gives"
        );
        assert_eq!(wanted.change(&after), (None, digest), "it is complete");
        patch["metadata"]["labels"].clone()
    }

    #[test]
    fn labels_with_a_selected_prefix_are_set_changed_and_removed() {
        let (none, gone) = (Value::Null, Value::Null);
        for (prefixes, of_host, of_node, expected) in [
            (
                "a.io",
                json!({ "a.io/x": "1", "b.io/x": "1", "x": "1" }),
                json!({}),
                json!({ "a.io/x": "1" }),
            ),
            (
                "a.io",
                json!({ "a.io/x": "1" }),
                json!({ "a.io/x": "1", "b.io/x": "2" }),
                none.clone(),
            ),
            (
                "a.io, b.io",
                json!({ "a.io/x": "2" }),
                json!({ "a.io/x": "1", "b.io/y": "1" }),
                json!({ "a.io/x": "2", "b.io/y": gone }),
            ),
            // The prefix itself, not its subdomains.
            (
                "a.io",
                json!({ "sub.a.io/x": "1" }),
                json!({ "sub.a.io/y": "1" }),
                none.clone(),
            ),
            (
                "a.io",
                json!(null),
                json!({ "a.io/x": "1", "x": "1" }),
                json!({ "a.io/x": null }),
            ),
        ] {
            assert_eq!(
                patched(prefixes, of_host.clone(), &of_node),
                expected,
                "{prefixes}: {of_host} on {of_node}"
            );
        }
    }

    #[test]
    fn labels_of_kubernetes_and_of_the_match_with_the_host_are_not_removed() {
        let roles = json!({ "node-role.kubernetes.io/control-plane": "", "kubernetes.io/os": "linux", "k8s.io/x": "1", "node.cluster.x-k8s.io/x": "1" });
        let prefixes = "node-role.kubernetes.io,kubernetes.io,k8s.io,node.cluster.x-k8s.io";
        assert_eq!(patched(prefixes, json!({}), &roles), Value::Null);
        let worker = json!({ "node-role.kubernetes.io/worker": "" });
        assert_eq!(patched(prefixes, worker.clone(), &roles), worker);
        assert_eq!(
            patched("notkubernetes.io", json!({}), &json!({ "notkubernetes.io/x": "1" })),
            json!({ "notkubernetes.io/x": null })
        );
        let uid = json!({ "metal3.io/uuid": "u" });
        assert_eq!(
            patched("metal3.io", json!({ "metal3.io/uuid": "other" }), &uid),
            Value::Null
        );
    }

    #[test]
    fn patch_is_rejected_when_the_node_changed_since_it_was_read() {
        let (cluster, host) = (cluster(Some("a.io")), host(json!({ "a.io/x": "1" })));
        let wanted = WantedLabels::select(&cluster, &host).unwrap().unwrap();
        let patch = wanted.change(&node(&json!({}))).0.unwrap().into_document();
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn cluster_without_prefixes_selects_nothing_and_one_with_bad_prefixes_is_an_error() {
        let host = host(json!({ "a.io/x": "1" }));
        for none in [None, Some(""), Some(" , ")] {
            assert_eq!(WantedLabels::select(&cluster(none), &host), Ok(None));
        }
        assert!(WantedLabels::select(&cluster(Some("a.io,A")), &host).is_err());
    }

    #[test]
    fn what_was_copied_differs_when_prefixes_host_or_node_differ() {
        let (first, second) = (cluster(Some("a.io")), cluster(Some("a.io,b.io")));
        let (old, new) = (host(json!({ "a.io/x": "1" })), host(json!({ "a.io/x": "2" })));
        let of = |cluster, host| WantedLabels::select(cluster, host).unwrap().unwrap();
        let found = LabelDigest::of([("a.io/x", "1")]);
        let copied = of(&first, &old).copied_to("n", found);
        assert_eq!(copied, of(&first, &old).copied_to("n", found));
        assert!(of(&first, &old).were_copied(&copied));
        for other in [
            of(&second, &old).copied_to("n", found),
            of(&first, &new).copied_to("n", found),
            of(&first, &old).copied_to("m", found),
            of(&first, &old).copied_to("n", LabelDigest::default()),
        ] {
            assert_ne!(copied, other);
        }
        assert!(!of(&first, &new).were_copied(&copied) && !of(&second, &old).were_copied(&copied));
    }
}
