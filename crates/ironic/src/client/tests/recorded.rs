//! Whole answers of a real Ironic (39.0.0), byte by byte from the status line on, given to the client once more.
//!
//! `make ironic-recordings` takes them from its TLS socket, with `Connection: close` asked for, and from a real proxy before
//! an Ironic that is down; for the transition alone a node was taken whose BMC took half a minute a call. The contract asks
//! the real one again for most of these.

use crate::calls::node::{self, NewNode};
use crate::calls::patch::Patch;
use crate::calls::{NodeRef, provision, provision::Transition, service};
use crate::error::Error;
use serde_json::Map;

use super::support::{RANGE, Scripted, answer, clock};
use super::{client, node as named, read_node};
use crate::Client;

macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("recorded/", $name, ".http")).to_vec()
    };
}

fn new_node() -> NewNode {
    NewNode {
        name: "a".into(),
        driver: "fake-hardware".into(),
        driver_info: Map::new(),
        properties: Map::new(),
        more: Map::new(),
        disable_power_off: None,
    }
}

/// The kind, whether Ironic's words and the identity of the request are told.
fn judged(error: &Error, category: &str, words: &str) {
    assert_eq!(error.category(), category, "{error}");
    assert!(error.to_string().contains(words), "{error}");
    assert!(error.to_string().contains("req-"), "{error}");
    assert!(!error.may_have_happened(), "{error}");
}

#[tokio::test]
async fn a_recorded_rejected_read_gives_the_recorded_error_kind_and_message() {
    for (answer, category, words) in [
        (
            recorded!("wrong-login"),
            "unauthorised",
            "Incorrect username or password",
        ),
        (recorded!("not-found"), "not_found", "Node n could not be found"),
    ] {
        let server = Scripted::answers(vec![answer]);
        let error = client(&server).await.send(&node::get(&named())).await.unwrap_err();
        judged(&error, category, words);
    }
}

#[tokio::test]
async fn a_recorded_rejected_change_gives_the_recorded_error_kind_and_message() {
    for (answer, category, words) in [
        (recorded!("exists"), "exists", "already exists"),
        (recorded!("unknown-driver"), "invalid", "No valid host was found"),
        (recorded!("body-too-large"), "invalid", "Request body is too large"),
    ] {
        let server = Scripted::answers(vec![answer]);
        let call = node::create(new_node()).unwrap();
        judged(&client(&server).await.send(&call).await.unwrap_err(), category, words);
    }
    let server = Scripted::answers(vec![recorded!("wrong-state")]);
    let call = provision::request(&named(), Transition::Manage).unwrap();
    let words = "can not be performed on node";
    judged(
        &client(&server).await.send(&call).await.unwrap_err(),
        "wrong_state",
        words,
    );
}

/// Both pass by themselves; a lock is asked for again, and a node in transition is to be looked at first.
#[tokio::test]
async fn a_recorded_change_of_a_locked_node_is_rejected() {
    for (answer, category, words) in [
        (recorded!("locked"), "locked", "is locked by host"),
        (
            recorded!("in-transition"),
            "wrong_state",
            "while a state transition is in progress",
        ),
    ] {
        let server = Scripted::answers(vec![answer]);
        let call = node::patch(&named(), Patch::new().set(&["extra", "a"], "b")).unwrap();
        judged(&client(&server).await.send(&call).await.unwrap_err(), category, words);
    }
}

/// Ironic was asked in dialects that nobody microversion. What the client microversion is within the range, so it does not ask again.
#[tokio::test]
async fn an_unsupported_microversion_is_reported_with_the_range_of_ironic() {
    for answer in [recorded!("version-too-new"), recorded!("version-too-old")] {
        let server = Scripted::answers(vec![answer]);
        let client = client(&server).await;
        let error = client.send(&node::get(&named())).await.unwrap_err();
        judged(&error, "invalid", "The supported version range is: [1.1, 1.115]");
        assert_eq!(client.requests_sent(), 1);
    }
}

