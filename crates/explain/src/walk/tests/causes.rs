//! Which of several objects that are not done is the cause.

use super::*;

pub(super) fn deleting(change: Value) -> Value {
    let mut deleting = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
    merge(&mut deleting, change);
    deleting
}

pub(super) fn with(mut object: Value, change: Value) -> Value {
    merge(&mut object, change);
    object
}

/// A machine that runs.
pub(super) fn running(name: &str, change: Value) -> Value {
    let running =
        json!({ "status": { "initialization": { "infrastructureProvisioned": true }, "nodeRef": { "name": name } } });
    with(machine(name, running), change)
}

fn of_control_plane() -> Value {
    json!({ "metadata": { "labels": { "cluster.x-k8s.io/control-plane": "" } } })
}

/// A host of a machine that cannot be provisioned.
fn broken_host() -> Value {
    with(
        host("h0", failed("provisioning error")),
        json!({ "spec": { "consumerRef": { "kind": "Metal3Machine", "name": "w0" } } }),
    )
}

#[test]
fn cluster_in_deletion_waits_for_the_worker_that_is_being_deleted() {
    let objects = [
        cluster(deleting(json!({}))),
        running("cp0", of_control_plane()),
        machine("w0", deleting(json!({}))),
        with(
            metal3_machine("w0", ("Ready", "False", "Deleting")),
            deleting(json!({})),
        ),
        broken_host(),
    ];
    assert_end(
        "cluster/edge",
        &objects,
        ("BareMetalHost/h0 ProvisioningError", State::Blocked),
    );
}

#[test]
fn cluster_in_deletion_without_machines_waits_for_what_makes_them() {
    let control_plane = |change| {
        object(
            "controlplane.cluster.x-k8s.io/v1beta2",
            "KubeadmControlPlane",
            "edge",
            change,
        )
    };
    let deployment = object(
        "cluster.x-k8s.io/v1beta2",
        "MachineDeployment",
        "md",
        deleting(json!({})),
    );
    let objects = [cluster(deleting(json!({}))), deployment, control_plane(json!({}))];
    let explanation = explained(&objects, "cluster/edge", None);
    assert!(
        links(&explanation).last().unwrap().starts_with("MachineDeployment/md"),
        "{:?}",
        links(&explanation)
    );
    let objects = [cluster(deleting(json!({}))), control_plane(deleting(json!({})))];
    assert_end(
        "cluster/edge",
        &objects,
        ("KubeadmControlPlane/edge Deleting", State::Waiting),
    );
}

#[test]
fn machine_that_is_drained_is_not_explained_by_its_infrastructure() {
    let draining = json!({ "status": { "conditions": [{ "type": "Deleting", "status": "True", "reason": "DrainingNode",
        "message": "Drain not completed", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    let objects = [
        cluster(json!({})),
        machine("m0", deleting(draining)),
        metal3_machine("m0", ("NodeLabelsSynced", "False", "NodeLabelsFailed")),
    ];
    assert_end("machine/m0", &objects, ("Machine/m0 Deleting", State::Waiting));
}

#[test]
fn cluster_that_nothing_waits_for_is_done_without_workers_and_is_judged_without_a_control_plane() {
    let control_plane = object(
        "controlplane.cluster.x-k8s.io/v1alpha1",
        "KubeadmControlPlane",
        "edge",
        json!({}),
    );
    let available =
        |status: &str| json!({ "status": { "conditions": conditions(&[("Available", status, "NotAvailable")]) } });
    let [infrastructure, _] = parts();
    let objects = [cluster(available("True")), infrastructure.clone(), control_plane];
    let explanation = explained(&objects, "cluster/edge", None);
    assert_eq!((links(&explanation), explanation.state), (vec![], State::Ready));
    let without = with(
        cluster(available("False")),
        json!({ "spec": { "controlPlaneRef": null } }),
    );
    let objects = [without, infrastructure, running("w0", json!({}))];
    assert_end("cluster/edge", &objects, ("Cluster/edge NotAvailable", State::Waiting));
}

/// The first machine goes on by itself, and another one does not.
#[test]
fn running_cluster_leads_to_the_machine_that_needs_help() {
    let provisioned = json!({ "metadata": { "annotations": { "metal3.io/BareMetalHost": "lab/h1" } } });
    let objects = [
        cluster(json!({})),
        machine("a0", of_control_plane()),
        with(metal3_machine("a0", ("DataReady", "True", "Ready")), provisioned),
        host(
            "h1",
            json!({ "status": { "provisioning": { "state": "provisioning" } } }),
        ),
        machine("w0", json!({})),
        metal3_machine("w0", ("DataReady", "True", "Ready")),
        broken_host(),
    ];
    assert_end(
        "cluster/edge",
        &objects,
        ("BareMetalHost/h0 ProvisioningError", State::Blocked),
    );
    // Before the control plane is initialized, the others wait for it.
    let waiting = json!({ "status": { "initialization": { "controlPlaneInitialized": false } } });
    let objects: Vec<Value> = objects
        .into_iter()
        .map(|one| {
            if one["kind"] == "Cluster" {
                with(one, waiting.clone())
            } else {
                one
            }
        })
        .collect();
    assert_end(
        "cluster/edge",
        &objects,
        ("BareMetalHost/h1 Provisioning", State::Waiting),
    );
}

/// A move pauses host, machine and Cluster, and may be interrupted.
#[test]
fn pause_of_a_machine_leads_from_its_host_to_the_machine() {
    let paused = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "metal3.io/capm3" } },
        "spec": { "consumerRef": { "kind": "Metal3Machine", "name": "m0" } } });
    let objects = [host("h0", paused), metal3_machine("m0", ("Paused", "True", "Paused"))];
    let explanation = explained(&objects, "bmh/h0", None);
    let last = explanation.chain.last().unwrap();
    assert_eq!(links(&explanation).last().unwrap(), "Metal3Machine/m0 Paused");
    assert!(
        last.cure.contains("clusterctl move") && !last.cure.ends_with("paused-"),
        "{}",
        last.cure
    );
    let by_user = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "" } } });
    let explanation = explained(&[host("h0", by_user)], "bmh/h0", None);
    assert!(explanation.chain[0].cure.contains("no clusterctl move"));
}

