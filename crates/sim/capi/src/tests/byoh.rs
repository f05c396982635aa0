//! Bring-your-own hosts: which machine claims which, and when a machine is ready.

use serde_json::{Value, json};

use super::fixture::{cluster, due, owner, snapshot, status, with_workload};

const MACHINE_LABEL: &str = "byoh.infrastructure.cluster.x-k8s.io/byomachine-name";

fn parts(
    data: &str,
    machine: Value,
    hosts: &[(&'static str, &'static str, Value)],
) -> Vec<(&'static str, &'static str, Value)> {
    let mut byoh = cluster(true);
    byoh["spec"]["infrastructureRef"] = json!({ "kind": "ByoCluster", "name": "edge" });
    let infrastructure = json!({
        "metadata": {
            "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "ownerReferences": owner("Cluster", "edge"),
            "finalizers": ["byocluster.infrastructure.cluster.x-k8s.io"],
        },
        "spec": { "controlPlaneEndpoint": { "host": "192.0.2.10", "port": 6443 } }, "status": { "ready": true },
    });
    let of = json!({
        "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "finalizers": ["machine.cluster.x-k8s.io"] },
        "spec": {
            "clusterName": "edge", "version": "v1.35.0", "bootstrap": { "dataSecretName": data },
            "infrastructureRef": { "kind": "ByoMachine", "name": "m0" },
        },
    });
    let all = [
        ("Cluster", "edge", byoh),
        ("ByoCluster", "edge", infrastructure),
        ("Machine", "m0", of),
        ("ByoMachine", "m0", machine),
    ];
    [&all[..], hosts].concat()
}

fn machine() -> Value {
    json!({ "metadata": {
        "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "ownerReferences": owner("Machine", "m0"),
        "finalizers": ["byomachine.infrastructure.cluster.x-k8s.io"],
    }, "spec": { "selector": { "matchLabels": { "site": "a" } } } })
}

fn host(labels: Value) -> (&'static str, &'static str, Value) {
    ("ByoHost", "h0", json!({ "metadata": { "labels": labels } }))
}

#[test]
fn a_machine_waits_for_bootstrap_data_and_for_a_free_matching_host() {
    let other = json!({ "site": "a", MACHINE_LABEL: "default.m1" });
    for (data, hosts, reason) in [
        ("", vec![host(json!({ "site": "a" }))], "WaitingForBootstrapDataSecret"),
        ("m0", vec![], "BYOHostsUnavailable"),
        ("m0", vec![host(json!({ "site": "b" }))], "BYOHostsUnavailable"),
        ("m0", vec![host(other)], "BYOHostsUnavailable"),
    ] {
        let snapshot = snapshot(&parts(data, machine(), &hosts));
        assert_eq!(status(&snapshot, "ByoMachine", "m0")["conditions"][0]["reason"], reason);
        assert!(due(&snapshot).is_empty(), "{reason}");
    }
    let free = snapshot(&parts("m0", machine(), &[host(json!({ "site": "a" }))]));
    assert_eq!(due(&free), ["change ByoHost h0: annotations labels"]);
}

#[test]
fn a_machine_is_ready_once_the_node_named_after_its_host_exists() {
    let hosts = [host(json!({ MACHINE_LABEL: "default.m0" }))];
    let waiting = snapshot(&parts("m0", machine(), &hosts));
    assert_eq!(status(&waiting, "ByoHost", "h0")["machineRef"]["name"], "m0");
    let mut claimed = hosts.clone();
    claimed[0].2["status"] = status(&waiting, "ByoHost", "h0");
    let node = json!({ "metadata": { "name": "h0" } });
    let joined = with_workload(snapshot(&parts("m0", machine(), &claimed)), &[node]);
    let all = due(&joined);
    assert!(all.iter().any(|write| write.contains("byoh://h0/")), "{all:?}");
    assert!(all.contains(&"change ByoMachine m0: providerID".to_owned()), "{all:?}");
}

#[test]
fn a_deleted_machine_marks_its_host_and_does_not_wait() {
    let mut going = machine();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let snapshot = snapshot(&parts("m0", going, &[host(json!({ MACHINE_LABEL: "default.m0" }))]));
    assert_eq!(
        due(&snapshot),
        ["change ByoHost h0: annotations", "change ByoMachine m0: finalizers"]
    );
}
