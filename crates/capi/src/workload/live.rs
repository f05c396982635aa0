//! What is read live of a Node, of its Pods and of its volumes: the fields that are used, and no more of them than Kubernetes
//! has. The server of a tenant may send anything, and what is decoded takes many times the length of its text.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::api::core::v1::Taint;
use kube_core::ObjectMeta;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Labels, annotations and taints of one object that are read, of each.
const MOST: usize = 1000;

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

/// A Node as the server sends it.
#[derive(Clone, Serialize)]
pub(super) struct SentNode {
    metadata: ObjectMeta,
    #[serde(skip)]
    pub(super) node: LiveNode,
}

/// A Pod of which only its end is of interest.
pub(super) struct SentPod {
    metadata: ObjectMeta,
    pub(super) is_terminating: bool,
}

/// A volume that may be attached to a Node.
pub(super) struct SentVolume {
    metadata: ObjectMeta,
    pub(super) node: String,
}

metal3_runtime::resource!(SentNode: ClusterResourceScope, "", "v1", "Node", "nodes");
metal3_runtime::resource!(SentPod: NamespaceResourceScope, "", "v1", "Pod", "pods");
metal3_runtime::resource!(
    SentVolume: ClusterResourceScope, "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments"
);

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(deserialize_with = "map")]
    annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "map")]
    labels: BTreeMap<String, String>,
}

impl Metadata {
    /// What identifies the object.
    fn identity(&self) -> ObjectMeta {
        ObjectMeta {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            ..ObjectMeta::default()
        }
    }
}

impl<'de> Deserialize<'de> for SentNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Spec {
            #[serde(rename = "providerID")]
            provider_id: Option<String>,
            #[serde(deserialize_with = "list")]
            taints: Vec<Taint>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Status {
            node_info: Info,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Info {
            kubelet_version: String,
        }
        #[derive(Deserialize)]
        struct Sent {
            metadata: Metadata,
            #[serde(default)]
            spec: Spec,
            #[serde(default)]
            status: Status,
        }
        let Sent { metadata, spec, status } = Sent::deserialize(deserializer)?;
        Ok(Self {
            metadata: metadata.identity(),
            node: LiveNode {
                name: metadata.name.ok_or_else(|| D::Error::missing_field("name"))?,
                uid: metadata.uid.ok_or_else(|| D::Error::missing_field("uid"))?,
                version: metadata
                    .resource_version
                    .ok_or_else(|| D::Error::missing_field("resourceVersion"))?,
                is_deleting: metadata.deletion_timestamp.is_some(),
                provider_id: spec.provider_id.unwrap_or_default(),
                kubelet_version: status.node_info.kubelet_version,
                annotations: metadata.annotations,
                labels: metadata.labels,
                taints: spec.taints,
            },
        })
    }
}

impl<'de> Deserialize<'de> for SentPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Sent {
            metadata: Metadata,
        }
        let metadata = Sent::deserialize(deserializer)?.metadata;
        Ok(Self {
            metadata: metadata.identity(),
            is_terminating: metadata.deletion_timestamp.is_some(),
        })
    }
}

impl<'de> Deserialize<'de> for SentVolume {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            node_name: String,
        }
        #[derive(Deserialize)]
        struct Sent {
            metadata: Metadata,
            spec: Spec,
        }
        let Sent { metadata, spec } = Sent::deserialize(deserializer)?;
        Ok(Self {
            metadata: metadata.identity(),
            node: spec.node_name,
        })
    }
}

/// A map of texts with a limited number of entries. It may be null.
pub(super) fn map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct Limited;

    impl<'de> Visitor<'de> for Limited {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "at most {MOST} texts by key")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = entries.next_entry()? {
                map.insert(key, value);
                if map.len() > MOST {
                    return Err(A::Error::invalid_length(map.len(), &self));
                }
            }
            Ok(map)
        }
    }

    deserializer.deserialize_any(Limited)
}

/// A list with a limited number of items. It may be null.
fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Limited<T>(PhantomData<T>);

    impl<'de, T: DeserializeOwned> Visitor<'de> for Limited<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "at most {MOST} items")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut list = Vec::new();
            while let Some(item) = items.next_element()? {
                list.push(item);
                if list.len() > MOST {
                    return Err(A::Error::invalid_length(list.len(), &self));
                }
            }
            Ok(list)
        }
    }

    deserializer.deserialize_any(Limited(PhantomData))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(change: &Value) -> Result<LiveNode, serde_json::Error> {
        let mut node = json!({
            "metadata": { "name": "n", "uid": "u", "resourceVersion": "7", "managedFields": [{}], "labels": { "a": "b" } },
            "spec": { "providerID": "metal3://a/b/c", "taints": [{ "key": "k", "effect": "NoExecute" }] },
            "status": { "nodeInfo": { "kubeletVersion": "v1.34.1" }, "images": [{}] },
        });
        metal3_runtime::patch::apply(change, &mut node);
        serde_json::from_value::<SentNode>(node).map(|sent| sent.node)
    }

    #[test]
    fn fields_of_a_node_are_read_and_may_be_null_or_missing() {
        let read = node(&json!({})).unwrap();
        assert_eq!(
            (read.name.as_str(), read.version.as_str(), read.is_deleting),
            ("n", "7", false)
        );
        assert_eq!(
            (read.kubelet_version.as_str(), read.taints.len(), read.labels.len()),
            ("v1.34.1", 1, 1)
        );
        for change in [
            json!({ "metadata": { "labels": null }, "spec": { "taints": null, "providerID": null }, "status": null }),
            json!({ "spec": null }),
        ] {
            assert_eq!(node(&change).unwrap().taints, []);
        }
        assert!(
            node(&json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }))
                .unwrap()
                .is_deleting
        );
        assert!(node(&json!({ "metadata": { "uid": null } })).is_err());
    }

    #[test]
    fn node_with_more_labels_annotations_or_taints_than_kubernetes_permits_is_not_decoded() {
        let texts = |number: usize| {
            (0..number)
                .map(|one| (one.to_string(), String::new()))
                .collect::<BTreeMap<_, _>>()
        };
        let taints = |number: usize| vec![json!({ "key": "k", "effect": "NoExecute" }); number];
        for (number, is_read) in [(MOST, true), (MOST + 1, false)] {
            for change in [
                json!({ "metadata": { "labels": null, "annotations": texts(number) } }),
                json!({ "metadata": { "labels": texts(number - usize::from(is_read)) } }),
                json!({ "spec": { "taints": taints(number) } }),
            ] {
                assert_eq!(node(&change).is_ok(), is_read, "{number}");
            }
        }
    }
}
