//! Every source, before the Cluster has an endpoint.

use super::*;
use crate::endpoint::resolve::{IDLE_AFTER, WRITE_INTERVAL};
use crate::endpoint::source::{IdleControlPlane, WantedSources, wanted_sources};
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
    let (third, fourth) = ("192.0.2.3:6443", "192.0.2.4:6443");
    let all = SourceValues {
        infrastructure: value("ByoCluster edge", known(B)),
        service: value("Service api", known(third)),
        pool: value("IPClaim vip", known(fourth)),
        ..control_plane(known(A))
    };
    for (source, origin, address) in [
        ("ControlPlane", EndpointOrigin::ControlPlane, A),
        ("InfraCluster", EndpointOrigin::InfraCluster, B),
        ("Service", EndpointOrigin::Service, third),
        ("IPPool", EndpointOrigin::IPPool, fourth),
    ] {
        for is_secondary in [false, true] {
            let found = resolve_for(&with_source(source), &cluster(None), is_secondary, &all);
            assert_eq!(found.write, Some(derived(origin, address)), "{source}");
            assert!(found.is_provisioned);
            assert_eq!(condition(&found).1, format!("EndpointFrom{source}"));
            let after = with_derived(&with_source(source), &derived(origin, address));
            let again = resolve_for(&after, &cluster(None), is_secondary, &all);
            assert_eq!(again.write, None, "{source}: once");
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
        let waits = resolve_from(&with_source("ControlPlane"), None, state);
        assert_missing(&waits, reason, message);
        assert!(!waits.is_provisioned && waits.write.is_none());
    }
}

#[test]
fn source_cluster_is_provisioned_without_an_endpoint() {
    let found = |endpoint, is_secondary| {
        let object = with_source("Cluster");
        resolve_for(&object, &cluster(endpoint), is_secondary, &SourceValues::default())
    };
    let primary = found(None, false);
    assert!(primary.is_provisioned && primary.write.is_none() && primary.endpoint.is_none());
    assert!(!found(None, true).is_provisioned);
    let mirrored = found(Some(A), false);
    assert_eq!(mirrored.write, Some(derived(EndpointOrigin::Cluster, A)));
}

#[test]
fn object_without_extension_fields_reads_no_source() {
    let plain = object(json!({ "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } }));
    let (free, source_values) = (cluster(None), SourceValues::default());
    assert_eq!(resolve(&input(&plain, &free, &source_values)), None);
    for (object, is_secondary) in [(&plain, false), (&with_source("Cluster"), true)] {
        let wanted = wanted_sources(object, &free, is_secondary);
        assert_eq!(wanted, WantedSources::default());
    }
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
    let object = taken();
    let without_status = resolve_from(&object, None, known(B));
    assert_eq!(
        (without_status.write.clone(), without_status.requeue_after),
        (None, Some(WRITE_INTERVAL)),
        "written just now"
    );
    assert_eq!(
        effective(&without_status).as_deref(),
        Some("192.0.2.1:6443 ControlPlane")
    );
    let early = resolve_from(&with_status(&object, A, 997), None, known(B));
    assert_eq!((early.write, early.requeue_after), (None, Some(Duration::from_secs(7))));
    let later = resolve_from(&with_status(&object, A, 990), None, known(B));
    assert_eq!(later.write, Some(derived(EndpointOrigin::ControlPlane, B)));
    let by_a_clock_ahead = resolve_from(&with_status(&object, A, 31_536_000), None, known(B));
    assert_eq!(by_a_clock_ahead.write, Some(derived(EndpointOrigin::ControlPlane, B)));
}

/// An object whose endpoint was derived from the control plane.
fn taken() -> Metal3Cluster {
    with_derived(&with_source("ControlPlane"), &derived(EndpointOrigin::ControlPlane, A))
}

/// The resolution while the control plane has the endpoint and is idle, or not.
fn resolve_idle(object: &Metal3Cluster, idle: Option<IdleControlPlane>) -> Resolution {
    let mut source_values = control_plane(known(A));
    source_values.control_plane.as_mut().unwrap().idle = idle;
    resolve_for(object, &cluster(None), false, &source_values)
}

#[test]
fn source_that_still_fails_after_the_write_is_reported_idle() {
    let object = taken();
    let failing = || Some(idle(Some(at(994)), None));
    for (object, requeue_after) in [
        (object.clone(), IDLE_AFTER),
        (with_status(&object, A, 998), Duration::from_secs(3)),
    ] {
        let fresh = resolve_idle(&object, failing());
        assert_eq!(
            (condition(&fresh).2.as_str(), fresh.requeue_after),
            ("", Some(requeue_after))
        );
    }
    let late = resolve_idle(&with_status(&object, A, 995), failing());
    let (status, reason, message) = condition(&late);
    assert_eq!(
        (status, reason.as_str(), late.requeue_after),
        (ConditionStatus::True, "EndpointFromControlPlane", None)
    );
    assert!(
        message.contains("kubectl -n metal annotate kamajicontrolplane edge"),
        "{message}"
    );
    let working = resolve_idle(&with_status(&object, A, 995), None);
    assert_eq!(condition(&working).2, "");
}

fn idle(since: Option<Time>, touched_for: Option<&str>) -> IdleControlPlane {
    IdleControlPlane {
        since,
        touched_for: touched_for.map(str::to_owned),
    }
}

#[test]
fn idle_control_plane_is_touched_once_per_endpoint_and_not_while_it_retries() {
    let (fresh, old) = (taken(), with_status(&taken(), A, 990));
    let now = Some(A.to_owned());
    for (object, since, touched_for, expected, what) in [
        (&fresh, Some(990), None, &now, "it failed long before the write"),
        (&old, Some(998), None, &now, "long enough"),
        (&fresh, Some(990), Some(A), &None, "touched already"),
        (&fresh, Some(990), Some(B), &now, "touched for another one"),
        (&with_source("ControlPlane"), Some(990), None, &None, "not written yet"),
        (&old, None, None, &now, "the start is unknown"),
    ] {
        let found = resolve_idle(object, Some(idle(since.map(at), touched_for)));
        let touched = found.touch.map(|(_, address)| address.to_string());
        assert_eq!(touched, *expected, "{what}");
    }
    let retries = resolve_idle(&fresh, Some(idle(Some(at(998)), None)));
    let waits = Some(Duration::from_secs(3));
    assert_eq!(
        (retries.touch, retries.requeue_after),
        (None, waits),
        "it may still retry"
    );
}
