//! Hosts whose state alone says nothing.

use super::*;

fn available(online: bool, url: &str) -> [Value; 1] {
    let change = json!({ "spec": { "online": online, "image": { "url": url } },
        "status": { "poweredOn": online, "provisioning": { "state": "available" } } });
    [host("h0", change)]
}

#[test]
fn available_host_with_an_image_waits_for_the_user_until_it_may_be_on() {
    let image = "http://192.0.2.9/os";
    let end = (
        "BareMetalHost/h0 has an image, and spec.online is false",
        State::Blocked,
    );
    assert_end("bmh/h0", &available(false, image), end);
    let end = (
        "BareMetalHost/h0 is available, and its deployment has not begun",
        State::Waiting,
    );
    assert_end("bmh/h0", &available(true, image), end);
    assert_eq!(explained(&available(false, ""), "bmh/h0", None).state, State::Ready);
}

#[test]
fn state_that_this_version_does_not_know_is_no_host_that_waits_for_nothing() {
    let unknown = json!({ "status": { "provisioning": { "state": "frobnicating" } } });
    let end = "BareMetalHost/h0 is in the state frobnicating, which this version does not know";
    assert_end("bmh/h0", &[host("h0", unknown)], (end, State::Blocked));
}

#[test]
fn error_without_type_or_message_is_an_error() {
    let with = |change: Value| {
        let mut error = json!({ "status": { "operationalStatus": "error" } });
        merge(&mut error, change);
        [host("h0", error), secret()]
    };
    let end = ("BareMetalHost/h0 Error", State::Blocked);
    assert_end("bmh/h0", &with(json!({})), end);
    let explanation = explained(&with(json!({})), "bmh/h0", None);
    assert!(explanation.names_a_cause() && explanation.chain[0].cure.contains("Events"));
    let message = with(json!({ "status": { "errorMessage": "no" } }));
    assert_end("bmh/h0", &message, end);
    assert_eq!(explained(&message, "bmh/h0", None).chain[0].message, "no");
    let typed = with(json!({ "status": { "errorType": "power management error" } }));
    assert_end(
        "bmh/h0",
        &typed,
        ("BareMetalHost/h0 PowerManagementError", State::Blocked),
    );
    let silent = conditions(&[("Manageable", "False", "PowerFailure")]);
    let silent = with(json!({ "status": { "conditions": silent } }));
    assert_end("bmh/h0", &silent, ("BareMetalHost/h0 PowerFailure", State::Blocked));
}

#[test]
fn provisioned_host_waits_until_its_power_is_as_wanted() {
    for (state, online, on, title) in [
        ("provisioned", true, false, "is off, and is to be on"),
        ("externally provisioned", false, true, "is on, and is to be off"),
    ] {
        let change = json!({ "spec": { "online": online },
            "status": { "poweredOn": on, "provisioning": { "state": state } } });
        let explanation = explained(&[host("h0", change)], "bmh/h0", None);
        assert_eq!(links(&explanation), [format!("BareMetalHost/h0 {title}")]);
        assert!(explanation.names_a_cause());
    }
}

/// The condition `Progressing` is true from the registration on.
#[test]
fn step_of_a_host_is_in_progress_since_it_began() {
    let status = json!({ "status": { "provisioning": { "state": "inspecting" },
        "conditions": conditions(&[("Progressing", "True", "Inspecting")]),
        "operationHistory": { "inspect": { "start": "2026-01-03T00:00:00Z", "end": null } } } });
    let explanation = explained(&[host("h0", status)], "bmh/h0", None);
    let since = serde_json::to_value(explanation.chain[0].since).unwrap();
    assert_eq!(since, json!("2026-01-03T00:00:00Z"));
}

/// Only what an administrator has to grant needs an administrator.
#[test]
fn updates_that_ironic_discards_end_by_themselves_and_a_missing_right_does_not() {
    for (reason, state) in [
        ("FirmwarePending", State::Blocked),
        ("FirmwareUpdatesLeft", State::Waiting),
    ] {
        let held = json!({ "status": { "operationalStatus": "error", "errorType": "preparation error",
            "provisioning": { "state": "preparing" }, "conditions": conditions(&[("Held", "True", reason)]) } });
        assert_end(
            "bmh/h0",
            &[host("h0", held)],
            (&format!("BareMetalHost/h0 {reason}"), state),
        );
    }
}

/// `Ready` is false for as long as the host has no image.
#[test]
fn error_of_a_host_is_not_older_than_the_step_that_failed() {
    let status = json!({ "status": { "operationalStatus": "error", "errorType": "inspection error",
        "provisioning": { "state": "inspecting" }, "conditions": conditions(&[("Ready", "False", "Error")]),
        "operationHistory": { "inspect": { "start": "2026-01-03T00:00:00Z", "end": "2026-01-02T00:00:00Z" } } } });
    let explanation = explained(&[host("h0", status)], "bmh/h0", None);
    let link = serde_json::to_value(&explanation.chain[0]).unwrap();
    assert_eq!(
        (&link["since"], &link["atMost"]),
        (&json!("2026-01-03T00:00:00Z"), &json!(true))
    );
}
