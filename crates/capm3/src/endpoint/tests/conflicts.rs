//! One test per conflict.

use super::*;

const FIXED: &str = "192.0.2.1:6443";
const OTHER: &str = "192.0.2.9:6443";

fn from_control_plane() -> Metal3Cluster {
    with_derived(
        &with_source("ControlPlane"),
        &derived(EndpointOrigin::ControlPlane, FIXED),
    )
}

#[test]
fn endpoint_of_the_user_that_differs_from_the_cluster_conflicts_and_the_cluster_decides() {
    let typed = with_endpoint("Auto", OTHER);
    let found = resolve_for(&typed, &cluster(Some(FIXED)), true, &SourceValues::default());
    assert_missing(&found, "EndpointConflict", OTHER);
    assert_missing(&found, "EndpointConflict", FIXED);
    assert_eq!(effective(&found).as_deref(), Some("192.0.2.1:6443 Cluster"));
    assert!(
        found.is_provisioned && found.write.is_none(),
        "machines continue, and nothing is overwritten"
    );
}

#[test]
fn source_that_changes_after_the_cluster_has_an_endpoint_drifts_without_a_write() {
    let found = resolve_from(&from_control_plane(), Some(FIXED), known(OTHER));
    let Some(Drift::Changed(message)) = &found.drift else {
        panic!("{:?}", found.drift)
    };
    assert!(message.contains(OTHER) && message.contains(FIXED), "{message}");
    assert_eq!((found.write, found.state.is_known()), (None, true));
    assert_eq!(found.endpoint.unwrap().host.as_deref(), Some("192.0.2.1"));
}

#[test]
fn derived_endpoint_follows_a_change_of_the_cluster_and_that_of_the_user_is_kept() {
    let follows = resolve_from(&from_control_plane(), Some(OTHER), known(FIXED));
    assert_eq!(follows.write, Some(derived(EndpointOrigin::Cluster, OTHER)));
    let stays = resolve_from(&with_endpoint("ControlPlane", FIXED), Some(OTHER), known(FIXED));
    assert_eq!(stays.write, None);
    assert_eq!(condition(&stays).1, "EndpointConflict");
}

#[test]
fn two_objects_of_one_cluster_are_each_compared_with_the_cluster() {
    let cluster = cluster(Some(FIXED));
    for (endpoint, reason) in [(FIXED, "EndpointFromSpec"), (OTHER, "EndpointConflict")] {
        let typed = with_endpoint("Auto", endpoint);
        let found = resolve_for(&typed, &cluster, true, &SourceValues::default());
        assert_eq!(condition(&found).1, reason);
    }
}

#[test]
fn deletion_of_the_source_keeps_the_endpoint_of_the_cluster() {
    let found = resolve_from(&from_control_plane(), Some(FIXED), SourceState::Absent);
    let (status, reason, _) = drift(&found);
    assert_eq!((status, reason.as_str()), (ConditionStatus::Unknown, "SourceNotFound"));
    assert_eq!((found.write, found.state.is_known()), (None, true));
    assert_eq!(found.endpoint.unwrap().source, Some(EndpointOrigin::ControlPlane));
}

#[test]
fn forbidden_source_names_verb_and_resource() {
    let right = "may not list oddcontrolplanes.example.io";
    let before = resolve_from(&with_source("ControlPlane"), None, forbidden());
    assert_missing(&before, "SourceForbidden", right);
    let (status, reason, message) = drift(&resolve_from(&from_control_plane(), Some(FIXED), forbidden()));
    assert_eq!((status, reason.as_str()), (ConditionStatus::Unknown, "SourceForbidden"));
    assert!(message.contains(right), "{message}");
    let optional = with_derived(&with_source("Auto"), &derived(EndpointOrigin::ControlPlane, FIXED));
    let optional = resolve_for(&optional, &cluster(Some(FIXED)), true, &control_plane(forbidden()));
    assert_eq!(
        (optional.drift, optional.state.is_known()),
        (None, true),
        "it needs no right"
    );
}

#[test]
fn control_plane_that_contradicts_the_user_is_named_in_the_remedy() {
    let typed = with_endpoint("ControlPlane", FIXED);
    let fixed = resolve_from(&typed, Some(FIXED), known(OTHER));
    assert_missing(&fixed, "EndpointConflict", "change KamajiControlPlane edge");
    let open = resolve_from(&typed, None, known(OTHER));
    assert_missing(&open, "EndpointConflict", "");
    assert_eq!((open.is_provisioned, open.write), (false, None));
}

#[test]
fn field_of_another_field_manager_is_not_written() {
    let (object, cluster) = (with_source("ControlPlane"), cluster(None));
    let source_values = control_plane(known(FIXED));
    let input = ResolveInput {
        is_refused: true,
        ..input(&object, &cluster, &source_values)
    };
    let found = resolve(&input).unwrap();
    assert_eq!(found.write, None);
    assert!(matches!(found.state, EndpointState::Conflict(_)));
    assert!(
        !found.is_provisioned && found.endpoint.is_none(),
        "the spec has no endpoint"
    );
}

#[test]
fn unreadable_infrastructure_is_not_replaced_by_another_source() {
    let object = with_derived(&with_source("Auto"), &derived(EndpointOrigin::InfraCluster, OTHER));
    let mut source_values = control_plane(known("192.0.2.4:6443"));
    for state in [SourceState::Unknown("the server is busy".to_owned()), forbidden()] {
        source_values.infrastructure = value("ByoCluster edge", state);
        let found = resolve_for(&object, &cluster(None), true, &source_values);
        assert_eq!((found.write, found.touch), (None, None));
        assert!(found.is_provisioned);
    }
    source_values.infrastructure = value("ByoCluster edge", SourceState::Absent);
    let found = resolve_for(&object, &cluster(None), true, &source_values);
    let taken = found.write.is_some() || found.requeue_after.is_some();
    assert!(taken, "a deleted source is not used any more");
}

#[test]
fn unreadable_source_changes_nothing() {
    let object = from_control_plane();
    for endpoint in [None, Some(FIXED)] {
        let unknown = SourceState::Unknown("the server is busy".to_owned());
        let found = resolve_from(&object, endpoint, unknown);
        assert!(found.state.is_known() && found.write.is_none());
        assert_eq!(found.drift, endpoint.map(|_| Drift::Unclear));
    }
}
