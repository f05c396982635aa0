//! When a plan has the node checked again although nothing reports a change.

use std::time::Duration;

use metal3_runtime::work::{Next, WaitingOn};
use serde_json::json;

use super::fixture::{Fixture, node};
use super::rows::given::{
    deleting, deprovisioning, inspecting, powering_off, provisioned, provisioning, registering, written,
};
use crate::facts::NodeFreshness;
use crate::settings::FEED_RECHECK;

fn recheck(fixture: &Fixture) -> Option<Duration> {
    match fixture.plan().next {
        Next::Waiting(WaitingOn { recheck, .. }) => recheck,
        other => panic!("{other:?}: {}", fixture.summary()),
    }
}

#[test]
fn node_is_checked_again_after_a_request_that_only_the_feed_shows() {
    let provisioned = || Fixture::new("provisioned").spec_image("a").status_image("a");
    let off = provisioned()
        .node_with("active", written("a"))
        .node_with("active", json!({ "power_state": "power off" }));
    assert!(off.summary().contains("requests power on"), "{}", off.summary());
    assert_eq!(recheck(&off), Some(FEED_RECHECK), "after a request");
    let busy = provisioned().node("adopting");
    assert_eq!(recheck(&busy), None, "{}", busy.summary());
    let stale = provisioned().with(|fixture| fixture.node = Some(Some((node("active"), NodeFreshness::Stale))));
    assert_eq!(recheck(&stale), Some(FEED_RECHECK), "{}", stale.summary());
}

/// Nothing reports that a conductor died with the lock of a node.
#[test]
fn reservation_of_a_node_is_waited_for_until_it_is_too_old() {
    let reservation = json!({ "power_state": "power on", "reservation": "c1" });
    for held in [
        Fixture::new("provisioned")
            .spec_image("a")
            .status_image("a")
            .spec(json!({ "online": false }))
            .node_with("active", reservation.clone()),
        powering_off().node_with("available", reservation.clone()),
    ] {
        let held = held.reserved_for(60);
        assert_eq!(recheck(&held), Some(Duration::from_mins(14)), "{}", held.summary());
    }
}

/// Ironic sets the failed state before the reason. Nothing reports that its conductor died in between.
#[test]
fn reason_of_a_failure_is_waited_for_until_the_reservation_is_too_old() {
    for (host, state) in [
        (provisioning(), "deploy failed"),
        (provisioning(), "clean failed"),
        (deprovisioning(), "clean failed"),
        (inspecting(), "inspect failed"),
        (provisioned(), "service failed"),
    ] {
        let held = host.node_with(state, json!({ "reservation": "c1" }));
        let young = held.clone().reserved_for(60);
        assert_eq!(recheck(&young), Some(Duration::from_mins(14)), "{state}");
        let old = held.reserved_for(900).with(|fixture| {
            // Of another time.
            fixture.history = Some(Some("an older failure".to_owned()));
        });
        let status = old.after(&old.plan()).status;
        let message = status.error_message;
        assert!(
            message.contains("conductor c1") && message.contains("restart"),
            "{state}: {message}"
        );
        assert_eq!(status.error_count, 1, "{state}");
    }
}

/// The feed wakes the hosts whose status names the node. A change between the read of the node and that write wakes no host.
#[test]
fn node_is_checked_again_after_the_status_names_it_first() {
    let unnamed = |fixture: Fixture| fixture.status(json!({ "provisioning": { "ID": "" } }));
    for (fixture, node) in [
        (unnamed(registering()), "verifying"),
        (unnamed(deleting()), "verifying"),
        (unnamed(deleting()), "inspecting"),
    ] {
        // Found by its name, in this reconcile.
        let found = fixture.node(node).live();
        let plan = found.plan();
        let after = found.after(&plan).status.provisioning.id;
        assert!(!after.is_empty(), "{}", found.summary());
        let Next::Waiting(WaitingOn { recheck, .. }) = plan.next else {
            panic!("{}", found.summary())
        };
        assert_eq!(recheck, Some(FEED_RECHECK), "{node}: {}", found.summary());
    }
}
