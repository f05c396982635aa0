//! Which kinds are in a bundle, and what of them.

use super::*;

/// Objects of Cluster API, of other providers, and of kinds that no controller serves: version, kind, spec.
fn others() -> Vec<Value> {
    let data =
        json!({ "files": [{ "path": "/x", "content": "canary" }], "users": [{ "name": "u", "shell": "canary" }] });
    let all = json!([
        ["cluster.x-k8s.io/v1beta2", "Cluster", {
            "controlPlaneRef": { "apiGroup": "controlplane.example.io", "kind": "OtherControlPlane", "name": "x" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OtherCluster", "name": "x" } }],
        ["cluster.x-k8s.io/v1beta1", "Machine", { "clusterName": "x", "bootstrap": { "configRef": {
            "apiVersion": "bootstrap.example.io/v1", "kind": "OtherConfig", "name": "x" } } }],
        ["controlplane.example.io/v1", "OtherControlPlane", { "replicas": 3, "version": "v1.35.0", "config": data }],
        ["infrastructure.cluster.x-k8s.io/v1", "OtherCluster", { "script": "canary" }],
        ["bootstrap.example.io/v1", "OtherConfig", data,
            { "ready": true, "talosConfig": "contexts:\n  m:\n    key: canary", "kubeconfig": { "x": "canary" } }],
        ["bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", data],
        ["controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", { "replicas": 3, "kubeadmConfigSpec": data }],
        ["cluster.x-k8s.io/v1beta2", "ClusterClass", { "patches": [{ "jsonPatches": [{ "op": "add", "value": "canary" }] }] },
            { "variables": [{ "name": "v", "definitions": [{ "schema": { "openAPIV3Schema": { "default": "canary" } } }] }] }],
        ["cluster.x-k8s.io/v1beta2", "MachineHealthCheck", { "clusterName": "x" }],
        ["metal3.io/v1alpha1", "HostUpdatePolicy", { "firmwareUpdates": "onReboot" }],
        ["metal3.io/v1alpha1", "DataImage", { "url": "http://u:canary@h/i" }],
    ]);
    let object = |one: &Value| {
        json!({ "apiVersion": one[0], "kind": one[1], "metadata": { "name": "x", "namespace": "lab" },
        "spec": one[2], "status": one[3], "data": { "x": if one[0] == "infrastructure.cluster.x-k8s.io/v1" { "canary" } else { "" } } })
    };
    all.as_array().into_iter().flatten().map(object).collect()
}

#[test]
fn kinds_of_cluster_api_and_of_other_providers_are_in_it_without_data_of_machines() {
    let objects = others();
    let mut snapshot = snapshot(&objects);
    for read in further(&snapshot) {
        let found = answer(&objects, &read);
        snapshot.insert(read, Ok(found));
    }
    assert!(further(&snapshot).is_empty());
    let is_node = |read: &Read| matches!(read, Read::List { kind, .. } if kind.kind == "Node");
    assert!(!snapshot.answers().any(|(read, _)| is_node(read)));
    let files = files(&snapshot, &(Vec::new(), Vec::new()), Some("lab"), Time::default());
    for object in &objects {
        let name = format!("objects/lab/{}/x.yaml", text(object, "/kind"));
        assert!(files.iter().any(|(found, _)| *found == name), "{name}");
    }
    for (name, text) in &files {
        assert!(!text.contains("canary"), "{name}: {text}");
    }
    for (name, kept) in [("OtherControlPlane", "replicas: 3"), ("OtherConfig", "ready: true")] {
        let name = format!("objects/lab/{name}/x.yaml");
        assert!(
            files.iter().any(|(found, text)| *found == name && text.contains(kept)),
            "{name}"
        );
    }
}

#[test]
fn each_kind_that_this_project_serves_is_in_it() {
    let kinds = crate::bundle::kinds::all();
    for definition in metal3_api::catalog::definitions() {
        let mut kinds = kinds.iter();
        let is_in = kinds.any(|kind| kind.kind == definition.kind && kind.group == definition.group);
        assert!(is_in, "{}", definition.kind);
    }
}

#[test]
fn kind_that_is_not_installed_is_named() {
    let mut snapshot = snapshot(&objects());
    let is_class = |read: &Read| matches!(read, Read::List { kind, .. } if kind.kind == "ClusterClass");
    let classes = reads().into_iter().find(is_class).unwrap();
    snapshot.insert(classes, Err(Unread::NotInstalled));
    let files = files(&snapshot, &logs(), Some("lab"), Time::default());
    let not_read = files
        .iter()
        .find(|(name, _)| name == "not-read.txt")
        .map(|(_, text)| text.as_str());
    assert!(
        not_read.is_some_and(
            |text| text.contains("the objects of the kind ClusterClass, because the kind is not installed")
        ),
        "{not_read:?}"
    );
}
