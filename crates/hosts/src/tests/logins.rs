//! A registered host whose Secret gained another login: when it is tried, and what the answer of the BMC does.

use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{Fixture, at};
use super::rows::given::{provisioned, registering};
use crate::facts::LoginAnswer;
use crate::names::reason;

const REFUSED: &str = "the BMC refuses the login of Secret bmc, version 40 (401); the last one that it accepted is that of Secret bmc, \
                       version 39. Correct the Secret, or the account of the BMC: the login is tried again after some minutes, and at \
                       once when the Secret changes. Until then nothing is done with the machine";
const UNPROVEN: &str = "Ironic has the login of Secret bmc, version 40, and the BMC has not accepted it yet; the last one that it \
                        accepted is that of Secret bmc, version 39";

fn good(version: &str) -> Value {
    json!({ "goodCredentials": { "credentialsVersion": version } })
}

/// The login of the present version is written into the node, which is as it should be.
fn written() -> Fixture {
    written_in("active", json!({}))
}

fn written_in(state: &str, mut change: Value) -> Fixture {
    change["power_state"] = "power on".into();
    provisioned().status(good("39")).node_with(state, change)
}

fn answered(answer: LoginAnswer) -> Fixture {
    written().with(|fixture| fixture.login_answer = Some(answer))
}

fn refused() -> LoginAnswer {
    LoginAnswer::Refused("401".to_owned())
}

fn failing(message: &str) -> Value {
    json!({ "operationalStatus": "error", "errorType": "registration error", "errorMessage": message, "errorCount": 0 })
}

fn paused(fixture: Fixture) -> Fixture {
    fixture.with(|fixture| fixture.login_pause = Some(Duration::from_mins(2)))
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn rows() -> Vec<(&'static str, Fixture, String)> {
    let says = |text: &str| text.to_owned();
    let refusal = format!("writes the status, registration error: {REFUSED}, waits for a time");
    vec![
        (
            "the same login",
            provisioned().node_with("active", json!({ "power_state": "power on" })),
            says("settled"),
        ),
        ("not tried", written(), says("reads Login, replan")),
        (
            "accepted",
            answered(LoginAnswer::Accepted),
            says("writes the status, settled"),
        ),
        ("refused", answered(refused()), refusal.clone()),
        (
            "it cannot be asked",
            answered(LoginAnswer::Unsupported),
            says("writes the status, settled"),
        ),
        (
            "refused, and recorded",
            written().status(failing(REFUSED)),
            says("waits for a time"),
        ),
        (
            "the same, some minutes later",
            written().status(failing(REFUSED)).hours_later(1),
            says("reads Login, replan"),
        ),
        (
            "the same, refused again",
            answered(refused()).status(failing(REFUSED)).hours_later(1),
            says("waits for a time"),
        ),
        (
            "a refusal of another version",
            written().status(failing(&REFUSED.replace("version 40", "version 41"))),
            says("reads Login, replan"),
        ),
        (
            "accepted after a refusal",
            answered(LoginAnswer::Accepted).status(failing(REFUSED)),
            says("writes the status, error cleared, settled"),
        ),
        (
            "refused before, and Ironic works with the node",
            written_in("active", json!({ "reservation": "c" }))
                .status(failing(REFUSED))
                .hours_later(1),
            says("waits for the node"),
        ),
        (
            "refused before, and no answer now",
            paused(answered(LoginAnswer::Unknown))
                .status(failing(REFUSED))
                .hours_later(1),
            says("waits for a time"),
        ),
        (
            "the same, in the next reconcile",
            paused(written()).status(failing(REFUSED)).hours_later(1),
            says("waits for a time"),
        ),
        (
            "no answer",
            paused(answered(LoginAnswer::Unknown)),
            says("waits for a time"),
        ),
        ("no answer some time ago", paused(written()), says("waits for a time")),
        (
            "Ironic works with the node",
            written_in("active", json!({ "reservation": "c" })),
            says("waits for a time"),
        ),
        (
            "Ironic services the machine",
            written_in("servicing", json!({})),
            says("writes the status, waits for the node"),
        ),
        (
            "a lost response may still write a former login",
            written().with(|fixture| fixture.unanswered = Some(Duration::from_secs(40))),
            says("waits for a time"),
        ),
        (
            "an interface that asks no BMC",
            written_in("active", json!({ "management_interface": "noop" })),
            says("writes the status, settled"),
        ),
        (
            "an interface that asks the BMC",
            written_in("active", json!({ "management_interface": "ipmitool" })),
            says("reads Login, replan"),
        ),
        (
            "Ironic answers what it set last",
            written_in("active", json!({ "driver_info": { "ipmi_force_boot_device": "True" } })),
            says("writes the status, settled"),
        ),
        (
            "the image is removed, and the login refused",
            answered(refused())
                .status(json!({ "provisioning": { "state": "deprovisioning" } }))
                .spec(json!({ "image": null })),
            refusal,
        ),
        (
            "a deleted host",
            written()
                .status(json!({ "provisioning": { "state": "deprovisioning" } }))
                .spec(json!({ "image": null }))
                .deleted()
                .live(),
            says("requests deleted, waits for the node"),
        ),
        (
            "another Secret, verified by Ironic now",
            registering()
                .status(json!({ "triedCredentials": { "credentialsVersion": "39" } }))
                .node("verifying"),
            says("waits for the node"),
        ),
        (
            "the first login, verified by Ironic",
            registering()
                .status(json!({ "goodCredentials": null }))
                .node("manageable"),
            says("writes the status, to inspecting, replan"),
        ),
        (
            "the first login of a node that Ironic verified with another one",
            registering().status(good_without_version()).node("manageable"),
            says("reads Login, replan"),
        ),
    ]
}

fn good_without_version() -> Value {
    json!({ "goodCredentials": { "credentialsVersion": null } })
}

#[test]
fn login_is_tried_at_rest_and_only_an_answer_of_the_bmc_decides() {
    let rows = rows()
        .into_iter()
        .map(|(given, fixture, then)| (given, fixture.summary(), then));
    let wrong: Vec<_> = rows.filter(|(_, found, then)| found != then).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn good_credentials_name_a_version_once_the_bmc_accepted_it() {
    let version = |fixture: &Fixture| {
        let after = fixture.after(&fixture.plan()).status;
        assert_eq!(after.tried_credentials.credentials_version.as_deref(), Some("40"));
        assert!(after.powered_on || after.provisioning.state.to_string() != "provisioned");
        after.good_credentials.credentials_version
    };
    assert_eq!(version(&answered(LoginAnswer::Accepted)).as_deref(), Some("40"));
    for unproven in [
        written(),
        answered(refused()),
        answered(LoginAnswer::Unknown),
        paused(written()),
    ] {
        assert_eq!(
            version(&unproven.status(json!({ "poweredOn": true }))).as_deref(),
            Some("39")
        );
    }
}

#[test]
fn login_that_is_written_after_the_verification_is_not_known_to_be_good() {
    let first = json!({ "goodCredentials": null, "triedCredentials": null });
    let version = |state: &str| {
        let fixture = registering().status(first.clone()).node(state);
        assert!(
            fixture.summary().contains("requests change node"),
            "{}",
            fixture.summary()
        );
        let after = fixture.after(&fixture.plan()).status;
        assert_eq!(after.tried_credentials.credentials_version.as_deref(), Some("40"));
        after.good_credentials
    };
    let verified = version("manageable");
    assert_eq!(verified.credentials_version, None);
    assert_eq!(verified.credentials.unwrap().name.as_deref(), Some("bmc"));
    assert_eq!(version("enroll"), Default::default(), "Ironic verifies it next");
}

fn manageable(fixture: &Fixture) -> (String, String, String) {
    let after = fixture.after(&fixture.plan()).status.conditions;
    let found = after.into_iter().find(|one| one.type_ == "Manageable").unwrap();
    (format!("{:?}", found.status), found.reason, found.message)
}

#[test]
fn condition_names_the_login_that_is_not_accepted_and_the_last_one_that_was() {
    let of = |status: &str, reason: &str, message: &str| (status.to_owned(), reason.to_owned(), message.to_owned());
    assert_eq!(
        manageable(&answered(refused())),
        of("False", "BMCLoginRefused", REFUSED)
    );
    assert_eq!(
        manageable(&paused(answered(LoginAnswer::Unknown))),
        of("True", "Manageable", UNPROVEN)
    );
    assert_eq!(
        manageable(&answered(LoginAnswer::Accepted)),
        of("True", "Manageable", "")
    );
    let silent = written_in("active", json!({ "maintenance": true, "fault": "power failure" }));
    let silent = silent.with(|fixture| fixture.login_answer = Some(LoginAnswer::Unknown));
    let (status, reason, message) = manageable(&silent);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "PowerFailure"));
    assert!(message.ends_with(UNPROVEN), "{message}");
    let error = silent.after(&silent.plan()).status.error_message;
    assert!(error.ends_with(UNPROVEN), "{error}");
}

