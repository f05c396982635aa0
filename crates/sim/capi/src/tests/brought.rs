//! Hosts that are brought along: who has which, and when a machine on one is ready.

use serde_json::{Value, json};

use super::scene::{cluster, due, owner, status, with_site, world};

const TAKEN_BY: &str = "byoh.infrastructure.cluster.x-k8s.io/byomachine-name";

fn parts(
    data: &str,
    machine: Value,
    hosts: &[(&'static str, &'static str, Value)],
) -> Vec<(&'static str, &'static str, Value)> {
    let mut brought = cluster(true);
    brought["spec"]["infrastructureRef"] = json!({ "kind": "ByoCluster", "name": "edge" });
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
        ("Cluster", "edge", brought),
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
fn a_machine_waits_for_its_data_and_for_a_host_that_fits_and_is_free() {
    let other = json!({ "site": "a", TAKEN_BY: "default.m1" });
    for (data, hosts, reason) in [
        ("", vec![host(json!({ "site": "a" }))], "WaitingForBootstrapDataSecret"),
        ("m0", vec![], "BYOHostsUnavailable"),
        ("m0", vec![host(json!({ "site": "b" }))], "BYOHostsUnavailable"),
        ("m0", vec![host(other)], "BYOHostsUnavailable"),
    ] {
        let world = world(&parts(data, machine(), &hosts));
        assert_eq!(status(&world, "ByoMachine", "m0")["conditions"][0]["reason"], reason);
        assert!(due(&world).is_empty(), "{reason}");
    }
    let free = world(&parts("m0", machine(), &[host(json!({ "site": "a" }))]));
    assert_eq!(due(&free), ["change ByoHost h0: annotations labels"]);
}

#[test]
fn a_machine_is_ready_once_a_node_has_its_host_s_name() {
    let taken = [host(json!({ TAKEN_BY: "default.m0" }))];
    let waits = world(&parts("m0", machine(), &taken));
    assert_eq!(status(&waits, "ByoHost", "h0")["machineRef"]["name"], "m0");
    let mut told = taken.clone();
    told[0].2["status"] = status(&waits, "ByoHost", "h0");
    let node = json!({ "metadata": { "name": "h0" } });
    let joined = with_site(world(&parts("m0", machine(), &told)), &[node]);
    let all = due(&joined);
    assert!(all.iter().any(|write| write.contains("byoh://h0/")), "{all:?}");
    assert!(all.contains(&"change ByoMachine m0: providerID".to_owned()), "{all:?}");
}

#[test]
fn a_machine_that_goes_marks_its_host_and_waits_for_nobody() {
    let mut going = machine();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let world = world(&parts("m0", going, &[host(json!({ TAKEN_BY: "default.m0" }))]));
    assert_eq!(
        due(&world),
        ["change ByoHost h0: annotations", "change ByoMachine m0: finalizers"]
    );
}
