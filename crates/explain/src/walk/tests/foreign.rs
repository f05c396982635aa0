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

/// Until it is initialized, a control plane of Kamaji has conditions of its steps only.
#[test]
fn control_plane_without_a_summary_says_its_step() {
    let status = |pending: &str| {
        let at = |kind: &'static str| (kind, if kind == pending { "False" } else { "True" }, "Pending");
        json!({ "ready": false, "conditions": conditions(&[
            at("TenantControlPlaneCreated"), at("TenantControlPlaneAddressReady"), at("ControlPlaneEndpointPatched"),
            at("InfrastructureClusterPatched"),
        ]) })
    };
    let end = ("KubeadmControlPlane/edge Pending", State::Waiting);
    for pending in ["TenantControlPlaneAddressReady", "InfrastructureClusterPatched"] {
        let objects = control_plane(status(pending));
        assert_end("cluster/edge", &objects, end);
        let explanation = explained(&objects, "cluster/edge", None);
        let title = &explanation.chain.last().unwrap().title;
        assert!(title.contains(pending), "{title}");
    }
    let mut starting = control_plane(status(""));
    let end = ("KubeadmControlPlane/edge is not initialized yet", State::Waiting);
    assert_end("cluster/edge", &starting, end);
    starting[1]["status"]["initialization"]["controlPlaneInitialized"] = json!(true);
    let end = ("Cluster/edge waits for its control plane", State::Waiting);
    assert_end("cluster/edge", &starting, end);
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
