use std::time::Duration;

use metal3_ironic::error::Refusal as Response;

use super::*;

fn host() -> Key {
    Key {
        namespace: "metal".to_owned(),
        name: "h".to_owned(),
    }
}

fn host_in(state: &str, generation: i64) -> BareMetalHost {
    let fixture = crate::tests::fixture::Fixture::new(state);
    let generation = serde_json::json!({ "metadata": { "generation": generation } });
    serde_json::from_value(fixture.host(generation).host).unwrap()
}

fn last(refusals: &Refusals, generation: i64) -> Option<Refused> {
    let host = host_in("available", generation);
    refusals.last(&host, Monotonic::new(Duration::from_hours(1)))
}

fn node(state: &str) -> Node {
    serde_json::from_value(crate::tests::fixture::node(state)).unwrap()
}

fn wrong_state(message: &str) -> Error {
    Error::WrongState(Response {
        operation: "change the power state",
        status: 400,
        message: message.to_owned(),
        request_id: None,
    })
}

/// The response to the given attempt, all [`REFUSAL_THRESHOLD`] apart.
fn refuse(refusals: &Refusals, attempt: u32, request: &'static str, error: &Error, node: &Node) -> RefusalClass {
    refuse_at(
        refusals,
        Monotonic::new(REFUSAL_THRESHOLD * attempt),
        request,
        error,
        node,
    )
}

fn refuse_at(refusals: &Refusals, at: Monotonic, request: &'static str, error: &Error, node: &Node) -> RefusalClass {
    let refused = Refused {
        request,
        class: RefusalClass::Transient,
        message: error.to_string(),
        is_fresh: false,
        is_over: false,
        is_lock: matches!(error, Error::Locked(_)),
    };
    let cause = Cause::of(error, Some(node), true);
    refusals.record(&host(), Some(1), refused, cause, at).class
}

#[test]
fn third_equal_response_about_an_unchanged_node_is_persistent() {
    use RefusalClass::{Persistent, Transient};
    let refusals = Refusals::default();
    let (active, other) = (node("active"), node("manageable"));
    let no = wrong_state("no");
    let mut classes = Vec::new();
    let steps = [
        ("power on", &no, &active),
        ("power on", &no, &active),
        ("power on", &no, &other),
        ("power on", &no, &other),
        ("power on", &no, &other),
        ("manage", &no, &other),
        ("manage", &wrong_state("not now"), &other),
        ("manage", &no, &other),
        ("manage", &no, &other),
        ("power on", &no, &other),
        ("manage", &no, &other),
    ];
    for (attempt, (request, error, node)) in (0..).zip(steps) {
        classes.push(refuse(&refusals, attempt, request, error, node));
    }
    let expected = [
        Transient, Transient, Transient, Transient, Persistent, Transient, Transient, Transient, Transient, Persistent,
        Persistent,
    ];
    assert_eq!(classes, expected);
    assert_eq!(last(&refusals, 1).unwrap().class, Persistent);
    assert_eq!(last(&refusals, 2), None, "the host changed");
    refusals.remove_one(&host(), "validate node");
    assert!(last(&refusals, 1).is_some());
    refusals.remove(&host());
    assert_eq!(refuse(&refusals, 20, "manage", &no, &other), Transient);
}

#[test]
fn rejected_port_is_requested_again_after_an_hour_if_it_is_left_out() {
    let exists = Error::Exists(Response {
        operation: "create a port",
        status: 409,
        message: "it exists".to_owned(),
        request_id: None,
    });
    let refused = Refused {
        request: "create port",
        class: RefusalClass::Invalid,
        message: exists.to_string(),
        is_fresh: false,
        is_over: false,
        is_lock: false,
    };
    let refusals = Refusals::default();
    refusals.record(&host(), Some(1), refused, None, Monotonic::new(Duration::ZERO));
    for (state, minutes, is_kept) in [
        ("provisioned", 59, true),
        ("provisioned", 60, false),
        ("deprovisioning", 60, false),
        // It waits for its port, with a backoff.
        ("provisioning", 60, true),
        ("registering", 6_000, true),
    ] {
        let last = refusals.last(&host_in(state, 1), Monotonic::new(Duration::from_mins(minutes)));
        assert_eq!(last.is_some(), is_kept, "{state} after {minutes} min");
    }
}

