//! A router on a port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::pin;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::certificates::Certificates;
use super::client::{ClientAddress, ClientName};
use super::connections::Connections;
use super::options::TlsOptions;

/// The timeout of the handshake and of the request headers.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The grace period of requests when the server stops. Shorter than that of a Pod.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// Concurrent requests on one HTTP/2 connection. The client waits with further ones, or opens another connection.
const STREAMS: u32 = 32;
/// Bytes of an answer that a request holds until the client reads them, besides the frame that exceeds it.
const UNREAD: usize = 16 << 10;
/// The interval and timeout of HTTP/2 pings, so that a broken connection is closed.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that a connection, and a request of it, may send before a handler reads them.
const WINDOW: u32 = 256 << 10;
/// Bytes of the buffers of an HTTP/1 connection, which also limits the request headers.
const BUFFER: usize = 64 << 10;
/// The time after which a connection accepts no further request, and then the time for its last ones: a client that does
/// not read an answer does not keep it in memory for longer. Clients open a new connection.
const AGE: Duration = Duration::from_mins(5);
const LAST_REQUESTS: Duration = Duration::from_secs(30);
/// The pause after a failed accept, which may pass: too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A router on a port, ready to run.
pub struct Server {
    listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
}

impl Server {
    /// Serves without TLS.
    #[must_use]
    pub const fn plain(listener: TcpListener, router: Router) -> Self {
        Self {
            listener,
            router,
            tls: None,
        }
    }

    /// Serves with TLS.
    ///
    /// # Errors
    /// When the versions and suites of `options` exclude each other.
    pub fn secure(
        listener: TcpListener,
        router: Router,
        options: &TlsOptions,
        certificates: Certificates,
    ) -> Result<Self, rustls::Error> {
        let config = options.server(Arc::new(certificates))?;
        Ok(Self {
            listener,
            router,
            tls: Some(TlsAcceptor::from(Arc::new(config))),
        })
    }

    /// The local address.
    ///
    /// # Errors
    /// When the socket does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`; then accepts no connections, lets running requests end, and returns.
    pub async fn run(self, stop: CancellationToken) {
        let (tasks, closing, abort) = (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let connections = Connections::default();
        while let Some(accepted) = stop.run_until_cancelled(self.listener.accept()).await {
            let (stream, client) = match accepted {
                Ok((stream, client)) => (stream, client.ip().to_canonical()),
                Err(error) => {
                    tracing::debug!(%error, "connection not accepted");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Some(admitted) = connections.admit(client) else {
                tracing::debug!("connection closed: there are too many, or too many of this client");
                continue;
            };
            let connection = connect(
                stream,
                self.tls.clone(),
                self.router.clone().layer(Extension(ClientAddress(client))),
                closing.clone(),
            );
            let connection = abort.clone().run_until_cancelled_owned(connection);
            tasks.spawn(async move {
                connection.await;
                drop(admitted);
            });
        }
        drop(self.listener);
        tasks.close();
        closing.cancel();
        if timeout(SHUTDOWN_GRACE, tasks.wait()).await.is_err() {
            tracing::warn!("server stops with requests under way");
        }
        abort.cancel();
        tasks.wait().await;
    }
}

pub(super) async fn connect<S>(stream: S, tls: Option<TlsAcceptor>, router: Router, closing: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(acceptor) = tls else {
        return serve(stream, router, closing).await;
    };
    let handshake = timeout(HANDSHAKE, acceptor.accept(stream));
    let Some(agreed) = closing.run_until_cancelled(handshake).await else {
        return;
    };
    match agreed {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let client = certificates.and_then(|chain| Some(ClientName::of(chain.first()?)));
            let router = match client {
                Some(client) => router.layer(Extension(client)),
                None => router,
            };
            serve(stream, router, closing).await;
        }
        // Frequent: scanners and probes cause it.
        Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake"),
        Err(_) => tracing::debug!("no TLS handshake in time"),
    }
}

async fn serve<S>(stream: S, router: Router, closing: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE)
        .max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(UNREAD)
        .initial_connection_window_size(WINDOW)
        .initial_stream_window_size(WINDOW)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = closing.cancelled() => None,
        () = sleep(AGE) => None,
    };
    let ended = match ended {
        Some(ended) => Ok(ended),
        None => {
            connection.as_mut().graceful_shutdown();
            timeout(LAST_REQUESTS, connection).await
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(error, "connection broke"),
        Err(_) => tracing::debug!("connection closed with requests under way"),
    }
}
