//! The Cluster of an object, its role, and the condition.

use super::*;
use crate::endpoint::address::Address;
use crate::endpoint::source::{SourceState, SourceValue};

fn attached(plan: &Plan) -> (ConditionStatus, String) {
    let conditions = &plan.status.as_ref().unwrap().conditions;
    let found = conditions.iter().find(|one| one.type_ == "ClusterAttached").unwrap();
    (found.status, found.reason.clone())
}

fn owner(name: &str) -> Value {
    json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": format!("uid-{name}") })
}

fn site(owners: &[&str], stated: Option<&str>, label: Option<&str>) -> Metal3Cluster {
    let owners: Vec<Value> = owners.iter().map(|name| owner(name)).collect();
    object(json!({
        "metadata": {
            "name": "site", "ownerReferences": owners, "labels": { "cluster.x-k8s.io/cluster-name": label },
        },
        "spec": { "clusterName": stated, "controlPlaneEndpoint": null },
    }))
}

fn foreign_cluster() -> Cluster {
    cluster(json!({ "metadata": { "uid": "uid-edge" }, "spec": { "infrastructureRef": { "kind": "ByoCluster" } } }))
}

#[test]
fn object_joins_by_owner_name_or_label_and_gets_owner_and_label_once() {
    let cluster = foreign_cluster();
    for object in [
        site(&["edge"], None, None),
        site(&[], Some("edge"), None),
        site(&[], None, Some("edge")),
        site(&["edge"], Some("edge"), Some("edge")),
    ] {
        let plan = decide(&object, Observed::Present(&cluster), None);
        let joined = after(&object, &plan);
        let owners = joined.metadata.owner_references.clone().unwrap();
        assert_eq!(owners.len(), 1);
        assert_eq!(
            (
                owners[0].uid.as_str(),
                owners[0].controller,
                owners[0].block_owner_deletion
            ),
            ("uid-edge", None, None)
        );
        assert_eq!(
            joined.metadata.labels.as_ref().unwrap()["cluster.x-k8s.io/cluster-name"],
            "edge"
        );
        assert_eq!(attached(&plan), (ConditionStatus::True, "Attached".to_owned()));
        assert_eq!(
            plan.status.as_ref().unwrap().role,
            Some(metal3_api::infrastructure::v1beta2::ClusterRole::Secondary)
        );
        assert_eq!(decide(&joined, Observed::Present(&cluster), None), Plan::default());
    }
}

#[test]
fn object_that_names_two_clusters_or_has_two_owners_is_not_written() {
    let cluster = foreign_cluster();
    let table = [
        (site(&["other"], Some("edge"), None), "ClusterRefConflict"),
        (site(&[], Some("edge"), Some("other")), "ClusterRefConflict"),
        (site(&["edge"], None, Some("other")), "ClusterRefConflict"),
        (site(&["edge", "other"], Some("edge"), None), "OwnedByOtherCluster"),
    ];
    for (object, reason) in table {
        let plan = decide(&object, Observed::Present(&cluster), None);
        assert_eq!((plan.action.clone(), plan.derive.clone()), (None, None));
        assert_eq!(attached(&plan), (ConditionStatus::False, reason.to_owned()));
        assert!(condition_lines(&plan).contains(&"Ready False NotReady".to_owned()));
    }
}

#[test]
fn missing_cluster_is_named_and_no_finalizer_is_set() {
    let plan = decide(&site(&[], Some("edge"), None), Observed::Absent, None);
    assert_eq!(plan.action, None);
    assert_eq!(attached(&plan), (ConditionStatus::False, "ClusterNotFound".to_owned()));
}

#[test]
fn namesake_is_used_and_not_owned_unless_adoption_is_enabled() {
    let (object, cluster) = (site(&[], None, None), foreign_cluster());
    let source_values = SourceValues::default();
    let facts = Facts {
        namesake: Some(&cluster),
        ..facts(&object, Observed::Absent, &source_values)
    };
    let used = plan(&facts);
    assert_eq!(used.action, None);
    assert_eq!(attached(&used), (ConditionStatus::False, "NotAdopted".to_owned()));
    let adopted = plan(&Facts {
        adopts_namesakes: true,
        ..facts
    });
    assert_eq!(attached(&adopted), (ConditionStatus::True, "Attached".to_owned()));
    assert_eq!(
        patched(&adopted)["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"],
        "edge"
    );
    assert!(is_namesake("edge", &foreign_named("edge")) && !is_namesake("site", &foreign_named("edge")));
    assert!(!is_namesake("edge", &super::cluster(json!({}))), "its own kind");
}

fn foreign_named(name: &str) -> Cluster {
    cluster(json!({ "spec": { "infrastructureRef": { "kind": "ByoCluster", "name": name } } }))
}

