//! The same server over HTTP, on loopback only.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cluster::Cluster;

/// A running HTTP server.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Cluster {
    /// Listens on a loopback port, any free one for 0. Every request has the user name `user`.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn serve(&self, port: u16, user: &str) -> io::Result<HttpServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let serving = HttpServer {
            address: listener.local_addr()?,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let (service, tasks, stop) = (self.service(user), serving.tasks.clone(), serving.stop.clone());
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                let connection = async move {
                    let service = TowerToHyperService::new(service);
                    // A broken connection is the client's error.
                    drop(
                        Builder::new(TokioExecutor::new())
                            .serve_connection(TokioIo::new(stream), service)
                            .await,
                    );
                };
                tasks.spawn(stop.clone().run_until_cancelled_owned(connection));
            }
        };
        serving
            .tasks
            .spawn(serving.stop.clone().run_until_cancelled_owned(accept));
        Ok(serving)
    }
}

impl HttpServer {
    /// The base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes the port and all connections, and waits until they are closed.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
