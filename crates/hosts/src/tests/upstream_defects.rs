//! Recorded defects of the Go manager, each with the right behaviour.

use std::time::Duration;

use serde_json::json;

use super::fixture::{Fixture, NODE, has_writes, image, requests};
use crate::action::Request;
use crate::facts::{LoginAnswer, NodeFreshness};
use crate::names::reason;
use metal3_ironic::calls::provision::Transition;
use metal3_runtime::work::{Next, WaitingOn};

fn verbs(fixture: &Fixture) -> Vec<&'static str> {
    requests(&fixture.plan()).map(Request::verb).collect()
}

fn live_iso() -> Fixture {
    let iso =
        json!({ "url": "http://192.0.2.9/live.iso", "format": "live-iso", "checksum": null, "checksumType": null });
    Fixture::new("provisioned")
        .spec_image("a")
        .status_image("a")
        .spec(json!({ "image": iso }))
        .status(json!({ "provisioning": { "image": iso } }))
}

#[test]
fn provision_error_lost_is_read_from_the_history_and_cleaned_up_at_once() {
    let fixture = Fixture::new("provisioning")
        .spec_image("a")
        .status(json!({ "lastAttemptedImage": image("a") }))
        .node("deploy failed");
    let recorded = fixture.with(|fixture| fixture.history = Some(Some("agent lost".to_owned())));
    let after = recorded.after(&recorded.plan()).status;
    assert_eq!(after.provisioning.state.to_string(), "deprovisioning");
    assert!(after.error_message.ends_with("agent lost"), "{}", after.error_message);
    assert_eq!((after.error_count, after.provisioning_fail_count), (1, 1));
}

