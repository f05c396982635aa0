//! The client against a server that misbehaves in every way that a network, a proxy or an old Ironic can.

mod recorded;
pub(crate) mod support;

use std::time::Duration;

use crate::calls::{self, NodeRef, provision::Transition, state::Power};
use crate::endpoint::Login;
use crate::{Client, Error};
use serde_json::Map;
use support::{RANGE, Scripted, answer, clock};

fn node() -> NodeRef {
    NodeRef::Name("n".into())
}

async fn client(server: &Scripted) -> Client {
    Client::new(server.settings(), clock()).await.unwrap()
}

async fn read_node(server: &Scripted) -> Error {
    client(server).await.send(&calls::node::get(&node())).await.unwrap_err()
}

fn broken_off() -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{RANGE}Content-Length: 500\r\n\r\n{{\"uuid\": ").into_bytes()
}

#[tokio::test]
async fn a_redirect_is_rejected_and_the_login_is_not_sent_elsewhere() {
    let elsewhere = Scripted::answers(vec![answer("200 OK", "", "{}")]);
    let there = format!("Location: http://{}/v1/nodes/n\r\n", elsewhere.address);
    let server = Scripted::answers(vec![answer("307 Temporary Redirect", &there, "")]);
    let error = read_node(&server).await;
    assert_eq!(error.category(), "unexpected", "{error}");
    assert!(server.asked()[0].contains("authorization: basic"));
    assert!(elsewhere.asked().is_empty());
}

#[tokio::test]
async fn a_read_is_retried_until_its_response_is_complete() {
    let server = Scripted::answers(vec![
        broken_off(),
        Vec::new(),
        answer("200 OK", RANGE, r#"{"drivers": [{"name": "redfish"}]}"#),
    ]);
    let client = client(&server).await;
    let drivers = client.send(&calls::service::drivers()).await.unwrap();
    assert_eq!(drivers.value.items[0].name, "redfish");
    assert_eq!(client.requests_sent(), 3);
}

#[tokio::test]
async fn a_change_is_not_retried_when_the_connection_broke() {
    let server = Scripted::answers(vec![broken_off(), broken_off()]);
    let client = client(&server).await;
    let error = client
        .send(&calls::state::set_power(&node(), Power::Off))
        .await
        .unwrap_err();
    assert_eq!(error.category(), "unreachable", "{error}");
    assert!(error.may_have_happened());
    assert_eq!(client.requests_sent(), 1);
}

#[tokio::test]
async fn a_missing_server_is_unreachable_after_three_attempts() {
    let server = Scripted::answers(Vec::new());
    let client = client(&server).await;
    let error = client.send(&calls::node::get(&node())).await.unwrap_err();
    assert_eq!(error.category(), "unreachable", "{error}");
    assert_eq!(client.requests_sent(), 3);
}

#[tokio::test]
async fn a_missing_response_is_a_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = Scripted::answers(Vec::new()).settings();
    let address = format!("http://{}", listener.local_addr().unwrap());
    settings.endpoint = crate::Endpoint::parse(&address).unwrap();
    settings.time_limit = Duration::from_millis(50);
    let client = Client::new(settings, clock()).await.unwrap();
    let error = client.send(&calls::node::get(&node())).await.unwrap_err();
    assert_eq!(error.category(), "timeout", "{error}");
    assert_eq!(client.requests_sent(), 1);
}

#[tokio::test]
async fn a_body_of_fifty_megabytes_is_cut_off() {
    let server = Scripted::answers(vec![answer("200 OK", RANGE, &" ".repeat(50 << 20))]);
    let error = read_node(&server).await;
    assert!(
        matches!(&error, Error::Unexpected { reason, .. } if reason.contains("longer than")),
        "{error}"
    );
}

#[tokio::test]
async fn an_html_page_of_a_proxy_is_an_unexpected_response() {
    let page = "<html><h1>Welcome</h1></html>";
    for status in ["200 OK", "502 Bad Gateway"] {
        let error = read_node(&Scripted::answers(vec![answer(status, "", page)])).await;
        assert!(
            matches!(&error, Error::Unexpected { reason, .. } if reason.contains("check the endpoint")),
            "{error}"
        );
    }
}

const OLD: &str = "X-OpenStack-Ironic-API-Minimum-Version: 1.1\r\nX-OpenStack-Ironic-API-Maximum-Version: 1.94\r\n";

