//! Pods for tests, from manifests.

use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};

use super::fields::Placement;

/// A bound Pod `team/web-1` with the given spec.
pub(crate) fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "web-1", "namespace": "team", "uid": "u-1", "labels": {"app": "web"}, "annotations": {"note": "a\"b"}},
        "spec": spec,
    }))
    .expect("a Pod")
}

pub(crate) fn container(value: Value) -> Container {
    serde_json::from_value(value).expect("a container")
}

pub(crate) fn placement() -> Placement {
    Placement {
        node_name: "n".into(),
        node_address: "10.0.0.1".into(),
        pod_address: "10.0.0.7".into(),
    }
}
