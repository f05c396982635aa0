//! Every source, before the Cluster has an endpoint.

use super::*;
use crate::endpoint::resolve::{IDLE_AFTER, WRITE_INTERVAL};
use crate::endpoint::source::{IdleControlPlane, wanted_sources};
use crate::endpoint::spec_endpoint::{SpecEndpoint, spec_endpoint};

const A: &str = "192.0.2.1:6443";
const B: &str = "192.0.2.2:6443";

#[test]
fn placeholders_and_ports_out_of_range_are_no_endpoint_and_names_are() {
    for (host, port, expected) in [
        ("", 6443, None),
        ("0.0.0.0", 6443, None),
        ("::", 6443, None),
        ("192.0.2.1", 0, None),
        ("192.0.2.1", 70_000, None),
        ("192.0.2.1", -1, None),
        ("api.example.com", 443, Some("api.example.com:443")),
        ("2001:db8::1", 6443, Some("[2001:db8::1]:6443")),
    ] {
        let found = Address::stated(Some(host), Some(port), None);
        assert_eq!(
            found.map(|found| found.to_string()).as_deref(),
            expected,
            "{host} {port}"
        );
    }
    assert_eq!(Address::stated(Some("a"), None, Some(7)), Some(address("a:7")));
}

#[test]
fn endpoints_are_compared_by_what_they_mean() {
    for (one, two, same) in [
        ("API.example.com:443", "api.example.com:443", true),
        ("[2001:db8::1]:443", "[2001:0db8:0::1]:443", true),
        ("192.0.2.1:443", "192.0.2.1:6443", false),
        ("192.0.2.1:443", "192.0.2.2:443", false),
    ] {
        assert_eq!(address(one) == address(two), same, "{one} {two}");
    }
}

#[test]
fn marker_tells_what_was_derived_from_what_a_person_typed() {
    let marked = derived(EndpointOrigin::ControlPlane, "[2001:db8::1]:6443");
    assert_eq!(marked.marker(), "ControlPlane;[2001:db8::1]:6443");
    let object = written(&asking("ControlPlane"), &marked);
    assert_eq!(spec_endpoint(&object), SpecEndpoint::Derived(marked));
    let mut edited = object;
    edited.spec.control_plane_endpoint.as_mut().unwrap().port = Some(7);
    assert_eq!(spec_endpoint(&edited), SpecEndpoint::Typed(address("[2001:db8::1]:7")));
    for odd in [
        "",
        "ControlPlane",
        "Nobody;192.0.2.1:6443",
        "ControlPlane;192.0.2.1",
        ";;",
    ] {
        assert_eq!(Derived::parse(odd), None, "{odd}");
    }
}

#[test]
fn each_source_is_written_back_and_named() {
    let infra = SourceValues {
        infrastructure: value("ByoCluster edge", says(A)),
        ..SourceValues::default()
    };
    let service = SourceValues {
        service: value("Service api", says(A)),
        ..SourceValues::default()
    };
    let pool = SourceValues {
        pool: value("IPClaim vip", says(A)),
        ..SourceValues::default()
    };
    let table = [
        (
            "InfraCluster",
            infra,
            EndpointOrigin::InfraCluster,
            "EndpointFromInfraCluster",
        ),
        (
            "ControlPlane",
            control_plane(says(A)),
            EndpointOrigin::ControlPlane,
            "EndpointFromControlPlane",
        ),
        ("Service", service, EndpointOrigin::Service, "EndpointFromService"),
        ("IPPool", pool, EndpointOrigin::IPPool, "EndpointFromIPPool"),
    ];
    for (source, values, origin, reason) in table {
        for is_secondary in [false, true] {
            let found = ask(&asking(source), &cluster(None), is_secondary, &values);
            assert_eq!(found.write, Some(derived(origin, A)), "{source}");
            assert!(found.is_provisioned);
            assert_eq!(said(&found).1, reason);
            let after = written(&asking(source), &derived(origin, A));
            assert_eq!(
                ask(&after, &cluster(None), is_secondary, &values).write,
                None,
                "{source}: once"
            );
        }
    }
}