#[test]
fn object_that_a_controller_makes_is_not_to_be_made_by_hand() {
    let explanation = explained(&[cluster(json!({})), machine("m0", json!({}))], "machine/m0", None);
    let last = explanation.chain.last().unwrap();
    assert_eq!(last.title, "does not exist");
    assert!(last.cure.contains("delete the Machine"), "{}", last.cure);
    let claim = json!({ "status": { "renderedData": { "name": "t-0" } } });
    let claim = object(&format!("{INFRASTRUCTURE}/v1beta2"), "Metal3DataClaim", "m0", claim);
    let last = explained(&[claim], "m3dc/m0", None).chain.pop().unwrap();
    assert!(
        last.cure.starts_with("Wait") && last.cure.contains("disk is erased"),
        "{}",
        last.cure
    );
}

#[test]
fn hardware_that_failed_is_the_cause_when_nothing_else_is() {
    let ill = json!({ "status": { "conditions": conditions(&[("Healthy", "False", "CriticalError")]) } });
    assert_end(
        "bmh/h0",
        &[host("h0", ill.clone())],
        ("BareMetalHost/h0 CriticalError", State::Blocked),
    );
    let inspecting = json!({ "status": { "provisioning": { "state": "inspecting" } } });
    assert_end(
        "bmh/h0",
        &[with(host("h0", ill), inspecting)],
        ("BareMetalHost/h0 Inspecting", State::Waiting),
    );
}

#[test]
fn object_without_conditions_may_say_otherwise_that_it_is_done() {
    let byo = object(
        "infrastructure.cluster.x-k8s.io/v1beta1",
        "ByoCluster",
        "edge",
        json!({ "status": { "ready": true } }),
    );
    let reference = json!({ "spec": { "infrastructureRef": { "kind": "ByoCluster" } },
        "status": { "initialization": { "infrastructureProvisioned": false } } });
    let explanation = explained(&[cluster(reference), byo], "cluster/edge", None);
    assert_eq!(links(&explanation), ["Cluster/edge waits for its infrastructure"]);
}

#[test]
fn cluster_that_belongs_to_none_does_not_wait_for_the_machines_of_others() {
    let lonely = json!({ "metadata": { "labels": null }, "spec": {} });
    let own = object(
        &format!("{INFRASTRUCTURE}/v1beta2"),
        "Metal3Cluster",
        "x",
        deleting(lonely),
    );
    let other = metal3_machine(
        "other-0",
        ("AssociateBareMetalHost", "False", "AssociateBareMetalHostFailed"),
    );
    assert_end("m3c/x", &[own, other], ("Metal3Cluster/x Deleting", State::Waiting));
}
