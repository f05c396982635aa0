use serde_json::{Value, json};

use super::load_balancer::ADDRESS;
use super::provider::{Outcome, is_watched, plan};
use super::tenant::{self, SERVICE};
use crate::kinds::{CLUSTER, KAMAJI_CONTROL_PLANE, Kind, METAL3_CLUSTER, SECRET, TENANT};
use crate::view::{Object, Snapshot};
use crate::write::Write;

/// A Cluster with a new control plane.
fn new_plane() -> Snapshot {
    let mut snapshot = Snapshot::default();
    put(
        &mut snapshot,
        CLUSTER,
        json!({ "spec": { "infrastructureRef": { "kind": "Metal3Cluster", "name": "edge" } } }),
    );
    let owner = json!([{ "kind": "Cluster", "name": "edge", "uid": "Cluster" }]);
    let plane = json!({ "metadata": { "ownerReferences": owner }, "spec": { "version": "1.33.0", "replicas": 2 } });
    put(&mut snapshot, KAMAJI_CONTROL_PLANE, plane);
    snapshot
}

/// Stores an object with the highest version.
fn put(snapshot: &mut Snapshot, kind: &'static Kind, mut object: Value) {
    let version = snapshot.version() + 1;
    object["kind"] = json!(kind.kind);
    for (member, value) in [
        ("name", json!("edge")),
        ("namespace", json!("default")),
        ("uid", json!(kind.kind)),
    ] {
        object["metadata"][member] = value;
    }
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    assert!(snapshot.put(kind, Object(object)));
}

fn merge(change: &Value, into: &mut Value) {
    match change {
        Value::Object(members) => {
            if !into.is_object() {
                *into = json!({});
            }
            for (name, value) in members {
                merge(value, &mut into[name]);
            }
        }
        other => *into = other.clone(),
    }
}

/// Performs one reconcile and returns its result.
fn reconcile(snapshot: &mut Snapshot) -> Outcome {
    let plane = snapshot.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap().clone();
    let done = plan(snapshot, &plane);
    for write in done.writes {
        perform(snapshot, write);
    }
    done.outcome
}

fn perform(snapshot: &mut Snapshot, write: Write) {
    match write {
        Write::Create(kind, object) => put(snapshot, kind, object),
        Write::ClusterSecret(_, _, secret) => put(snapshot, SECRET, secret),
        Write::Merge(kind, key, change) | Write::Status(kind, key, change) => {
            let mut object = snapshot.get(kind, &key.namespace, &key.name).unwrap().0.clone();
            merge(&change, &mut object);
            put(snapshot, kind, object);
        }
        Write::Delete(..) | Write::Workload(..) => {}
    }
}

/// The conditions of the control plane, each with its status and reason.
fn conditions(snapshot: &Snapshot) -> Vec<String> {
    let plane = snapshot.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    let all = plane.part("/status/conditions");
    let line = |one: &Value| {
        let text = |member: &str| one[member].as_str().unwrap().to_owned();
        format!("{} {} {}", text("type"), text("status"), text("reason"))
    };
    all.as_array().unwrap().iter().map(line).collect()
}

fn run_tenant(snapshot: &mut Snapshot) {
    while let Some((_, writes)) = tenant::next(snapshot, snapshot.get(TENANT, "default", "edge").unwrap()) {
        for write in writes {
            perform(snapshot, write);
        }
    }
}

/// Runs a tenant until it waits for an address, assigns one, and runs it further.
fn start_tenant(snapshot: &mut Snapshot) {
    run_tenant(snapshot);
    let service = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ADDRESS }] } } });
    put(snapshot, SERVICE, service);
    run_tenant(snapshot);
}

#[test]
fn conditions_change_in_the_order_of_the_real_provider() {
    let mut snapshot = new_plane();
    assert!(
        matches!(reconcile(&mut snapshot), Outcome::RequeueAfter(_)),
        "the tenant is created"
    );
    assert!(
        matches!(reconcile(&mut snapshot), Outcome::RequeueAfter(_)),
        "it has no address"
    );
    let pending = [
        "TenantControlPlaneCreated True Succeeded",
        "TenantControlPlaneAddressReady False Pending",
    ];
    assert_eq!(conditions(&snapshot), pending);
    start_tenant(&mut snapshot);
    assert_eq!(
        reconcile(&mut snapshot),
        Outcome::Failed,
        "the infrastructure has no endpoint"
    );
    let plane = snapshot.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert_eq!(plane.text("/spec/controlPlaneEndpoint/host"), ADDRESS);
    let failed = [
        "TenantControlPlaneCreated True Succeeded",
        "TenantControlPlaneAddressReady True Succeeded",
        "ControlPlaneEndpointPatched True Succeeded",
        "InfrastructureClusterPatched False Pending",
    ];
    assert_eq!(conditions(&snapshot), failed);
    let taken = json!({ "spec": { "controlPlaneEndpoint": { "host": ADDRESS, "port": 6443 } } });
    put(&mut snapshot, METAL3_CLUSTER, taken.clone());
    assert!(
        matches!(reconcile(&mut snapshot), Outcome::RequeueAfter(_)),
        "the Cluster has no endpoint yet"
    );
    assert_eq!(conditions(&snapshot)[3], "InfrastructureClusterPatched True Succeeded");
    let mut cluster = taken;
    cluster["spec"]["infrastructureRef"] = json!({ "kind": "Metal3Cluster", "name": "edge" });
    cluster["status"] = json!({ "initialization": { "infrastructureProvisioned": true } });
    put(&mut snapshot, CLUSTER, cluster);
    assert_eq!(reconcile(&mut snapshot), Outcome::Done);
    let last = [
        "KamajiControlPlaneIsInitialized True Succeeded",
        "KubeadmResourcesCreated True Succeeded",
        "KamajiControlPlaneIsReady True Succeeded",
        "Available True Available",
    ];
    assert_eq!(conditions(&snapshot)[4..], last);
    let plane = snapshot.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert_eq!(plane.text("/status/version"), "v1.33.0");
    assert!(plane.flag("/status/ready") && plane.flag("/status/initialization/controlPlaneInitialized"));
}

