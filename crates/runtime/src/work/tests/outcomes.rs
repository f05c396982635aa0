use std::io;
use std::time::Duration;

use kube::core::Status;
use serde_json::json;

use crate::client::WriteBlocked;
use crate::lease::NotLeading;
use crate::queue::Outcome;
use crate::reason::Reason;
use crate::work::{Category, Class, Fault, Next, classify, read_fault};

const WAITS: Reason = Reason::new("WaitingForPool");

fn status(code: u16, reason: &str, details: serde_json::Value) -> kube::Error {
    let document = json!({"code": code, "reason": reason, "message": "refused", "details": details});
    kube::Error::Api(serde_json::from_value::<Status>(document).unwrap().boxed())
}

fn answer(code: u16, reason: &str) -> kube::Error {
    status(code, reason, json!({}))
}

fn later(code: u16, seconds: u32) -> kube::Error {
    status(code, "", json!({"retryAfterSeconds": seconds}))
}

fn terminating() -> kube::Error {
    status(
        403,
        "Forbidden",
        json!({"causes": [{"reason": "NamespaceTerminating"}]}),
    )
}

fn undecodable() -> kube::Error {
    kube::Error::SerdeError(serde_json::from_str::<u8>("\"hunter2\"").unwrap_err())
}

#[test]
fn client_errors_are_classified_by_status_and_not_by_message() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let table = [
        (answer(400, "BadRequest"), Class::Invalid),
        (answer(401, "Unauthorized"), Class::Forbidden),
        (answer(403, "Forbidden"), Class::Forbidden),
        (terminating(), Class::Terminating),
        (answer(404, "NotFound"), Class::NotFound),
        (answer(409, "AlreadyExists"), Class::AlreadyExists),
        (answer(409, "Conflict"), Class::Conflict),
        (answer(409, ""), Class::Conflict),
        (answer(410, "Expired"), Class::Expired),
        (answer(413, "RequestEntityTooLarge"), Class::Invalid),
        (answer(422, "Invalid"), Class::Invalid),
        (answer(429, "TooManyRequests"), Class::Throttled { after: None }),
        (later(429, 7), Class::Throttled { after: seconds(7) }),
        (answer(500, "InternalError"), Class::Server),
        (answer(503, "ServiceUnavailable"), Class::Server),
        (later(503, 1), Class::Throttled { after: seconds(1) }),
        (answer(504, "Timeout"), Class::Server),
        (answer(0, ""), Class::Server),
        (
            kube::Error::Service(io::Error::other("reset").into()),
            Class::Unreachable,
        ),
        (
            kube::Error::Service(WriteBlocked::NotLeading(NotLeading { lease: "ipam".into() }).into()),
            Class::WriteBlocked,
        ),
        (kube::Error::TlsRequired, Class::Unreachable),
        (undecodable(), Class::Unreadable),
        (
            kube::Error::BuildRequest(kube::core::request::Error::Validation("x".to_owned())),
            Class::Malformed,
        ),
    ];
    for (error, class) in table {
        assert_eq!(classify(&error), class, "{error:?}");
    }
}

#[test]
fn faults_determine_queue_outcome_and_metrics() {
    let pause = Duration::from_secs(7);
    let transient = || Fault::transient("read pool", Category::SERVER, "it is down");
    let table = [
        (transient(), Outcome::Failed, "server_failed"),
        (
            read_fault("read pool", later(429, 7)),
            Outcome::Throttled(pause),
            "throttled",
        ),
        (Fault::terminal(WAITS, "name another pool"), Outcome::Done, "terminal"),
        (Fault::bug("two owners"), Outcome::Failed, "bug"),
    ];
    for (fault, outcome, category) in table {
        assert_eq!((fault.outcome(), fault.category()), (outcome, category), "{fault:?}");
    }
    assert_eq!(transient().report(), "read pool: it is down");
}

#[test]
fn waiting_is_done_for_the_queue_unless_it_has_a_recheck() {
    let pause = Duration::from_secs(30);
    let table = [
        (Next::Done, Outcome::Done),
        (Next::Requeue, Outcome::RequeueAfter(Duration::ZERO)),
        (Next::RequeueAfter(pause), Outcome::RequeueAfter(pause)),
        (Next::waiting(WAITS, "create the pool"), Outcome::Done),
        (
            Next::waiting_with_recheck(WAITS, "start the service", pause),
            Outcome::RequeueAfter(pause),
        ),
    ];
    for (next, outcome) in table {
        assert_eq!(next.outcome(), outcome, "{next:?}");
    }
}

#[test]
fn content_quoted_by_a_decoder_reaches_no_report() {
    assert!(undecodable().to_string().contains("hunter2"));
    let fault = read_fault("read secret", undecodable());
    let shown = format!("{} {fault:?}", fault.report());
    assert!(!shown.contains("hunter2"), "{shown}");
}
