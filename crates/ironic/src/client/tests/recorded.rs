//! Whole answers of a real Ironic (39.0.0), byte by byte from the status line on, given to the client once more.
//!
//! They were taken from its TLS socket with `Connection: close` asked for; nodes of `fake-hardware`, and for the transition
//! one whose BMC took half a minute a call. The contract asks the real one again for most of these.

use crate::calls::node::{self, NewNode};
use crate::calls::patch::Patch;
use crate::calls::{NodeRef, provision, provision::Transition};
use crate::error::Error;
use serde_json::Map;

use super::support::Scripted;
use super::{client, node as named};

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
async fn a_read_that_ironic_refused_has_the_kind_and_the_words_that_it_had_then() {
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
async fn a_change_that_ironic_refused_has_the_kind_and_the_words_that_it_had_then() {
    for (answer, category, words) in [
        (recorded!("exists"), "exists", "already exists"),
        (recorded!("unknown-driver"), "invalid", "No valid host was found"),
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
async fn a_change_of_a_node_at_work_is_refused_as_it_was_then() {
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

/// Ironic was asked in a dialect that nobody speaks. What the client speaks is within the range, so it does not ask again.
#[tokio::test]
async fn a_dialect_that_ironic_does_not_speak_is_told_with_the_range_that_it_named() {
    let server = Scripted::answers(vec![recorded!("version-too-new")]);
    let client = client(&server).await;
    let error = client.send(&node::get(&named())).await.unwrap_err();
    judged(&error, "invalid", "The supported version range is: [1.1, 1.115]");
    assert_eq!(client.requests_sent(), 1);
}

#[tokio::test]
async fn a_change_that_ironic_took_is_taken_with_the_identity_of_its_request() {
    let server = Scripted::answers(vec![recorded!("accepted")]);
    let call = provision::request(&NodeRef::Name("n".into()), Transition::Manage).unwrap();
    let answered = client(&server).await.send(&call).await.unwrap();
    assert!(answered.request_id.is_some_and(|id| id.starts_with("req-")));
}