#[test]
fn an_endpoint_with_another_host_or_port_fails_like_a_missing_one() {
    let mut snapshot = new_plane();
    reconcile(&mut snapshot);
    start_tenant(&mut snapshot);
    for (host, port) in [("", 6443), ("192.0.2.9", 6443), (ADDRESS, 6444)] {
        let stated = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": port } } });
        put(&mut snapshot, METAL3_CLUSTER, stated);
        assert_eq!(reconcile(&mut snapshot), Outcome::Failed, "{host}:{port}");
    }
}

/// A ready control plane.
fn ready() -> Snapshot {
    let mut snapshot = new_plane();
    reconcile(&mut snapshot);
    start_tenant(&mut snapshot);
    let endpoint = json!({ "controlPlaneEndpoint": { "host": ADDRESS, "port": 6443 } });
    put(&mut snapshot, METAL3_CLUSTER, json!({ "spec": endpoint }));
    edit(
        &mut snapshot,
        CLUSTER,
        &json!({ "spec": endpoint, "status": { "initialization": { "infrastructureProvisioned": true } } }),
    );
    assert_eq!(reconcile(&mut snapshot), Outcome::Done);
    snapshot
}

fn edit(snapshot: &mut Snapshot, kind: &'static Kind, change: &Value) {
    let mut object = snapshot.get(kind, "default", "edge").unwrap().0.clone();
    merge(change, &mut object);
    put(snapshot, kind, object);
}

#[test]
fn a_pause_is_reported_in_the_next_reconcile_and_removed_in_the_one_after_it() {
    let mut snapshot = ready();
    edit(&mut snapshot, CLUSTER, &json!({ "spec": { "paused": true } }));
    edit(
        &mut snapshot,
        KAMAJI_CONTROL_PLANE,
        &json!({ "spec": { "replicas": 3 } }),
    );
    assert_eq!(reconcile(&mut snapshot), Outcome::Done);
    assert_eq!(conditions(&snapshot).last().unwrap(), "Paused True Paused");
    let tenant = snapshot.get(TENANT, "default", "edge").unwrap();
    assert_eq!(tenant.number("/spec/controlPlane/deployment/replicas"), Some(2));
    edit(&mut snapshot, CLUSTER, &json!({ "spec": { "paused": false } }));
    reconcile(&mut snapshot);
    assert!(conditions(&snapshot).iter().all(|line| !line.starts_with("Paused")));
    let annotated =
        json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } }, "spec": { "replicas": 1 } });
    edit(&mut snapshot, KAMAJI_CONTROL_PLANE, &annotated);
    let plane = snapshot.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert!(!is_watched(plane));
    assert_eq!(plan(&snapshot, plane).writes, []);
}

#[test]
fn a_change_of_replicas_makes_it_unready_until_they_exist() {
    let mut snapshot = ready();
    edit(
        &mut snapshot,
        KAMAJI_CONTROL_PLANE,
        &json!({ "spec": { "replicas": 3 } }),
    );
    reconcile(&mut snapshot);
    let (_, writes) = tenant::next(&snapshot, snapshot.get(TENANT, "default", "edge").unwrap()).unwrap();
    writes.into_iter().for_each(|write| perform(&mut snapshot, write));
    assert!(matches!(reconcile(&mut snapshot), Outcome::RequeueAfter(_)));
    let plane = snapshot.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert!(!plane.flag("/status/ready"));
    assert_eq!(plane.number("/status/replicas"), Some(2));
    assert!(conditions(&snapshot).contains(&"KamajiControlPlaneIsReady False Failed".to_owned()));
    run_tenant(&mut snapshot);
    assert_eq!(reconcile(&mut snapshot), Outcome::Done);
    let plane = snapshot.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert!(plane.flag("/status/ready"));
    assert_eq!(plane.number("/status/replicas"), Some(3));
}

#[test]
fn a_port_that_does_not_fit_is_never_published() {
    let mut snapshot = new_plane();
    edit(
        &mut snapshot,
        CLUSTER,
        &json!({ "spec": { "clusterNetwork": { "apiServerPort": 40000 } } }),
    );
    reconcile(&mut snapshot);
    start_tenant(&mut snapshot);
    assert_eq!(reconcile(&mut snapshot), Outcome::Failed);
    assert_eq!(
        conditions(&snapshot).last().unwrap(),
        "ControlPlaneEndpointPatched False Pending"
    );
    let plane = snapshot.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert!(plane.at("/spec/controlPlaneEndpoint").is_none());
}
