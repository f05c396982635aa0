//! A Node as it is cached: the fields that are read, and nothing else.
//!
//! The API server of a workload cluster belongs to a tenant, so it may send anything. Other fields are skipped while they are
//! decoded, and an object with longer texts than Kubernetes permits is not decoded.
//!
//! differs: `node-of-tenant`. The Go manager keeps whole Nodes.

use std::borrow::Cow;

use k8s_openapi::ClusterResourceScope;
use kube_core::{ObjectMeta, Resource};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The longest text of a field: longer than any name, UID, label and provider ID.
const LONGEST: usize = 1024;

/// A Node of a workload cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkloadNode {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Labels {
    #[serde(rename = "metal3.io/uuid")]
    host_uid: Option<String>,
    #[serde(rename = "kubernetes.io/hostname")]
    hostname: Option<String>,
}

impl<'de> Deserialize<'de> for WorkloadNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Sent { metadata, spec } = Sent::deserialize(deserializer)?;
        let (spec, labels) = (spec.unwrap_or_default(), metadata.labels.unwrap_or_default());
        let texts = [
            &metadata.name,
            &metadata.uid,
            &metadata.resource_version,
            &labels.host_uid,
            &labels.hostname,
            &spec.provider_id,
        ];
        if texts.into_iter().flatten().any(|text| text.len() > LONGEST) {
            return Err(D::Error::custom("a field is too long"));
        }
        let labels = [
            (super::HOST_UID_LABEL, labels.host_uid),
            (super::HOSTNAME_LABEL, labels.hostname),
        ];
        let labels = labels
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Ok(Self {
            metadata: ObjectMeta {
                name: metadata.name,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                labels: Some(labels.collect()),
                ..ObjectMeta::default()
            },
            spec,
        })
    }
}

impl WorkloadNode {
    /// The relevant fields.
    pub(super) fn fields(&self) -> super::Node {
        let labels = self.metadata.labels.as_ref();
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).cloned().unwrap_or_default();
        super::Node {
            name: self.metadata.name.clone().unwrap_or_default(),
            provider_id: self.spec.provider_id.clone().unwrap_or_default(),
            host_uid: label(super::HOST_UID_LABEL),
            hostname: label(super::HOSTNAME_LABEL),
        }
    }
}

impl Resource for WorkloadNode {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Node".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "nodes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

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
        let kept = json!({
            "metadata": { "name": "n", "uid": "u", "resourceVersion": "1",
                "labels": { "metal3.io/uuid": "host", "kubernetes.io/hostname": "n" } },
            "spec": { "providerID": "metal3://a/b/c" },
        });
        assert_eq!(serde_json::to_value(&node).unwrap(), kept);
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
}
