//! The labels of one Node: read live when they may have to change, and known by a digest while they do not.
//!
//! A cache of all labels of all Nodes would let a tenant's server decide about the memory of this program.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use kube_core::ObjectMeta;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The longest key that Kubernetes permits: a DNS subdomain, a slash and a name.
const LONGEST_KEY: usize = 317;
const LONGEST_VALUE: usize = 63;

/// Differs when labels with a prefix differ. Digests of two processes cannot be compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelDigest(u64);

impl LabelDigest {
    /// The digest of some labels, in any order.
    pub fn of<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut digest = Self::default();
        labels.into_iter().for_each(|(key, value)| digest.add(key, value));
        digest
    }

    pub(super) fn add(&mut self, key: &str, value: &str) {
        /// A tenant who knew the keys could make labels with equal digests.
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        if key.contains('/') {
            self.0 = self.0.wrapping_add(KEYS.hash_one((key, value)));
        }
    }
}

/// A Node with its labels and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LabelledNode {
    metadata: ObjectMeta,
}

impl LabelledNode {
    /// The same Node with other labels.
    #[must_use]
    pub fn with_labels(&self, labels: &BTreeMap<&str, &str>) -> Self {
        let owned = |(key, value): (&&str, &&str)| ((*key).to_owned(), (*value).to_owned());
        let mut node = self.clone();
        let has_labels = !labels.is_empty() || self.metadata.labels.is_some();
        node.metadata.labels = has_labels.then(|| labels.iter().map(owned).collect());
        node
    }

    /// Its name, UID and version.
    #[must_use]
    pub const fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// Its labels, by key.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.metadata.labels.iter().flatten();
        labels.map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

#[derive(Deserialize)]
struct Sent {
    metadata: SentMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentMetadata {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    #[serde(default, deserialize_with = "super::live::map")]
    labels: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for LabelledNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SentMetadata {
            name,
            uid,
            resource_version,
            labels,
        } = Sent::deserialize(deserializer)?.metadata;
        let is_long = |(key, value): (&String, &String)| key.len() > LONGEST_KEY || value.len() > LONGEST_VALUE;
        if labels.iter().any(is_long) {
            return Err(D::Error::custom("a label is too long"));
        }
        Ok(Self {
            metadata: ObjectMeta {
                name,
                uid,
                resource_version,
                labels: Some(labels).filter(|labels| !labels.is_empty()),
                ..ObjectMeta::default()
            },
        })
    }
}

metal3_runtime::resource!(LabelledNode: ClusterResourceScope, "", "v1", "Node", "nodes");

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digest_differs_exactly_when_a_label_with_a_prefix_differs() {
        let of = |labels: &[(&'static str, &'static str)]| LabelDigest::of(labels.iter().copied());
        let one = of(&[("a.b/c", "1"), ("a.b/d", "2")]);
        assert_eq!(one, of(&[("a.b/d", "2"), ("plain", "x"), ("a.b/c", "1")]));
        for other in [
            &[("a.b/c", "2"), ("a.b/d", "1")][..],
            &[("a.b/c", "1")],
            &[("a.b/c", "1"), ("a.b/d", "2"), ("a.b/e", "")],
            &[("a.b/c1", ""), ("a.b/d", "2")],
        ] {
            assert_ne!(one, of(other), "{other:?}");
        }
    }

    #[test]
    fn node_with_more_or_longer_labels_than_kubernetes_permits_is_not_decoded() {
        let decode = |labels: BTreeMap<String, String>| {
            let node = json!({ "metadata": { "name": "n", "labels": labels, "annotations": { "large": "x".repeat(1 << 20) } } });
            serde_json::from_value::<LabelledNode>(node)
        };
        let label = |key: usize, value: usize| BTreeMap::from([("k".repeat(key), "v".repeat(value))]);
        let node = decode(label(LONGEST_KEY, LONGEST_VALUE)).unwrap();
        assert!(node.metadata.annotations.is_none());
        assert_eq!(node.labels().count(), 1);
        assert!(decode(label(LONGEST_KEY + 1, 1)).is_err());
        assert!(decode(label(1, LONGEST_VALUE + 1)).is_err());
        let many = (0..=1000).map(|number| (format!("a/{number}"), String::new()));
        assert!(decode(many.collect()).is_err());
    }
}
