//! The client with faults of the network, of proxies and of old Ironic versions.

mod recorded;
pub(crate) mod support;

use std::time::Duration;

use crate::calls::{self, NodeRef, provision::Transition, state::Power};
use crate::endpoint::Login;
use crate::{Client, Error};
use serde_json::Map;
use support::{RANGE, ScriptedServer, clock, response};

fn node() -> NodeRef {
    NodeRef::Name("n".into())
}

async fn client(server: &ScriptedServer) -> Client {
    Client::new(server.settings(), clock()).await.unwrap()
}

async fn read_node(server: &ScriptedServer) -> Error {
    client(server).await.send(&calls::node::get(&node())).await.unwrap_err()
}

fn truncated_response() -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{RANGE}Content-Length: 500\r\n\r\n{{\"uuid\": ").into_bytes()
}

#[tokio::test]
async fn a_redirect_is_rejected_and_the_login_is_not_sent_elsewhere() {
    let target = ScriptedServer::with_responses(vec![response("200 OK", "", "{}")]);
    let location = format!("Location: http://{}/v1/nodes/n\r\n", target.address);
    let server = ScriptedServer::with_responses(vec![response("307 Temporary Redirect", &location, "")]);
    let error = read_node(&server).await;
    assert_eq!(error.category(), "unexpected", "{error}");
    assert!(server.requests()[0].contains("authorization: basic"));
    assert!(target.requests().is_empty());
}

#[tokio::test]
async fn a_read_is_retried_until_its_response_is_complete() {
    let server = ScriptedServer::with_responses(vec![
        truncated_response(),
        Vec::new(),
        response("200 OK", RANGE, r#"{"drivers": [{"name": "redfish"}]}"#),
    ]);
    let client = client(&server).await;
    let drivers = client.send(&calls::service::drivers()).await.unwrap();
    assert_eq!(drivers.value.items[0].name, "redfish");
    assert_eq!(client.requests_sent(), 3);
}

#[tokio::test]
async fn a_change_is_not_retried_when_the_connection_broke() {
    let server = ScriptedServer::with_responses(vec![truncated_response(), truncated_response()]);
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
    let server = ScriptedServer::with_responses(Vec::new());
    let client = client(&server).await;
    let error = client.send(&calls::node::get(&node())).await.unwrap_err();
    assert_eq!(error.category(), "unreachable", "{error}");
    assert!(!error.may_have_happened(), "nothing was sent");
    assert_eq!(client.requests_sent(), 3);
}

#[tokio::test]
async fn a_missing_response_is_a_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = ScriptedServer::with_responses(Vec::new()).settings();
    let address = format!("http://{}", listener.local_addr().unwrap());
    settings.endpoint = crate::Endpoint::parse(&address).unwrap();
    settings.time_limit = Duration::from_millis(50);
    let client = Client::new(settings, clock()).await.unwrap();
    let error = client.send(&calls::node::get(&node())).await.unwrap_err();
    assert_eq!(error.category(), "timeout", "{error}");
    assert_eq!(client.requests_sent(), 1);
}

#[tokio::test]
async fn a_body_of_fifty_megabytes_is_an_unexpected_response() {
    let server = ScriptedServer::with_responses(vec![response("200 OK", RANGE, &" ".repeat(50 << 20))]);
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
        let error = read_node(&ScriptedServer::with_responses(vec![response(status, "", page)])).await;
        assert!(
            matches!(&error, Error::Unexpected { reason, .. } if reason.contains("check the endpoint")),
            "{error}"
        );
    }
}

const OLD: &str = "X-OpenStack-Ironic-API-Minimum-Version: 1.1\r\nX-OpenStack-Ironic-API-Maximum-Version: 1.94\r\n";

