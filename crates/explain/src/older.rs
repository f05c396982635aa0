//! Objects of an older version in the shape of the one whose content is understood.
//!
//! A management cluster whose Cluster API serves only `v1beta1` has the same steps under other names. Objects are converted when
//! they are decoded: a bundle has them as the server returned them.

use std::borrow::Cow;

use metal3_api::cluster::names::{GROUP as CLUSTER_GROUP, IPAM_GROUP};
use metal3_api::infrastructure::conversion::{Version, convert};
use metal3_api::infrastructure::names::GROUP as INFRASTRUCTURE_GROUP;
use metal3_api::kind::Kind;
use metal3_api::meta::Time;
use serde_json::{Map, Value, json};

use crate::values::text;

/// The object as its kind decodes it. One that is not understood stays, and is reported by the decoder.
pub(crate) fn newest<K: Kind>(object: &Value) -> Cow<'_, Value> {
    let api_version = text(object, "/apiVersion");
    if api_version.is_empty() || api_version == K::group_version() {
        return Cow::Borrowed(object);
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match group {
        group if group != K::GROUP => Cow::Borrowed(object),
        INFRASTRUCTURE_GROUP => convert(object, Version::V1Beta2).map_or(Cow::Borrowed(object), Cow::Owned),
        CLUSTER_GROUP | IPAM_GROUP => Cow::Owned(of_cluster_api(object.clone(), &K::group_version())),
        _ => Cow::Borrowed(object),
    }
}

/// Places of references to objects.
const REFERENCES: [&str; 3] = [
    "/spec/infrastructureRef",
    "/spec/controlPlaneRef",
    "/spec/bootstrap/configRef",
];
/// Members of `status` that became members of `status.initialization`.
const STEPS: [(&str, &str); 3] = [
    ("infrastructureReady", "infrastructureProvisioned"),
    ("controlPlaneReady", "controlPlaneInitialized"),
    ("bootstrapReady", "bootstrapDataSecretCreated"),
];

fn of_cluster_api(mut object: Value, api_version: &str) -> Value {
    for place in REFERENCES {
        if let Some(reference) = object.pointer_mut(place).and_then(Value::as_object_mut) {
            let version = reference.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
            reference.entry("apiGroup").or_insert(Value::from(group));
        }
    }
    let is_cluster = text(&object, "/kind") == "Cluster";
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        renew_status(status, is_cluster);
    }
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), Value::from(api_version));
    }
    object
}

fn renew_status(status: &mut Map<String, Value>, is_cluster: bool) {
    let mut steps = Map::new();
    for (older, newer) in STEPS {
        if let Some(done) = status.get(older).cloned() {
            steps.insert(newer.to_owned(), done);
        }
    }
    let conditions = renewed_conditions(status, is_cluster);
    let is_initialized =
        |one: &Value| text(one, "/type") == "ControlPlaneInitialized" && text(one, "/status") == "True";
    if conditions.iter().any(is_initialized) {
        steps.insert("controlPlaneInitialized".to_owned(), Value::from(true));
    }
    status.entry("initialization").or_insert(Value::Object(steps));
    status.insert("conditions".to_owned(), Value::Array(conditions));
}

/// The conditions of the newer form if the version has them in addition to its own, otherwise its own.
fn renewed_conditions(status: &Map<String, Value>, is_cluster: bool) -> Vec<Value> {
    let newer = status.get("v1beta2").and_then(|newer| newer.get("conditions"));
    let newer = newer.and_then(Value::as_array).filter(|all| !all.is_empty());
    let older = status.get("conditions").and_then(Value::as_array);
    let mut all: Vec<Value> = newer.or(older).into_iter().flatten().map(condition).collect();
    let has = |all: &[Value], kind: &str| all.iter().any(|one| text(one, "/type") == kind);
    // The older summary of a Cluster.
    if is_cluster && !has(&all, "Available") {
        let ready = all.iter().find(|one| text(one, "/type") == "Ready").cloned();
        all.extend(ready.map(|mut ready| {
            if let Some(members) = ready.as_object_mut() {
                members.insert("type".to_owned(), Value::from("Available"));
            }
            ready
        }));
    }
    all
}

/// A condition with the members that the newer form requires.
fn condition(older: &Value) -> Value {
    let since = older.get("lastTransitionTime").cloned();
    json!({ "type": text(older, "/type"), "status": text(older, "/status"), "reason": text(older, "/reason"),
        "message": text(older, "/message"), "lastTransitionTime": since.unwrap_or_else(|| json!(Time::default())) })
}

#[cfg(test)]
mod tests {
    use metal3_api::cluster::{Cluster, IPAddressClaim, Machine};

    use super::*;

    fn decoded<K: Kind>(object: &Value) -> K {
        serde_json::from_value(newest::<K>(object).into_owned()).unwrap()
    }

    #[test]
    fn steps_references_and_conditions_of_v1beta1_are_read() {
        let machine: Machine = decoded(&json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine",
            "metadata": { "name": "m" },
            "spec": { "clusterName": "edge", "bootstrap": { "configRef": { "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "KubeadmConfig", "name": "c" } }, "infrastructureRef": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m" } },
            "status": { "infrastructureReady": true, "bootstrapReady": false, "conditions": [
                { "type": "Ready", "status": "False", "severity": "Info", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } }));
        assert_eq!(machine.spec.infrastructure_ref.api_group, INFRASTRUCTURE_GROUP);
        let config = machine.spec.bootstrap.config_ref.unwrap();
        assert_eq!(config.api_group, "bootstrap.cluster.x-k8s.io");
        let steps = machine.status.initialization.unwrap();
        assert_eq!(
            (steps.infrastructure_provisioned, steps.bootstrap_data_secret_created),
            (Some(true), Some(false))
        );
        assert_eq!(machine.status.conditions.len(), 1);
        let cluster: Cluster = decoded(&json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
            "metadata": { "name": "edge" }, "status": { "infrastructureReady": true, "conditions": [
                { "type": "ControlPlaneInitialized", "status": "True" }, { "type": "Ready", "status": "False", "reason": "R" }] } }));
        let steps = cluster.status.initialization.unwrap();
        assert_eq!(steps.control_plane_initialized, Some(true));
        let available = cluster.status.conditions.iter().find(|one| one.type_ == "Available");
        assert_eq!(available.map(|one| one.reason.as_str()), Some("R"));
    }

    #[test]
    fn conditions_of_the_newer_form_come_before_the_older_ones() {
        let claim: IPAddressClaim = decoded(
            &json!({ "apiVersion": "ipam.cluster.x-k8s.io/v1beta1", "kind": "IPAddressClaim",
            "metadata": { "name": "c" }, "spec": { "poolRef": { "apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": "p" } },
            "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }],
                "v1beta2": { "conditions": [{ "type": "Ready", "status": "False", "reason": "PoolExhausted" }] } } }),
        );
        assert_eq!(
            claim.status.conditions.first().map(|one| one.reason.as_str()),
            Some("PoolExhausted")
        );
    }
}
