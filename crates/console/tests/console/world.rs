//! A simulated API server with a console, and a browser in a few lines.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::GroupVersionKind;
use metal3_api::catalog;
use metal3_console::{Console, Notice, Options};
use metal3_domain::clock::SystemClock;
use metal3_sim_cluster::{Cluster, cluster_api};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tower::{BoxError, ServiceExt as _, service_fn};

/// More time than any answer takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn cluster() -> Cluster {
    let cluster = Cluster::start(&metal3_sim_cluster::Options::seeded(1));
    cluster.install(&catalog::definitions()).unwrap();
    cluster.install(&cluster_api()).unwrap();
    cluster
}

pub(crate) fn hosts(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("metal3.io", "v1alpha1", "BareMetalHost");
    let resource = ApiResource::from_gvk_with_plural(&kind, "baremetalhosts");
    Api::namespaced_with(cluster.client("admin"), namespace, &resource)
}

pub(crate) async fn create_host(cluster: &Cluster, namespace: &str, name: &str) {
    let host = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": name, "namespace": namespace },
        "spec": { "online": true, "bmc": { "address": format!("redfish://192.0.2.1/{name}"), "credentialsName": name } } });
    let host = serde_json::from_value(host).unwrap();
    hosts(cluster, namespace)
        .create(&PostParams::default(), &host)
        .await
        .unwrap();
    set_state(cluster, (namespace, name), "available", "").await;
}

pub(crate) async fn set_state(cluster: &Cluster, (namespace, name): (&str, &str), state: &str, error: &str) {
    let (operational, kind) = if error.is_empty() {
        ("OK", Value::Null)
    } else {
        ("error", json!("registration error"))
    };
    let status = json!({ "status": { "operationalStatus": operational, "errorType": kind, "errorMessage": error, "errorCount": 0,
        "poweredOn": true, "provisioning": { "state": state, "ID": "", "image": { "url": "" } } } });
    let api = hosts(cluster, namespace);
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

pub(crate) async fn create_namespace(cluster: &Cluster, name: &str) {
    let kind = GroupVersionKind::gvk("", "v1", "Namespace");
    let api: Api<DynamicObject> = Api::all_with(
        cluster.client("admin"),
        &ApiResource::from_gvk_with_plural(&kind, "namespaces"),
    );
    let namespace = DynamicObject::new(name, &ApiResource::from_gvk(&kind));
    api.create(&PostParams::default(), &namespace).await.unwrap();
}

/// A client of a viewer whose requests for other paths get this error.
pub(crate) fn viewer(cluster: &Cluster, code: u16, may: impl Fn(&str) -> bool + Clone + Send + 'static) -> Client {
    let service = cluster.service("viewer");
    let restricted = service_fn(move |request: Request<Body>| {
        let (service, may) = (service.clone(), may.clone());
        async move {
            if may(request.uri().path()) {
                let answer = service.oneshot(request).await?;
                return Ok::<_, BoxError>(answer.map(axum::body::Body::new));
            }
            let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": code,
                "reason": if code == 403 { "Forbidden" } else { "ServiceUnavailable" } });
            let mut refused = Response::new(axum::body::Body::from(status.to_string()));
            *refused.status_mut() = StatusCode::from_u16(code)?;
            Ok(refused)
        }
    });
    Client::new(restricted, "default")
}