#[test]
fn object_detaches_once_no_machine_belongs_to_it() {
    let cluster = foreign_cluster();
    let mut object = site(&["edge"], None, Some("edge"));
    object.metadata.finalizers = Some(vec!["metal3cluster.infrastructure.cluster.x-k8s.io".to_owned()]);
    let annotation = ("infrastructure.cluster.x-k8s.io/detach".to_owned(), String::new());
    object.metadata.annotations = Some([annotation].into());
    let waits = decide(&object, Observed::Present(&cluster), Some("worker-0"));
    assert_eq!(attached(&waits), (ConditionStatus::True, "Detaching".to_owned()));
    let plan = decide(&object, Observed::Present(&cluster), None);
    assert_eq!(attached(&plan), (ConditionStatus::False, "Detached".to_owned()));
    let result = after(&object, &plan);
    let requeue_after = decide(&result, Observed::Absent, None);
    assert_eq!(
        requeue_after
            .status
            .map_or(result.status.conditions.len(), |s| s.conditions.len()),
        result.status.conditions.len(),
        "the condition is kept"
    );
    assert!(result.metadata.owner_references.unwrap_or_default().is_empty());
    assert!(result.metadata.finalizers.unwrap_or_default().is_empty());
    assert_eq!(
        result
            .metadata
            .labels
            .unwrap_or_default()
            .get("cluster.x-k8s.io/cluster-name"),
        None
    );
}

#[test]
fn primary_with_a_source_writes_the_endpoint_and_is_provisioned_in_one_reconcile() {
    let own = object(
        json!({ "spec": { "controlPlaneEndpoint": null, "controlPlaneEndpointSource": { "type": "ControlPlane" } } }),
    );
    let cluster = cluster(json!({}));
    let source_values = SourceValues {
        control_plane: Some(crate::endpoint::source::SourceValue {
            from: "KamajiControlPlane edge".to_owned(),
            state: crate::endpoint::source::SourceState::Address(
                crate::endpoint::address::Address::parse("192.0.2.7:6443").unwrap(),
            ),
            idle: None,
        }),
        ..SourceValues::default()
    };
    let facts = facts(&own, Observed::Present(&cluster), &source_values);
    let found = plan(&facts);
    assert_eq!(found.derive.as_ref().unwrap().marker(), "ControlPlane;192.0.2.7:6443");
    assert_eq!(
        found
            .status
            .as_ref()
            .unwrap()
            .initialization
            .as_ref()
            .unwrap()
            .provisioned,
        Some(true)
    );
    let result = after(&own, &found);
    assert_eq!(
        plan(&Facts {
            object: &result,
            ..facts
        }),
        Plan::default()
    );
}