#[test]
fn refusal_is_an_event_and_no_attempt_of_the_operation() {
    let refused = answered(refused());
    let plan = refused.plan();
    let events: Vec<_> = plan.events.iter().map(|event| event.reason).collect();
    assert_eq!(events, [reason::CREDENTIAL_ERROR]);
    let after = refused.after(&plan).status;
    assert_eq!(after.error_count, 0);
    assert_eq!(after.last_updated, Some(at(0)), "its delay begins");
    let accepted = answered(LoginAnswer::Accepted).plan();
    let messages: Vec<_> = accepted.events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(
        messages,
        ["Verified access to BMC with the login of Secret bmc, version 40"]
    );
}

#[test]
fn answer_to_a_login_whose_secret_got_a_label_is_that_of_its_values() {
    let fixture = answered(LoginAnswer::Accepted).status(json!({ "triedCredentials": { "credentialsVersion": "38" } }));
    let fixture = fixture.with(|fixture| fixture.login_unchanged_for = Some(Duration::ZERO));
    let after = fixture.after(&fixture.plan()).status;
    assert_eq!(after.good_credentials.credentials_version.as_deref(), Some("40"));
    assert_eq!(after.good_credentials, after.tried_credentials);
}

/// A try would hold the node, and one of few threads of Ironic, until the BMC is given up.
#[test]
fn login_is_not_tried_while_ironic_says_that_the_bmc_is_silent() {
    let silent = written_in("active", json!({ "maintenance": true, "fault": "power failure" }));
    assert!(!silent.summary().contains("reads Login"), "{}", silent.summary());
    let answers = silent.node_with("active", json!({ "power_state": "power on" }));
    assert_eq!(answers.summary(), "reads Login, replan");
}

#[test]
fn refusal_of_another_bmc_is_forgotten_with_its_address() {
    let corrected = written()
        .status(failing(REFUSED))
        .spec(json!({ "bmc": { "address": "redfish-virtualmedia://192.0.2.99/redfish/v1/Systems/1" } }))
        .live();
    let summary = corrected.summary();
    assert!(
        summary.starts_with("requests change node") && summary.contains("error cleared"),
        "{summary}"
    );
}
