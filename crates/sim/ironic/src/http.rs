//! HTTPS on loopback: for the simulated Ironic, with a login, and for any other [`Transport`].

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use metal3_ironic::transport::{ConnectionBroken, ResponseFuture, Transport};
use metal3_sim_bmc::tls;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::refusal::Refusal;
use crate::request::ApiRequest;
use crate::simulator::Ironic;

/// The largest request body: a config-drive has some hundred kilobytes.
const MAX_BODY: usize = 16 << 20;

/// A running HTTPS server.
pub struct HttpsServer {
    address: SocketAddr,
    ca: Arc<str>,
    acceptor: TlsAcceptor,
    wire: Arc<dyn Transport>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl std::fmt::Debug for HttpsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HttpsServer").field(&self.address).finish()
    }
}

/// Credentials of HTTP basic authentication.
#[derive(Clone)]
pub struct Login {
    /// User name.
    pub username: String,
    /// Password.
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

impl Ironic {
    /// Listens on a loopback port, any free one for 0, with a new self-signed certificate. The process must have
    /// installed a TLS crypto provider.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn serve(&self, port: u16, login: &Login) -> io::Result<HttpsServer> {
        self.serve_through(port, self.behind(login)).await
    }

    /// This Ironic for clients with the login.
    #[must_use]
    pub fn behind(&self, login: &Login) -> Arc<dyn Transport> {
        Arc::new(WithLogin {
            ironic: self.clone(),
            expected: login.header(),
        })
    }

    /// The same as [`Ironic::serve`] for requests that pass through `wire`, which leads to this Ironic.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn serve_through(&self, port: u16, wire: Arc<dyn Transport>) -> io::Result<HttpsServer> {
        let server = HttpsServer::start(port, wire).await?;
        self.set_base(server.url());
        Ok(server)
    }
}

impl Login {
    /// The expected `Authorization` header.
    #[must_use]
    pub fn header(&self) -> String {
        let encoded = STANDARD.encode(format!("{}:{}", self.username, self.password));
        format!("Basic {encoded}")
    }
}

/// An Ironic that requires a login.
struct WithLogin {
    ironic: Ironic,
    expected: String,
}

impl std::fmt::Debug for WithLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WithLogin").finish_non_exhaustive()
    }
}

impl Transport for WithLogin {
    fn exchange(&self, request: Request<Vec<u8>>) -> ResponseFuture<'_> {
        let api_request = ApiRequest::read(&request);
        Box::pin(async move {
            // The root needs no login.
            if api_request.path.is_empty() || api_request.login.as_deref() == Some(&self.expected) {
                self.ironic.answer(request).await
            } else {
                let refusal = Refusal::login("Incorrect username or password");
                Ok(self.ironic.respond(&api_request, 0, Err(refusal), None))
            }
        })
    }
}

async fn connection(wire: Arc<dyn Transport>, acceptor: TlsAcceptor, stream: TcpStream) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request: Request<Incoming>| answer(Arc::clone(&wire), request));
    // A broken connection is the client's error, or the effect of an injected fault.
    drop(
        http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

async fn answer(
    wire: Arc<dyn Transport>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, ConnectionBroken> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await;
    let body = body
        .map_err(|error| ConnectionBroken(error.to_string()))?
        .to_bytes()
        .to_vec();
    let answer = wire.exchange(Request::from_parts(head, body)).await?;
    Ok(answer.map(|body| Full::new(Bytes::from(body))))
}

impl HttpsServer {
    /// Listens on a loopback port, any free one for 0, with a new self-signed certificate, and passes requests to
    /// `wire`. The process must have installed a TLS crypto provider.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn start(port: u16, wire: Arc<dyn Transport>) -> io::Result<Self> {
        let identity = tls::identity([IpAddr::V4(Ipv4Addr::LOCALHOST)]).map_err(io::Error::other)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self::listen(address, Arc::clone(&identity.pem), identity.acceptor, wire).await
    }

    async fn listen(
        address: SocketAddr,
        ca: Arc<str>,
        acceptor: TlsAcceptor,
        wire: Arc<dyn Transport>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let server = Self {
            address: listener.local_addr()?,
            ca,
            acceptor: acceptor.clone(),
            wire: Arc::clone(&wire),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let (tasks, stop) = (server.tasks.clone(), server.stop.clone());
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = connection(Arc::clone(&wire), acceptor.clone(), stream);
                tasks.spawn(stop.clone().run_until_cancelled_owned(connection));
            }
        };
        server
            .tasks
            .spawn(server.stop.clone().run_until_cancelled_owned(accept));
        Ok(server)
    }

    /// Closes the port and all connections for a while, and listens again with the same certificate. What it serves does not notice.
    ///
    /// # Errors
    /// When another program took the port.
    pub async fn away(self, period: Duration) -> io::Result<Self> {
        let (address, ca) = (self.address, Arc::clone(&self.ca));
        let (acceptor, wire) = (self.acceptor.clone(), Arc::clone(&self.wire));
        self.stop().await;
        tokio::time::sleep(period).await;
        Self::listen(address, ca, acceptor, wire).await
    }

    /// The base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate to trust.
    #[must_use]
    pub fn ca(&self) -> &str {
        &self.ca
    }

    /// Closes the port and all connections, and waits until they are closed.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
