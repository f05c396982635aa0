//! Clusters and machines: copied fields, reasons to wait, and the order of deletion.

use serde_json::{Value, json};

use super::fixture::{cluster, due, owner, snapshot, status, with_workload};

const GOING: &str = "2026-01-01T00:00:00Z";

fn machine(more: Value) -> Value {
    let mut machine = json!({
        "metadata": {
            "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "finalizers": ["machine.cluster.x-k8s.io"],
        },
        "spec": {
            "clusterName": "edge", "bootstrap": { "configRef": { "kind": "KubeadmConfig", "name": "m0" } },
            "infrastructureRef": { "kind": "Metal3Machine", "name": "m0" },
        },
    });
    for (at, value) in more.as_object().unwrap() {
        let (parent, member) = at.rsplit_once('/').unwrap();
        machine.pointer_mut(parent).unwrap()[member] = value.clone();
    }
    machine
}

fn owned() -> Value {
    json!({ "metadata": {
        "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "ownerReferences": owner("Machine", "m0"),
    } })
}

#[test]
fn objects_of_a_machine_change_their_owner_from_the_set_to_the_machine() {
    let mut part = owned();
    part["metadata"]["ownerReferences"] = owner("MachineSet", "set");
    let snapshot = snapshot(&[
        ("Cluster", "edge", cluster(false)),
        ("Machine", "m0", machine(json!({}))),
        ("Metal3Machine", "m0", part),
    ]);
    assert_eq!(due(&snapshot), ["change Metal3Machine m0: labels ownerReferences"]);
}

#[test]
fn the_phase_of_a_machine_follows_its_objects_and_its_node() {
    let data = json!({ "/spec/bootstrap": {
        "configRef": { "kind": "KubeadmConfig", "name": "m0" }, "dataSecretName": "m0",
    } });
    let mut named = data.clone();
    named["/spec/providerID"] = json!("metal3://default/host/m0");
    let mut provisioned = owned();
    provisioned["spec"] = json!({ "providerID": "metal3://default/host/m0" });
    provisioned["status"] = json!({ "initialization": { "provisioned": true } });
    let node = json!({ "metadata": { "name": "n0" }, "spec": { "providerID": "metal3://default/host/m0" } });
    for (more, part, nodes, phase) in [
        (json!({}), owned(), vec![], "Pending"),
        (data, owned(), vec![], "Provisioning"),
        (named.clone(), provisioned.clone(), vec![], "Provisioned"),
        (named, provisioned, vec![node], "Running"),
    ] {
        let snapshot = with_workload(
            snapshot(&[
                ("Cluster", "edge", cluster(true)),
                ("Machine", "m0", machine(more)),
                ("Metal3Machine", "m0", part),
            ]),
            &nodes,
        );
        assert_eq!(status(&snapshot, "Machine", "m0")["phase"], phase);
    }
}

#[test]
fn deletion_removes_infrastructure_then_bootstrap_then_the_machine() {
    let going = machine(json!({ "/metadata/deletionTimestamp": GOING }));
    let mut gone_soon = owned();
    gone_soon["metadata"]["deletionTimestamp"] = json!(GOING);
    let config = ("KubeadmConfig", "m0", owned());
    let base = [("Cluster", "edge", cluster(true)), ("Machine", "m0", going)];
    let with = |more: &[(&'static str, &'static str, Value)]| due(&snapshot(&[&base[..], more].concat()));
    assert_eq!(
        with(&[("Metal3Machine", "m0", owned()), config.clone()]),
        ["delete Metal3Machine m0"]
    );
    assert!(with(&[("Metal3Machine", "m0", gone_soon), config.clone()]).is_empty());
    assert_eq!(with(&[config]), ["delete KubeadmConfig m0"]);
    assert_eq!(with(&[]), ["change Machine m0: finalizers"]);
}

#[test]
fn hooks_delay_the_deletion_of_a_machine() {
    for hook in ["pre-drain", "pre-terminate"] {
        let name = format!("{hook}.delete.hook.machine.cluster.x-k8s.io/backup");
        let held = machine(json!({ "/metadata/deletionTimestamp": GOING, "/metadata/annotations": { name: "" } }));
        let snapshot = snapshot(&[
            ("Cluster", "edge", cluster(true)),
            ("Machine", "m0", held),
            ("Metal3Machine", "m0", owned()),
        ]);
        assert!(due(&snapshot).is_empty(), "{hook}");
    }
}

