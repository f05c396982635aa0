mod attachment;
mod held_claims;
mod joins;
mod members;
mod zones;

use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::Metal3ClusterStatus;
use metal3_api::meta::{Condition, ConditionStatus};
use metal3_runtime::patch::apply;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use super::*;
use crate::endpoint::held_claims::{HeldClaim, HeldClaims};
use crate::endpoint::rendered::Digester;
use crate::endpoint::source::{SourceState, SourceValue, SourceValues, WantedSources};
use crate::endpoint::spec_endpoint::Derived;
use crate::endpoint::tests::{at, control_plane, known, with_derived};

const FINALIZER: &str = "metal3cluster.infrastructure.cluster.x-k8s.io";

fn object(patch: Value) -> Metal3Cluster {
    let owner = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "edge", "uid": "c1" });
    let mut document = json!({
        "metadata": {
            "name": "edge", "namespace": "metal", "uid": "u1", "resourceVersion": "7", "generation": 2,
            "ownerReferences": [owner],
        },
        "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } },
    });
    apply(&patch, &mut document);
    serde_json::from_value(document).unwrap()
}

fn cluster(patch: Value) -> Cluster {
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": "edge" });
    let mut document = json!({
        "metadata": { "name": "edge", "namespace": "metal", "uid": "c1" },
        "spec": { "infrastructureRef": reference },
    });
    apply(&patch, &mut document);
    serde_json::from_value(document).unwrap()
}

/// A Cluster with this endpoint.
fn fixed_to(host: &str, port: u16) -> Cluster {
    cluster(json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": port } } }))
}

fn deleting(finalizers: &[&str]) -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers } })
}

fn unreadable_cluster() -> Observed<&'static Cluster> {
    Observed::Unknown(UnknownReason::Unreadable("odd".to_owned()))
}

fn facts(object: &Metal3Cluster, cluster: Observed<&Cluster>) -> Facts {
    Facts {
        object: Arc::new(object.clone()),
        cluster: cluster.map(|cluster| Arc::new(cluster.clone())),
        descendant: None,
        machines_are_live: true,
        namesake: None,
        adopts_namesakes: false,
        wanted: WantedSources::default(),
        source_values: SourceValues::default(),
        held_claims: HeldClaims::default(),
        secret: None,
        zone_templates: Vec::new(),
        join: JoinFacts::default(),
        digester: Digester::default(),
        touches_control_planes: false,
        results: Results::default(),
        now: at(9),
    }
}

fn decide(object: &Metal3Cluster, cluster: Observed<&Cluster>, descendant: Option<&str>) -> Plan {
    plan(&Facts {
        descendant: descendant.map(str::to_owned),
        ..facts(object, cluster)
    })
}

/// The plan of an object without machines whose Cluster exists.
fn decide_in(object: &Metal3Cluster, cluster: &Cluster) -> Plan {
    decide(object, Observed::Present(cluster), None)
}

/// The status that the plan writes, before its last action or after it.
fn status(plan: &Plan) -> &Metal3ClusterStatus {
    let first = plan.actions.iter().find_map(|action| match action {
        Action::Status(status) => Some(status),
        _ => None,
    });
    first.or(plan.status.as_ref()).unwrap()
}

fn condition<'a>(plan: &'a Plan, type_: &str) -> &'a Condition {
    let mut conditions = status(plan).conditions.iter();
    conditions.find(|one| one.type_ == type_).unwrap()
}

/// Status and reason of a condition.
fn state<'a>(plan: &'a Plan, type_: &str) -> (ConditionStatus, &'a str) {
    let condition = condition(plan, type_);
    (condition.status, &condition.reason)
}

fn provisioned(plan: &Plan) -> Option<bool> {
    status(plan).initialization.as_ref().and_then(|one| one.provisioned)
}

/// Type, status and reason of the conditions, by API generation.
fn condition_lines(plan: &Plan) -> Vec<String> {
    let status = status(plan);
    let newer = status.conditions.iter();
    let newer = newer.map(|c| format!("{} {:?} {}", c.type_, c.status, c.reason));
    let older = status.deprecated.iter().flat_map(|d| &d.v1beta1);
    let older = older.flat_map(|o| &o.conditions);
    let older = older.map(|c| format!("older {} {} {}", c.type_, c.status, c.reason));
    newer.chain(older.map(|line| line.trim_end().to_owned())).collect()
}

/// The patch or deletion of the object.
fn change(plan: &Plan) -> Option<&Action> {
    let mut actions = plan.actions.iter();
    actions.find(|action| matches!(action, Action::Patch(_) | Action::Delete))
}