/// A client whose reviews of access are answered by this, for a namespace and a name, which is empty for all.
pub(crate) fn reviewed(cluster: &Cluster, may: impl Fn(&str, &str) -> bool + Clone + Send + 'static) -> Client {
    let service = cluster.service("viewer");
    let restricted = service_fn(move |request: Request<Body>| {
        let (service, may) = (service.clone(), may.clone());
        async move {
            if !request.uri().path().ends_with("/selfsubjectaccessreviews") {
                let answer = service.oneshot(request).await?;
                return Ok::<_, BoxError>(answer.map(axum::body::Body::new));
            }
            let body = request.into_body().collect_bytes().await?;
            let mut review: Value = serde_json::from_slice(&body)?;
            let part = |at: &str| {
                review
                    .pointer(at)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let [verb, group, resource, namespace, name] = ["verb", "group", "resource", "namespace", "name"]
                .map(|part_of| part(&format!("/spec/resourceAttributes/{part_of}")));
            assert_eq!((&*verb, &*group, &*resource), ("patch", "metal3.io", "baremetalhosts"));
            let status = json!({ "allowed": may(&namespace, &name) });
            review.as_object_mut().unwrap().insert("status".to_owned(), status);
            Ok(Response::new(axum::body::Body::from(review.to_string())))
        }
    });
    Client::new(restricted, "default")
}

/// A console for a viewer whose kubeconfig names the namespace `default`, when all is listed.
pub(crate) async fn console(client: Client) -> Console {
    let console = unlisted(client).await;
    tokio::time::timeout(PATIENCE, console.listed()).await.unwrap();
    console
}

/// The same, of which nothing is known about the lists.
pub(crate) async fn unlisted(client: Client) -> Console {
    let options = options(false);
    open(client, &options, |_| {}).await
}

pub(crate) async fn open(
    client: Client,
    options: &Options,
    announce: impl Fn(&Notice<'_>) + Send + Sync + 'static,
) -> Console {
    let clock = Arc::new(SystemClock::start());
    Console::open(client, clock, options, announce).await.unwrap()
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// Sends a request as it is, and reads the answer to its end.
pub(crate) async fn send(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may answer before it has read all.
    drop(stream.write_all(request.as_bytes()).await);
    let mut text = Vec::new();
    drop(
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text))
            .await
            .unwrap(),
    );
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    Answer {
        status: head
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or_default(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// A browser, with its cookie if it has one.
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    pub(crate) cookie: String,
    pub(crate) key: String,
}

impl Browser {
    /// Follows the printed URL.
    pub(crate) async fn log_in(console: &Console) -> Self {
        let mut browser = Self {
            address: console.address(),
            cookie: String::new(),
            key: String::new(),
        };
        let url = console.url();
        let path = url.split_once("/login").unwrap().1;
        let answer = browser.get(&format!("/login{path}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let (_, key) = answer.body.split_once("#key=").unwrap();
        key.get(..64).unwrap().clone_into(&mut browser.key);
        browser.cookie = answer
            .header("set-cookie")
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .to_owned();
        browser
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.address, &self.request("GET", path)).await
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> String {
        let (host, cookie) = (self.address, &self.cookie);
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n")
    }

    /// Sends an action as a page does.
    pub(crate) async fn act(&self, wanted: &Value) -> Answer {
        send(
            self.address,
            &self.post("/api/act", "application/json", &wanted.to_string()),
        )
        .await
    }

    pub(crate) fn post(&self, path: &str, content: &str, body: &str) -> String {
        let length = format!(
            "\r\nOrigin: http://{}\r\nX-Console-Key: {}\r\nContent-Type: {content}\r\nContent-Length: {}\r\nConnection",
            self.address,
            self.key,
            body.len()
        );
        self.request("POST", path).replace("\r\nConnection", &length) + body
    }

    /// Reads the stream until it has the text.
    pub(crate) async fn stream_until(&self, stream: &mut TcpStream, wanted: &str) -> String {
        let mut text = String::new();
        let read = async {
            let mut part = [0; 4096];
            while !text.contains(wanted) {
                let count = stream.read(&mut part).await.unwrap();
                assert_ne!(count, 0, "the stream ended: {text}");
                text.push_str(&String::from_utf8_lossy(part.get(..count).unwrap()));
            }
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap();
        text
    }

    pub(crate) async fn open_stream(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream
            .write_all(self.request("GET", "/api/stream").as_bytes())
            .await
            .unwrap();
        stream
    }

    /// Asks until the answer has this status.
    pub(crate) async fn until_status(&self, path: &str, status: u16) {
        let asked = async {
            while self.get(path).await.status != status {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap();
    }

    /// Asks until the document is as wanted.
    pub(crate) async fn until(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let asked = async {
            loop {
                let document = self.get(path).await.json();
                if is_wanted(&document) {
                    return document;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap()
    }
}

/// A console on a free port of this machine.
pub(crate) fn options(is_read_only: bool) -> Options {
    Options {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        namespace: None,
        default_namespace: "default".to_owned(),
        is_read_only,
        lab: None,
    }
}
