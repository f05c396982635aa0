//! A server that answers from a script, one connection per answer, and keeps what it was asked.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use crate::endpoint::{Endpoint, Login, Settings};
use chrono::{DateTime, Utc};
use metal3_domain::clock::ManualClock;

/// What an Ironic of our days says of its versions.
pub(crate) const RANGE: &str =
    "X-OpenStack-Ironic-API-Minimum-Version: 1.1\r\nX-OpenStack-Ironic-API-Maximum-Version: 1.115\r\n";

pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    asked: Receiver<String>,
}

impl Scripted {
    /// Answers connection after connection with these bytes, then listens no more.
    pub(crate) fn answers(script: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = channel();
        thread::spawn(move || {
            for answer in script {
                let (mut stream, _) = listener.accept().unwrap();
                tell.send(read_request(&mut stream)).ok();
                // A client that has read enough may be gone before the end.
                stream.write_all(&answer).ok();
            }
        });
        Self { address, asked }
    }

    /// What was asked so far, heads and bodies.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.try_iter().collect()
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::new(Endpoint::parse(&format!("http://{}", self.address)).unwrap());
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
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse::<usize>().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        assert_ne!(read, 0, "the request broke off: {text}");
    }
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