fn patched(plan: &Plan) -> Value {
    match change(plan) {
        Some(Action::Patch(patch)) => patch.clone().into_document(),
        other => panic!("{other:?}"),
    }
}

fn derived(plan: &Plan) -> Option<&Derived> {
    plan.actions.iter().find_map(|action| match action {
        Action::Derive(derived) => Some(derived),
        _ => None,
    })
}

fn released(plan: &Plan) -> Vec<HeldClaim> {
    let claims = plan.actions.iter().filter_map(|action| match action {
        Action::Release(claim) => Some((**claim).clone()),
        _ => None,
    });
    claims.collect()
}

fn after(object: &Metal3Cluster, plan: &Plan) -> Metal3Cluster {
    let mut document = serde_json::to_value(object).unwrap();
    if change(plan).is_some() {
        apply(&patched(plan), &mut document);
    }
    let mut result: Metal3Cluster = serde_json::from_value(document).unwrap();
    if let Some(derived) = derived(plan) {
        result = with_derived(&result, derived);
    }
    if let Some(status) = &plan.status {
        result.status = (**status).clone();
    }
    result
}

#[test]
fn endpoint_in_the_spec_makes_the_infrastructure_ready_in_one_reconcile() {
    let domains = json!({ "spec": { "failureDomains": [{ "name": "rack1", "controlPlane": true }] } });
    let (object, cluster) = (object(domains), cluster(json!({})));
    let plan = decide_in(&object, &cluster);
    let expected = json!({ "metadata": { "finalizers": [FINALIZER], "resourceVersion": "7" } });
    assert_eq!(patched(&plan), expected);
    assert_eq!(provisioned(&plan), Some(true));
    assert_eq!(status(&plan).failure_domains, object.spec.failure_domains);
    assert_eq!(
        condition_lines(&plan),
        [
            "Paused False NotPaused",
            "BaremetalInfrastructureReady True Ready",
            "Ready True Ready",
            "older BaremetalInfrastructureReady True",
            "older Ready True",
        ]
    );
    assert_eq!(decide_in(&after(&object, &plan), &cluster), Plan::default());
}

#[test]
fn missing_endpoint_is_reported_by_field_with_the_remedy() {
    let cluster = cluster(json!({}));
    for (endpoint, field) in [
        (json!({ "host": "" }), "host"),
        (json!({ "port": 0 }), "port"),
        (json!({ "port": 70000 }), "port"),
        (Value::Null, "host"),
    ] {
        let object = object(json!({ "spec": { "controlPlaneEndpoint": endpoint } }));
        let plan = decide_in(&object, &cluster);
        assert_eq!(status(&plan).initialization, None);
        let invalid = condition(&plan, "BaremetalInfrastructureReady");
        assert_eq!(
            (invalid.status, invalid.reason.as_str()),
            (ConditionStatus::False, "InvalidConfiguration")
        );
        let expected = format!("Invalid Metal3Cluster provided: spec.controlPlaneEndpoint.{field}: ");
        assert!(invalid.message.starts_with(&expected), "{}", invalid.message);
    }
}

#[test]
fn provisioned_never_reverts() {
    let broken = object(
        json!({ "spec": { "controlPlaneEndpoint": null }, "status": { "initialization": { "provisioned": true } } }),
    );
    assert_eq!(provisioned(&decide_in(&broken, &cluster(json!({})))), Some(true));
}

#[test]
fn externally_managed_or_moved_object_or_one_with_an_unreadable_cluster_is_not_written() {
    let cluster = cluster(json!({}));
    for annotation in [
        "cluster.x-k8s.io/managed-by",
        "clusterctl.cluster.x-k8s.io/delete-for-move",
    ] {
        for deleting in [Value::Null, json!("2026-01-01T00:00:00Z")] {
            let meta =
                json!({ "annotations": { annotation: "" }, "deletionTimestamp": deleting, "finalizers": [FINALIZER] });
            let plan = decide_in(&object(json!({ "metadata": meta })), &cluster);
            assert_eq!(plan, Plan::default());
        }
    }
    let plan = decide(&object(json!({})), unreadable_cluster(), None);
    assert_eq!(plan, Plan::default());
}

#[test]
fn paused_object_reports_it_and_keeps_its_finalizer() {
    let paused = cluster(json!({ "spec": { "paused": true } }));
    let object = object(deleting(&[FINALIZER]));
    let plan = decide_in(&object, &paused);
    assert_eq!(
        (change(&plan), condition_lines(&plan)),
        (None, vec!["Paused True Paused".to_owned()])
    );
    assert_eq!(decide_in(&after(&object, &plan), &paused), Plan::default());
}

