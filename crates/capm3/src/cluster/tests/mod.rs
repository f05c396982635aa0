mod attachment;
mod held_claims;

use metal3_api::meta::{ConditionStatus, Time};
use metal3_runtime::patch::apply;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::*;
use crate::endpoint::held_claims::{HeldClaim, HeldClaims};
use crate::endpoint::source::SourceValues;

static NO_HOLDS: HeldClaims = HeldClaims {
    all: Vec::new(),
    unreadable: None,
};

fn at(seconds: i64) -> Time {
    Time::new(chrono::DateTime::from_timestamp(seconds, 0).unwrap())
}

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

fn facts<'a>(object: &'a Metal3Cluster, cluster: Observed<&'a Cluster>, source_values: &'a SourceValues) -> Facts<'a> {
    Facts {
        object,
        cluster,
        descendant: None,
        namesake: None,
        adopts_namesakes: false,
        source_values,
        held_claims: &NO_HOLDS,
        secret: None,
        refused: Refused::default(),
        now: at(9),
    }
}

fn decide(object: &Metal3Cluster, cluster: Observed<&Cluster>, descendant: Option<&str>) -> Plan {
    plan(&Facts {
        descendant,
        ..facts(object, cluster, &SourceValues::default())
    })
}

/// Type, status and reason of the conditions, by API generation.
fn condition_lines(plan: &Plan) -> Vec<String> {
    let status = plan.status.as_ref().unwrap();
    let newer = status
        .conditions
        .iter()
        .map(|c| format!("{} {:?} {}", c.type_, c.status, c.reason));
    let older = status
        .deprecated
        .iter()
        .flat_map(|d| &d.v1beta1)
        .flat_map(|o| &o.conditions);
    newer
        .chain(older.map(|c| {
            format!("older {} {} {}", c.type_, c.status, c.reason)
                .trim_end()
                .to_owned()
        }))
        .collect()
}

fn patched(plan: &Plan) -> Value {
    match &plan.action {
        Some(Action::Patch(patch)) => patch.clone().into_document(),
        other => panic!("{other:?}"),
    }
}

fn after(object: &Metal3Cluster, plan: &Plan) -> Metal3Cluster {
    let mut document = serde_json::to_value(object).unwrap();
    if plan.action.is_some() {
        apply(&patched(plan), &mut document);
    }
    if let Some(derived) = &plan.derive {
        let endpoint = json!({ "host": derived.address.host, "port": derived.address.port });
        let marker = json!({ "infrastructure.cluster.x-k8s.io/derived-endpoint": derived.marker() });
        let members = json!({ "metadata": { "annotations": marker }, "spec": { "controlPlaneEndpoint": endpoint } });
        apply(&members, &mut document);
    }
    let mut result: Metal3Cluster = serde_json::from_value(document).unwrap();
    if let Some(status) = &plan.status {
        result.status = (**status).clone();
    }
    result
}

#[test]
fn endpoint_in_the_spec_makes_the_infrastructure_ready_in_one_reconcile() {
    let domains = json!({ "spec": { "failureDomains": [{ "name": "rack1", "controlPlane": true }] } });
    let object = object(domains);
    let cluster = cluster(json!({}));
    let plan = decide(&object, Observed::Present(&cluster), None);
    let expected = json!({ "metadata": { "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io"], "resourceVersion": "7" } });
    assert_eq!(patched(&plan), expected);
    let status = plan.status.as_ref().unwrap();
    assert_eq!(status.initialization.as_ref().unwrap().provisioned, Some(true));
    assert_eq!(status.failure_domains, object.spec.failure_domains);
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
    assert_eq!(
        decide(&after(&object, &plan), Observed::Present(&cluster), None),
        Plan::default()
    );
}

#[test]
fn missing_endpoint_is_reported_by_field_with_the_remedy() {
    let cluster = cluster(json!({}));
    for (endpoint, field) in [
        (json!({ "host": "" }), "spec.controlPlaneEndpoint.host: "),
        (json!({ "port": 0 }), "spec.controlPlaneEndpoint.port: "),
        (json!({ "port": 70000 }), "spec.controlPlaneEndpoint.port: "),
        (Value::Null, "spec.controlPlaneEndpoint.host: "),
    ] {
        let object = object(json!({ "spec": { "controlPlaneEndpoint": endpoint } }));
        let plan = decide(&object, Observed::Present(&cluster), None);
        let status = plan.status.as_ref().unwrap();
        assert_eq!(status.initialization, None);
        let invalid = status
            .conditions
            .iter()
            .find(|c| c.type_ == "BaremetalInfrastructureReady")
            .unwrap();
        assert_eq!(
            (invalid.status, invalid.reason.as_str()),
            (ConditionStatus::False, "InvalidConfiguration")
        );
        assert!(
            invalid
                .message
                .starts_with(&format!("Invalid Metal3Cluster provided: {field}")),
            "{}",
            invalid.message
        );
    }
}

