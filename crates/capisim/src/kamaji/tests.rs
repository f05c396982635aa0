use serde_json::{Value, json};

use super::provider::{Outcome, pass};
use super::tenant;
use crate::kinds::{KAMAJI_CONTROL_PLANE, METAL3_CLUSTER, TENANT, find};
use crate::view::{Object, World};
use crate::write::Write;

/// A Cluster with its control plane, both as they were made.
fn begun() -> World {
    let mut world = World::default();
    put(
        &mut world,
        "Cluster",
        json!({ "spec": { "infrastructureRef": { "kind": "Metal3Cluster", "name": "edge" } } }),
    );
    let owner = json!([{ "kind": "Cluster", "name": "edge", "uid": "Cluster" }]);
    let plane = json!({ "metadata": { "ownerReferences": owner }, "spec": { "version": "1.33.0", "replicas": 2 } });
    put(&mut world, "KamajiControlPlane", plane);
    world
}

/// Puts an object in, newer than everything.
fn put(world: &mut World, kind: &str, mut object: Value) {
    let known = find(kind).unwrap();
    let version = world.version() + 1;
    object["kind"] = json!(kind);
    for (member, value) in [
        ("name", json!("edge")),
        ("namespace", json!("default")),
        ("uid", json!(kind)),
    ] {
        object["metadata"][member] = value;
    }
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    assert!(world.put(known, Object(object)));
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

/// Does what a pass wants, and says how it ended.
fn settle(world: &mut World) -> Outcome {
    let plane = world.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap().clone();
    let done = pass(world, &plane);
    for write in done.writes {
        perform(world, write);
    }
    done.outcome
}

fn perform(world: &mut World, write: Write) {
    match write {
        Write::Create(kind, object) => put(world, kind.kind, object),
        Write::Merge(kind, key, change) | Write::Status(kind, key, change) => {
            let mut object = world.get(kind, &key.namespace, &key.name).unwrap().0.clone();
            merge(&change, &mut object);
            put(world, kind.kind, object);
        }
        Write::Delete(..) | Write::Site(..) => {}
    }
}

/// The conditions of the control plane, each with its status and reason.
fn said(world: &World) -> Vec<String> {
    let plane = world.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    let all = plane.part("/status/conditions");
    let line = |one: &Value| {
        let text = |member: &str| one[member].as_str().unwrap().to_owned();
        format!("{} {} {}", text("type"), text("status"), text("reason"))
    };
    all.as_array().unwrap().iter().map(line).collect()
}

fn start_tenant(world: &mut World) {
    while let Some((_, writes)) = tenant::next(world.get(TENANT, "default", "edge").unwrap()) {
        for write in writes {
            perform(world, write);
        }
    }
}

#[test]
fn each_step_is_said_in_the_order_of_the_real_one() {
    let mut world = begun();
    assert!(matches!(settle(&mut world), Outcome::Look(_)), "the tenant is made");
    assert!(matches!(settle(&mut world), Outcome::Look(_)), "it has no address");
    let waits = [
        "TenantControlPlaneCreated True Succeeded",
        "TenantControlPlaneAddressReady False Pending",
    ];
    assert_eq!(said(&world), waits);
    start_tenant(&mut world);
    assert_eq!(settle(&mut world), Outcome::Fail, "nobody has taken the endpoint");
    let plane = world.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert_eq!(plane.text("/spec/controlPlaneEndpoint/host"), tenant::BALANCED);
    let failed = [
        "TenantControlPlaneCreated True Succeeded",
        "TenantControlPlaneAddressReady True Succeeded",
        "ControlPlaneEndpointPatched True Succeeded",
        "InfrastructureClusterPatched False Pending",
    ];
    assert_eq!(said(&world), failed);
    let taken = json!({ "spec": { "controlPlaneEndpoint": { "host": tenant::BALANCED, "port": 6443 } } });
    put(&mut world, "Metal3Cluster", taken.clone());
    assert!(
        matches!(settle(&mut world), Outcome::Look(_)),
        "the Cluster does not know it yet"
    );
    assert_eq!(said(&world)[3], "InfrastructureClusterPatched True Succeeded");
    let mut cluster = taken;
    cluster["spec"]["infrastructureRef"] = json!({ "kind": "Metal3Cluster", "name": "edge" });
    cluster["status"] = json!({ "initialization": { "infrastructureProvisioned": true } });
    put(&mut world, "Cluster", cluster);
    assert_eq!(settle(&mut world), Outcome::Rest);
    let last = [
        "KamajiControlPlaneIsInitialized True Succeeded",
        "KubeadmResourcesCreated True Succeeded",
        "KamajiControlPlaneIsReady True Succeeded",
        "Available True Available",
    ];
    assert_eq!(said(&world)[4..], last);
    let plane = world.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert_eq!(plane.text("/status/version"), "v1.33.0");
    assert!(plane.flag("/status/ready") && plane.flag("/status/initialization/controlPlaneInitialized"));
}

#[test]
fn endpoint_that_differs_in_host_or_port_fails_as_one_that_is_missing() {
    let mut world = begun();
    settle(&mut world);
    start_tenant(&mut world);
    for (host, port) in [("", 6443), ("192.0.2.9", 6443), (tenant::BALANCED, 6444)] {
        let stated = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": port } } });
        put(&mut world, METAL3_CLUSTER.kind, stated);
        assert_eq!(settle(&mut world), Outcome::Fail, "{host}:{port}");
    }
}