/// Otherwise each of them would be requested again because the other was rejected last.
#[test]
fn ports_that_are_left_out_stay_so_when_another_one_is_rejected() {
    let refused = |request, message: &str| Refused {
        request,
        class: RefusalClass::Invalid,
        message: message.to_owned(),
        is_fresh: false,
        is_over: false,
        is_lock: false,
    };
    let port = |message| refused("create port", message);
    for (state, before, now, expected) in [
        ("provisioned", None, port("b exists"), "b exists"),
        (
            "provisioned",
            Some(port("a exists")),
            port("b exists"),
            "a exists; b exists",
        ),
        (
            "provisioned",
            Some(refused("adopt", "no")),
            port("b exists"),
            "b exists",
        ),
        ("provisioned", Some(port("a exists")), refused("adopt", "no"), "no"),
        // It waits for its port and requests it again and again.
        ("provisioning", Some(port("a exists")), port("a exists"), "a exists"),
    ] {
        let known = with_ports_before(&host_in(state, 1), before.as_ref(), now);
        assert_eq!(known.message, expected, "{state}");
    }
}

#[test]
fn equal_responses_within_a_short_time_are_one_disturbance() {
    let refusals = Refusals::default();
    let failed = Error::Unexpected {
        operation: "x",
        status: Some(500),
        reason: "database is locked".to_owned(),
    };
    let refuse = |millis| {
        let at = Monotonic::new(Duration::from_millis(millis));
        refuse_at(&refusals, at, "manage", &failed, &node("enroll"))
    };
    for millis in [0, 2, 8, 20, 500, 59_999] {
        assert_eq!(refuse(millis), RefusalClass::Transient, "{millis} ms");
    }
    assert_eq!(refuse(60_000), RefusalClass::ServerError);
    refusals.forget_last(&host());
    assert_eq!(last(&refusals, 1), None);
    assert_eq!(refuse(60_001), RefusalClass::ServerError, "it is not the first one");
}

#[test]
fn failures_of_ironic_are_over_when_it_serves_requests_again() {
    let refusals = Refusals::default();
    let failed = Error::Unexpected {
        operation: "x",
        status: Some(500),
        reason: "no database".to_owned(),
    };
    for (error, is_ended) in [(failed, true), (wrong_state("no"), false)] {
        for attempt in 0..EQUAL_REFUSALS {
            refuse(&refusals, attempt, "manage", &error, &node("enroll"));
        }
        assert_eq!(
            refusals.end_failures_of_ironic(|_| true),
            Vec::from_iter(is_ended.then(host)),
            "{error}"
        );
        assert_eq!(last(&refusals, 1).unwrap().is_over, is_ended, "{error}");
        refuse(&refusals, 9, "manage", &error, &node("enroll"));
        assert!(!last(&refusals, 1).unwrap().is_over, "it is a new one");
    }
}

#[test]
fn request_without_a_response_counts_while_ironic_answers_others() {
    let of_proxy = Error::Unexpected {
        operation: "x",
        status: Some(504),
        reason: "Gateway Timeout".to_owned(),
    };
    for late in [Error::Timeout { operation: "x" }, of_proxy] {
        let refusals = Refusals::default();
        let mut class = RefusalClass::Transient;
        for attempt in 0..EQUAL_REFUSALS {
            class = refuse(&refusals, attempt, "validate node", &late, &node("available"));
        }
        assert_eq!(class, RefusalClass::ServerError, "{late}");
        assert_eq!(Cause::of(&late, None, false), None, "{late}");
    }
}