#[test]
fn provisioned_never_reverts() {
    let broken = object(
        json!({ "spec": { "controlPlaneEndpoint": null }, "status": { "initialization": { "provisioned": true } } }),
    );
    let plan = decide(&broken, Observed::Present(&cluster(json!({}))), None);
    assert_eq!(plan.status.unwrap().initialization.unwrap().provisioned, Some(true));
}

#[test]
fn externally_managed_or_moved_object_or_one_with_an_unreadable_cluster_is_not_written() {
    let cluster = cluster(json!({}));
    for annotation in [
        "cluster.x-k8s.io/managed-by",
        "clusterctl.cluster.x-k8s.io/delete-for-move",
    ] {
        for deleting in [Value::Null, json!("2026-01-01T00:00:00Z")] {
            let meta = json!({ "annotations": { annotation: "" }, "deletionTimestamp": deleting, "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io"] });
            assert_eq!(
                decide(&object(json!({ "metadata": meta })), Observed::Present(&cluster), None),
                Plan::default()
            );
        }
    }
    assert_eq!(
        decide(
            &object(json!({})),
            Observed::Unknown(UnknownReason::Unreadable("odd".to_owned())),
            None
        ),
        Plan::default()
    );
}

#[test]
fn paused_object_reports_it_and_keeps_its_finalizer() {
    let paused = cluster(json!({ "spec": { "paused": true } }));
    let meta = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io"] });
    let object = object(json!({ "metadata": meta }));
    let plan = decide(&object, Observed::Present(&paused), None);
    assert_eq!(
        (plan.action.clone(), condition_lines(&plan)),
        (None, vec!["Paused True Paused".to_owned()])
    );
    assert_eq!(
        decide(&after(&object, &plan), Observed::Present(&paused), None),
        Plan::default()
    );
}

#[test]
fn finalizer_is_removed_after_the_last_machine_even_without_a_cluster() {
    let meta = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io", "other"] });
    let object = object(json!({ "metadata": meta }));
    let waiting = decide(&object, Observed::Absent, Some("worker-0"));
    assert_eq!(waiting.action, None);
    assert!(condition_lines(&waiting).contains(&"Ready False Deleting".to_owned()));
    let plan = decide(&object, Observed::Absent, None);
    assert_eq!(
        patched(&plan),
        json!({ "metadata": { "finalizers": ["other"], "resourceVersion": "7" } })
    );
    assert_eq!(plan.status, None);
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
    let (object, mut cluster) = secondary(json!({ "clusterName": "edge", "controlPlaneEndpoint": null }));
    let waiting = decide(&object, Observed::Present(&cluster), None);
    assert!(
        condition_lines(&waiting).contains(&"BaremetalInfrastructureReady False ControlPlaneEndpointFailed".to_owned())
    );
    cluster.spec =
        serde_json::from_value(json!({ "controlPlaneEndpoint": { "host": "192.0.2.9", "port": 443 } })).unwrap();
    let plan = decide(&object, Observed::Present(&cluster), None);
    let owners = &patched(&plan)["metadata"]["ownerReferences"];
    assert_eq!(
        (owners[0]["uid"].as_str(), owners[0]["controller"].as_bool()),
        (Some("c1"), None)
    );
    let status = plan.status.as_ref().unwrap();
    let found = status.control_plane_endpoint.as_ref().unwrap();
    assert_eq!((found.host.as_deref(), found.port), (Some("192.0.2.9"), Some(443)));
    assert_eq!(status.initialization.as_ref().unwrap().provisioned, Some(true));
    assert_eq!(
        decide(&after(&object, &plan), Observed::Present(&cluster), None),
        Plan::default()
    );
}

#[test]
fn secondary_with_another_endpoint_than_its_cluster_names_both() {
    let (object, mut cluster) = secondary(json!({ "clusterName": "edge" }));
    cluster.spec =
        serde_json::from_value(json!({ "controlPlaneEndpoint": { "host": "192.0.2.9", "port": 443 } })).unwrap();
    let plan = decide(&object, Observed::Present(&cluster), None);
    let status = plan.status.unwrap();
    let conflict = status
        .conditions
        .iter()
        .find(|c| c.type_ == "ControlPlaneEndpointReady")
        .unwrap();
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
    assert_ne!(
        decide(&object, Observed::Present(&cluster), Some("m")).action,
        Some(Action::Delete)
    );
    assert_eq!(
        decide(&object, Observed::Present(&cluster), None).action,
        Some(Action::Delete)
    );
}
