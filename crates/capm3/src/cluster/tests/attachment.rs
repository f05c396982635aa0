//! The Cluster of an object, its role, and the condition.

use std::time::Duration;

use metal3_api::infrastructure::v1beta2::ClusterRole;
use metal3_runtime::queue::Outcome;

use super::*;
use crate::endpoint::source::wanted_sources;

const LABEL: &str = "cluster.x-k8s.io/cluster-name";

fn attached(plan: &Plan) -> (ConditionStatus, &str) {
    state(plan, "ClusterAttached")
}

fn owner(name: &str) -> Value {
    json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": format!("uid-{name}") })
}

fn site(owners: &[&str], stated: Option<&str>, label: Option<&str>) -> Metal3Cluster {
    let owners: Vec<Value> = owners.iter().map(|name| owner(name)).collect();
    object(json!({
        "metadata": {
            "name": "site", "ownerReferences": owners, "labels": { LABEL: label },
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
        let plan = decide_in(&object, &cluster);
        let joined = after(&object, &plan);
        let [owner] = &joined.metadata.owner_references.clone().unwrap()[..] else {
            panic!("one owner");
        };
        assert_eq!(
            (owner.uid.as_str(), owner.controller, owner.block_owner_deletion),
            ("uid-edge", None, None)
        );
        assert_eq!(joined.metadata.labels.as_ref().unwrap()[LABEL], "edge");
        assert_eq!(attached(&plan), (ConditionStatus::True, "Attached"));
        assert_eq!(status(&plan).role, Some(ClusterRole::Secondary));
        let again = decide_in(&joined, &cluster);
        assert_eq!(
            (again.actions, again.status, again.next.outcome()),
            (vec![], None, Outcome::Done)
        );
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
        let plan = decide_in(&object, &cluster);
        assert_eq!(plan.actions, []);
        assert_eq!(attached(&plan), (ConditionStatus::False, reason));
        assert!(condition_lines(&plan).contains(&"Ready False NotReady".to_owned()));
    }
}

#[test]
fn missing_cluster_is_named_and_no_finalizer_is_set() {
    let plan = decide(&site(&[], Some("edge"), None), Observed::Absent, None);
    assert_eq!(change(&plan), None);
    assert_eq!(attached(&plan), (ConditionStatus::False, "ClusterNotFound"));
}

#[test]
fn namesake_is_used_and_not_owned_unless_adoption_is_enabled() {
    let (object, cluster) = (site(&[], None, None), Arc::new(foreign_cluster()));
    let with_namesake = |adopts_namesakes| {
        plan(&Facts {
            namesake: Some(Arc::clone(&cluster)),
            adopts_namesakes,
            ..facts(&object, Observed::Absent)
        })
    };
    let used = with_namesake(false);
    assert_eq!(change(&used), None);
    assert_eq!(attached(&used), (ConditionStatus::False, "NotAdopted"));
    let adopted = with_namesake(true);
    assert_eq!(attached(&adopted), (ConditionStatus::True, "Attached"));
    assert_eq!(patched(&adopted)["metadata"]["labels"][LABEL], "edge");
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
    object.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    let annotation = ("infrastructure.cluster.x-k8s.io/detach".to_owned(), String::new());
    object.metadata.annotations = Some([annotation].into());
    let waits = decide(&object, Observed::Present(&cluster), Some("worker-0"));
    assert_eq!(attached(&waits), (ConditionStatus::True, "Detaching"));
    let plan = decide_in(&object, &cluster);
    assert_eq!(attached(&plan), (ConditionStatus::False, "Detached"));
    let result = after(&object, &plan);
    let later = after(&result, &decide(&result, Observed::Absent, None));
    assert_eq!(
        later.status.conditions.len(),
        result.status.conditions.len(),
        "the condition is kept"
    );
    let meta = result.metadata;
    assert!(meta.owner_references.unwrap_or_default().is_empty());
    assert!(meta.finalizers.unwrap_or_default().is_empty());
    assert_eq!(meta.labels.unwrap_or_default().get(LABEL), None);
}

#[test]
fn primary_with_a_source_writes_the_endpoint_and_is_provisioned_in_one_reconcile() {
    let own = object(
        json!({ "spec": { "controlPlaneEndpoint": null, "controlPlaneEndpointSource": { "type": "ControlPlane" } } }),
    );
    let cluster = cluster(json!({}));
    let with_source = |object: &Metal3Cluster| Facts {
        source_values: control_plane(known("192.0.2.7:6443")),
        ..facts(object, Observed::Present(&cluster))
    };
    let found = plan(&with_source(&own));
    assert_eq!(derived(&found).unwrap().marker(), "ControlPlane;192.0.2.7:6443");
    assert_eq!(provisioned(&found), Some(true));
    let result = after(&own, &found);
    assert_eq!(plan(&with_source(&result)), Plan::default());
}

#[test]
fn object_without_extensions_that_contradicts_its_cluster_reports_it_and_stays_ready() {
    let old = object(json!({}));
    let plan = decide_in(&old, &fixed_to("192.0.2.9", 6443));
    let conflict = state(&plan, "ControlPlaneEndpointReady");
    assert_eq!(conflict, (ConditionStatus::False, "EndpointConflict"));
    assert_eq!(state(&plan, "Ready"), (ConditionStatus::True, "Ready"));
    assert_eq!(status(&plan).role, None);
    let resolved = decide_in(&after(&old, &plan), &fixed_to("192.0.2.1", 6443));
    let agreed = state(&resolved, "ControlPlaneEndpointReady");
    assert_eq!(agreed, (ConditionStatus::True, "EndpointFromSpec"));
}

#[test]
fn object_with_extensions_that_contradicts_its_cluster_is_not_ready_and_machines_continue() {
    let mut cluster = foreign_cluster();
    cluster.spec.control_plane_endpoint = serde_json::from_value(json!({ "host": "192.0.2.9", "port": 6443 })).unwrap();
    let new =
        object(json!({ "metadata": { "name": "site", "ownerReferences": null }, "spec": { "clusterName": "edge" } }));
    let plan = decide_in(&new, &cluster);
    assert_eq!(state(&plan, "Ready"), (ConditionStatus::False, "NotReady"));
    let infrastructure = state(&plan, "BaremetalInfrastructureReady");
    assert_eq!(infrastructure, (ConditionStatus::True, "Ready"));
    assert_eq!(provisioned(&plan), Some(true));
}

#[test]
fn fields_without_effect_are_named_while_they_are_set() {
    let cluster = cluster(json!({}));
    let identity = json!({ "name": "elsewhere", "context": "admin" });
    let zones = json!({ "spec": {
        "deploymentZones": [{ "name": "rack1" }, { "name": "rack2", "hostNamespace": "other", "identityRef": identity }],
        "hostAPI": "HostClaim", "identityRef": identity,
    } });
    let plan = decide_in(&object(zones.clone()), &cluster);
    assert_eq!(state(&plan, "SpecServed"), (ConditionStatus::False, "NotYet"));
    let message = &condition(&plan, "SpecServed").message;
    assert!(
        message.contains(
            "spec.deploymentZones[].identityRef, spec.deploymentZones[].hostNamespace, spec.identityRef, spec.hostAPI: HostClaim;"
        ),
        "{message}"
    );
    assert_eq!(state(&plan, "Ready"), (ConditionStatus::True, "Ready"));
    let mut without = after(&object(zones), &plan);
    without.spec = object(json!({})).spec;
    let resolved = decide_in(&without, &cluster);
    let mut left = status(&resolved).conditions.iter();
    assert!(!left.any(|one| one.type_ == "SpecServed"));
}

/// The conditions of extension fields, as type and reason.
fn extension_conditions(object: &Metal3Cluster) -> Vec<String> {
    let all = object.status.conditions.iter();
    let new = all.filter(|one| one.type_.starts_with("ControlPlaneEndpoint") || one.type_ == "ClusterAttached");
    new.map(|one| format!("{} {}", one.type_, one.reason)).collect()
}

fn reconciled(object: &Metal3Cluster, cluster: &Cluster, state: SourceState) -> Metal3Cluster {
    let plan = plan(&Facts {
        source_values: control_plane(state),
        ..facts(object, Observed::Present(cluster))
    });
    after(object, &plan)
}

/// An object whose endpoint was derived from a control plane that has changed since.
fn drifted() -> (Metal3Cluster, Cluster) {
    let source = json!({ "controlPlaneEndpointSource": { "type": "ControlPlane" }, "controlPlaneEndpoint": null });
    let cluster = fixed_to("192.0.2.1", 6443);
    let derived = reconciled(&object(json!({ "spec": source })), &cluster, known("192.0.2.1:6443"));
    (reconciled(&derived, &cluster, known("192.0.2.2:6443")), cluster)
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
    let unreadable_source = reconciled(&object, &cluster, SourceState::Unknown("it is busy".to_owned()));
    assert_eq!(extension_conditions(&unreadable_source), CONDITIONS);
    let mut paused_object = object.clone();
    let paused = ("cluster.x-k8s.io/paused".to_owned(), String::new());
    let annotations = paused_object.metadata.annotations.get_or_insert_default();
    annotations.extend([paused]);
    let paused_object = reconciled(&paused_object, &cluster, SourceState::Absent);
    assert_eq!(extension_conditions(&paused_object), CONDITIONS);
}

#[test]
fn conditions_that_do_not_apply_any_more_are_removed() {
    let (object, cluster) = drifted();
    let mut typed = object.clone();
    typed.metadata.annotations = None;
    let typed = reconciled(&typed, &cluster, known("192.0.2.1:6443"));
    assert_eq!(
        extension_conditions(&typed),
        ["ClusterAttached Attached", "ControlPlaneEndpointReady EndpointFromSpec"]
    );
    let mut old = object.clone();
    old.spec.control_plane_endpoint_source = None;
    let from_spec = after(&old, &decide_in(&old, &cluster));
    assert_eq!(
        extension_conditions(&from_spec),
        ["ControlPlaneEndpointReady EndpointFromSpec"]
    );
    old.spec.control_plane_endpoint = None;
    let without_endpoint = after(&old, &decide_in(&old, &cluster));
    assert_eq!(extension_conditions(&without_endpoint), [""; 0], "there is no endpoint");
    let without_cluster = after(&object, &decide(&object, Observed::Absent, None));
    assert_eq!(
        extension_conditions(&without_cluster),
        [""; 0],
        "its Cluster does not exist"
    );
}

#[test]
fn endpoint_is_written_once_in_a_reconcile_and_its_result_ends_it() {
    let source = json!({ "controlPlaneEndpointSource": { "type": "ControlPlane" }, "controlPlaneEndpoint": null });
    let (own, cluster) = (object(json!({ "spec": source })), cluster(json!({})));
    for (write, reason) in [
        (EndpointWrite::Applied, "EndpointFromControlPlane"),
        (EndpointWrite::Contested, "EndpointConflict"),
    ] {
        let mut facts = Facts {
            source_values: control_plane(known("192.0.2.7:6443")),
            ..facts(&own, Observed::Present(&cluster))
        };
        assert_eq!(plan(&facts).next, Next::Requeue);
        facts.add(WriteResult::Endpoint(write));
        let last = plan(&facts);
        assert_eq!((derived(&last), change(&last)), (None, None));
        assert_eq!(state(&last, "ControlPlaneEndpointReady").1, reason);
        assert_eq!(last.next.outcome(), Outcome::Done);
    }
}

#[test]
fn rejected_claim_or_secret_is_retried_after_a_minute() {
    let source = json!({ "type": "IPPool", "ipPool": { "name": "vips" } });
    let source = json!({ "controlPlaneEndpointSource": source, "controlPlaneEndpoint": null });
    let (own, cluster) = (object(json!({ "spec": source })), cluster(json!({})));
    let wanted = wanted_sources(&own, &cluster, false);
    let absent = SourceValue {
        from: "IPClaim edge-control-plane-endpoint".to_owned(),
        state: SourceState::Absent,
        idle: None,
    };
    for result in [
        WriteResult::ClaimRefused(SourceState::Invalid("no".to_owned())),
        WriteResult::SecretRefused("no".to_owned()),
    ] {
        let mut facts = Facts {
            wanted: wanted.clone(),
            source_values: SourceValues {
                pool: Some(absent.clone()),
                ..SourceValues::default()
            },
            ..facts(&own, Observed::Present(&cluster))
        };
        let creates = |plan: &Plan| plan.actions.iter().any(|action| matches!(action, Action::Claim(_)));
        assert!(creates(&plan(&facts)));
        let is_claim = matches!(result, WriteResult::ClaimRefused(_));
        facts.add(result);
        let last = plan(&facts);
        assert_eq!(creates(&last), !is_claim);
        assert_eq!(last.next.outcome(), Outcome::RequeueAfter(Duration::from_mins(1)));
    }
}

/// The topology controller makes it before the Cluster names it.
#[test]
fn object_of_a_cluster_class_is_no_secondary_before_the_cluster_names_it() {
    let unnamed = cluster(json!({ "spec": { "infrastructureRef": null } }));
    let other = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "byo" });
    let named = cluster(json!({ "spec": { "infrastructureRef": other } }));
    let of_class = || json!({ LABEL: "edge", "topology.cluster.x-k8s.io/owned": "" });
    for (cluster, labels, role) in [
        (&unnamed, json!({ LABEL: "edge" }), Some(ClusterRole::Secondary)),
        (&unnamed, of_class(), None),
        // A copy of it, which a user adds.
        (&named, of_class(), Some(ClusterRole::Secondary)),
    ] {
        let plan = decide_in(
            &object(json!({ "metadata": { "ownerReferences": null, "labels": labels } })),
            cluster,
        );
        let found = plan.status.as_ref().and_then(|status| status.role.as_ref());
        assert_eq!(found, role.as_ref());
    }
}
