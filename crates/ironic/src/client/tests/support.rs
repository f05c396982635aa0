//! A server with scripted responses, one connection for each, that records its requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::endpoint::{Endpoint, Login, Settings};
use chrono::{DateTime, Utc};
use metal3_domain::clock::ManualClock;

/// The version range of Ironic 39.0.0.
pub(crate) const RANGE: &str =
    "X-OpenStack-Ironic-API-Minimum-Version: 1.1\r\nX-OpenStack-Ironic-API-Maximum-Version: 1.115\r\n";

pub(crate) struct ScriptedServer {
    scheme: &'static str,
    pub(crate) address: SocketAddr,
    requests: Receiver<String>,
}

impl ScriptedServer {
    /// Sends one response for each connection, then stops listening.
    pub(crate) fn with_responses(script: Vec<Vec<u8>>) -> Self {
        Self::start(script, 0)
    }

    /// Like `with_responses`, but resets the connection after the first response.
    pub(crate) fn with_reset_after_first(first: Vec<u8>, script: Vec<Vec<u8>>) -> Self {
        Self::start([vec![first], script].concat(), 1)
    }

    fn start(script: Vec<Vec<u8>>, resets: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for (number, response) in script.into_iter().enumerate() {
                let (mut stream, _) = listener.accept().unwrap();
                let request = if number < resets {
                    peek_request(&stream)
                } else {
                    read_request(&mut stream)
                };
                sender.send(request).ok();
                // The client may close the connection before the end of a long response.
                stream.write_all(&response).ok();
            }
        });
        let scheme = "http";
        Self {
            scheme,
            address,
            requests,
        }
    }

    /// Sends this certificate to the first client, with a signature by another key: a client that trusts the authority
    /// reports a bad signature. Returns an authority that did not sign the certificate.
    pub(crate) fn with_certificate(certificate: Vec<u8>) -> (Self, String) {
        clock();
        let other_ca = rcgen::generate_simple_self_signed(["another authority".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(other_ca.signing_key.serialize_der()).unwrap();
        let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
        let certified = CertifiedKey::new(vec![certificate.into()], key);
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut tls = rustls::ServerConnection::new(config).unwrap();
            // A client that ends the handshake sends no request.
            if tls.complete_io(&mut stream).is_ok() {
                sender.send("the handshake succeeded".to_owned()).ok();
            }
        });
        let scheme = "https";
        (
            Self {
                scheme,
                address,
                requests,
            },
            other_ca.cert.pem(),
        )
    }

    /// Answers requests over TLS with this certificate, to clients with one of this authority if there is one.
    pub(crate) fn over_tls(
        certificate: &rcgen::Certificate,
        key: &rcgen::KeyPair,
        clients: Option<&rcgen::Certificate>,
        response: Vec<u8>,
    ) -> Self {
        clock();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(authority.der().clone()).unwrap();
                let verifier = rustls::server::WebPkiClientVerifier::builder(Arc::new(roots)).build();
                config.with_client_cert_verifier(verifier.unwrap())
            }
        };
        let config = Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                // A client that ends the handshake sends no request.
                if tls.complete_io(&mut stream).is_err() {
                    continue;
                }
                let mut stream = rustls::Stream::new(&mut tls, &mut stream);
                let mut head = [0; 4096];
                if stream.read(&mut head).is_ok() {
                    sender.send("a request".to_owned()).ok();
                    stream.write_all(&response).ok();
                    stream.flush().ok();
                }
            }
        });
        Self {
            scheme: "https",
            address,
            requests,
        }
    }

    /// The heads and bodies of the requests since the last call, in lower case.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::new(Endpoint::parse(&format!("{}://{}", self.scheme, self.address)).unwrap());
        settings.login = Login::Basic {
            username: "admin".into(),
            password: "hunter2".into(),
        };
        settings.time_limit = Duration::from_secs(20);
        settings
    }
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).unwrap();
        received.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&received).to_lowercase();
        if is_complete(&text) {
            return text;
        }
        assert_ne!(read, 0, "the request is incomplete: {text}");
    }
}

/// Returns a request without consuming it: closing a connection with unread data resets it.
fn peek_request(stream: &TcpStream) -> String {
    let mut buffer = [0; 4096];
    loop {
        let read = stream.peek(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..read]).to_lowercase();
        if is_complete(&text) {
            return text;
        }
        assert_ne!(read, 0, "the request is incomplete: {text}");
        thread::yield_now();
    }
}

fn is_complete(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse::<usize>().unwrap())
}

pub(crate) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

pub(crate) fn clock() -> Arc<ManualClock> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
    Arc::new(ManualClock::at(DateTime::<Utc>::UNIX_EPOCH))
}
