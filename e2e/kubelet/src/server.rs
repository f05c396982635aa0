//! The HTTPS API of the Node: logs and health. Clients require a certificate of the cluster's certificate authority.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::logs;

/// Certificate, key and authority of the Node, as files.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) authority: PathBuf,
}

/// Serves until the process ends.
pub(crate) async fn serve(address: SocketAddr, identity: &Identity, logs: PathBuf) -> anyhow::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(tls(identity)?));
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address}"))?;
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/containerLogs/{namespace}/{pod}/{container}", get(container_logs))
        .with_state(Arc::new(logs));
    axum::serve(TlsListener { listener, acceptor }, router)
        .await
        .context("serving")
}

async fn container_logs(
    State(folder): State<Arc<PathBuf>>,
    Path((namespace, pod, container)): Path<(String, String, String)>,
    Query(query): Query<logs::Query>,
) -> Response {
    if let Some(reason) = query.refusal() {
        return (StatusCode::BAD_REQUEST, reason).into_response();
    }
    // The names become a path; object names contain no slash.
    if [&namespace, &pod, &container]
        .iter()
        .any(|part| part.contains(['/', '\0']) || part.starts_with('.'))
    {
        return (StatusCode::BAD_REQUEST, "not a container name").into_response();
    }
    let Some(path) = logs::find(&folder, &namespace, &pod, &container, query.previous) else {
        let what = if query.previous { "previous run" } else { "log yet" };
        return (StatusCode::NOT_FOUND, format!("container {container} has no {what}")).into_response();
    };
    match logs::body(path, &query).await {
        Ok(body) => body.into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn tls(identity: &Identity) -> anyhow::Result<rustls::ServerConfig> {
    let read = |path: &PathBuf| format!("reading {}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&identity.authority).with_context(|| read(&identity.authority))? {
        roots.add(certificate?)?;
    }
    let clients = WebPkiClientVerifier::builder(Arc::new(roots)).build()?;
    let chain = CertificateDer::pem_file_iter(&identity.certificate)
        .with_context(|| read(&identity.certificate))?
        .collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&identity.key).with_context(|| read(&identity.key))?;
    Ok(rustls::ServerConfig::builder()
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)?)
}

struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        /// Handshakes are sequential: limits the delay by an idle client.
        const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
        /// Pause after an accept error, such as a lack of file descriptors.
        const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let handshake = tokio::time::timeout(HANDSHAKE_LIMIT, self.acceptor.accept(stream)).await;
                    match handshake {
                        Ok(Ok(stream)) => return (stream, address),
                        Ok(Err(error)) => tracing::warn!(%error, %address, "a TLS handshake failed"),
                        Err(_) => tracing::warn!(%address, "a TLS handshake timed out"),
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
