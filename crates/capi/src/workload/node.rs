//! A Node as it is cached: the fields that are read, and nothing else.
//!
//! The API server of a workload cluster belongs to a tenant, so it may send anything. Other fields are skipped while they are
//! decoded, and an object with longer texts than Kubernetes permits is not decoded.
//!
//! differs: `node-of-tenant`. The Go manager keeps whole Nodes.

use std::fmt;
use std::sync::Arc;

use kube_core::ObjectMeta;
use metal3_domain::names::ObjectName;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::LabelDigest;

/// The label with the UID of a Node's host.
pub const NODE_HOST_UID_LABEL: &str = "metal3.io/uuid";
/// The label with the host name that the kubelet reports.
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// The longest label that is kept, UID and version: as long as Kubernetes permits.
const LONGEST: usize = 63;
/// The longest provider ID.
const LONGEST_PROVIDER_ID: usize = 512;

/// A Node of a workload cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkloadNode {
    metadata: ObjectMeta,
    /// Shared by all machines that wait for their Nodes.
    #[serde(skip)]
    fields: Arc<super::Node>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "providerID")]
    provider_id: Option<String>,
}

#[derive(Deserialize)]
struct Sent {
    metadata: SentMetadata,
    #[serde(default)]
    spec: Option<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentMetadata {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    #[serde(default)]
    labels: Option<Labels>,
}

/// The labels that are read, and a digest of those with a prefix.
#[derive(Default)]
struct Labels {
    host_uid: Option<String>,
    hostname: Option<String>,
    digest: LabelDigest,
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LabelVisitor)
    }
}

struct LabelVisitor;

impl<'de> Visitor<'de> for LabelVisitor {
    type Value = Labels;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("labels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut labels = Labels::default();
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            labels.digest.add(&key, &value);
            match key.as_str() {
                NODE_HOST_UID_LABEL => labels.host_uid = Some(value),
                HOSTNAME_LABEL => labels.hostname = Some(value),
                _ => {}
            }
        }
        Ok(labels)
    }
}

impl<'de> Deserialize<'de> for WorkloadNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Sent { metadata, spec } = Sent::deserialize(deserializer)?;
        let (spec, labels) = (spec.unwrap_or_default(), metadata.labels.unwrap_or_default());
        let texts = [
            &metadata.uid,
            &metadata.resource_version,
            &labels.host_uid,
            &labels.hostname,
        ];
        let is_long = |text: &Option<String>, most: usize| text.as_ref().is_some_and(|text| text.len() > most);
        if texts.into_iter().any(|text| is_long(text, LONGEST)) || is_long(&spec.provider_id, LONGEST_PROVIDER_ID) {
            return Err(D::Error::custom("a field is too long"));
        }
        // A name reaches conditions and logs.
        let name = metadata.name.unwrap_or_default();
        if ObjectName::parse(name.as_str()).is_err() {
            return Err(D::Error::custom("the name is invalid"));
        }
        Ok(Self {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
            fields: Arc::new(super::Node {
                name,
                provider_id: spec.provider_id.unwrap_or_default(),
                host_uid: labels.host_uid.unwrap_or_default(),
                hostname: labels.hostname.unwrap_or_default(),
                labels: labels.digest,
            }),
        })
    }
}

impl WorkloadNode {
    /// The relevant fields.
    pub(super) const fn fields(&self) -> &Arc<super::Node> {
        &self.fields
    }
}

metal3_runtime::resource!(WorkloadNode: ClusterResourceScope, "", "v1", "Node", "nodes");

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> serde_json::Value {
        json!({
            "metadata": { "name": "n", "uid": "u", "resourceVersion": "1", "annotations": { "large": "x".repeat(1 << 20) },
                "labels": { "metal3.io/uuid": "host", "kubernetes.io/hostname": "n", "other": "x".repeat(1 << 20) } },
            "spec": { "providerID": "metal3://a/b/c", "podCIDRs": ["x".repeat(1 << 20)] },
            "status": { "images": [{ "names": ["x".repeat(1 << 20)] }] },
        })
    }

    #[test]
    fn only_the_fields_that_are_read_are_kept() {
        let node: WorkloadNode = serde_json::from_value(document()).unwrap();
        let kept = json!({ "metadata": { "name": "n", "uid": "u", "resourceVersion": "1" } });
        assert_eq!(serde_json::to_value(&node).unwrap(), kept);
        let fields = [
            &node.fields.name,
            &node.fields.provider_id,
            &node.fields.host_uid,
            &node.fields.hostname,
        ];
        assert_eq!(fields, ["n", "metal3://a/b/c", "host", "n"]);
        let labels = [("metal3.io/uuid", "host"), ("kubernetes.io/hostname", "n")];
        assert_eq!(node.fields.labels, LabelDigest::of(labels));
    }

    #[test]
    fn node_with_a_longer_text_than_kubernetes_permits_is_not_decoded() {
        for pointer in [
            "/metadata/name",
            "/metadata/labels/kubernetes.io~1hostname",
            "/spec/providerID",
        ] {
            let mut document = document();
            *document.pointer_mut(pointer).unwrap() = "x".repeat(1 << 20).into();
            assert!(serde_json::from_value::<WorkloadNode>(document).is_err(), "{pointer}");
        }
    }

    #[test]
    fn node_whose_name_is_any_text_is_not_decoded() {
        for name in ["", "A node", "n\nlevel=error", "n;rm"] {
            let mut document = document();
            document["metadata"]["name"] = name.into();
            assert!(serde_json::from_value::<WorkloadNode>(document).is_err(), "{name:?}");
        }
    }
}