#[test]
fn a_cluster_deletes_workers_then_control_plane_then_infrastructure() {
    let mut going = cluster(true);
    going["metadata"]["deletionTimestamp"] = json!(GOING);
    going["spec"]["controlPlaneRef"] = json!({ "kind": "KubeadmControlPlane", "name": "edge" });
    let labelled = json!({ "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "edge" } } });
    let deployment = json!({ "metadata": {}, "spec": { "clusterName": "edge", "replicas": 0 } });
    let base = ("Cluster", "edge", going);
    let infrastructure = ("Metal3Cluster", "edge", labelled.clone());
    let plane = ("KubeadmControlPlane", "edge", labelled);
    let of = |all: &[_]| {
        let mut due = due(&snapshot(all));
        due.retain(|write| write.starts_with("delete") || write.contains("Cluster edge: finalizers"));
        due
    };
    let workers = ("MachineDeployment", "edge", deployment);
    assert_eq!(
        of(&[base.clone(), infrastructure.clone(), plane.clone(), workers]),
        ["delete MachineDeployment edge"]
    );
    assert_eq!(
        of(&[base.clone(), infrastructure.clone(), plane]),
        ["delete KubeadmControlPlane edge"]
    );
    assert_eq!(of(&[base.clone(), infrastructure]), ["delete Metal3Cluster edge"]);
    assert_eq!(of(&[base]), ["change Cluster edge: finalizers"]);
}

#[test]
fn endpoint_is_copied_from_the_infrastructure_once_it_is_provisioned_and_never_replaced() {
    let mut without = cluster(false);
    without["spec"].as_object_mut().unwrap().remove("controlPlaneEndpoint");
    without["status"] = json!({});
    let infrastructure = |host: &str, provisioned: bool| {
        json!({
            "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "ownerReferences": owner("Cluster", "edge") },
            "spec": { "controlPlaneEndpoint": { "host": host, "port": 6443 } },
            "status": { "initialization": { "provisioned": provisioned } },
        })
    };
    let of = |cluster: &Value, part: Value| {
        due(&snapshot(&[
            ("Cluster", "edge", cluster.clone()),
            ("Metal3Cluster", "edge", part),
        ]))
    };
    assert!(of(&without, infrastructure("192.0.2.1", false)).is_empty());
    assert_eq!(
        of(&without, infrastructure("", true)),
        ["change Cluster edge: controlPlaneEndpoint"],
        "a port is copied without a host"
    );
    let mut with_port = without.clone();
    with_port["spec"]["controlPlaneEndpoint"] = json!({ "port": 6443 });
    with_port["status"] = json!({ "initialization": { "infrastructureProvisioned": true } });
    assert!(of(&with_port, infrastructure("", true)).is_empty());
    assert_eq!(
        of(&with_port, infrastructure("192.0.2.1", true)),
        ["change Cluster edge: controlPlaneEndpoint"],
        "which is no endpoint yet"
    );
    assert_eq!(
        of(&without, infrastructure("192.0.2.1", true)),
        ["change Cluster edge: controlPlaneEndpoint"]
    );
    assert!(of(&cluster(false), infrastructure("192.0.2.1", true)).is_empty());
}

#[test]
fn of_a_paused_cluster_only_the_condition_is_written() {
    let mut paused = cluster(true);
    paused["spec"]["paused"] = json!(true);
    let set = json!({ "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "edge" } }, "spec": { "clusterName": "edge", "replicas": 3 } });
    let snapshot = snapshot(&[
        ("Cluster", "edge", paused),
        ("MachineSet", "set", set),
        (
            "Machine",
            "m0",
            machine(json!({ "/metadata/deletionTimestamp": GOING })),
        ),
        ("Metal3Machine", "m0", owned()),
    ]);
    assert!(due(&snapshot).is_empty());
    for (kind, name) in [("Cluster", "edge"), ("MachineSet", "set"), ("Machine", "m0")] {
        assert_eq!(
            status(&snapshot, kind, name)["conditions"][0]["type"],
            "Paused",
            "{kind}"
        );
    }
}

#[test]
fn only_the_first_control_plane_machine_initializes_and_the_rest_wait() {
    let of = |name: &'static str, labels: Value, age: u32| {
        let mut machine = machine(json!({}));
        machine["metadata"]["labels"]
            .as_object_mut()
            .unwrap()
            .extend(labels.as_object().unwrap().clone());
        machine["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:00:0{age}Z"));
        machine["spec"]["bootstrap"]["configRef"]["name"] = json!(name);
        machine["spec"]["infrastructureRef"]["name"] = json!(name);
        let config = json!({ "metadata": {
            "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "ownerReferences": owner("Machine", name),
        } });
        [("Machine", name, machine), ("KubeadmConfig", name, config)]
    };
    let control = json!({ "cluster.x-k8s.io/control-plane": "" });
    let all = |is_initialized| {
        let machines = [
            of("c1", control.clone(), 2),
            of("c0", control.clone(), 1),
            of("w0", json!({}), 0),
        ];
        let cluster = [("Cluster", "edge", cluster(is_initialized))];
        snapshot(&[&cluster[..], &machines.concat()].concat())
    };
    assert_eq!(due(&all(false)), ["create Secret c0"]);
    let joined = [
        "token",
        "create Secret c0",
        "token",
        "create Secret c1",
        "token",
        "create Secret w0",
    ];
    assert_eq!(due(&with_workload(all(true), &[])), joined);
    assert!(due(&all(true)).is_empty(), "no token without an API server");
}

#[test]
fn machine_that_a_remediation_gave_up_is_deleted_by_its_set() {
    let set = json!({
        "metadata": {
            "finalizers": ["cluster.x-k8s.io/machineset"], "labels": { "cluster.x-k8s.io/cluster-name": "edge" },
        },
        "spec": { "clusterName": "edge", "replicas": 1 },
    });
    let is_deleted = |status: &str| {
        let mut machine = machine(json!({}));
        machine["metadata"]["ownerReferences"] = owner("MachineSet", "set");
        machine["status"] = json!({ "conditions": [{ "type": "OwnerRemediated", "status": status }] });
        let objects = [
            ("Cluster", "edge", cluster(true)),
            ("MachineSet", "set", set.clone()),
            ("Machine", "m0", machine),
        ];
        due(&snapshot(&objects)).contains(&"delete Machine m0".to_owned())
    };
    assert_eq!(["False", "True"].map(is_deleted), [true, false]);
}
