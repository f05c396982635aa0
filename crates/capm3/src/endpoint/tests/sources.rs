//! Every source, before the Cluster has an endpoint.

use super::*;
use crate::endpoint::resolve::{IDLE_AFTER, WRITE_INTERVAL};
use crate::endpoint::source::{IdleControlPlane, wanted_sources};
use crate::endpoint::spec_endpoint::{SpecEndpoint, spec_endpoint};

const A: &str = "192.0.2.1:6443";
const B: &str = "192.0.2.2:6443";

#[test]
fn placeholders_and_ports_out_of_range_are_rejected_and_host_names_accepted() {
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
fn endpoints_are_compared_by_value() {
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
fn marker_distinguishes_derived_endpoints_from_those_of_the_user() {
    let marked = derived(EndpointOrigin::ControlPlane, "[2001:db8::1]:6443");
    assert_eq!(marked.marker(), "ControlPlane;[2001:db8::1]:6443");
    let object = with_derived(&with_source("ControlPlane"), &marked);
    assert_eq!(spec_endpoint(&object), SpecEndpoint::Derived(marked));
    let mut edited = object;
    edited.spec.control_plane_endpoint.as_mut().unwrap().port = Some(7);
    assert_eq!(spec_endpoint(&edited), SpecEndpoint::Typed(address("[2001:db8::1]:7")));
    for invalid in [
        "",
        "ControlPlane",
        "Unknown;192.0.2.1:6443",
        "ControlPlane;192.0.2.1",
        ";;",
    ] {
        assert_eq!(Derived::parse(invalid), None, "{invalid}");
    }
}

#[test]
fn each_source_is_written_back_and_named() {
    let infra = SourceValues {
        infrastructure: value("ByoCluster edge", known(A)),
        ..SourceValues::default()
    };
    let service = SourceValues {
        service: value("Service api", known(A)),
        ..SourceValues::default()
    };
    let pool = SourceValues {
        pool: value("IPClaim vip", known(A)),
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
            control_plane(known(A)),
            EndpointOrigin::ControlPlane,
            "EndpointFromControlPlane",
        ),
        ("Service", service, EndpointOrigin::Service, "EndpointFromService"),
        ("IPPool", pool, EndpointOrigin::IPPool, "EndpointFromIPPool"),
    ];
    for (source, source_values, origin, reason) in table {
        for is_secondary in [false, true] {
            let found = resolve_for(&with_source(source), &cluster(None), is_secondary, &source_values);
            assert_eq!(found.write, Some(derived(origin, A)), "{source}");
            assert!(found.is_provisioned);
            assert_eq!(condition(&found).1, reason);
            let after = with_derived(&with_source(source), &derived(origin, A));
            assert_eq!(
                resolve_for(&after, &cluster(None), is_secondary, &source_values).write,
                None,
                "{source}: once"
            );
        }
    }
}

#[test]
fn automatic_source_prefers_the_object_then_the_cluster_then_the_infrastructure_then_the_control_plane() {
    let mut source_values = control_plane(known("192.0.2.4:6443"));
    source_values.infrastructure = value("ByoCluster edge", known("192.0.2.3:6443"));
    let fixed = cluster(Some("192.0.2.2:6443"));
    let typed = resolve_for(&with_endpoint("Auto", A), &cluster(None), true, &source_values);
    assert_eq!(
        (effective(&typed).as_deref(), typed.write),
        (Some("192.0.2.1:6443 Spec"), None)
    );
    let from_cluster = resolve_for(&with_source("Auto"), &fixed, true, &SourceValues::default());
    assert_eq!(from_cluster.write, Some(derived(EndpointOrigin::Cluster, B)));
    let infrastructure = resolve_for(&with_source("Auto"), &cluster(None), true, &source_values);
    assert_eq!(
        effective(&infrastructure).as_deref(),
        Some("192.0.2.3:6443 InfraCluster")
    );
    source_values.infrastructure = value("ByoCluster edge", SourceState::Empty);
    let last = resolve_for(&with_source("Auto"), &cluster(None), true, &source_values);
    assert_eq!(effective(&last).as_deref(), Some("192.0.2.4:6443 ControlPlane"));
}

#[test]
fn missing_endpoint_is_reported_with_the_remedy() {
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
        let waits = resolve_for(
            &with_source("ControlPlane"),
            &cluster(None),
            false,
            &control_plane(state),
        );
        let (status, found, text) = condition(&waits);
        assert_eq!((status, found.as_str()), (ConditionStatus::False, reason));
        assert!(text.contains(message), "{text}");
        assert!(!waits.is_provisioned && waits.write.is_none());
    }
}