#[test]
fn finalizer_is_removed_after_the_last_machine_even_without_a_cluster() {
    let object = object(deleting(&[FINALIZER, "other"]));
    let waiting = decide(&object, Observed::Absent, Some("worker-0"));
    assert_eq!(change(&waiting), None);
    assert!(condition_lines(&waiting).contains(&"Ready False Deleting".to_owned()));
    let plan = decide(&object, Observed::Absent, None);
    assert_eq!(
        patched(&plan),
        json!({ "metadata": { "finalizers": ["other"], "resourceVersion": "7" } })
    );
    assert_eq!(plan.status, None);
}

#[test]
fn settled_object_that_waits_states_the_reason_as_in_its_condition() {
    let source = json!({ "controlPlaneEndpointSource": { "type": "ControlPlane" }, "controlPlaneEndpoint": null });
    let (waiting, cluster) = (object(json!({ "spec": source })), cluster(json!({})));
    let owned = json!({ "metadata": { "ownerReferences": null } });
    for (object, cluster, descendant, expected) in [
        (&waiting, Observed::Present(&cluster), None, "WaitingForControlPlane"),
        (&object(json!({})), Observed::Absent, None, "FailedToGetOwnerCluster"),
        (&object(owned), Observed::Absent, None, "NotReady"),
        (&object(deleting(&[FINALIZER])), Observed::Absent, Some("m"), "Deleting"),
    ] {
        let first = decide(object, cluster.clone(), descendant);
        assert_eq!(first.next, Next::Requeue, "{expected}: a write is read again");
        let Next::Waiting(on) = decide(&after(object, &first), cluster, descendant).next else {
            panic!("{expected}");
        };
        assert_eq!((on.reason.as_str(), on.recheck), (expected, None));
        assert!(!on.message.is_empty());
    }
}

/// An object that joined a Cluster with another infrastructure.
fn secondary(spec: Value) -> (Metal3Cluster, Cluster) {
    let joined = object(json!({ "metadata": { "name": "site", "ownerReferences": null }, "spec": spec }));
    let infrastructure = json!({ "kind": "ByoCluster", "name": "edge" });
    (
        joined,
        cluster(json!({ "spec": { "infrastructureRef": infrastructure } })),
    )
}

#[test]
fn secondary_takes_the_endpoint_of_its_cluster_and_is_owned_by_it() {
    let (object, cluster) = secondary(json!({ "clusterName": "edge", "controlPlaneEndpoint": null }));
    let waiting = decide_in(&object, &cluster);
    assert!(
        condition_lines(&waiting).contains(&"BaremetalInfrastructureReady False ControlPlaneEndpointFailed".to_owned())
    );
    let cluster = fixed_to("192.0.2.9", 443);
    let plan = decide_in(&object, &cluster);
    let owners = &patched(&plan)["metadata"]["ownerReferences"];
    assert_eq!(
        (owners[0]["uid"].as_str(), owners[0]["controller"].as_bool()),
        (Some("c1"), None)
    );
    let found = status(&plan).control_plane_endpoint.as_ref().unwrap();
    assert_eq!((found.host.as_deref(), found.port), (Some("192.0.2.9"), Some(443)));
    assert_eq!(provisioned(&plan), Some(true));
    assert_eq!(decide_in(&after(&object, &plan), &cluster), Plan::default());
}

#[test]
fn secondary_with_another_endpoint_than_its_cluster_names_both() {
    let (object, _) = secondary(json!({ "clusterName": "edge" }));
    let cluster = fixed_to("192.0.2.9", 443);
    let plan = decide_in(&object, &cluster);
    let conflict = condition(&plan, "ControlPlaneEndpointReady");
    assert_eq!(
        (conflict.status, conflict.reason.as_str()),
        (ConditionStatus::False, "EndpointConflict")
    );
    assert!(conflict.message.contains("192.0.2.1:6443") && conflict.message.contains("192.0.2.9:443"));
}

#[test]
fn secondary_is_deleted_with_its_cluster_after_its_machines() {
    let (object, mut cluster) = secondary(json!({ "clusterName": "edge" }));
    cluster.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let waiting = decide(&object, Observed::Present(&cluster), Some("m"));
    assert_ne!(change(&waiting), Some(&Action::Delete));
    assert_eq!(change(&decide_in(&object, &cluster)), Some(&Action::Delete));
}