#[test]
fn object_without_extensions_that_contradicts_its_cluster_reports_it_and_stays_ready() {
    let fixed = cluster(json!({ "spec": { "controlPlaneEndpoint": { "host": "192.0.2.9", "port": 6443 } } }));
    let old = object(json!({}));
    let plan = decide(&old, Observed::Present(&fixed), None);
    let lines = condition_lines(&plan);
    assert!(
        lines.contains(&"ControlPlaneEndpointReady False EndpointConflict".to_owned()),
        "{lines:?}"
    );
    assert!(lines.contains(&"Ready True Ready".to_owned()), "{lines:?}");
    assert_eq!(plan.status.as_ref().unwrap().role, None);
    let agreed = cluster(json!({ "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } } }));
    let resolved = decide(&after(&old, &plan), Observed::Present(&agreed), None);
    assert!(condition_lines(&resolved).contains(&"ControlPlaneEndpointReady True EndpointFromSpec".to_owned()));
}

#[test]
fn object_with_extensions_that_contradicts_its_cluster_is_not_ready_and_machines_continue() {
    let mut cluster = foreign_cluster();
    cluster.spec.control_plane_endpoint = serde_json::from_value(json!({ "host": "192.0.2.9", "port": 6443 })).unwrap();
    let new =
        object(json!({ "metadata": { "name": "site", "ownerReferences": null }, "spec": { "clusterName": "edge" } }));
    let plan = decide(&new, Observed::Present(&cluster), None);
    let lines = condition_lines(&plan);
    assert!(lines.contains(&"Ready False NotReady".to_owned()), "{lines:?}");
    assert!(
        lines.contains(&"BaremetalInfrastructureReady True Ready".to_owned()),
        "{lines:?}"
    );
    assert_eq!(plan.status.unwrap().initialization.unwrap().provisioned, Some(true));
}

#[test]
fn fields_without_effect_are_named_while_they_are_set() {
    let cluster = cluster(json!({}));
    let zones = json!({ "spec": { "deploymentZones": [{ "name": "rack1" }], "hostAPI": "HostClaim" } });
    let plan = decide(&object(zones.clone()), Observed::Present(&cluster), None);
    let conditions = plan.status.as_ref().unwrap().conditions.clone();
    let served = conditions.iter().find(|one| one.type_ == "SpecServed").unwrap();
    assert_eq!(
        (served.status, served.reason.as_str()),
        (ConditionStatus::False, "NotYet")
    );
    assert!(
        served
            .message
            .contains("spec.deploymentZones, spec.hostAPI: HostClaim;"),
        "{}",
        served.message
    );
    assert!(condition_lines(&plan).contains(&"Ready True Ready".to_owned()));
    let mut without = after(&object(zones), &plan);
    without.spec = object(json!({})).spec;
    let resolved = decide(&without, Observed::Present(&cluster), None);
    assert!(
        !condition_lines(&resolved)
            .iter()
            .any(|line| line.starts_with("SpecServed"))
    );
}

/// The conditions of extension fields, as type and reason.
fn extension_conditions(object: &Metal3Cluster) -> Vec<String> {
    let all = object.status.conditions.iter();
    let new = all.filter(|one| one.type_.starts_with("ControlPlaneEndpoint") || one.type_ == "ClusterAttached");
    new.map(|one| format!("{} {}", one.type_, one.reason)).collect()
}

fn reconciled(object: &Metal3Cluster, cluster: Observed<&Cluster>, state: SourceState) -> Metal3Cluster {
    let source_values = SourceValues {
        control_plane: Some(SourceValue {
            from: "KamajiControlPlane edge".to_owned(),
            state,
            idle: None,
        }),
        ..SourceValues::default()
    };
    after(object, &plan(&facts(object, cluster, &source_values)))
}

/// An object whose endpoint was derived from a control plane that has changed since.
fn drifted() -> (Metal3Cluster, Cluster) {
    let source = json!({ "controlPlaneEndpointSource": { "type": "ControlPlane" }, "controlPlaneEndpoint": null });
    let fixed = json!({ "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } });
    let cluster = cluster(json!({ "spec": fixed }));
    let derived = reconciled(
        &object(json!({ "spec": source })),
        Observed::Present(&cluster),
        known("192.0.2.1:6443"),
    );
    (
        reconciled(&derived, Observed::Present(&cluster), known("192.0.2.2:6443")),
        cluster,
    )
}

fn known(address: &str) -> SourceState {
    SourceState::Address(Address::parse(address).unwrap())
}

const CONDITIONS: [&str; 3] = [
    "ClusterAttached Attached",
    "ControlPlaneEndpointReady EndpointFromControlPlane",
    "ControlPlaneEndpointDrifted SourceChanged",
];

#[test]
fn unknown_conditions_are_kept() {
    let (object, cluster) = drifted();
    assert_eq!(extension_conditions(&object), CONDITIONS);
    let unreadable_source = reconciled(
        &object,
        Observed::Present(&cluster),
        SourceState::Unknown("it is busy".to_owned()),
    );
    assert_eq!(extension_conditions(&unreadable_source), CONDITIONS);
    let mut paused_object = object.clone();
    let paused = ("cluster.x-k8s.io/paused".to_owned(), String::new());
    paused_object
        .metadata
        .annotations
        .get_or_insert_default()
        .extend([paused]);
    let paused_object = reconciled(&paused_object, Observed::Present(&cluster), SourceState::Absent);
    assert_eq!(extension_conditions(&paused_object), CONDITIONS);
}

#[test]
fn conditions_that_do_not_apply_any_more_are_removed() {
    let (object, cluster) = drifted();
    let mut typed = object.clone();
    typed.metadata.annotations = None;
    let typed = reconciled(&typed, Observed::Present(&cluster), known("192.0.2.1:6443"));
    assert_eq!(
        extension_conditions(&typed),
        ["ClusterAttached Attached", "ControlPlaneEndpointReady EndpointFromSpec"]
    );
    let mut old = object.clone();
    old.spec.control_plane_endpoint_source = None;
    let from_spec = after(&old, &decide(&old, Observed::Present(&cluster), None));
    assert_eq!(
        extension_conditions(&from_spec),
        ["ControlPlaneEndpointReady EndpointFromSpec"]
    );
    old.spec.control_plane_endpoint = None;
    let without_endpoint = after(&old, &decide(&old, Observed::Present(&cluster), None));
    assert_eq!(extension_conditions(&without_endpoint), [""; 0], "there is no endpoint");
    let without_cluster = after(&object, &decide(&object, Observed::Absent, None));
    assert_eq!(
        extension_conditions(&without_cluster),
        [""; 0],
        "its Cluster does not exist"
    );
}
