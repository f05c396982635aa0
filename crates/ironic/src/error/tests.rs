use super::*;
use proptest::prelude::*;

/// Bodies recorded from Ironic 39.0.0.
const LOCKED: &str = r#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Node 30aa2698-e8ec-4373-a5a4-af91b934e08a is locked by host localhost, please retry after the current operation is completed.\", \"debuginfo\": null}"}"#;
const LOST_RACE: &str = r#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"The requested action \\\"active\\\" can not be performed on node \\\"30aa2698-e8ec-4373-a5a4-af91b934e08a\\\" while it is in state \\\"enroll\\\".\", \"debuginfo\": null}"}"#;
const DUPLICATE: &str = r#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"A node with name a~b already exists.\", \"debuginfo\": null}"}"#;
const NO_DRIVER: &str = r#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"No valid host was found. Reason: No conductor service registered which supports driver nope for conductor group \\\"\\\". Ensure the driver is valid and enabled.\", \"debuginfo\": null}"}"#;
const NO_POWER_OFF: &str = r#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Failed to set node power state to power off.\", \"debuginfo\": null}"}"#;
const NOT_FOUND: &str = r#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Node none could not be found.\", \"debuginfo\": null}"}"#;
/// As `NodeProtected` of Ironic reads.
const PROTECTED: &str = r#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Node 30aa2698-e8ec-4373-a5a4-af91b934e08a is protected and cannot be undeployed, rebuilt or deleted\", \"debuginfo\": null}"}"#;
const NO_LOGIN: &str = r#"{"error":{"message":"Authorization required","code":401}}"#;
const NOT_ACCEPTABLE: &str = r#"{"error_message": "{\"code\": 406, \"title\": \"Not Acceptable\", \"description\": \"Version 1.200 was requested but the minor version is not supported by this service. The supported version range is: [1.1, 1.115].\"}"}"#;
const PROXY: &str = "<html><body><h1>502 Bad Gateway</h1></body></html>";

fn error(effect: Effect, status: u16, body: &str) -> Error {
    classify(
        effect,
        Refusal {
            operation: "do it",
            status,
            message: message(status, body.as_bytes()),
            request_id: None,
        },
    )
}

#[test]
fn every_error_response_has_the_kind_that_its_handling_requires() {
    let bare = Effect::Transition { arguments: false };
    let steps = Effect::Transition { arguments: true };
    for (effect, status, body, category) in [
        (Effect::Read, 404, NOT_FOUND, "not_found"),
        (Effect::Once, 409, LOCKED, "locked"),
        (Effect::Create, 409, LOCKED, "locked"),
        (bare, 409, LOCKED, "locked"),
        (Effect::Create, 409, DUPLICATE, "exists"),
        (bare, 409, NO_POWER_OFF, "wrong_state"),
        (Effect::Once, 409, "in a transition", "wrong_state"),
        (bare, 400, LOST_RACE, "wrong_state"),
        (steps, 400, LOST_RACE, "wrong_state"),
        (bare, 400, "the wording of another release", "wrong_state"),
        (steps, 400, "unknown step", "invalid"),
        (Effect::Create, 400, NO_DRIVER, "invalid"),
        (Effect::Once, 406, NOT_ACCEPTABLE, "invalid"),
        (Effect::Read, 401, NO_LOGIN, "unauthorised"),
        (Effect::Read, 403, "", "unauthorised"),
        (bare, 403, PROTECTED, "protected"),
        (Effect::Once, 403, PROTECTED, "protected"),
        (bare, 503, "", "busy"),
        (Effect::Read, 502, PROXY, "unexpected"),
        (Effect::Read, 500, "", "unexpected"),
        (Effect::Read, 301, "", "unexpected"),
    ] {
        let error = error(effect, status, body);
        assert_eq!(error.category(), category, "{effect:?} {status} {body}: {error}");
    }
}

#[test]
fn the_message_is_found_in_every_form_of_body() {
    for (body, expected) in [
        (NOT_FOUND, "Node none could not be found."),
        (NO_LOGIN, "Authorization required"),
        (
            NOT_ACCEPTABLE,
            "Version 1.200 was requested but the minor version is not supported by this service. The supported version range is: [1.1, 1.115].",
        ),
        (
            r#"{"code": 406, "title": "Not Acceptable", "description": "plainly"}"#,
            "plainly",
        ),
        (r#"{"error_message": {"faultstring": "plain"}}"#, "plain"),
        (r#"{"error_message": "just text"}"#, "just text"),
        (r#"{"errors": [{"title": "t", "detail": "d"}]}"#, "d"),
        (r#"{"error": "short"}"#, "short"),
        ("", "status 418 without an explanation"),
        ("{}", "status 418 without an explanation"),
        ("[1]", "status 418 without an explanation"),
        ("two\nlines", "two lines"),
    ] {
        assert_eq!(message(418, body.as_bytes()), expected, "{body}");
    }
    assert!(message(502, PROXY.as_bytes()).contains("check the endpoint"));
    assert!(message(502, &[0xff, 0xfe]).contains("check the endpoint"));
}

#[test]
fn a_refusal_contains_the_operation_and_the_request_id() {
    let shown = Error::Locked(Refusal {
        operation: "delete a node",
        status: 409,
        message: "busy".into(),
        request_id: Some("req-1".into()),
    })
    .to_string();
    assert_eq!(shown, "node is locked: delete a node: busy (status 409, req-1)");
}

#[test]
fn only_incomplete_responses_leave_the_outcome_unknown() {
    assert!(!error(Effect::Once, 409, LOCKED).may_have_happened());
    assert!(Error::Timeout { operation: "x" }.may_have_happened());
    assert!(error(Effect::Once, 502, PROXY).may_have_happened());
}

proptest! {
    #[test]
    fn any_body_gives_one_printable_line(status in 300u16..600, body in proptest::collection::vec(any::<u8>(), 0..400)) {
        let shown = message(status, &body);
        prop_assert!(!shown.is_empty() && !shown.chars().any(char::is_control));
    }
}