#[test]
fn source_cluster_is_provisioned_without_an_endpoint() {
    let primary = resolve_for(&with_source("Cluster"), &cluster(None), false, &SourceValues::default());
    assert!(primary.is_provisioned && primary.write.is_none() && primary.endpoint.is_none());
    let secondary = resolve_for(&with_source("Cluster"), &cluster(None), true, &SourceValues::default());
    assert!(!secondary.is_provisioned);
    let mirrored = resolve_for(
        &with_source("Cluster"),
        &cluster(Some(A)),
        false,
        &SourceValues::default(),
    );
    assert_eq!(mirrored.write, Some(derived(EndpointOrigin::Cluster, A)));
}

#[test]
fn object_without_extension_fields_reads_no_source() {
    let plain = object(json!({ "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } }));
    let (free, source_values) = (cluster(None), SourceValues::default());
    let input = ResolveInput {
        object: &plain,
        cluster: &free,
        is_secondary: false,
        source_values: &source_values,
        is_refused: false,
        now: at(0),
    };
    assert_eq!(resolve(&input), None);
    assert_eq!(
        wanted_sources(&plain, &free, false),
        crate::endpoint::source::WantedSources::default()
    );
    assert_eq!(
        wanted_sources(&with_source("Cluster"), &free, true),
        crate::endpoint::source::WantedSources::default()
    );
}

#[test]
fn automatic_sources_are_read_until_the_cluster_has_an_endpoint_unless_it_came_from_them() {
    let early = wanted_sources(&with_source("Auto"), &cluster(None), true);
    assert!(early.infrastructure.is_some() && early.control_plane.is_some());
    let late = wanted_sources(&with_source("Auto"), &cluster(Some(A)), true);
    assert!(late.infrastructure.is_none() && late.control_plane.is_none());
    let from_there = with_derived(&with_source("Auto"), &derived(EndpointOrigin::ControlPlane, A));
    let kept = wanted_sources(&from_there, &cluster(Some(A)), true);
    assert!(kept.infrastructure.is_none() && kept.control_plane.is_some());
    assert!(
        wanted_sources(&with_source("Auto"), &cluster(None), false)
            .infrastructure
            .is_none(),
        "the own one"
    );
    let chosen = wanted_sources(&with_source("ControlPlane"), &cluster(Some(A)), false);
    assert!(chosen.control_plane.is_some(), "it may drift");
}

fn with_status(object: &Metal3Cluster, endpoint: &str, since: i64) -> Metal3Cluster {
    let mut with_status = object.clone();
    let Address { host, port } = address(endpoint);
    with_status.status = serde_json::from_value(json!({
        "controlPlaneEndpoint": { "host": host, "port": port, "source": "ControlPlane" },
        "conditions": [{
            "type": "ControlPlaneEndpointReady", "status": "True", "reason": "EndpointFromControlPlane",
            "message": "", "lastTransitionTime": at(since),
        }],
        "lastUpdated": at(since),
    }))
    .unwrap();
    with_status
}

#[test]
fn changing_source_is_followed_at_a_limited_rate() {
    let object = with_derived(&with_source("ControlPlane"), &derived(EndpointOrigin::ControlPlane, A));
    let source_values = control_plane(known(B));
    let without_status = resolve_for(&object, &cluster(None), false, &source_values);
    assert_eq!(
        (without_status.write.clone(), without_status.requeue_after),
        (None, Some(WRITE_INTERVAL)),
        "written just now"
    );
    assert_eq!(
        effective(&without_status).as_deref(),
        Some("192.0.2.1:6443 ControlPlane")
    );
    let early = resolve_for(&with_status(&object, A, 997), &cluster(None), false, &source_values);
    assert_eq!((early.write, early.requeue_after), (None, Some(Duration::from_secs(7))));
    let later = resolve_for(&with_status(&object, A, 990), &cluster(None), false, &source_values);
    assert_eq!(later.write, Some(derived(EndpointOrigin::ControlPlane, B)));
}

#[test]
fn source_that_still_fails_after_the_write_is_reported_idle() {
    let object = with_derived(&with_source("ControlPlane"), &derived(EndpointOrigin::ControlPlane, A));
    let mut source_values = control_plane(known(A));
    source_values.control_plane.as_mut().unwrap().idle = Some(idle(Some(at(994)), None));
    let fresh = resolve_for(&object, &cluster(None), false, &source_values);
    assert_eq!(
        (condition(&fresh).2.as_str(), fresh.requeue_after),
        ("", Some(IDLE_AFTER))
    );
    let early = resolve_for(&with_status(&object, A, 998), &cluster(None), false, &source_values);
    assert_eq!(
        (condition(&early).2.as_str(), early.requeue_after),
        ("", Some(Duration::from_secs(3)))
    );
    let late = resolve_for(&with_status(&object, A, 995), &cluster(None), false, &source_values);
    let (status, reason, message) = condition(&late);
    assert_eq!(
        (status, reason.as_str(), late.requeue_after),
        (ConditionStatus::True, "EndpointFromControlPlane", None)
    );
    assert!(
        message.contains("kubectl -n metal annotate kamajicontrolplane edge"),
        "{message}"
    );
    source_values.control_plane.as_mut().unwrap().idle = None;
    assert_eq!(
        condition(&resolve_for(
            &with_status(&object, A, 995),
            &cluster(None),
            false,
            &source_values
        ))
        .2,
        ""
    );
}

fn idle(since: Option<Time>, touched_for: Option<&str>) -> IdleControlPlane {
    IdleControlPlane {
        since,
        touched_for: touched_for.map(str::to_owned),
    }
}

#[test]
fn idle_control_plane_is_touched_once_per_endpoint_and_not_while_it_retries() {
    let object = with_derived(&with_source("ControlPlane"), &derived(EndpointOrigin::ControlPlane, A));
    let touch = |object: &Metal3Cluster, since, touched_for| {
        let mut source_values = control_plane(known(A));
        source_values.control_plane.as_mut().unwrap().idle = Some(idle(since, touched_for));
        let found = resolve_for(object, &cluster(None), false, &source_values);
        (found.touch.map(|(_, address)| address.to_string()), found.requeue_after)
    };
    let now = Some(A.to_owned());
    let seconds = |number| Some(Duration::from_secs(number));
    assert_eq!(
        touch(&object, Some(at(990)), None).0,
        now,
        "it failed long before the write"
    );
    assert_eq!(
        touch(&object, Some(at(998)), None),
        (None, seconds(3)),
        "it may still retry"
    );
    assert_eq!(
        touch(&with_status(&object, A, 990), Some(at(998)), None).0,
        now,
        "long enough"
    );
    assert_eq!(touch(&object, Some(at(990)), Some(A)).0, None, "touched already");
    assert_eq!(touch(&object, Some(at(990)), Some(B)).0, now, "touched for another one");
    assert_eq!(
        touch(&with_source("ControlPlane"), Some(at(990)), None).0,
        None,
        "not written yet"
    );
    assert_eq!(
        touch(&with_status(&object, A, 990), None, None).0,
        now,
        "the start is unknown"
    );
}