#[test]
fn clean_error_needs_one_backoff() {
    let failed = json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" });
    let error = json!({ "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "Cleaning failed: disk", "errorCount": 1 });
    let fixture = Fixture::new("deprovisioning")
        .status_image("a")
        .node_with("clean failed", failed)
        .status(error)
        .live()
        .hours_later(1);
    assert_eq!(verbs(&fixture), ["clear maintenance", "manage"]);
}

#[test]
fn host_paused_before_its_deletion_waits_a_minute_whatever_the_clocks_show() {
    const YEAR: i64 = 365 * 24;
    for hours in [0, 1, YEAR, -YEAR] {
        let deleted = Fixture::new("provisioned").spec_image("a").status_image("a").deleted();
        let deleted = deleted.node("active").live().hours_later(hours).with(|fixture| {
            fixture.previous.paused = true;
            fixture.deleted_for = Some(Duration::ZERO);
        });
        let Next::Waiting(waiting) = deleted.plan().next else {
            panic!("{}", deleted.summary());
        };
        assert_eq!(waiting.recheck, Some(Duration::from_mins(1)), "{hours} hours");
        let later = deleted.with(|fixture| fixture.deleted_for = Some(Duration::from_mins(1)));
        assert!(later.summary().contains("to deprovisioning"), "{}", later.summary());
    }
}

/// Saved while the host was deleted.
#[test]
fn restored_state_of_a_deletion_does_not_delete() {
    for state in ["powering off before delete", "deleting"] {
        let saved = Fixture::new(state).host["status"].to_string();
        let restored = Fixture::new("").annotated("baremetalhost.metal3.io/status", &saved);
        let restored = restored
            .node_with("available", json!({ "power_state": "power on" }))
            .live();
        let plan = restored.plan();
        assert_eq!(requests(&plan).count(), 0, "{}", restored.summary());
        let summary = restored.clone().performed().summary();
        assert!(summary.contains("waits for the user"), "{summary}");
        let error = restored.after(&plan).status.error_message;
        assert!(error.contains("of a deletion") && error.contains("; write"), "{error}");
    }
}

#[test]
fn move_does_not_touch_the_machine_at_any_time() {
    let marked = || {
        Fixture::new("provisioned")
            .spec_image("a")
            .status_image("a")
            .annotated("clusterctl.cluster.x-k8s.io/delete-for-move", "")
    };
    for fixture in [marked(), marked().deleted(), marked().deleted().hours_later(24)] {
        let fixture = fixture.node_with("active", json!({ "power_state": "power on" })).live();
        assert!(!has_writes(&fixture.plan()), "{}", fixture.summary());
    }
}

#[test]
fn live_iso_is_adopted_with_its_image_after_ironic_lost_it() {
    let lost = live_iso().no_node();
    let plan = lost.plan();
    let Some(Request::CreateNode(new)) = requests(&plan).next() else {
        panic!("{}", lost.summary())
    };
    assert_eq!(new.more.get("deploy_interface"), Some(&json!("ramdisk")));
    let again = live_iso()
        .node_with("manageable", json!({ "deploy_interface": "ramdisk" }))
        .freshness(NodeFreshness::Live);
    let plan = again.plan();
    let requests: Vec<_> = requests(&plan).collect();
    let [
        Request::PatchNode(_, patch),
        Request::Provision(node, Transition::Adopt),
    ] = requests.as_slice()
    else {
        panic!("{}", again.summary())
    };
    assert_eq!(node.as_str(), NODE);
    let body = patch.clone().into_body().unwrap().to_string();
    assert!(body.contains("/instance_info/boot_iso"), "{body}");
}

#[test]
fn registration_error_of_a_missing_secret_is_written_once() {
    let mut fixture = Fixture::new("registering").no_secret();
    fixture = fixture.performed();
    assert!(!has_writes(&fixture.plan()), "{}", fixture.summary());
}

#[test]
fn steady_host_writes_nothing() {
    let mut fixture = Fixture::new("provisioned")
        .spec_image("a")
        .status_image("a")
        .node_with("active", json!({ "power_state": "power on" }));
    fixture = fixture.performed();
    let plan = fixture.plan();
    assert!(
        !has_writes(&plan) && plan.reads.is_empty() && plan.events.is_empty(),
        "{}",
        fixture.line(&plan)
    );
}

#[test]
fn access_is_reported_as_verified_only_after_ironic_tried_the_credentials() {
    let is_changed = |fixture: &Fixture| {
        fixture
            .plan()
            .events
            .iter()
            .any(|event| event.reason == reason::ACCESS_VALIDATED)
    };
    let old = json!({ "goodCredentials": { "credentialsVersion": "39" } });
    let running = Fixture::new("provisioned")
        .spec_image("a")
        .status_image("a")
        .status(old.clone())
        .node_with("active", json!({ "power_state": "power on" }));
    assert!(!is_changed(&running));
    let accepted = running.with(|fixture| fixture.login_answer = Some(LoginAnswer::Accepted));
    assert!(is_changed(&accepted));
    let first = json!({ "goodCredentials": null });
    let registering = Fixture::new("registering").status(first).node("manageable");
    let registering = registering.with(|fixture| fixture.ports = Some(Vec::new()));
    assert!(is_changed(&registering), "{}", registering.summary());
    let credentials_status = json!({ "triedCredentials": { "credentialsVersion": "39" }, "goodCredentials": null });
    let labelled = registering
        .status(credentials_status)
        .with(|fixture| fixture.login_unchanged_for = Some(Duration::ZERO));
    assert!(is_changed(&labelled), "{}", labelled.summary());
    let after = labelled.after(&labelled.plan()).status;
    assert_eq!(after.good_credentials.credentials_version.as_deref(), Some("40"));
    assert_eq!(after.good_credentials, after.tried_credentials);
}

#[test]
fn version_with_same_credentials_is_recorded_with_other_changes_or_after_a_delay() {
    let old = json!({ "credentialsVersion": "39" });
    let old = json!({ "goodCredentials": old, "triedCredentials": old });
    let labelled = Fixture::new("provisioned")
        .spec_image("a")
        .status_image("a")
        .status(old.clone())
        .node_with("active", json!({ "power_state": "power on" }))
        .with(|fixture| fixture.login_unchanged_for = Some(Duration::ZERO));
    let after = labelled.after(&labelled.plan());
    let version = after.status.tried_credentials.credentials_version.as_deref();
    assert_eq!(version, Some("40"), "other conditions are written");
    assert_eq!(after.status.good_credentials, after.status.tried_credentials);
    let at_rest = labelled.with(|fixture| fixture.host = serde_json::to_value(after).unwrap());
    let again = at_rest.status(old);
    assert!(!has_writes(&again.plan()), "{}", again.summary());
    let Next::Waiting(WaitingOn {
        recheck: Some(left), ..
    }) = again.plan().next
    else {
        panic!("{}", again.summary());
    };
    let hours_later = again.with(|fixture| fixture.login_unchanged_for = Some(left));
    let after = hours_later.after(&hours_later.plan()).status;
    assert_eq!(after.tried_credentials.credentials_version.as_deref(), Some("40"));
    assert_eq!(after.good_credentials, after.tried_credentials);
}
