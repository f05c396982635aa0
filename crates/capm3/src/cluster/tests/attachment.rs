//! Which Cluster an object belongs to, as what, and what is said of that.

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

/// A Metal3Cluster `site` that says of its Cluster what is given.
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
fn object_that_names_two_clusters_or_has_two_owners_is_left_alone() {
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
        assert!(said(&plan).contains(&"Ready False NotReady".to_owned()));
    }
}

#[test]
fn cluster_that_does_not_exist_is_named_and_no_finalizer_is_set() {
    let plan = decide(&site(&[], Some("edge"), None), Observed::Absent, None);
    assert_eq!(plan.action, None);
    assert_eq!(attached(&plan), (ConditionStatus::False, "ClusterNotFound".to_owned()));
}

#[test]
fn namesake_is_used_and_not_owned_unless_the_manager_is_told_to_adopt() {
    let (object, cluster) = (site(&[], None, None), foreign_cluster());
    let values = SourceValues::default();
    let facts = Facts {
        namesake: Some(&cluster),
        ..facts(&object, Observed::Absent, &values)
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
fn object_leaves_its_cluster_once_no_machine_belongs_to_it() {
    let cluster = foreign_cluster();
    let mut object = site(&["edge"], None, Some("edge"));
    object.metadata.finalizers = Some(vec!["metal3cluster.infrastructure.cluster.x-k8s.io".to_owned()]);
    let annotation = ("infrastructure.cluster.x-k8s.io/detach".to_owned(), String::new());
    object.metadata.annotations = Some([annotation].into());
    let waits = decide(&object, Observed::Present(&cluster), Some("worker-0"));
    assert_eq!(attached(&waits), (ConditionStatus::True, "Detaching".to_owned()));
    let plan = decide(&object, Observed::Present(&cluster), None);
    assert_eq!(attached(&plan), (ConditionStatus::False, "Detached".to_owned()));
    let left = after(&object, &plan);
    let requeue_after = decide(&left, Observed::Absent, None);
    assert_eq!(
        requeue_after
            .status
            .map_or(left.status.conditions.len(), |s| s.conditions.len()),
        left.status.conditions.len(),
        "that it left is said on"
    );
    assert!(left.metadata.owner_references.unwrap_or_default().is_empty());
    assert!(left.metadata.finalizers.unwrap_or_default().is_empty());
    assert_eq!(
        left.metadata
            .labels
            .unwrap_or_default()
            .get("cluster.x-k8s.io/cluster-name"),
        None
    );
}

#[test]
fn primary_with_a_source_writes_the_endpoint_and_is_provisioned_in_one_pass() {
    let own = object(
        json!({ "spec": { "controlPlaneEndpoint": null, "controlPlaneEndpointSource": { "type": "ControlPlane" } } }),
    );
    let cluster = cluster(json!({}));
    let values = SourceValues {
        control_plane: Some(crate::endpoint::source::SourceValue {
            from: "KamajiControlPlane edge".to_owned(),
            state: crate::endpoint::source::SourceState::Address(
                crate::endpoint::address::Address::parse("192.0.2.7:6443").unwrap(),
            ),
            idle: None,
        }),
        ..SourceValues::default()
    };
    let facts = facts(&own, Observed::Present(&cluster), &values);
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
    let left = after(&own, &found);
    assert_eq!(plan(&Facts { object: &left, ..facts }), Plan::default());
}

#[test]
fn old_object_that_contradicts_its_cluster_says_so_and_stays_ready() {
    let fixed = cluster(json!({ "spec": { "controlPlaneEndpoint": { "host": "192.0.2.9", "port": 6443 } } }));
    let old = object(json!({}));
    let plan = decide(&old, Observed::Present(&fixed), None);
    let lines = said(&plan);
    assert!(
        lines.contains(&"ControlPlaneEndpointReady False EndpointConflict".to_owned()),
        "{lines:?}"
    );
    assert!(lines.contains(&"Ready True Ready".to_owned()), "{lines:?}");
    assert_eq!(plan.status.as_ref().unwrap().role, None);
    let agreed = cluster(json!({ "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } } }));
    let mended = decide(&after(&old, &plan), Observed::Present(&agreed), None);
    assert!(said(&mended).contains(&"ControlPlaneEndpointReady True EndpointFromSpec".to_owned()));
}

#[test]
fn new_object_that_contradicts_its_cluster_is_not_ready_and_machines_go_on() {
    let mut cluster = foreign_cluster();
    cluster.spec.control_plane_endpoint = serde_json::from_value(json!({ "host": "192.0.2.9", "port": 6443 })).unwrap();
    let new =
        object(json!({ "metadata": { "name": "site", "ownerReferences": null }, "spec": { "clusterName": "edge" } }));
    let plan = decide(&new, Observed::Present(&cluster), None);
    let lines = said(&plan);
    assert!(lines.contains(&"Ready False NotReady".to_owned()), "{lines:?}");
    assert!(
        lines.contains(&"BaremetalInfrastructureReady True Ready".to_owned()),
        "{lines:?}"
    );
    assert_eq!(plan.status.unwrap().initialization.unwrap().provisioned, Some(true));
}

#[test]
fn members_that_nobody_acts_on_yet_are_named_as_long_as_they_are_there() {
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
    assert!(said(&plan).contains(&"Ready True Ready".to_owned()));
    let mut without = after(&object(zones), &plan);
    without.spec = object(json!({})).spec;
    let mended = decide(&without, Observed::Present(&cluster), None);
    assert!(!said(&mended).iter().any(|line| line.starts_with("SpecServed")));
}

/// The conditions that only an object has that uses what is new, as type and reason.
fn new_words(object: &Metal3Cluster) -> Vec<String> {
    let all = object.status.conditions.iter();
    let new = all.filter(|one| one.type_.starts_with("ControlPlaneEndpoint") || one.type_ == "ClusterAttached");
    new.map(|one| format!("{} {}", one.type_, one.reason)).collect()
}

/// The object after a pass that looks at the control plane.
fn look(object: &Metal3Cluster, cluster: Observed<&Cluster>, state: SourceState) -> Metal3Cluster {
    let values = SourceValues {
        control_plane: Some(SourceValue {
            from: "KamajiControlPlane edge".to_owned(),
            state,
            idle: None,
        }),
        ..SourceValues::default()
    };
    after(object, &plan(&facts(object, cluster, &values)))
}

/// One whose endpoint was derived from a control plane that says another one by now.
fn drifted() -> (Metal3Cluster, Cluster) {
    let source = json!({ "controlPlaneEndpointSource": { "type": "ControlPlane" }, "controlPlaneEndpoint": null });
    let fixed = json!({ "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } });
    let cluster = cluster(json!({ "spec": fixed }));
    let derived = look(
        &object(json!({ "spec": source })),
        Observed::Present(&cluster),
        says("192.0.2.1:6443"),
    );
    (
        look(&derived, Observed::Present(&cluster), says("192.0.2.2:6443")),
        cluster,
    )
}

fn says(address: &str) -> SourceState {
    SourceState::Address(Address::parse(address).unwrap())
}

const SAID: [&str; 3] = [
    "ClusterAttached Attached",
    "ControlPlaneEndpointReady EndpointFromControlPlane",
    "ControlPlaneEndpointDrifted SourceChanged",
];

#[test]
fn what_nobody_can_judge_for_a_while_is_said_on() {
    let (object, cluster) = drifted();
    assert_eq!(new_words(&object), SAID);
    let unread = look(
        &object,
        Observed::Present(&cluster),
        SourceState::Unknown("it is busy".to_owned()),
    );
    assert_eq!(new_words(&unread), SAID);
    let mut resting = object.clone();
    let paused = ("cluster.x-k8s.io/paused".to_owned(), String::new());
    resting.metadata.annotations.get_or_insert_default().extend([paused]);
    let resting = look(&resting, Observed::Present(&cluster), SourceState::Absent);
    assert_eq!(new_words(&resting), SAID);
}

#[test]
fn what_is_asked_no_more_is_said_no_more() {
    let (object, cluster) = drifted();
    let mut typed = object.clone();
    typed.metadata.annotations = None;
    let typed = look(&typed, Observed::Present(&cluster), says("192.0.2.1:6443"));
    assert_eq!(
        new_words(&typed),
        ["ClusterAttached Attached", "ControlPlaneEndpointReady EndpointFromSpec"]
    );
    let mut old = object.clone();
    old.spec.control_plane_endpoint_source = None;
    let as_ever = after(&old, &decide(&old, Observed::Present(&cluster), None));
    assert_eq!(new_words(&as_ever), ["ControlPlaneEndpointReady EndpointFromSpec"]);
    old.spec.control_plane_endpoint = None;
    let flawed = after(&old, &decide(&old, Observed::Present(&cluster), None));
    assert_eq!(new_words(&flawed), [""; 0], "there is no endpoint");
    let alone = after(&object, &decide(&object, Observed::Absent, None));
    assert_eq!(new_words(&alone), [""; 0], "its Cluster is gone");
}
