//! Changes whose response is lost, while Ironic may still begin with them.

use std::time::Duration;

use metal3_runtime::work::{Next, WaitingOn};
use serde_json::json;

use super::fixture::{Fixture, has_writes, orders};
use super::rows::given::{deleting, deprovisioning, powering_off, provisioned, provisioning, written};
use crate::facts::NodeFreshness;

const LEFT: u64 = 20;

fn waits_for(fixture: &Fixture) -> Option<Duration> {
    match fixture.plan().next {
        Next::Waiting(WaitingOn { recheck, .. }) => recheck,
        _ => None,
    }
}

/// A second one may be performed after the first, however long after.
#[test]
fn change_of_the_machine_is_not_requested_while_an_earlier_one_may_begin() {
    let running = || provisioned().node_with("active", written("a"));
    let on = || json!({ "power_state": "power on" });
    for (request, fixture) in [
        (
            "requests power on",
            running().node_with("active", json!({ "power_state": "power off" })),
        ),
        (
            "requests soft power off",
            running()
                .node_with("active", on())
                .spec(json!({ "online": false }))
                .live(),
        ),
        ("requests adopt", provisioned().node("manageable")),
        ("requests provide", provisioning().node("manageable").live()),
        (
            "requests deleted",
            deprovisioning().node_with("active", written("a")).live(),
        ),
        ("requests power off", powering_off().node_with("available", on()).live()),
        ("requests delete node", deleting().node("available").live()),
    ] {
        assert!(fixture.summary().contains(request), "{}", fixture.summary());
        let fixture = fixture.unanswered(LEFT);
        let plan = fixture.plan();
        assert_eq!(orders(&plan).count(), 0, "{request}: {}", fixture.summary());
        assert!(!has_writes(&plan), "{request}: {}", fixture.summary());
        assert_eq!(waits_for(&fixture), Some(Duration::from_secs(LEFT)), "{request}");
    }
}

/// The node shows nothing of the order yet: a host that is `provisioned` now would be erased in a moment.
#[test]
fn state_is_not_left_while_an_order_of_it_may_begin() {
    let preparing = Fixture::new("preparing").with(|fixture| fixture.ports = Some(vec![super::rows::given::port()]));
    for (to, fixture) in [
        (
            "to provisioned",
            deprovisioning().spec_image("a").node_with("active", written("a")),
        ),
        ("to provisioned", provisioning().node_with("active", written("a"))),
        ("to available", deprovisioning().node("available")),
        ("to available", preparing.node("manageable")),
    ] {
        let fixture = fixture.live();
        assert!(fixture.summary().contains(to), "{to}: {}", fixture.summary());
        assert_eq!(fixture.unanswered(LEFT).summary(), "waits for a time", "{to}");
    }
    let restored = || {
        deprovisioning()
            .spec_image("a")
            .node_with("active", written("a"))
            .live()
    };
    assert_eq!(
        restored().creation_left(LEFT).summary(),
        "waits for a time",
        "of a process that was replaced"
    );
}

#[test]
fn record_of_the_node_is_changed_while_an_earlier_change_may_begin() {
    let renamed = deprovisioning()
        .spec(json!({ "automatedCleaningMode": "disabled" }))
        .node_with("active", written("a"))
        .live()
        .unanswered(LEFT);
    assert!(
        renamed.summary().contains("requests change node"),
        "{}",
        renamed.summary()
    );
}

/// The creation of the node may be the change.
#[test]
fn search_without_a_result_ends_no_deletion_while_a_creation_may_begin() {
    let detached = provisioned()
        .annotated("baremetalhost.metal3.io/detached", "")
        .no_node();
    for gone in [deleting().no_node(), detached] {
        assert_ne!(gone.summary(), "waits for a time");
        for gone in [gone.clone().unanswered(LEFT), gone.creation_left(LEFT)] {
            assert_eq!(gone.summary(), "waits for a time");
            assert_eq!(waits_for(&gone), Some(Duration::from_secs(LEFT)));
        }
    }
}

#[test]
fn host_that_was_never_registered_waits_for_no_creation() {
    let unregistered = deleting()
        .status(json!({ "provisioning": { "ID": "" } }))
        .no_node()
        .creation_left(LEFT);
    assert_eq!(unregistered.summary(), "changes Secret bmc, changes the host, replan");
    let history = json!({ "operationHistory": { "register": { "start": super::fixture::at(-60) } } });
    assert_eq!(unregistered.status(history).summary(), "waits for a time");
}

/// Only what follows from the absence of the node waits.
#[test]
fn node_is_changed_while_another_process_may_have_sent_a_creation() {
    let running = provisioned()
        .node_with("active", json!({ "power_state": "power off" }))
        .creation_left(LEFT);
    assert!(running.summary().contains("requests power on"), "{}", running.summary());
}

#[test]
fn host_at_rest_does_not_wait_for_an_earlier_change() {
    let running = provisioned()
        .node_with("active", written("a"))
        .freshness(NodeFreshness::Current)
        .unanswered(LEFT);
    assert_eq!(running.plan().next, Next::Done, "{}", running.summary());
}
