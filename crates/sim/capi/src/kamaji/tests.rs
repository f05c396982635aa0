use serde_json::{Value, json};

use super::balancer::ADDRESS;
use super::provider::{Outcome, is_heard, pass};
use super::tenant::{self, SERVICE};
use crate::kinds::{CLUSTER, KAMAJI_CONTROL_PLANE, Kind, METAL3_CLUSTER, SECRET, TENANT};
use crate::view::{Object, World};
use crate::write::Write;

/// A Cluster with its control plane, both as they were made.
fn begun() -> World {
    let mut world = World::default();
    put(
        &mut world,
        CLUSTER,
        json!({ "spec": { "infrastructureRef": { "kind": "Metal3Cluster", "name": "edge" } } }),
    );
    let owner = json!([{ "kind": "Cluster", "name": "edge", "uid": "Cluster" }]);
    let plane = json!({ "metadata": { "ownerReferences": owner }, "spec": { "version": "1.33.0", "replicas": 2 } });
    put(&mut world, KAMAJI_CONTROL_PLANE, plane);
    world
}

/// Puts an object in, newer than everything.
fn put(world: &mut World, kind: &'static Kind, mut object: Value) {
    let version = world.version() + 1;
    object["kind"] = json!(kind.kind);
    for (member, value) in [
        ("name", json!("edge")),
        ("namespace", json!("default")),
        ("uid", json!(kind.kind)),
    ] {
        object["metadata"][member] = value;
    }
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    assert!(world.put(kind, Object(object)));
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
        Write::Create(kind, object) => put(world, kind, object),
        Write::Paper(_, _, secret) => put(world, SECRET, secret),
        Write::Merge(kind, key, change) | Write::Status(kind, key, change) => {
            let mut object = world.get(kind, &key.namespace, &key.name).unwrap().0.clone();
            merge(&change, &mut object);
            put(world, kind, object);
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

fn run_tenant(world: &mut World) {
    while let Some((_, writes)) = tenant::next(world, world.get(TENANT, "default", "edge").unwrap()) {
        for write in writes {
            perform(world, write);
        }
    }
}

/// A tenant that has nowhere to go on without an address gets one.
fn start_tenant(world: &mut World) {
    run_tenant(world);
    let balanced = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ADDRESS }] } } });
    put(world, SERVICE, balanced);
    run_tenant(world);
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
    assert_eq!(plane.text("/spec/controlPlaneEndpoint/host"), ADDRESS);
    let failed = [
        "TenantControlPlaneCreated True Succeeded",
        "TenantControlPlaneAddressReady True Succeeded",
        "ControlPlaneEndpointPatched True Succeeded",
        "InfrastructureClusterPatched False Pending",
    ];
    assert_eq!(said(&world), failed);
    let taken = json!({ "spec": { "controlPlaneEndpoint": { "host": ADDRESS, "port": 6443 } } });
    put(&mut world, METAL3_CLUSTER, taken.clone());
    assert!(
        matches!(settle(&mut world), Outcome::Look(_)),
        "the Cluster does not know it yet"
    );
    assert_eq!(said(&world)[3], "InfrastructureClusterPatched True Succeeded");
    let mut cluster = taken;
    cluster["spec"]["infrastructureRef"] = json!({ "kind": "Metal3Cluster", "name": "edge" });
    cluster["status"] = json!({ "initialization": { "infrastructureProvisioned": true } });
    put(&mut world, CLUSTER, cluster);
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
    for (host, port) in [("", 6443), ("192.0.2.9", 6443), (ADDRESS, 6444)] {
        let stated = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": port } } });
        put(&mut world, METAL3_CLUSTER, stated);
        assert_eq!(settle(&mut world), Outcome::Fail, "{host}:{port}");
    }
}

/// A control plane that is through.
fn ready() -> World {
    let mut world = begun();
    settle(&mut world);
    start_tenant(&mut world);
    let endpoint = json!({ "controlPlaneEndpoint": { "host": ADDRESS, "port": 6443 } });
    put(&mut world, METAL3_CLUSTER, json!({ "spec": endpoint }));
    edit(
        &mut world,
        CLUSTER,
        &json!({ "spec": endpoint, "status": { "initialization": { "infrastructureProvisioned": true } } }),
    );
    assert_eq!(settle(&mut world), Outcome::Rest);
    world
}

fn edit(world: &mut World, kind: &'static Kind, change: &Value) {
    let mut object = world.get(kind, "default", "edge").unwrap().0.clone();
    merge(change, &mut object);
    put(world, kind, object);
}

#[test]
fn a_pause_is_said_in_the_next_pass_and_taken_back_in_the_one_after_it() {
    let mut world = ready();
    edit(&mut world, CLUSTER, &json!({ "spec": { "paused": true } }));
    edit(&mut world, KAMAJI_CONTROL_PLANE, &json!({ "spec": { "replicas": 3 } }));
    assert_eq!(settle(&mut world), Outcome::Rest);
    assert_eq!(said(&world).last().unwrap(), "Paused True Paused");
    let tenant = world.get(TENANT, "default", "edge").unwrap();
    assert_eq!(tenant.number("/spec/controlPlane/deployment/replicas"), Some(2));
    edit(&mut world, CLUSTER, &json!({ "spec": { "paused": false } }));
    settle(&mut world);
    assert!(said(&world).iter().all(|line| !line.starts_with("Paused")));
    let annotated =
        json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } }, "spec": { "replicas": 1 } });
    edit(&mut world, KAMAJI_CONTROL_PLANE, &annotated);
    let plane = world.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert!(!is_heard(plane));
    assert_eq!(pass(&world, plane).writes, []);
}

#[test]
fn other_replicas_make_it_falter_until_they_are_there() {
    let mut world = ready();
    edit(&mut world, KAMAJI_CONTROL_PLANE, &json!({ "spec": { "replicas": 3 } }));
    settle(&mut world);
    let (_, writes) = tenant::next(&world, world.get(TENANT, "default", "edge").unwrap()).unwrap();
    writes.into_iter().for_each(|write| perform(&mut world, write));
    assert!(matches!(settle(&mut world), Outcome::Look(_)));
    let plane = world.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert!(!plane.flag("/status/ready"));
    assert_eq!(plane.number("/status/replicas"), Some(2));
    assert!(said(&world).contains(&"KamajiControlPlaneIsReady False Failed".to_owned()));
    run_tenant(&mut world);
    assert_eq!(settle(&mut world), Outcome::Rest);
    let plane = world.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert!(plane.flag("/status/ready"));
    assert_eq!(plane.number("/status/replicas"), Some(3));
}

#[test]
fn a_port_that_does_not_fit_is_never_published() {
    let mut world = begun();
    edit(
        &mut world,
        CLUSTER,
        &json!({ "spec": { "clusterNetwork": { "apiServerPort": 40000 } } }),
    );
    settle(&mut world);
    start_tenant(&mut world);
    assert_eq!(settle(&mut world), Outcome::Fail);
    assert_eq!(
        said(&world).last().unwrap(),
        "ControlPlaneEndpointPatched False Pending"
    );
    let plane = world.get(KAMAJI_CONTROL_PLANE, "default", "edge").unwrap();
    assert!(plane.at("/spec/controlPlaneEndpoint").is_none());
}
