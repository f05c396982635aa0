//! A server that answers from a script, one connection per answer, and keeps what it was asked.

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

/// What an Ironic of our days says of its versions.
pub(crate) const RANGE: &str =
    "X-OpenStack-Ironic-API-Minimum-Version: 1.1\r\nX-OpenStack-Ironic-API-Maximum-Version: 1.115\r\n";

pub(crate) struct Scripted {
    scheme: &'static str,
    pub(crate) address: SocketAddr,
    asked: Receiver<String>,
}

impl Scripted {
    /// Answers connection after connection with these bytes, then listens no more.
    pub(crate) fn answers(script: Vec<Vec<u8>>) -> Self {
        Self::follows(script, 0)
    }

    /// The same, but the first answer ends with a reset of its connection.
    pub(crate) fn resets_after(first: Vec<u8>, script: Vec<Vec<u8>>) -> Self {
        Self::follows([vec![first], script].concat(), 1)
    }

    fn follows(script: Vec<Vec<u8>>, resets: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = channel();
        thread::spawn(move || {
            for (number, answer) in script.into_iter().enumerate() {
                let (mut stream, _) = listener.accept().unwrap();
                let request = if number < resets {
                    see_request(&stream)
                } else {
                    read_request(&mut stream)
                };
                tell.send(request).ok();
                // A client that has read enough may be gone before the end.
                stream.write_all(&answer).ok();
            }
        });
        let scheme = "http";
        Self { scheme, address, asked }
    }

    /// Shows a certificate to the first who comes, and signs with a key that is not its own: who trusts it would be told by
    /// the signature. With it comes an authority that did not sign it.
    pub(crate) fn shows(certificate: Vec<u8>) -> (Self, String) {
        clock();
        let another = rcgen::generate_simple_self_signed(["another authority".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(another.signing_key.serialize_der()).unwrap();
        let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
        let shown = CertifiedKey::new(vec![certificate.into()], key);
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut tls = rustls::ServerConnection::new(config).unwrap();
            // Who hangs up in the handshake asks nothing.
            if tls.complete_io(&mut stream).is_ok() {
                tell.send("a request could come".to_owned()).ok();
            }
        });
        let scheme = "https";
        (Self { scheme, address, asked }, another.cert.pem())
    }

    /// What was asked so far, heads and bodies.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.try_iter().collect()
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
    let mut seen = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).unwrap();
        seen.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&seen).to_lowercase();
        if is_whole(&text) {
            return text;
        }
        assert_ne!(read, 0, "the request broke off: {text}");
    }
}

/// Looks at a request and takes nothing of it: to close a connection with something left in it is to reset it.
fn see_request(stream: &TcpStream) -> String {
    let mut seen = [0; 4096];
    loop {
        let read = stream.peek(&mut seen).unwrap();
        let text = String::from_utf8_lossy(&seen[..read]).to_lowercase();
        if is_whole(&text) {
            return text;
        }
        assert_ne!(read, 0, "the request broke off: {text}");
        thread::yield_now();
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse::<usize>().unwrap())
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

pub(crate) fn clock() -> Arc<ManualClock> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
    Arc::new(ManualClock::at(DateTime::<Utc>::UNIX_EPOCH))
}
