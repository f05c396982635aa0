//! A router on a port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::certificates::Certificates;
use super::options::TlsOptions;

/// The timeout of the handshake and of the request headers.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The grace period of requests when the server stops. Shorter than that of a Pod.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// Concurrent requests on one HTTP/2 connection.
const STREAMS: u32 = 250;
/// The interval and timeout of HTTP/2 pings, so that a broken connection is closed.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
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
        let (tasks, graceful, abort) = (TaskTracker::new(), GracefulShutdown::new(), CancellationToken::new());
        while let Some(accepted) = stop.run_until_cancelled(self.listener.accept()).await {
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "connection not accepted");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let connection = connect(stream, self.tls.clone(), self.router.clone(), graceful.watcher());
            tasks.spawn(abort.clone().run_until_cancelled_owned(connection));
        }
        drop(self.listener);
        tasks.close();
        if timeout(SHUTDOWN_GRACE, graceful.shutdown()).await.is_err() {
            tracing::warn!("server stops with requests under way");
        }
        // The rest takes too long, or has not finished a handshake.
        abort.cancel();
        tasks.wait().await;
    }
}

type Watcher = hyper_util::server::graceful::Watcher;

pub(super) async fn connect<S>(stream: S, tls: Option<TlsAcceptor>, router: Router, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(acceptor) = tls else {
        return serve(stream, router, watcher).await;
    };
    match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => serve(stream, router, watcher).await,
        // Frequent: scanners and probes cause it.
        Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake"),
        Err(_) => tracing::debug!("no TLS handshake in time"),
    }
}

async fn serve<S>(stream: S, router: Router, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HANDSHAKE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(error, "connection broke");
    }
}
