//! Objects of other providers, and Clusters of a ClusterClass.

use super::*;

/// A Cluster that waits for the control plane with this status.
fn control_plane(status: Value) -> [Value; 2] {
    let waiting = json!({ "status": { "initialization": { "controlPlaneInitialized": false } } });
    let group_version = "controlplane.cluster.x-k8s.io/v1beta1";
    let control_plane = object(
        group_version,
        "KubeadmControlPlane",
        "edge",
        json!({ "status": status }),
    );
    [cluster(waiting), control_plane]
}

#[test]
fn pause_of_a_foreign_object_needs_a_user() {
    let paused = json!({ "conditions": conditions(&[("Paused", "True", "Paused"), ("Available", "False", "X")]) });
    let objects = control_plane(paused);
    let end = ("KubeadmControlPlane/edge Paused", State::Blocked);
    assert_end("cluster/edge", &objects, end);
    let explanation = explained(&objects, "cluster/edge", None);
    let last = explanation.chain.last().unwrap();
    assert_eq!(last.runbook.as_deref(), Some("docs/runbooks/shared.md#paused"));
}

/// Providers of older versions omit empty members.
#[test]
fn condition_without_message_or_reason_is_shown() {
    let initializing =
        json!({ "conditions": [{ "type": "Available", "status": "False", "reason": "WaitingForKubeadmInit" }] });
    let end = ("KubeadmControlPlane/edge WaitingForKubeadmInit", State::Waiting);
    assert_end("cluster/edge", &control_plane(initializing), end);
    let unready = json!({ "conditions": [{ "type": "Ready", "status": "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "severity": "Info" }] });
    let objects = control_plane(unready);
    let end = ("KubeadmControlPlane/edge Ready is not as it should be", State::Waiting);
    assert_end("cluster/edge", &objects, end);
    let explanation = explained(&objects, "cluster/edge", None);
    assert!(explanation.chain.last().unwrap().since.is_some());
    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    let end = ("Cluster/edge waits for its control plane", State::Waiting);
    assert_end("cluster/edge", &control_plane(ready), end);
}

#[test]
fn cluster_of_a_class_leads_to_its_topology() {
    let with = |conditions: Value| {
        cluster(
            json!({ "spec": { "infrastructureRef": null, "topology": { "classRef": { "name": "c" } } },
        "status": { "initialization": { "infrastructureProvisioned": false }, "conditions": conditions } }),
        )
    };
    let failed = [with(conditions(&[(
        "TopologyReconciled",
        "False",
        "TopologyReconcileFailed",
    )]))];
    let explanation = explained(&failed, "cluster/edge", None);
    let last = explanation.chain.last().unwrap();
    assert!(last.title.contains("TopologyReconcileFailed"), "{}", last.title);
    assert_eq!(last.message, "message of TopologyReconcileFailed");
    assert!(last.cure.contains("spec.topology") && !last.cure.contains("infrastructureRef"));
    assert_eq!(explanation.state, State::Blocked);
    assert!(explanation.names_a_cause());
    // The topology controller has not reported yet.
    let unknown = conditions(&[("TopologyReconciled", "Unknown", "ReconcilePending")]);
    for conditions in [json!([]), unknown] {
        let end = (
            "Cluster/edge waits for the infrastructure of its topology",
            State::Waiting,
        );
        assert_end("cluster/edge", &[with(conditions)], end);
    }
    let mut plain = with(json!([]));
    plain["spec"]["topology"] = Value::Null;
    let end = ("Cluster/edge names no infrastructure", State::Blocked);
    assert_end("cluster/edge", &[plain], end);
}
