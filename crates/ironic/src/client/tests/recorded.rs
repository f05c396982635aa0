//! The client with complete recorded responses of Ironic 39.0.0, from the status line to the last byte.
//!
//! `make ironic-recordings` records them from Ironic's TLS socket with `Connection: close`, and from a proxy in front
//! of a stopped Ironic. `in-transition` requires a node whose BMC takes half a minute per call. The conformance
//! suite checks most of these responses with a real Ironic.

use crate::calls::node::{self, NewNode};
use crate::calls::patch::Patch;
use crate::calls::{NodeRef, provision, provision::Transition, service};
use crate::error::Error;
use serde_json::Map;

use super::support::{RANGE, ScriptedServer, clock, response};
use super::{client, node as node_ref, read_node};
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

/// The error has this kind, contains Ironic's message and the request ID, and excludes an effect of the request.
fn assert_rejected(error: &Error, category: &str, message: &str) {
    assert_eq!(error.category(), category, "{error}");
    assert!(error.to_string().contains(message), "{error}");
    assert!(error.to_string().contains("req-"), "{error}");
    assert!(!error.may_have_happened(), "{error}");
}

#[tokio::test]
async fn a_recorded_rejected_read_gives_the_recorded_error_kind_and_message() {
    for (response, category, message) in [
        (
            recorded!("wrong-login"),
            "unauthorised",
            "Incorrect username or password",
        ),
        (recorded!("not-found"), "not_found", "Node n could not be found"),
    ] {
        let server = ScriptedServer::with_responses(vec![response]);
        let error = client(&server).await.send(&node::get(&node_ref())).await.unwrap_err();
        assert_rejected(&error, category, message);
    }
}

#[tokio::test]
async fn a_recorded_rejected_change_gives_the_recorded_error_kind_and_message() {
    for (response, category, message) in [
        (recorded!("exists"), "exists", "already exists"),
        (recorded!("unknown-driver"), "invalid", "No valid host was found"),
        (recorded!("body-too-large"), "invalid", "Request body is too large"),
    ] {
        let server = ScriptedServer::with_responses(vec![response]);
        let call = node::create(new_node()).unwrap();
        assert_rejected(&client(&server).await.send(&call).await.unwrap_err(), category, message);
    }
    let server = ScriptedServer::with_responses(vec![recorded!("wrong-state")]);
    let call = provision::request(&node_ref(), Transition::Manage).unwrap();
    let message = "can not be performed on node";
    assert_rejected(
        &client(&server).await.send(&call).await.unwrap_err(),
        "wrong_state",
        message,
    );
}

/// Both conditions are temporary. After a lock the caller retries; it reads a node in transition first.
#[tokio::test]
async fn a_recorded_change_of_a_locked_node_is_rejected() {
    for (response, category, message) in [
        (recorded!("locked"), "locked", "is locked by host"),
        (
            recorded!("in-transition"),
            "wrong_state",
            "while a state transition is in progress",
        ),
    ] {
        let server = ScriptedServer::with_responses(vec![response]);
        let call = node::patch(&node_ref(), Patch::new().set(&["extra", "a"], "b")).unwrap();
        assert_rejected(&client(&server).await.send(&call).await.unwrap_err(), category, message);
    }
}

/// The recorded requests had unsupported microversions. The client does not retry, because its own microversion is
/// within the range.
#[tokio::test]
async fn an_unsupported_microversion_is_reported_with_the_range_of_ironic() {
    for response in [recorded!("version-too-new"), recorded!("version-too-old")] {
        let server = ScriptedServer::with_responses(vec![response]);
        let client = client(&server).await;
        let error = client.send(&node::get(&node_ref())).await.unwrap_err();
        assert_rejected(&error, "invalid", "The supported version range is: [1.1, 1.115]");
        assert_eq!(client.requests_sent(), 1);
    }
}

/// The last release without virtual media in its API. One response is enough to reject it.
#[tokio::test]
async fn a_recorded_old_ironic_is_rejected_with_its_range_and_the_advice_to_upgrade() {
    let server = ScriptedServer::with_responses(vec![recorded!("ironic-too-old")]);
    let client = client(&server).await;
    let error = client.send(&node::get(&node_ref())).await.unwrap_err();
    assert_eq!(error.category(), "version", "{error}");
    assert_eq!(
        error.to_string(),
        "Ironic offers API 1.1 to 1.88; at least 1.89 is needed: upgrade Ironic"
    );
    assert!(!error.may_have_happened());
    assert_eq!(client.requests_sent(), 1);
}