#[tokio::test]
async fn an_older_ironic_receives_a_supported_microversion_after_its_first_rejection() {
    let server = ScriptedServer::with_responses(vec![
        response("406 Not Acceptable", OLD, ""),
        response("200 OK", OLD, r#"{"drivers": []}"#),
        response("200 OK", OLD, r#"{"drivers": []}"#),
    ]);
    let client = client(&server).await;
    client.send(&calls::service::drivers()).await.unwrap();
    client.send(&calls::service::drivers()).await.unwrap();
    let uses_supported: Vec<bool> = server
        .requests()
        .iter()
        .map(|head| head.contains("api-version: 1.93\r\n"))
        .collect();
    assert_eq!(uses_supported, [false, true, true]);
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
    assert!(error.to_string().contains("requires Ironic API 1.95"), "{error}");
    assert_eq!(client.requests_sent(), 3);
}

#[tokio::test]
async fn an_ironic_below_the_minimum_is_rejected_with_the_advice_to_upgrade() {
    let too_old = OLD.replace("1.94", "1.88");
    let error = read_node(&ScriptedServer::with_responses(vec![response(
        "406 Not Acceptable",
        &too_old,
        "",
    )]))
    .await;
    assert_eq!(
        error.to_string(),
        "Ironic offers API 1.1 to 1.88; at least 1.89 is needed: upgrade Ironic"
    );
}

#[tokio::test]
async fn an_ironic_replaced_by_an_older_one_is_detected() {
    let server = ScriptedServer::with_responses(vec![
        response("200 OK", RANGE, r#"{"drivers": []}"#),
        response("406 Not Acceptable", OLD, ""),
        response("200 OK", OLD, r#"{"drivers": []}"#),
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
        let server = ScriptedServer::with_responses(vec![response("400 Bad Request", RANGE, body)]);
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
    let server = ScriptedServer::with_responses(vec![response("202 Accepted", headers, "")]);
    let call = calls::state::set_power(&node(), Power::Off);
    let accepted = client(&server).await.send(&call).await.unwrap();
    assert_eq!(accepted.request_id.as_deref(), Some("req-1"));
    assert_eq!(accepted.server_time.unwrap().to_rfc3339(), "2026-11-21T12:48:15+00:00");
}

#[tokio::test]
async fn a_login_rotated_on_disk_is_used_and_an_invalid_one_is_not() {
    let directory = std::env::temp_dir().join(format!("metal3-ironic-login-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("username"), "admin\n").unwrap();
    std::fs::write(directory.join("password"), "first\n").unwrap();
    let server = ScriptedServer::with_responses(vec![response("200 OK", RANGE, r#"{"drivers": []}"#); 4]);
    let mut settings = server.settings();
    settings.login = Login::Folder(directory.clone());
    let clock = clock();
    let client = Client::new(settings, clock.clone()).await.unwrap();
    for (password, elapsed) in [(None, 0), (Some("second"), 9), (None, 1), (Some(""), 10)] {
        if let Some(password) = password {
            std::fs::write(directory.join("password"), password).unwrap();
        }
        clock.advance(Duration::from_secs(elapsed));
        client.send(&calls::service::drivers()).await.unwrap();
    }
    std::fs::remove_dir_all(&directory).unwrap();
    // admin:first, and admin:second from the tenth second on; the server records requests in lower case.
    let (first, second) = ("basic ywrtaw46zmlyc3q=", "basic ywrtaw46c2vjb25k");
    let uses_second: Vec<bool> = server
        .requests()
        .iter()
        .map(|head| {
            assert!(head.contains(first) || head.contains(second), "{head}");
            head.contains(second)
        })
        .collect();
    assert_eq!(uses_second, [false, false, true, true]);
}

#[tokio::test]
async fn nothing_is_sent_without_a_destination_and_a_new_one_is_used_at_once() {
    let answer = || vec![response("200 OK", RANGE, r#"{"drivers": []}"#); 2];
    let (first, second) = (
        ScriptedServer::with_responses(answer()),
        ScriptedServer::with_responses(answer()),
    );
    let client = Client::without_destination("the operator installs it".to_owned(), clock());
    let drivers = calls::service::drivers();
    let error = client.send(&drivers).await.unwrap_err();
    assert!(error.to_string().contains("the operator installs it"), "{error}");
    assert!(!error.may_have_happened());
    assert_eq!((client.endpoint(), client.destination()), (None, 0));
    for (number, server) in (1..).zip([&first, &second]) {
        client.change_destination(Ok(server.settings())).await.unwrap();
        let endpoint = Some(server.settings().endpoint);
        assert_eq!((client.endpoint(), client.destination()), (endpoint, number));
        client.send(&drivers).await.unwrap();
        assert_eq!(server.requests().len(), 1);
    }
    // A bundle without certificates: the destination stays.
    let mut unusable = first.settings();
    let (pem, from) = ("none".to_owned(), "tls.crt of Secret a/b".to_owned());
    unusable.trust.ca = Some(crate::endpoint::Ca::Pem { pem, from });
    let error = client.change_destination(Ok(unusable)).await.unwrap_err();
    assert!(error.to_string().contains("Secret a/b"), "{error}");
    client.send(&drivers).await.unwrap();
    assert_eq!((first.requests().len(), second.requests().len()), (0, 1));
    client
        .change_destination(Err("it is updated".to_owned()))
        .await
        .unwrap();
    let error = client.send(&drivers).await.unwrap_err();
    assert!(error.to_string().contains("it is updated"), "{error}");
    assert_eq!(client.requests_sent(), 3);
    assert_eq!((client.endpoint(), client.destination()), (None, 2));
    client.change_destination(Ok(second.settings())).await.unwrap();
    assert_eq!(client.destination(), 2, "the same endpoint has the same nodes");
}

/// As with the Go manager: the Secret of an Ironic resource has the certificate of the server, not that of its CA.
#[tokio::test]
async fn server_whose_certificate_is_in_the_bundle_is_trusted_for_the_names_in_it() {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    let as_ca = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let named = |name: &str| CertificateParams::new([name.to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let (authority, authority_key) = (as_ca(&["authority"]), KeyPair::generate().unwrap());
    let issuer = Issuer::from_params(&authority, &authority_key);
    let signed = |name: &str| named(name).signed_by(&key, &issuer).unwrap();
    for (what, certificate, is_trusted) in [
        ("of an authority", signed("localhost"), true),
        (
            "as openssl makes it",
            as_ca(&["localhost"]).self_signed(&key).unwrap(),
            true,
        ),
        ("of its own", named("localhost").self_signed(&key).unwrap(), true),
        ("for another name", signed("other"), false),
    ] {
        let answer = response("200 OK", RANGE, r#"{"drivers": []}"#);
        let server = ScriptedServer::over_tls(&certificate, &key, None, answer);
        let mut settings = server.settings();
        let endpoint = format!("https://localhost:{}", server.address.port());
        settings.endpoint = crate::Endpoint::parse(&endpoint).unwrap();
        let from = "tls.crt of Secret metal3/tls".to_owned();
        let with = |pem: String| {
            let ca = Some(crate::endpoint::Ca::Pem {
                pem,
                from: from.clone(),
            });
            let trust = crate::endpoint::Trust {
                ca,
                ..settings.trust.clone()
            };
            crate::endpoint::Settings {
                trust,
                ..settings.clone()
            }
        };
        let client = Client::new(with(certificate.pem()), clock()).await.unwrap();
        let answer = client.send(&calls::service::drivers()).await;
        assert_eq!(answer.is_ok(), is_trusted, "{what}: {answer:?}");
        // Another certificate for the same name is not trusted.
        let other = named("localhost").self_signed(&KeyPair::generate().unwrap()).unwrap();
        let client = Client::new(with(other.pem()), clock()).await.unwrap();
        let error = client.send(&calls::service::drivers()).await.unwrap_err();
        assert_eq!(error.category(), "untrusted", "{what}: {error}");
    }
}

/// The Secret of the resource names the server, the files of the environment the client.
#[tokio::test]
async fn client_shows_its_certificate_to_a_server_of_a_bundle_and_a_wrong_key_is_named() {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    let directory = std::env::temp_dir().join(format!("metal3-ironic-client-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let named = |name: &str| CertificateParams::new([name.to_owned()]).unwrap();
    let mut authority = named("authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let issuer = Issuer::from_params(&authority, &authority_key);
    let (key, server_key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let certificate = named("client").signed_by(&key, &issuer).unwrap();
    let own = named("localhost").self_signed(&server_key).unwrap();
    let answer = response("200 OK", RANGE, r#"{"drivers": []}"#);
    let authority = authority.self_signed(&authority_key).unwrap();
    let server = ScriptedServer::over_tls(&own, &server_key, Some(&authority), answer);
    let mut settings = server.settings();
    let endpoint = format!("https://localhost:{}", server.address.port());
    settings.endpoint = crate::Endpoint::parse(&endpoint).unwrap();
    let (pem, from) = (own.pem(), "tls.crt of Secret metal3/tls".to_owned());
    settings.trust.ca = Some(crate::endpoint::Ca::Pem { pem, from });
    let without = Client::new(settings.clone(), clock()).await.unwrap();
    assert!(without.send(&calls::service::drivers()).await.is_err());
    let files = crate::endpoint::ClientCertificate {
        certificate: directory.join("tls.crt"),
        key: directory.join("tls.key"),
    };
    std::fs::write(&files.certificate, certificate.pem()).unwrap();
    std::fs::write(&files.key, key.serialize_pem()).unwrap();
    settings.trust.client = Some(files.clone());
    let client = Client::new(settings.clone(), clock()).await.unwrap();
    client.send(&calls::service::drivers()).await.unwrap();
    std::fs::write(&files.key, server_key.serialize_pem()).unwrap();
    let error = Client::new(settings, clock()).await.unwrap_err().to_string();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(error.contains("tls.crt holds no usable certificate and key"), "{error}");
    assert!(!error.contains("Secret"), "{error}");
}

/// Records the content type of each request.
#[derive(Debug, Default)]
struct RecordingTransport(parking_lot::Mutex<Vec<Option<String>>>);

impl crate::transport::Transport for RecordingTransport {
    fn exchange(&self, request: http::Request<Vec<u8>>) -> crate::transport::ResponseFuture<'_> {
        let content_type = request.headers().get("content-type");
        let content_type = content_type.map(|value| value.to_str().unwrap().to_owned());
        self.0.lock().push(content_type);
        Box::pin(std::future::ready(Ok(http::Response::new(b"{}".to_vec()))))
    }
}

#[tokio::test]
async fn a_transport_receives_the_content_type_as_a_socket_does() {
    let server = ScriptedServer::with_responses(vec![
        response("200 OK", RANGE, "{}"),
        response("202 Accepted", RANGE, ""),
    ]);
    let (read, change) = (calls::service::root(), calls::state::set_power(&node(), Power::Off));
    let over_sockets = client(&server).await;
    over_sockets.send(&read).await.unwrap();
    over_sockets.send(&change).await.unwrap();
    let content_type = |request: &String| {
        request
            .lines()
            .find_map(|line| line.strip_prefix("content-type: ").map(str::to_owned))
    };
    let sent_over_http: Vec<Option<String>> = server.requests().iter().map(content_type).collect();
    let transport = std::sync::Arc::new(RecordingTransport::default());
    let over_transport = Client::over(transport.clone(), server.settings(), clock());
    over_transport.send(&read).await.unwrap();
    over_transport.send(&change).await.unwrap();
    assert_eq!(*transport.0.lock(), sent_over_http);
    assert_eq!(sent_over_http, [None, Some("application/json".to_owned())]);
}