/// The last release without virtual media in its API. The client asks once and knows enough.
#[tokio::test]
async fn a_recorded_old_ironic_is_rejected_with_its_range_and_the_cure() {
    let server = Scripted::answers(vec![recorded!("ironic-too-old")]);
    let client = client(&server).await;
    let error = client.send(&node::get(&named())).await.unwrap_err();
    assert_eq!(error.category(), "version", "{error}");
    assert_eq!(
        error.to_string(),
        "Ironic offers API 1.1 to 1.88; at least 1.89 is needed: upgrade Ironic"
    );
    assert!(!error.may_have_happened());
    assert_eq!(client.requests_sent(), 1);
}

#[tokio::test]
async fn a_certificate_that_another_authority_signed_is_untrusted_and_nothing_is_sent() {
    let shown = include_bytes!("recorded/certificate.der").to_vec();
    let (server, another) = Scripted::shows(shown);
    let mut settings = server.settings();
    let file = std::env::temp_dir().join(format!("metal3-ironic-another-{}.pem", std::process::id()));
    std::fs::write(&file, another).unwrap();
    settings.trust.ca = Some(file.clone());
    let client = Client::new(settings, clock()).await.unwrap();
    let error = client.send(&node::get(&named())).await.unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(error.category(), "untrusted", "{error}");
    // Which of its faults is seen first, its authority or by now its date, is not ours to say.
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    assert!(
        !error.to_string().contains("BadSignature"),
        "its authority was believed: {error}"
    );
    assert!(error.to_string().contains("check the CA bundle"), "{error}");
    assert!(!error.may_have_happened());
    assert!(server.asked().is_empty());
}

/// A read is sent again, and comes whole; a change is not, for it may have been carried out.
#[tokio::test]
async fn a_request_is_retried_after_a_reset_only_if_it_changes_nothing() {
    let whole = answer("200 OK", RANGE, r#"{"drivers": []}"#);
    let server = Scripted::resets_after(recorded!("reset-in-body"), vec![whole.clone()]);
    let again = client(&server).await;
    again.send(&service::drivers()).await.unwrap();
    assert_eq!(again.requests_sent(), 2);

    let server = Scripted::resets_after(recorded!("reset-in-body"), vec![whole]);
    let once = client(&server).await;
    let change = provision::request(&named(), Transition::Manage).unwrap();
    let error = once.send(&change).await.unwrap_err();
    assert_eq!(error.category(), "unreachable", "{error}");
    assert!(error.may_have_happened());
    assert_eq!(once.requests_sent(), 1);
}

/// The recording ends with the beginning of the body: the rest is more of the same.
#[tokio::test]
async fn an_answer_of_fifty_megabytes_is_not_read_to_its_end() {
    let mut long = recorded!("fifty-megabytes");
    let head = String::from_utf8_lossy(&long).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.unwrap().parse().unwrap();
    assert!(length > 50 << 20, "{length}");
    long.resize(long.len() + length, b' ');
    let error = read_node(&Scripted::answers(vec![long])).await;
    assert_eq!(error.category(), "unexpected", "{error}");
    assert!(error.to_string().contains("the body is longer than"), "{error}");
}

/// What nginx answers when Ironic is down, and when it is sent more than it takes.
#[tokio::test]
async fn a_recorded_page_of_a_real_proxy_is_an_unexpected_response() {
    let error = read_node(&Scripted::answers(vec![recorded!("proxy-502")])).await;
    assert_eq!(error.category(), "unexpected", "{error}");
    assert!(error.to_string().contains("a page of HTML"), "{error}");
    let server = Scripted::answers(vec![recorded!("proxy-413")]);
    let change = provision::request(&named(), Transition::Manage).unwrap();
    let error = client(&server).await.send(&change).await.unwrap_err();
    assert_eq!(error.category(), "invalid", "{error}");
    assert!(error.to_string().contains("a page of HTML"), "{error}");
}

#[tokio::test]
async fn a_recorded_accepted_change_gives_its_request_id() {
    let server = Scripted::answers(vec![recorded!("accepted")]);
    let call = provision::request(&NodeRef::Name("n".into()), Transition::Manage).unwrap();
    let answered = client(&server).await.send(&call).await.unwrap();
    assert!(answered.request_id.is_some_and(|id| id.starts_with("req-")));
}