#[tokio::test]
async fn a_certificate_that_another_authority_signed_is_untrusted_and_no_request_is_sent() {
    let certificate = include_bytes!("recorded/certificate.der").to_vec();
    let (server, other_ca) = ScriptedServer::with_certificate(certificate);
    let mut settings = server.settings();
    let file = std::env::temp_dir().join(format!("metal3-ironic-other-ca-{}.pem", std::process::id()));
    std::fs::write(&file, other_ca).unwrap();
    settings.trust.ca = Some(crate::endpoint::Ca::File(file.clone()));
    let client = Client::new(settings, clock()).await.unwrap();
    let error = client.send(&node::get(&node_ref())).await.unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(error.category(), "untrusted", "{error}");
    // The certificate has an unknown authority and may be expired: the TLS library decides which of the two it reports.
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    assert!(
        !error.to_string().contains("BadSignature"),
        "the authority was trusted: {error}"
    );
    assert!(error.to_string().contains("check the CA bundle"), "{error}");
    assert!(!error.may_have_happened());
    assert!(server.requests().is_empty());
}

/// A read is retried and succeeds. A change is not retried, because it may have taken effect.
#[tokio::test]
async fn a_request_is_retried_after_a_reset_only_if_it_changes_nothing() {
    let complete = response("200 OK", RANGE, r#"{"drivers": []}"#);
    let server = ScriptedServer::with_reset_after_first(recorded!("reset-in-body"), vec![complete.clone()]);
    let reader = client(&server).await;
    reader.send(&service::drivers()).await.unwrap();
    assert_eq!(reader.requests_sent(), 2);

    let server = ScriptedServer::with_reset_after_first(recorded!("reset-in-body"), vec![complete]);
    let writer = client(&server).await;
    let change = provision::request(&node_ref(), Transition::Manage).unwrap();
    let error = writer.send(&change).await.unwrap_err();
    assert_eq!(error.category(), "unreachable", "{error}");
    assert!(error.may_have_happened());
    assert_eq!(writer.requests_sent(), 1);
}

/// The recording contains only the beginning of the body; the test appends spaces up to its length.
#[tokio::test]
async fn a_recorded_body_of_fifty_megabytes_is_an_unexpected_response() {
    let mut response = recorded!("fifty-megabytes");
    let head = String::from_utf8_lossy(&response).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.unwrap().parse().unwrap();
    assert!(length > 50 << 20, "{length}");
    response.resize(response.len() + length, b' ');
    let error = read_node(&ScriptedServer::with_responses(vec![response])).await;
    assert_eq!(error.category(), "unexpected", "{error}");
    assert!(error.to_string().contains("the body is longer than"), "{error}");
}

/// Responses of nginx when Ironic is down, and when a request exceeds its size limit.
#[tokio::test]
async fn a_recorded_page_of_a_real_proxy_is_an_unexpected_response() {
    let error = read_node(&ScriptedServer::with_responses(vec![recorded!("proxy-502")])).await;
    assert_eq!(error.category(), "unexpected", "{error}");
    assert!(error.to_string().contains("a page of HTML"), "{error}");
    let server = ScriptedServer::with_responses(vec![recorded!("proxy-413")]);
    let change = provision::request(&node_ref(), Transition::Manage).unwrap();
    let error = client(&server).await.send(&change).await.unwrap_err();
    assert_eq!(error.category(), "invalid", "{error}");
    assert!(error.to_string().contains("a page of HTML"), "{error}");
}

#[tokio::test]
async fn a_recorded_accepted_change_gives_its_request_id() {
    let server = ScriptedServer::with_responses(vec![recorded!("accepted")]);
    let call = provision::request(&NodeRef::Name("n".into()), Transition::Manage).unwrap();
    let accepted = client(&server).await.send(&call).await.unwrap();
    assert!(accepted.request_id.is_some_and(|id| id.starts_with("req-")));
}
