//! A proxy between the program and the real Ironic. It records each request except those of the change feed, and kills the
//! program after the change that a test case names, before the program receives the response.
//!
//! It serves TLS like Ironic and forwards requests unchanged, login included.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{Method, Request, Response};
use metal3_ironic::transport::{ConnectionBroken, ResponseFuture, Transport};
use metal3_ironic_life::ironic::{Endpoint, client};
use metal3_sim_ironic::describe_request;
use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than the program's timeout.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The recorded requests, and the next kill.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    /// All requests in order.
    pub(crate) requests: Vec<String>,
    /// All changes that Ironic accepted, in order.
    pub(crate) changes: Vec<String>,
    /// The number of accepted changes after which the program is killed.
    pub(crate) kill_after: Option<usize>,
    /// The number of kills.
    pub(crate) kills: usize,
    target: Option<Pid>,
}

impl RequestLog {
    /// Sets the process to kill.
    pub(crate) fn set_target(&mut self, process: Option<u32>) {
        let number = process.and_then(|process| i32::try_from(process).ok());
        self.target = number.and_then(Pid::from_raw);
    }

    /// Records an accepted change, and kills the program when the case requires it.
    fn accept(&mut self, change: String) -> bool {
        self.changes.push(change);
        if self.kill_after != Some(self.changes.len()) {
            return false;
        }
        self.kill()
    }

    /// Kills the program; returns whether it ran.
    pub(crate) fn kill(&mut self) -> bool {
        let target = self.target.take();
        let killed = target.is_some_and(|target| kill_process(target, Signal::KILL).is_ok());
        self.kills = self.kills.saturating_add(usize::from(killed));
        killed
    }
}

/// Clones share the log.
#[derive(Debug, Clone)]
pub(crate) struct Interceptor(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ironic: String,
    http: reqwest::Client,
    log: Mutex<RequestLog>,
}

impl Interceptor {
    pub(crate) fn new(ironic: &Endpoint) -> anyhow::Result<Self> {
        let http = client(&ironic.ca, TIMEOUT)?;
        Ok(Self(Arc::new(Shared {
            ironic: ironic.url.clone(),
            http,
            log: Mutex::default(),
        })))
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, RequestLog> {
        self.0.log.lock()
    }

    async fn handle(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, ConnectionBroken> {
        let (what, is_change) = (describe_request(&request), request.method() != Method::GET);
        self.log().requests.extend(what.clone());
        let response = self
            .forward(request)
            .await
            .map_err(|error| ConnectionBroken(error.to_string()))?;
        let killed = match what {
            Some(what) if is_change && response.status().is_success() => self.log().accept(what),
            _ => false,
        };
        if killed {
            return pending().await;
        }
        Ok(response)
    }

    async fn forward(&self, request: Request<Vec<u8>>) -> reqwest::Result<Response<Vec<u8>>> {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut headers = head.headers;
        for hop_by_hop in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(hop_by_hop);
        }
        let forwarded = self.0.http.request(head.method, format!("{}{path}", self.0.ironic));
        let answer = forwarded.headers(headers).body(body).send().await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        for hop_by_hop in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(hop_by_hop);
        }
        let mut response = Response::new(answer.bytes().await?.to_vec());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

impl Transport for Interceptor {
    fn exchange(&self, request: Request<Vec<u8>>) -> ResponseFuture<'_> {
        Box::pin(self.handle(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kill_without_a_target_is_not_counted() {
        let mut log = RequestLog {
            kill_after: Some(1),
            ..RequestLog::default()
        };
        assert!(!log.accept("DELETE nodes/_".to_owned()));
        assert_eq!((log.kills, log.changes.len()), (0, 1));
    }
}