#[test]
fn without_a_choice_the_object_comes_first_then_the_cluster_then_the_infrastructure_then_the_control_plane() {
    let mut values = control_plane(says("192.0.2.4:6443"));
    values.infrastructure = value("ByoCluster edge", says("192.0.2.3:6443"));
    let fixed = cluster(Some("192.0.2.2:6443"));
    let typed = ask(&typing("Auto", A), &cluster(None), true, &values);
    assert_eq!(
        (counts(&typed).as_deref(), typed.write),
        (Some("192.0.2.1:6443 Spec"), None)
    );
    let from_cluster = ask(&asking("Auto"), &fixed, true, &SourceValues::default());
    assert_eq!(from_cluster.write, Some(derived(EndpointOrigin::Cluster, B)));
    let infrastructure = ask(&asking("Auto"), &cluster(None), true, &values);
    assert_eq!(counts(&infrastructure).as_deref(), Some("192.0.2.3:6443 InfraCluster"));
    values.infrastructure = value("ByoCluster edge", SourceState::Empty);
    let last = ask(&asking("Auto"), &cluster(None), true, &values);
    assert_eq!(counts(&last).as_deref(), Some("192.0.2.4:6443 ControlPlane"));
}

#[test]
fn what_is_missing_is_named_with_the_cure() {
    let table = [
        (
            SourceState::Empty,
            "WaitingForControlPlane",
            "waiting for KamajiControlPlane edge",
        ),
        (
            SourceState::Absent,
            "SourceNotFound",
            "KamajiControlPlane edge does not exist",
        ),
        (
            forbidden(),
            "SourceForbidden",
            "may not list oddcontrolplanes.example.io",
        ),
        (
            SourceState::Invalid("no port".to_owned()),
            "EndpointInvalid",
            "KamajiControlPlane edge: no port",
        ),
        (
            SourceState::Unknown("odd".to_owned()),
            "WaitingForControlPlane",
            "cannot be read: odd",
        ),
    ];
    for (state, reason, message) in table {
        let waits = ask(&asking("ControlPlane"), &cluster(None), false, &control_plane(state));
        let (status, found, text) = said(&waits);
        assert_eq!((status, found.as_str()), (ConditionStatus::False, reason));
        assert!(text.contains(message), "{text}");
        assert!(!waits.is_provisioned && waits.write.is_none());
    }
}

#[test]
fn who_leaves_the_endpoint_to_the_cluster_is_provisioned_without_one() {
    let primary = ask(&asking("Cluster"), &cluster(None), false, &SourceValues::default());
    assert!(primary.is_provisioned && primary.write.is_none() && primary.endpoint.is_none());
    let secondary = ask(&asking("Cluster"), &cluster(None), true, &SourceValues::default());
    assert!(!secondary.is_provisioned);
    let mirrored = ask(&asking("Cluster"), &cluster(Some(A)), false, &SourceValues::default());
    assert_eq!(mirrored.write, Some(derived(EndpointOrigin::Cluster, A)));
}