#[test]
fn lock_that_stays_is_a_failure_of_ironic() {
    let locked = Error::Locked(Response {
        operation: "x",
        status: 409,
        message: "is locked by host".to_owned(),
        request_id: None,
    });
    let free = node("enroll");
    let mut held = free.clone();
    held.reservation = Some("host".to_owned());
    let refusals = Refusals::default();
    use RefusalClass::{ServerError, Transient};
    for (minute, node, class) in [
        (0, &held, Transient),
        (5, &held, Transient),
        (14, &held, Transient),
        (15, &held, ServerError),
        (20, &held, ServerError),
        // It ended, and another one began.
        (21, &free, Transient),
        (22, &held, Transient),
        (30, &held, Transient),
        (36, &held, Transient),
        (37, &held, ServerError),
    ] {
        let at = Monotonic::new(Duration::from_mins(minute));
        assert_eq!(
            refuse_at(&refusals, at, "manage", &locked, node),
            class,
            "minute {minute}"
        );
    }
}

#[test]
fn ironic_that_is_too_busy_for_a_request_for_long_is_a_failure_while_it_answers_others() {
    let busy = Error::Busy(Response {
        operation: "x",
        status: 503,
        message: "No conductor service registered which supports driver redfish".to_owned(),
        request_id: None,
    });
    let (refusals, node) = (Refusals::default(), node("enroll"));
    use RefusalClass::{Busy, Transient};
    for (minute, class) in [(0, Transient), (1, Transient), (14, Transient), (15, Busy)] {
        let at = Monotonic::new(Duration::from_mins(minute));
        assert_eq!(
            refuse_at(&refusals, at, "manage", &busy, &node),
            class,
            "minute {minute}"
        );
    }
    assert_eq!(Cause::of(&busy, Some(&node), false), None);
}

#[test]
fn number_of_a_message_makes_no_other_response() {
    let refusals = Refusals::default();
    let mut class = RefusalClass::Transient;
    for (attempt, id) in (0..).zip(["53b9f4c0a1d94e8d9b1f", "0c2f4c0aa1d94e8d9b1f", "9d2f4c0aa1d94e8d9b1f"]) {
        let failed = Error::Unexpected {
            operation: "x",
            status: Some(500),
            reason: format!("Timed out waiting for a reply to message ID {id}"),
        };
        class = refuse(&refusals, attempt, "manage", &failed, &node("enroll"));
    }
    assert_eq!(class, RefusalClass::ServerError);
}

#[test]
fn busy_node_and_unreachable_ironic_are_never_persistent() {
    let locked = Error::Locked(Response {
        operation: "x",
        status: 409,
        message: "is locked by host".to_owned(),
        request_id: None,
    });
    let unreachable = Error::Unreachable {
        operation: "x",
        reason: "refused".to_owned(),
        was_sent: false,
    };
    for error in [locked, unreachable] {
        let refusals = Refusals::default();
        for attempt in 0..5 {
            let class = refuse(&refusals, attempt, "manage", &error, &node("enroll"));
            assert_eq!(class, RefusalClass::Transient, "{error}");
        }
    }
}

/// The change feed reports what all requests get.
#[test]
fn refused_login_is_of_the_host_only_while_the_change_feed_is_served() {
    use RefusalClass::{Access, Transient};
    let login = Error::Unauthorised(Response {
        operation: "read a node",
        status: 401,
        message: "Incorrect username or password".to_owned(),
        request_id: Some("req-1".to_owned()),
    });
    let trust = Error::Untrusted {
        operation: "read a node",
        reason: "unknown issuer".to_owned(),
    };
    for error in [&login, &trust] {
        for (is_answering, last) in [(true, Access), (false, Transient)] {
            let refusals = Refusals::default();
            let classes = [1, 2, 3].map(|attempt| {
                let refused = Refused {
                    request: "read node",
                    class: Transient,
                    message: error.to_string(),
                    is_fresh: false,
                    is_over: false,
                    is_lock: false,
                };
                let cause = Cause::of(error, None, is_answering);
                let at = Monotonic::new(REFUSAL_THRESHOLD * attempt);
                refusals.record(&host(), Some(1), refused, cause, at).class
            });
            assert_eq!(classes, [Transient, Transient, last], "{error} {is_answering}");
        }
    }
}
