//! Snapshots built from documents.

use serde_json::{Value, json};

use crate::kinds::find;
use crate::program::{Providers, writes};
use crate::view::{Object, Snapshot, WorkloadView};
use crate::write::{WorkloadChange, Write};

pub(super) const ENDPOINT: &str = "192.0.2.10:6443";

/// A snapshot of these objects, each `(kind, name, rest)`. The UID of an object is its kind and name.
pub(super) fn snapshot(objects: &[(&str, &str, Value)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (number, (kind, name, rest)) in objects.iter().enumerate() {
        let known = find(kind).unwrap();
        let mut object = rest.clone();
        object["apiVersion"] = json!(known.api_version());
        object["kind"] = json!(kind);
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!("default");
        object["metadata"]["uid"] = json!(format!("{kind}/{name}"));
        object["metadata"]["resourceVersion"] = json!((number + 1).to_string());
        assert!(snapshot.put(known, Object(object)));
    }
    snapshot
}

/// A provisioned Cluster, initialized or not.
pub(super) fn cluster(is_initialized: bool) -> Value {
    json!({
        "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] },
        "spec": {
            "controlPlaneEndpoint": { "host": "192.0.2.10", "port": 6443 },
            "infrastructureRef": { "kind": "Metal3Cluster", "name": "edge" },
        },
        "status": { "initialization": {
            "infrastructureProvisioned": true, "controlPlaneInitialized": is_initialized,
        } },
    })
}

pub(super) fn owner(kind: &str, name: &str) -> Value {
    json!([{ "kind": kind, "name": name, "uid": format!("{kind}/{name}"), "controller": true }])
}

pub(super) fn with_workload(mut snapshot: Snapshot, nodes: &[Value]) -> Snapshot {
    let nodes = nodes.iter().cloned().map(Object).collect();
    snapshot
        .workloads
        .insert(ENDPOINT.to_owned(), WorkloadView { is_up: true, nodes });
    snapshot
}

/// Short forms of the due writes, except status writes.
pub(super) fn due(snapshot: &Snapshot) -> Vec<String> {
    let short = |write: Write| match write {
        Write::Create(kind, object) => Some(format!("create {} {}", kind.kind, object["metadata"]["name"].as_str()?)),
        Write::Merge(kind, key, change) => {
            let what = change.as_object()?.values().next()?.as_object()?;
            let what: Vec<&str> = what
                .keys()
                .map(String::as_str)
                .filter(|key| *key != "resourceVersion")
                .collect();
            Some(format!("change {} {}: {}", kind.kind, key.name, what.join(" ")))
        }
        Write::Status(..) => None,
        Write::ClusterSecret(_, purpose, secret) => {
            Some(format!("create {}: {purpose:?}", secret["metadata"]["name"].as_str()?))
        }
        Write::Delete(kind, key) => Some(format!("delete {} {}", kind.kind, key.name)),
        Write::Workload(_, WorkloadChange::Token(_)) => Some("token".to_owned()),
        Write::Workload(_, change) => Some(format!("{change:?}")),
    };
    writes(snapshot, Providers::All).into_iter().filter_map(short).collect()
}

/// The due status of an object.
pub(super) fn status(snapshot: &Snapshot, kind: &str, name: &str) -> Value {
    let of = |write: Write| match write {
        Write::Status(of, key, change) if of.kind == kind && key.name == name => Some(change["status"].clone()),
        _ => None,
    };
    writes(snapshot, Providers::All)
        .into_iter()
        .find_map(of)
        .unwrap_or_default()
}