#[tokio::test]
async fn an_older_ironic_gets_its_own_microversion_from_then_on() {
    let server = Scripted::answers(vec![
        answer("406 Not Acceptable", OLD, ""),
        answer("200 OK", OLD, r#"{"drivers": []}"#),
        answer("200 OK", OLD, r#"{"drivers": []}"#),
    ]);
    let client = client(&server).await;
    client.send(&calls::service::drivers()).await.unwrap();
    client.send(&calls::service::drivers()).await.unwrap();
    let spoken: Vec<bool> = server
        .asked()
        .iter()
        .map(|head| head.contains("api-version: 1.93\r\n"))
        .collect();
    assert_eq!(spoken, [false, true, true]);
    assert!(!client.features().await.unwrap().disable_power_off());

    let new = calls::node::NewNode {
        name: "n".into(),
        driver: "redfish".into(),
        driver_info: Map::new(),
        properties: Map::new(),
        more: Map::new(),
        disable_power_off: Some(true),
    };
    let error = client.send(&calls::node::create(new).unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::TooOld { .. }), "{error}");
    assert!(error.to_string().contains("needs Ironic API 1.95"), "{error}");
    assert_eq!(client.requests_sent(), 3);
}

#[tokio::test]
async fn an_ironic_below_the_minimum_is_refused_with_a_clear_message() {
    let ancient = OLD.replace("1.94", "1.88");
    let error = read_node(&Scripted::answers(vec![answer("406 Not Acceptable", &ancient, "")])).await;
    assert_eq!(
        error.to_string(),
        "Ironic offers API 1.1 to 1.88; at least 1.89 is needed: upgrade Ironic"
    );
}

#[tokio::test]
async fn an_ironic_replaced_by_an_older_one_is_detected() {
    let server = Scripted::answers(vec![
        answer("200 OK", RANGE, r#"{"drivers": []}"#),
        answer("406 Not Acceptable", OLD, ""),
        answer("200 OK", OLD, r#"{"drivers": []}"#),
    ]);
    let client = client(&server).await;
    for _ in 0..2 {
        client.send(&calls::service::drivers()).await.unwrap();
    }
    assert!(!client.features().await.unwrap().abort_deployment());
}

#[tokio::test]
async fn a_message_that_repeats_a_secret_is_withheld() {
    for (body, secret) in [
        ("login hunter2 refused", "hunter2"),
        ("cannot read #cloud-config", "#cloud"),
    ] {
        let server = Scripted::answers(vec![answer("400 Bad Request", RANGE, body)]);
        let drive = Map::from_iter([("user_data".into(), "#cloud-config".into())]);
        let deploy = Transition::Deploy {
            config_drive: calls::provision::ConfigDrive(drive),
            steps: Vec::new(),
        };
        let call = calls::provision::request(&node(), deploy).unwrap();
        let error = client(&server).await.send(&call).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("withheld") && !shown.contains(secret), "{shown}");
    }
}

#[tokio::test]
async fn an_accepted_change_returns_the_request_id_and_the_time_of_ironic() {
    let headers = "X-Openstack-Request-Id: req-1\r\nDate: Sat, 21 Nov 2026 12:48:15 GMT\r\n";
    let server = Scripted::answers(vec![answer("202 Accepted", headers, "")]);
    let call = calls::state::set_power(&node(), Power::Off);
    let answered = client(&server).await.send(&call).await.unwrap();
    assert_eq!(answered.request_id.as_deref(), Some("req-1"));
    assert_eq!(answered.server_time.unwrap().to_rfc3339(), "2026-11-21T12:48:15+00:00");
}

#[tokio::test]
async fn a_login_rotated_on_disk_is_used_and_an_invalid_one_is_not() {
    let folder = std::env::temp_dir().join(format!("metal3-ironic-login-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("username"), "admin\n").unwrap();
    std::fs::write(folder.join("password"), "first\n").unwrap();
    let server = Scripted::answers(vec![answer("200 OK", RANGE, r#"{"drivers": []}"#); 4]);
    let mut settings = server.settings();
    settings.login = Login::Folder(folder.clone());
    let clock = clock();
    let client = Client::new(settings, clock.clone()).await.unwrap();
    for (password, passed) in [(None, 0), (Some("second"), 9), (None, 1), (Some(""), 10)] {
        if let Some(password) = password {
            std::fs::write(folder.join("password"), password).unwrap();
        }
        clock.advance(Duration::from_secs(passed));
        client.send(&calls::service::drivers()).await.unwrap();
    }
    std::fs::remove_dir_all(&folder).unwrap();
    // admin:first, and admin:second from the tenth second on, in lower case as the server keeps them.
    let (first, second) = ("basic ywrtaw46zmlyc3q=", "basic ywrtaw46c2vjb25k");
    let seen: Vec<bool> = server
        .asked()
        .iter()
        .map(|head| {
            assert!(head.contains(first) || head.contains(second), "{head}");
            head.contains(second)
        })
        .collect();
    assert_eq!(seen, [false, false, true, true]);
}

/// Keeps what kind of content each request said it had.
#[derive(Debug, Default)]
struct Listening(parking_lot::Mutex<Vec<Option<String>>>);

impl crate::transport::Transport for Listening {
    fn exchange(&self, request: http::Request<Vec<u8>>) -> crate::transport::ResponseFuture<'_> {
        let kind = request.headers().get("content-type");
        let kind = kind.map(|kind| kind.to_str().unwrap().to_owned());
        self.0.lock().push(kind);
        Box::pin(std::future::ready(Ok(http::Response::new(b"{}".to_vec()))))
    }
}

#[tokio::test]
async fn a_transport_receives_the_content_type_as_a_socket_does() {
    let server = Scripted::answers(vec![answer("200 OK", RANGE, "{}"), answer("202 Accepted", RANGE, "")]);
    let (read, change) = (calls::service::root(), calls::state::set_power(&node(), Power::Off));
    let sockets = client(&server).await;
    sockets.send(&read).await.unwrap();
    sockets.send(&change).await.unwrap();
    let told = |asked: &String| {
        asked
            .lines()
            .find_map(|line| line.strip_prefix("content-type: ").map(str::to_owned))
    };
    let over_http: Vec<Option<String>> = server.asked().iter().map(told).collect();
    let transport = std::sync::Arc::new(Listening::default());
    let wired = Client::over(transport.clone(), server.settings(), clock());
    wired.send(&read).await.unwrap();
    wired.send(&change).await.unwrap();
    assert_eq!(*transport.0.lock(), over_http);
    assert_eq!(over_http, [None, Some("application/json".to_owned())]);
}