#[test]
fn object_with_nothing_new_asks_for_nothing() {
    let plain = object(json!({ "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } }));
    let (free, values) = (cluster(None), SourceValues::default());
    let input = ResolveInput {
        object: &plain,
        cluster: &free,
        is_secondary: false,
        values: &values,
        is_refused: false,
        now: at(0),
    };
    assert_eq!(resolve(&input), None);
    assert_eq!(
        wanted_sources(&plain, &free, false),
        crate::endpoint::source::WantedSources::default()
    );
    assert_eq!(
        wanted_sources(&asking("Cluster"), &free, true),
        crate::endpoint::source::WantedSources::default()
    );
}

#[test]
fn objects_of_others_are_looked_at_only_until_the_cluster_knows_unless_the_endpoint_came_from_there() {
    let early = wanted_sources(&asking("Auto"), &cluster(None), true);
    assert!(early.infrastructure.is_some() && early.control_plane.is_some());
    let late = wanted_sources(&asking("Auto"), &cluster(Some(A)), true);
    assert!(late.infrastructure.is_none() && late.control_plane.is_none());
    let from_there = written(&asking("Auto"), &derived(EndpointOrigin::ControlPlane, A));
    let kept = wanted_sources(&from_there, &cluster(Some(A)), true);
    assert!(kept.infrastructure.is_none() && kept.control_plane.is_some());
    assert!(
        wanted_sources(&asking("Auto"), &cluster(None), false)
            .infrastructure
            .is_none(),
        "the own one"
    );
    let chosen = wanted_sources(&asking("ControlPlane"), &cluster(Some(A)), false);
    assert!(chosen.control_plane.is_some(), "for it may drift");
}

/// The object as it is once its status says what was derived.
fn told(object: &Metal3Cluster, endpoint: &str, since: i64) -> Metal3Cluster {
    let mut told = object.clone();
    let Address { host, port } = address(endpoint);
    told.status = serde_json::from_value(json!({
        "controlPlaneEndpoint": { "host": host, "port": port, "source": "ControlPlane" },
        "conditions": [{
            "type": "ControlPlaneEndpointReady", "status": "True", "reason": "EndpointFromControlPlane",
            "message": "", "lastTransitionTime": at(since),
        }],
        "lastUpdated": at(since),
    }))
    .unwrap();
    told
}

#[test]
fn source_that_changes_its_mind_is_followed_once_in_a_while() {
    let object = written(&asking("ControlPlane"), &derived(EndpointOrigin::ControlPlane, A));
    let values = control_plane(says(B));
    let untold = ask(&object, &cluster(None), false, &values);
    assert_eq!(
        (untold.write.clone(), untold.requeue_after),
        (None, Some(WRITE_INTERVAL)),
        "written just now"
    );
    assert_eq!(counts(&untold).as_deref(), Some("192.0.2.1:6443 ControlPlane"));
    let early = ask(&told(&object, A, 997), &cluster(None), false, &values);
    assert_eq!((early.write, early.requeue_after), (None, Some(Duration::from_secs(7))));
    let later = ask(&told(&object, A, 990), &cluster(None), false, &values);
    assert_eq!(later.write, Some(derived(EndpointOrigin::ControlPlane, B)));
}

#[test]
fn source_that_goes_on_failing_after_the_endpoint_was_written_is_said_to_sleep() {
    let object = written(&asking("ControlPlane"), &derived(EndpointOrigin::ControlPlane, A));
    let mut values = control_plane(says(A));
    values.control_plane.as_mut().unwrap().idle = Some(idle(Some(at(994)), None));
    let fresh = ask(&object, &cluster(None), false, &values);
    assert_eq!((said(&fresh).2.as_str(), fresh.requeue_after), ("", Some(IDLE_AFTER)));
    let early = ask(&told(&object, A, 998), &cluster(None), false, &values);
    assert_eq!(
        (said(&early).2.as_str(), early.requeue_after),
        ("", Some(Duration::from_secs(3)))
    );
    let late = ask(&told(&object, A, 995), &cluster(None), false, &values);
    let (status, reason, message) = said(&late);
    assert_eq!(
        (status, reason.as_str(), late.requeue_after),
        (ConditionStatus::True, "EndpointFromControlPlane", None)
    );
    assert!(
        message.contains("kubectl -n metal annotate kamajicontrolplane edge"),
        "{message}"
    );
    values.control_plane.as_mut().unwrap().idle = None;
    assert_eq!(said(&ask(&told(&object, A, 995), &cluster(None), false, &values)).2, "");
}

fn idle(since: Option<Time>, touched_for: Option<&str>) -> IdleControlPlane {
    IdleControlPlane {
        since,
        touched_for: touched_for.map(str::to_owned),
    }
}

#[test]
fn sleeper_is_to_be_woken_once_for_each_endpoint_and_not_while_it_still_tries() {
    let object = written(&asking("ControlPlane"), &derived(EndpointOrigin::ControlPlane, A));
    let touch = |object: &Metal3Cluster, since, touched_for| {
        let mut values = control_plane(says(A));
        values.control_plane.as_mut().unwrap().idle = Some(idle(since, touched_for));
        let found = ask(object, &cluster(None), false, &values);
        (found.touch.map(|(_, address)| address.to_string()), found.requeue_after)
    };
    let now = Some(A.to_owned());
    let seconds = |number| Some(Duration::from_secs(number));
    assert_eq!(
        touch(&object, Some(at(990)), None).0,
        now,
        "it failed long before we wrote"
    );
    assert_eq!(
        touch(&object, Some(at(998)), None),
        (None, seconds(3)),
        "it may still try"
    );
    assert_eq!(touch(&told(&object, A, 990), Some(at(998)), None).0, now, "long enough");
    assert_eq!(touch(&object, Some(at(990)), Some(A)).0, None, "woken already");
    assert_eq!(touch(&object, Some(at(990)), Some(B)).0, now, "woken for another one");
    assert_eq!(
        touch(&asking("ControlPlane"), Some(at(990)), None).0,
        None,
        "not written yet"
    );
    assert_eq!(
        touch(&told(&object, A, 990), None, None).0,
        now,
        "who does not say since when"
    );
}
