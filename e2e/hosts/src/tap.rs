//! Between the program and the real Ironic: every request but those of the change feed is written down in words, and
//! after the change that a case names the program is killed before it hears the answer.
//!
//! It listens as Ironic does, with TLS, hands everything on as it came, login included, and decides nothing.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{Method, Request, Response};
use metal3_ironic::transport::{ConnectionBroken, ResponseFuture, Transport};
use metal3_ironic_life::ironic::Endpoint;
use metal3_sim_ironic::describe_request;
use rustix::process::{Pid, Signal, kill_process};

/// Longer than the program waits.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ironic closes a connection that was idle for ten seconds.
const IDLE: Duration = Duration::from_secs(8);

/// What was asked for so far.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Every request, in order.
    pub(crate) asked: Vec<String>,
    /// Every change that Ironic accepted, in order.
    pub(crate) done: Vec<String>,
    /// After how many accepted changes the program is killed.
    pub(crate) kill_after: Option<usize>,
    /// How often it was.
    pub(crate) kills: usize,
    victim: Option<Pid>,
}

impl Book {
    /// Whom to kill.
    pub(crate) fn watch_over(&mut self, process: Option<u32>) {
        let number = process.and_then(|process| i32::try_from(process).ok());
        self.victim = number.and_then(Pid::from_raw);
    }

    /// Notes an accepted change, and kills where a case says so.
    fn accept(&mut self, what: String) -> bool {
        self.done.push(what);
        if self.kill_after != Some(self.done.len()) {
            return false;
        }
        let victim = self.victim.take();
        let killed = victim.is_some_and(|victim| kill_process(victim, Signal::KILL).is_ok());
        self.kills = self.kills.saturating_add(usize::from(killed));
        killed
    }
}

/// Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Tap(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ironic: String,
    http: reqwest::Client,
    book: Mutex<Book>,
}

impl Tap {
    pub(crate) fn on(ironic: &Endpoint) -> anyhow::Result<Self> {
        let pem = std::fs::read(&ironic.ca).with_context(|| format!("cannot read {}", ironic.ca))?;
        let http = reqwest::Client::builder()
            .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
            .pool_idle_timeout(IDLE)
            .timeout(PATIENCE)
            .no_proxy()
            .build()?;
        Ok(Self(Arc::new(Shared {
            ironic: ironic.url.clone(),
            http,
            book: Mutex::default(),
        })))
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        // Changed in single steps.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, ConnectionBroken> {
        let (what, is_change) = (describe_request(&request), request.method() != Method::GET);
        self.book().asked.extend(what.clone());
        let answer = self.forward(request).await.map_err(|error| ConnectionBroken(error.to_string()))?;
        let killed = match what {
            Some(what) if is_change && answer.status().is_success() => self.book().accept(what),
            _ => false,
        };
        if killed {
            return pending().await;
        }
        Ok(answer)
    }

    async fn forward(&self, request: Request<Vec<u8>>) -> reqwest::Result<Response<Vec<u8>>> {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut headers = head.headers;
        for of_the_connection in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(of_the_connection);
        }
        let asked = self.0.http.request(head.method, format!("{}{path}", self.0.ironic));
        let answer = asked.headers(headers).body(body).send().await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        for of_the_connection in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(of_the_connection);
        }
        let mut response = Response::new(answer.bytes().await?.to_vec());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

impl Transport for Tap {
    fn exchange(&self, request: Request<Vec<u8>>) -> ResponseFuture<'_> {
        Box::pin(self.carry(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_without_a_victim_is_not_counted() {
        let mut book = Book {
            kill_after: Some(1),
            ..Book::default()
        };
        assert!(!book.accept("DELETE nodes/_".to_owned()));
        assert_eq!((book.kills, book.done.len()), (0, 1));
    }
}
