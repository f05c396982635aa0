//! One test for each row of what may contradict what.

use super::*;

const FIXED: &str = "192.0.2.1:6443";
const OTHER: &str = "192.0.2.9:6443";

fn from_control_plane() -> Metal3Cluster {
    written(&asking("ControlPlane"), &derived(EndpointOrigin::ControlPlane, FIXED))
}

#[test]
fn typed_endpoint_that_differs_from_the_clusters_conflicts_and_the_clusters_counts() {
    let found = ask(
        &typing("Auto", OTHER),
        &cluster(Some(FIXED)),
        true,
        &SourceValues::default(),
    );
    let (status, reason, message) = said(&found);
    assert_eq!((status, reason.as_str()), (ConditionStatus::False, "EndpointConflict"));
    assert!(message.contains(OTHER) && message.contains(FIXED), "{message}");
    assert_eq!(counts(&found).as_deref(), Some("192.0.2.1:6443 Cluster"));
    assert!(
        found.is_provisioned && found.write.is_none(),
        "machines go on, and nothing is written over"
    );
}

#[test]
fn source_that_changed_after_the_endpoint_was_fixed_has_drifted_and_nothing_is_written() {
    let found = ask(
        &from_control_plane(),
        &cluster(Some(FIXED)),
        false,
        &control_plane(says(OTHER)),
    );
    let Some(Drift::Changed(message)) = &found.drift else {
        panic!("{:?}", found.drift)
    };
    assert!(message.contains(OTHER) && message.contains(FIXED), "{message}");
    assert_eq!((found.write, found.state.is_known()), (None, true));
    assert_eq!(found.endpoint.unwrap().host.as_deref(), Some("192.0.2.1"));
}

#[test]
fn derived_endpoint_follows_a_person_who_changes_the_clusters_and_a_typed_one_stays() {
    let follows = ask(
        &from_control_plane(),
        &cluster(Some(OTHER)),
        false,
        &control_plane(says(FIXED)),
    );
    assert_eq!(follows.write, Some(derived(EndpointOrigin::Cluster, OTHER)));
    let stays = ask(
        &typing("ControlPlane", FIXED),
        &cluster(Some(OTHER)),
        false,
        &control_plane(says(FIXED)),
    );
    assert_eq!(stays.write, None);
    assert_eq!(said(&stays).1, "EndpointConflict");
}

#[test]
fn two_objects_of_one_cluster_are_each_judged_by_the_cluster() {
    let cluster = cluster(Some(FIXED));
    let same = ask(&typing("Auto", FIXED), &cluster, true, &SourceValues::default());
    let other = ask(&typing("Auto", OTHER), &cluster, true, &SourceValues::default());
    assert_eq!(
        (said(&same).1.as_str(), said(&other).1.as_str()),
        ("EndpointFromSpec", "EndpointConflict")
    );
}

#[test]
fn source_that_is_gone_after_the_endpoint_was_fixed_leaves_the_endpoint() {
    let found = ask(
        &from_control_plane(),
        &cluster(Some(FIXED)),
        false,
        &control_plane(SourceState::Absent),
    );
    let drift = found.drift.unwrap().condition(None, at(0)).unwrap();
    assert_eq!(
        (drift.status, drift.reason.as_str()),
        (ConditionStatus::Unknown, "SourceNotFound")
    );
    assert_eq!((found.write, found.state.is_known()), (None, true));
    assert_eq!(found.endpoint.unwrap().source, Some(EndpointOrigin::ControlPlane));
}

#[test]
fn source_that_may_not_be_read_names_verb_and_resource() {
    let before = ask(
        &asking("ControlPlane"),
        &cluster(None),
        false,
        &control_plane(forbidden()),
    );
    let (status, reason, message) = said(&before);
    assert_eq!((status, reason.as_str()), (ConditionStatus::False, "SourceForbidden"));
    assert!(
        message.contains("may not list oddcontrolplanes.example.io"),
        "{message}"
    );
    let after = ask(
        &from_control_plane(),
        &cluster(Some(FIXED)),
        false,
        &control_plane(forbidden()),
    );
    let drift = after.drift.unwrap().condition(None, at(0)).unwrap();
    assert_eq!(
        (drift.status, drift.reason.as_str()),
        (ConditionStatus::Unknown, "SourceForbidden")
    );
    assert!(drift.message.contains("may not list oddcontrolplanes.example.io"));
    let optional = written(&asking("Auto"), &derived(EndpointOrigin::ControlPlane, FIXED));
    let optional = ask(&optional, &cluster(Some(FIXED)), true, &control_plane(forbidden()));
    assert_eq!(
        (optional.drift, optional.state.is_known()),
        (None, true),
        "it needs no right at all"
    );
}

#[test]
fn control_plane_that_contradicts_a_typed_endpoint_is_named_as_what_must_change() {
    let fixed = ask(
        &typing("ControlPlane", FIXED),
        &cluster(Some(FIXED)),
        false,
        &control_plane(says(OTHER)),
    );
    let (status, reason, message) = said(&fixed);
    assert_eq!((status, reason.as_str()), (ConditionStatus::False, "EndpointConflict"));
    assert!(message.contains("change KamajiControlPlane edge"), "{message}");
    let open = ask(
        &typing("ControlPlane", FIXED),
        &cluster(None),
        false,
        &control_plane(says(OTHER)),
    );
    assert_eq!(
        (said(&open).1.as_str(), open.is_provisioned),
        ("EndpointConflict", false)
    );
    assert_eq!(open.write, None);
}

#[test]
fn field_that_somebody_else_looks_after_is_left_to_them() {
    let (object, cluster) = (asking("ControlPlane"), cluster(None));
    let values = control_plane(says(FIXED));
    let input = ResolveInput {
        object: &object,
        cluster: &cluster,
        is_secondary: false,
        values: &values,
        is_refused: true,
        now: at(0),
    };
    let found = resolve(&input).unwrap();
    assert_eq!(found.write, None);
    assert!(matches!(found.state, EndpointState::Conflict(_)));
    assert!(
        !found.is_provisioned && found.endpoint.is_none(),
        "it is not where Cluster API looks"
    );
}

#[test]
fn infrastructure_that_cannot_be_read_for_a_while_makes_nobody_take_another_endpoint() {
    let object = written(&asking("Auto"), &derived(EndpointOrigin::InfraCluster, OTHER));
    let mut values = control_plane(says("192.0.2.4:6443"));
    for state in [SourceState::Unknown("the server is busy".to_owned()), forbidden()] {
        values.infrastructure = value("ByoCluster edge", state);
        let found = ask(&object, &cluster(None), true, &values);
        assert_eq!((found.write, found.touch), (None, None));
        assert!(found.is_provisioned);
    }
    values.infrastructure = value("ByoCluster edge", SourceState::Absent);
    let found = ask(&object, &cluster(None), true, &values);
    let taken = found.write.is_some() || found.requeue_after.is_some();
    assert!(taken, "what is gone says nothing any more");
}

#[test]
fn source_that_cannot_be_read_for_a_while_changes_nothing() {
    let object = from_control_plane();
    for endpoint in [None, Some(FIXED)] {
        let unknown = control_plane(SourceState::Unknown("the server is busy".to_owned()));
        let found = ask(&object, &cluster(endpoint), false, &unknown);
        assert!(found.state.is_known() && found.write.is_none());
        assert_eq!(found.drift, endpoint.map(|_| Drift::Unclear));
    }
}
