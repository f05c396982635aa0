//! A rejected request is reported until its retry, and in the state that needed it.

use metal3_runtime::work::{Next, WaitingOn};
use serde_json::json;

use super::fixture::{Fixture, image, requests};
use super::rows::given::inspecting;
use crate::facts::{NodeFreshness, RefusalClass};

#[test]
fn rejection_is_forgotten_with_the_retry_that_needs_no_request() {
    let recorded = json!({ "operationalStatus": "error", "errorType": "provisioned registration error",
        "errorMessage": "Ironic rejected the request (rebooting): no", "errorCount": 1 });
    let due = Fixture::new("provisioned")
        .spec_image("a")
        .status_image("a")
        .node_with("active", json!({ "power_state": "power on" }))
        .status(recorded)
        .refused("rebooting", RefusalClass::Persistent, "no")
        .hours_later(24);
    assert!(requests(&due.plan()).next().is_none());
    let well = due.performed();
    assert_eq!(well.host["status"]["errorMessage"], "");
    assert_eq!(well.summary(), "settled");
}

#[test]
fn rejection_does_not_follow_into_the_next_state() {
    let next = Fixture::new("provisioned")
        .status_image("a")
        .status(json!({ "provisioning": { "image": image("a") } }))
        .deleted()
        .node_with("active", json!({ "power_state": "power on" }))
        .refused("rebooting", RefusalClass::Persistent, "no")
        .performed();
    assert_eq!(next.state().to_string(), "deprovisioning");
    assert!(!next.summary().contains("rebooting"), "{}", next.summary());
}

#[test]
fn refusal_that_is_over_delays_nothing() {
    let recorded = json!({ "operationalStatus": "error", "errorType": "inspection error",
        "errorMessage": "Ironic rejected the request (inspect): no database", "errorCount": 9 });
    for class in [RefusalClass::Access, RefusalClass::ServerError] {
        let waits = inspecting()
            .node("manageable")
            .live()
            .with(|fixture| fixture.inventory = Some(None))
            .status(recorded.clone())
            .refused("inspect", class, "no database");
        assert_eq!(waits.summary(), "waits for a time");
        let over = waits.with(|fixture| fixture.refused.as_mut().unwrap().is_over = true);
        let summary = over.summary();
        assert!(
            summary.starts_with("requests inspect") && summary.contains("error cleared"),
            "{summary}"
        );
    }
}

/// Nothing of the host failed, so nothing else tells when the request may be repeated.
#[test]
fn lock_that_has_ended_delays_nothing() {
    let recorded = json!({ "operationalStatus": "error", "errorType": "inspection error",
        "errorMessage": "Ironic rejected the request (inspect): is locked", "errorCount": 9 });
    let locked = inspecting()
        .node_with("manageable", json!({ "reservation": "c1" }))
        .live()
        .with(|fixture| fixture.inventory = Some(None))
        .status(recorded)
        .refused("inspect", RefusalClass::ServerError, "is locked")
        .with(|fixture| fixture.refused.as_mut().unwrap().is_lock = true)
        .hours_later(1);
    assert_eq!(locked.summary(), "waits for a time", "the lock lasts");
    let ended = locked.clone().node("manageable");
    assert_eq!(
        ended.clone().freshness(NodeFreshness::Stale).summary(),
        "waits for a time",
        "this node is older than the rejection"
    );
    let summary = ended.summary();
    assert!(
        summary.starts_with("requests inspect") && summary.contains("error cleared"),
        "{summary}"
    );
    let failed = ended.with(|fixture| fixture.refused.as_mut().unwrap().is_lock = false);
    assert_eq!(failed.summary(), "waits for a time", "Ironic failed for another reason");
}

/// The time until the next attempt, in seconds.
fn retried_after(fixture: &Fixture) -> u64 {
    match fixture.plan().next {
        Next::Waiting(WaitingOn {
            recheck: Some(after), ..
        }) => after.as_secs(),
        other => panic!("{other:?}: {}", fixture.summary()),
    }
}

/// Its failures are not counted, so their number cannot determine the delay.
#[test]
fn refused_access_is_retried_after_minutes_however_often_the_host_failed_before() {
    for failures in [0, 1, 9] {
        let refused = inspecting()
            .node("manageable")
            .with(|fixture| fixture.inventory = Some(None))
            .status(json!({ "errorCount": failures }))
            .refused("inspect", RefusalClass::Access, "unauthorised");
        let fresh = refused
            .clone()
            .with(|fixture| fixture.refused.as_mut().unwrap().is_fresh = true);
        let delay = retried_after(&fresh);
        assert!((240..=480).contains(&delay), "{failures} failures: {delay} s");
        let waits = refused.status(fresh.performed().host["status"].clone());
        assert_eq!(retried_after(&waits), delay, "{failures} failures");
    }
}
