//! What cures say, and the commands in them.

use super::*;

/// The cure of the last link.
fn cure(objects: &[Value], start: &str) -> String {
    let explanation = explained(objects, start, None);
    explanation.chain.last().unwrap().cure.clone()
}

#[test]
fn command_of_a_cure_runs_as_it_is_printed() {
    let annotated = |key: &str| host("h0", json!({ "metadata": { "annotations": { key: "" } } }));
    for key in [
        "baremetalhost.metal3.io/paused",
        "clusterctl.cluster.x-k8s.io/delete-for-move",
    ] {
        let cure = cure(&[annotated(key)], "bmh/h0");
        assert!(
            cure.ends_with(&format!(": kubectl annotate bmh h0 -n lab {key}-")),
            "{cure}"
        );
    }
    let configured = json!({ "spec": { "bootstrap": { "dataSecretName": null, "configRef":
        { "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m0" } } } });
    let config = object("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", "m0", json!({}));
    let objects = [cluster(json!({})), machine("m0", configured), config];
    let foreign = cure(&objects, "machine/m0");
    assert!(
        foreign.ends_with(": kubectl describe KubeadmConfig m0 -n lab"),
        "{foreign}"
    );
}

/// clusterctl sets the mark when the copy exists: without it, two clusters would manage one machine.
#[test]
fn mark_of_a_move_is_only_removed_when_no_other_cluster_has_the_host() {
    let marked = json!({ "metadata": { "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" } } });
    let cure = cure(&[host("h0", marked)], "bmh/h0");
    assert!(
        cure.contains("repeat the move") && cure.contains("no other cluster"),
        "{cure}"
    );
}

#[test]
fn node_of_another_machine_is_deleted_by_a_user() {
    let machine_with = |message: &str| {
        let bad = ("Ready", "False", "CreateError");
        let mut machine = metal3_machine("m0", bad);
        merge(&mut machine["status"]["conditions"][0], json!({ "message": message }));
        machine
    };
    let provisioned = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
    for (message, state) in [
        (
            "Node n has the label of this machine; delete the Node, or correct it",
            State::Blocked,
        ),
        (
            "the Nodes a, b have the same label; delete the Nodes that are out of date",
            State::Blocked,
        ),
        ("waiting for the Node to register", State::Waiting),
    ] {
        for change in [json!({}), provisioned.clone()] {
            let [infrastructure, control_plane] = parts();
            let objects = [
                cluster(json!({})),
                infrastructure,
                control_plane,
                machine("m0", change),
                machine_with(message),
                host("h0", json!({})),
            ];
            for start in ["cluster/edge", "machine/m0"] {
                let found = explained(&objects, start, None);
                assert_eq!(found.state, state, "{start}: {message}: {:?}", links(&found));
                let last = found.chain.last().unwrap();
                assert_eq!(
                    last.cure.contains("Delete the Node"),
                    state == State::Blocked,
                    "{}",
                    last.cure
                );
            }
        }
    }
}

#[test]
fn cure_for_a_deleted_host_is_about_that_host() {
    let waiting = |message: &str| {
        let mut machine = metal3_machine("m0", NO_HOST);
        merge(&mut machine["status"]["conditions"][0], json!({ "message": message }));
        cure(
            &[cluster(json!({})), super::machine("m0", json!({})), machine],
            "machine/m0",
        )
    };
    let lost = waiting("BareMetalHost h0, which the machine had, does not exist; restore it, or delete the Machine");
    assert!(
        lost.starts_with("Restore the BareMetalHost") && !lost.contains("selector"),
        "{lost}"
    );
    assert!(waiting("no host matches").contains("Register"));
}

#[test]
fn pool_in_deletion_names_what_holds_it() {
    let pool = |indexes: Value| {
        object(
            "ipam.metal3.io/v1alpha1",
            "IPPool",
            "demo",
            json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] },
                "spec": { "namePrefix": "demo" }, "status": { "indexes": indexes } }),
        )
    };
    let used = [pool(json!({ "a": "192.0.2.1", "b": "192.0.2.2" }))];
    let explanation = explained(&used, "ippool/demo", None);
    let last = explanation.chain.last().unwrap();
    assert!(
        last.message.starts_with("2 of its addresses are in use"),
        "{}",
        last.message
    );
    assert!(last.cure.contains("IPClaims"), "{}", last.cure);
    assert!(!cure(&[pool(json!({}))], "ippool/demo").contains("IPClaims"));
}

#[test]
fn part_of_a_cluster_that_was_deleted_is_the_cause() {
    let [infrastructure, control_plane] = parts();
    for (left, lost) in [
        (control_plane.clone(), "Metal3Cluster/edge does not exist"),
        (infrastructure.clone(), "KubeadmControlPlane/edge does not exist"),
    ] {
        assert_end("cluster/edge", &[cluster(json!({})), left], (lost, State::Blocked));
    }
    // What may not be read is not known to be lost.
    let found = explained(
        &[cluster(json!({})), infrastructure],
        "cluster/edge",
        Some("KubeadmControlPlane"),
    );
    assert_eq!(links(&found), [""; 0]);
}

#[test]
fn node_that_never_gets_ready_is_named() {
    let stale = json!({ "status": { "nodeRef": { "name": "n0" }, "initialization": { "infrastructureProvisioned": true },
        "conditions": conditions(&[("Ready", "False", "NotReady")]) } });
    let cure = cure(&[cluster(json!({})), machine("m0", stale)], "machine/m0");
    assert!(cure.contains("Node n0") && cure.contains("earlier machine"), "{cure}");
}
