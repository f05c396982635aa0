//! HTTPS on loopback: for the simulated Ironic, with a login, and for whoever answers in the place of one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

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

use crate::asked::Asked;
use crate::refusal::Refusal;
use crate::simulator::Ironic;

/// The largest request that is read: a config-drive has some hundred kilobytes.
const LARGEST: usize = 16 << 20;

/// Something that listens.
#[derive(Debug)]
pub struct HttpsServer {
    address: SocketAddr,
    ca: Arc<str>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Who is let in.
#[derive(Clone)]
pub struct Login {
    /// The user's name.
    pub username: String,
    /// The password.
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
    /// Listens on a loopback port, any free one for 0, with a certificate of its own. The process must have installed a
    /// crypto provider for TLS before.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn serve(&self, port: u16, login: &Login) -> io::Result<HttpsServer> {
        let gate = Gate {
            ironic: self.clone(),
            expected: login.header(),
        };
        let serving = HttpsServer::start(port, Arc::new(gate)).await?;
        self.set_base(serving.url());
        Ok(serving)
    }
}

impl Login {
    /// What stands in the header of a request that may come in.
    #[must_use]
    pub fn header(&self) -> String {
        let word = STANDARD.encode(format!("{}:{}", self.username, self.password));
        format!("Basic {word}")
    }
}

/// An Ironic behind its login.
struct Gate {
    ironic: Ironic,
    expected: String,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Transport for Gate {
    fn exchange(&self, request: Request<Vec<u8>>) -> ResponseFuture<'_> {
        let asked = Asked::read(&request);
        Box::pin(async move {
            // The root needs no login.
            if asked.path.is_empty() || asked.login.as_deref() == Some(&self.expected) {
                self.ironic.answer(request).await
            } else {
                let refusal = Refusal::login("Incorrect username or password");
                Ok(self.ironic.respond(&asked, 0, Err(refusal), None))
            }
        })
    }
}

async fn connection(wire: Arc<dyn Transport>, acceptor: TlsAcceptor, stream: TcpStream) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request: Request<Incoming>| answer(Arc::clone(&wire), request));
    // A connection that breaks is the client's affair; one that a fault breaks is broken here.
    drop(
        http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

async fn answer(wire: Arc<dyn Transport>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, ConnectionBroken> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, LARGEST).collect().await;
    let body = body.map_err(|error| ConnectionBroken(error.to_string()))?.to_bytes().to_vec();
    let answer = wire.exchange(Request::from_parts(head, body)).await?;
    Ok(answer.map(|body| Full::new(Bytes::from(body))))
}

impl HttpsServer {
    /// Listens on a loopback port, any free one for 0, with a certificate of its own, and hands every request on. The
    /// process must have installed a crypto provider for TLS before.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn start(port: u16, wire: Arc<dyn Transport>) -> io::Result<Self> {
        let identity = tls::identity([IpAddr::V4(Ipv4Addr::LOCALHOST)]).map_err(io::Error::other)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let serving = Self {
            address: listener.local_addr()?,
            ca: Arc::clone(&identity.pem),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let (tasks, stop) = (serving.tasks.clone(), serving.stop.clone());
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = connection(Arc::clone(&wire), identity.acceptor.clone(), stream);
                tasks.spawn(stop.clone().run_until_cancelled_owned(connection));
            }
        };
        serving
            .tasks
            .spawn(serving.stop.clone().run_until_cancelled_owned(accept));
        Ok(serving)
    }

    /// Where to connect.
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
