//! Webhooks on loopback for a real server, and the conversion of the suite's kinds, which is a function for the simulator.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::claims::{CONVERTED_GROUP, WHEEL};
use metal3_sim_cluster::{Cluster, Options, provider_conversion};

/// The kind of the provider that the claims convert.
pub(super) const PROVIDER_KIND: (&str, &str) = ("infrastructure.cluster.x-k8s.io", "Metal3Cluster");

/// Converts an object of the suite's kinds: the size of a wheel is `inches` in v1, and a broken wheel does not convert. The
/// annotation `tamper` makes the conversion invalid.
fn convert(object: &Value, version: &str) -> Result<Value, String> {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    if text("/kind") != WHEEL {
        return provider_conversion(object, version);
    }
    let mut converted = object.clone();
    let (from, to) = if version == "v1" {
        ("size", "inches")
    } else {
        ("inches", "size")
    };
    if let Some(Value::Object(spec)) = converted.get_mut("spec") {
        if spec.get("broken") == Some(&Value::Bool(true)) {
            return Err("it is broken".to_owned());
        }
        if let Some(value) = spec.remove(from) {
            spec.insert(to.to_owned(), value);
        }
    }
    match text("/metadata/annotations/tamper") {
        "name" => set_member(&mut converted, "/metadata", "name", json!("another")),
        "kind" => set_member(&mut converted, "", "kind", json!("Another")),
        "metadata" => {
            set_member(&mut converted, "/metadata", "labels", json!({"from": version}));
            set_member(&mut converted, "/metadata", "finalizers", json!(["example.org/hold"]));
        }
        _ => {}
    }
    set_member(
        &mut converted,
        "",
        "apiVersion",
        json!(format!(
            "{}/{version}",
            text("/apiVersion").split('/').next().unwrap_or_default()
        )),
    );
    Ok(converted)
}

fn set_member(object: &mut Value, at: &str, name: &str, value: Value) {
    if let Some(Value::Object(map)) = object.pointer_mut(at) {
        map.insert(name.to_owned(), value);
    }
}

/// A simulator with the conversion of the suite's kinds.
#[must_use]
pub fn simulator(seed: u64) -> Cluster {
    let cluster = Cluster::start(&Options::seeded(seed));
    for (group, kind) in [(CONVERTED_GROUP, WHEEL), PROVIDER_KIND] {
        cluster.convert(group, kind, Arc::new(convert));
    }
    cluster
}

/// A placeholder client configuration: the simulator converts in process.
#[must_use]
pub fn in_process() -> Value {
    json!({"url": "https://127.0.0.1:1/convert"})
}

/// A webhook on loopback.
#[derive(Debug)]
pub struct Webhook {
    address: SocketAddr,
    authority: String,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Webhook {
    /// Serves the conversion of the suite's kinds.
    ///
    /// # Errors
    /// When the port or the certificate cannot be created.
    pub async fn serve() -> anyhow::Result<Self> {
        Self::serving(tower::service_fn(answer)).await
    }

    /// Serves a service on a free loopback port with a self-signed certificate.
    ///
    /// # Errors
    /// When the port or the certificate cannot be created.
    pub async fn serving<S, B>(service: S) -> anyhow::Result<Self>
    where
        S: tower::Service<::http::Request<Incoming>, Response = ::http::Response<B>, Error = Infallible>,
        S: Clone + Send + 'static,
        S::Future: Send,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (acceptor, authority) = identity()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let webhook = Self {
            address: listener.local_addr()?,
            authority,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let (tasks, stop) = (webhook.tasks.clone(), webhook.stop.clone());
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, service) = (acceptor.clone(), service.clone());
                let connection = async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = TowerToHyperService::new(service);
                    // A broken connection is the server's error.
                    drop(
                        Builder::new(TokioExecutor::new())
                            .serve_connection(TokioIo::new(stream), service)
                            .await,
                    );
                };
                tasks.spawn(stop.clone().run_until_cancelled_owned(connection));
            }
        };
        webhook
            .tasks
            .spawn(webhook.stop.clone().run_until_cancelled_owned(accept));
        Ok(webhook)
    }

    /// The client configuration for a CRD.
    #[must_use]
    pub fn client_config(&self) -> Value {
        self.client_config_at("/convert")
    }

    /// The client configuration of a path.
    #[must_use]
    pub fn client_config_at(&self, path: &str) -> Value {
        json!({
            "url": format!("https://{}{path}", self.address), "caBundle": STANDARD.encode(&self.authority),
        })
    }

    /// Closes the port and all connections.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn identity() -> anyhow::Result<(TlsAcceptor, String)> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params
        .subject_alt_names
        .push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
    let certificate = params.self_signed(&key)?;
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("TLS versions")?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    Ok((TlsAcceptor::from(Arc::new(config)), certificate.pem()))
}

async fn answer<B: http_body::Body>(request: ::http::Request<B>) -> Result<::http::Response<Full<Bytes>>, Infallible> {
    let body = request
        .into_body()
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let review: Value = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok())
        .unwrap_or_default();
    Ok(::http::Response::new(Full::from(reviewed(&review).to_string())))
}

/// The response to a `ConversionReview`.
fn reviewed(review: &Value) -> Value {
    let at = |pointer: &str| review.pointer(pointer).cloned().unwrap_or_default();
    let wanted = at("/request/desiredAPIVersion");
    let version = wanted
        .as_str()
        .and_then(|wanted| wanted.rsplit('/').next())
        .unwrap_or_default();
    let objects = at("/request/objects");
    let converted: Result<Vec<Value>, String> = objects
        .as_array()
        .into_iter()
        .flatten()
        .map(|object| convert(object, version))
        .collect();
    let (result, objects) = match converted {
        Ok(objects) => (json!({"status": "Success"}), objects),
        Err(why) => (json!({"status": "Failure", "message": why}), Vec::new()),
    };
    json!({
        "apiVersion": at("/apiVersion"), "kind": at("/kind"),
        "response": {"uid": at("/request/uid"), "result": result, "convertedObjects": objects},
    })
}
