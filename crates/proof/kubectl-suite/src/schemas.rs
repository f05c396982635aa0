//! The published schemas of the built-in kinds, which the simulated API server serves.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::real::Real;

/// Documents and the kinds in them.
const KINDS: &[(&str, &[&str])] = &[
    (
        "api/v1",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    ("apis/apiextensions.k8s.io/v1", &["CustomResourceDefinition"]),
    (
        "apis/apps/v1",
        &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
    ),
    ("apis/batch/v1", &["CronJob", "Job"]),
    ("apis/coordination.k8s.io/v1", &["Lease"]),
    ("apis/discovery.k8s.io/v1", &["EndpointSlice"]),
    ("apis/networking.k8s.io/v1", &["Ingress"]),
    (
        "apis/rbac.authorization.k8s.io/v1",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    ("apis/storage.k8s.io/v1", &["VolumeAttachment"]),
];

/// Reads the schemas of a server as text, one a line.
pub(crate) async fn read(real: &Real) -> Result<String> {
    let mut kept = BTreeMap::new();
    for (place, kinds) in KINDS {
        let document = real.read(&format!("/openapi/v3/{place}")).await?;
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
        let schemas = schemas.with_context(|| format!("{place}: no schemas"))?;
        let mut open: Vec<&str> = Vec::new();
        for (name, schema) in schemas {
            if is_one_of(schema, kinds) {
                open.push(name);
            }
        }
        while let Some(name) = open.pop() {
            let schema = schemas
                .get(name)
                .with_context(|| format!("{place}: no schema {name}"))?;
            if kept.insert(name.to_owned(), schema.clone()).is_none() {
                open.extend(references(schema));
            }
        }
    }
    let line = |(name, schema): (&String, &Value)| format!("{}:{schema}", Value::from(name.as_str()));
    let lines: Vec<String> = kept.iter().map(line).collect();
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

/// Whether a schema is that of one kind, which is one of these.
fn is_one_of(schema: &Value, kinds: &[&str]) -> bool {
    let named = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
    match named.map(Vec::as_slice) {
        Some([one]) => one
            .get("kind")
            .and_then(Value::as_str)
            .is_some_and(|kind| kinds.contains(&kind)),
        _ => false,
    }
}

fn references(schema: &Value) -> BTreeSet<&str> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|own| own.rsplit('/').next());
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_found_at_any_depth() {
        let schema = json!({ "properties": { "a": { "allOf": [{ "$ref": "#/components/schemas/x" }] }, "$ref": { "type": "string" } } });
        assert_eq!(references(&schema), BTreeSet::from(["x"]));
    }

    #[test]
    fn options_that_belong_to_all_kinds_are_no_kind() {
        let named = |count: usize| json!({ "x-kubernetes-group-version-kind": vec![json!({ "kind": "Pod" }); count] });
        assert!(is_one_of(&named(1), &["Pod"]) && !is_one_of(&named(2), &["Pod"]) && !is_one_of(&json!({}), &["Pod"]));
    }
}
