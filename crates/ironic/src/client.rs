//! The client of one Ironic: sends [`Call`]s.
//!
//! Invariants: at most [`CONNECTIONS`] requests are in flight, so that Ironic keeps their connections open. The others wait
//! for a [`SendPermit`], without limit: who must not send late takes the permit first. A change is sent once: only reads and
//! repeatable changes are retried, and only when the connection broke. The microversion follows from Ironic's responses,
//! without a request of its own (differs: `ironic-no-readiness-probe`).

mod headers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use secrecy::{ExposeSecret, SecretString};

use crate::calls;
use crate::credentials::{CONNECTIONS, CredentialFiles, SetupError};
use crate::endpoint::Settings;
use crate::error::{self, Error, Refusal};
use crate::failure;
use crate::request::{Call, Method, Request};
use crate::send_permit::{SendPermit, SendPermits};
use crate::statistics::{Ending, Statistics};
use crate::text::printable;
use crate::transport::Transport;
use crate::version::{self, Features, Microversion};
use headers::{REQUEST_ID_HEADER, headers, parse_date, range, text};

/// How often the files are checked: a rotated certificate is in use within this time.
/// differs (`ironic-credentials-reread`): the Go manager reads the files that its environment names at its start only.
const FILES_CHECKED_EVERY: Duration = Duration::from_secs(10);
/// Pauses before a retry. Ironic's listen backlog is five: many clients cause resets that pass at once.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];
/// A page of a thousand nodes has some megabytes. A longer body is not from Ironic.
const LONGEST_BODY: usize = 32 << 20;

/// A response with its metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct Response<T> {
    /// The decoded body.
    pub value: T,
    /// The request ID in Ironic's log, for audit lines.
    pub request_id: Option<String>,
    /// The time of Ironic's clock.
    pub server_time: Option<DateTime<Utc>>,
}

/// A client of one Ironic. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    clock: Arc<dyn Clock>,
    connection: Connection,
    microversion: Mutex<Option<Microversion>>,
    send_permits: SendPermits,
    sent: AtomicU64,
    statistics: Mutex<Statistics>,
}

/// How requests are sent.
#[derive(Debug)]
enum Connection {
    /// HTTP, with the current files.
    Http(tokio::sync::Mutex<HttpState>),
    /// To a simulator in this process, without files or login.
    Transport(Arc<dyn Transport>),
}

#[derive(Debug)]
struct HttpState {
    http: reqwest::Client,
    files: CredentialFiles,
    checked: Monotonic,
}

/// A response with any status.
struct Exchange {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    /// Reads the files of the settings and creates a client. Nothing is sent. The process must have installed a crypto
    /// provider for TLS before.
    ///
    /// # Errors
    /// When a file cannot be read or used.
    pub async fn new(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let files = CredentialFiles::read(&settings).await?;
        let live = HttpState {
            http: files.client(&settings)?,
            files,
            checked: clock.monotonic(),
        };
        let connection = Connection::Http(tokio::sync::Mutex::new(live));
        Ok(Self::of(settings, clock, connection))
    }

    /// Creates a client with another transport. Login and trust of the settings are not used.
    #[must_use]
    pub fn over(transport: Arc<dyn Transport>, settings: Settings, clock: Arc<dyn Clock>) -> Self {
        Self::of(settings, clock, Connection::Transport(transport))
    }

    fn of(settings: Settings, clock: Arc<dyn Clock>, connection: Connection) -> Self {
        Self(Arc::new(Shared {
            settings,
            clock,
            connection,
            microversion: Mutex::new(None),
            send_permits: SendPermits::new(CONNECTIONS),
            sent: AtomicU64::new(0),
            statistics: Mutex::new(Statistics::at_zero()),
        }))
    }

    /// The number of requests sent, retries included.
    #[must_use]
    pub fn requests_sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// The requests so far, each attempt counted.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.statistics.lock().clone()
    }

    /// The microversion in use, after the first response.
    #[must_use]
    pub fn microversion(&self) -> Option<Microversion> {
        *self.0.microversion.lock()
    }

    /// The features of this Ironic. Requests its root if nothing was requested before.
    ///
    /// # Errors
    /// When Ironic cannot be reached or has no microversion in common with this client.
    pub async fn features(&self) -> Result<Features, Error> {
        if self.microversion().is_none() {
            self.send(&calls::service::root()).await?;
        }
        Ok(Features::of(self.microversion().unwrap_or(version::MINIMUM)))
    }

    /// The features of this Ironic by its last response; before the first one, those of the first request.
    #[must_use]
    pub fn known_features(&self) -> Features {
        Features::of(self.microversion().unwrap_or(version::FIRST))
    }

    /// Waits until fewer than the permitted number of requests are in flight. With slow responses this takes minutes.
    pub async fn send_permit(&self) -> SendPermit {
        self.0.send_permits.next().await
    }

    /// Sends a call when there is a permit for it.
    ///
    /// # Errors
    /// One kind for each way to handle it; see [`Error`].
    pub async fn send<T>(&self, call: &Call<T>) -> Result<Response<T>, Error> {
        self.send_with(&self.send_permit().await, call).await
    }

    /// Sends a call at once, with a permit of the caller.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_with<T>(&self, _permit: &SendPermit, call: &Call<T>) -> Result<Response<T>, Error> {
        let request = call.request();
        let exchange = self.negotiated(request).await?;
        let request_id = text(&exchange.headers, REQUEST_ID_HEADER);
        if !(200..300).contains(&exchange.status) {
            return Err(self.refused(request, &exchange, request_id).await);
        }
        match call.decode(&exchange.body) {
            Ok(value) => Ok(Response {
                value,
                request_id,
                server_time: text(&exchange.headers, "date").and_then(|date| parse_date(&date)),
            }),
            // Category and position only: serde would quote values.
            Err(error) => Err(Error::Unexpected {
                operation: request.operation(),
                status: Some(exchange.status),
                reason: format!(
                    "the body is not what Ironic answers ({:?} error at line {}, column {}); check the endpoint",
                    error.classify(),
                    error.line(),
                    error.column()
                ),
            }),
        }
    }

    /// Sends with the known microversion; a second time with another one if Ironic rejects the first.
    async fn negotiated(&self, request: &Request) -> Result<Exchange, Error> {
        let microversion = self.microversion_for(request)?;
        let exchange = self.with_retries(request, microversion).await?;
        let Some(range) = range(&exchange.headers) else {
            return Ok(exchange);
        };
        let chosen = version::choose(range)?;
        *self.0.microversion.lock() = Some(chosen);
        // 406 for a microversion inside the range has another cause. Nothing was done.
        if exchange.status == 406 && !(range.minimum..=range.maximum).contains(&microversion) {
            let microversion = self.microversion_for(request)?;
            return self.with_retries(request, microversion).await;
        }
        Ok(exchange)
    }

    fn microversion_for(&self, request: &Request) -> Result<Microversion, Error> {
        let microversion = self.microversion().unwrap_or(version::FIRST);
        match request.min_version() {
            Some(required) if required > microversion => Err(Error::TooOld {
                operation: request.operation(),
                required,
                in_use: microversion,
            }),
            _ => Ok(microversion),
        }
    }

    async fn with_retries(&self, request: &Request, microversion: Microversion) -> Result<Exchange, Error> {
        let pauses: &[Duration] = if request.effect().may_repeat() { &PAUSES } else { &[] };
        for pause in pauses {
            match self.exchange(request, microversion).await {
                Err(Error::Unreachable { .. }) => tokio::time::sleep(*pause).await,
                other => return other,
            }
        }
        self.exchange(request, microversion).await
    }

    async fn exchange(&self, request: &Request, microversion: Microversion) -> Result<Exchange, Error> {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        let began = self.0.clock.monotonic();
        let exchange = match &self.0.connection {
            Connection::Transport(transport) => self.over_transport(transport.as_ref(), request, microversion).await,
            Connection::Http(live) => self.over_http(live, request, microversion).await,
        };
        let took = self.0.clock.monotonic().since(began);
        let ending = Ending::of(exchange.as_ref().map(|exchange| exchange.status));
        self.0.statistics.lock().record(request.method(), ending, took);
        exchange
    }

    async fn over_transport(
        &self,
        transport: &dyn Transport,
        request: &Request,
        microversion: Microversion,
    ) -> Result<Exchange, Error> {
        let operation = request.operation();
        let unreachable = |reason: String, was_sent| Error::Unreachable {
            operation,
            reason: printable(&reason),
            was_sent,
        };
        let mut outgoing = http::Request::builder()
            .method(method(request))
            .uri(self.0.settings.endpoint.url(request).as_str());
        for (name, value) in headers(microversion) {
            outgoing = outgoing.header(name, value);
        }
        if request.body().is_some() {
            outgoing = outgoing.header(CONTENT_TYPE, "application/json");
        }
        let body = request.body().map(ToString::to_string).unwrap_or_default();
        let outgoing = outgoing
            .body(body.into_bytes())
            .map_err(|error| unreachable(error.to_string(), false))?;
        let answer = tokio::time::timeout(self.0.settings.time_limit, transport.exchange(outgoing)).await;
        let answer = answer
            .map_err(|_| Error::Timeout { operation })?
            .map_err(|broken| unreachable(broken.0, true))?;
        let (head, body) = answer.into_parts();
        Ok(Exchange {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    }

    async fn over_http(
        &self,
        live: &tokio::sync::Mutex<HttpState>,
        request: &Request,
        microversion: Microversion,
    ) -> Result<Exchange, Error> {
        let (http, login) = self.live(live).await;
        let mut outgoing = http.request(method(request), self.0.settings.endpoint.url(request));
        for (name, value) in headers(microversion) {
            outgoing = outgoing.header(name, value);
        }
        if let Some((username, password)) = &login {
            outgoing = outgoing.basic_auth(username, Some(password.expose_secret()));
        }
        if let Some(body) = request.body() {
            outgoing = outgoing.json(body);
        }
        let failed = |error| failure::classify(request.operation(), error);
        let mut answer = outgoing.send().await.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if body.len().saturating_add(chunk.len()) > LONGEST_BODY {
                return Err(Error::Unexpected {
                    operation: request.operation(),
                    status: Some(answer.status().as_u16()),
                    reason: format!("the body is longer than {LONGEST_BODY} bytes; check the endpoint"),
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Exchange {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            body,
        })
    }

    async fn refused(&self, request: &Request, exchange: &Exchange, request_id: Option<String>) -> Error {
        let mut message = error::message(exchange.status, &exchange.body);
        let leaks_login = match &self.0.connection {
            Connection::Transport(_) => false,
            Connection::Http(live) => {
                let login = &live.lock().await.files.login;
                let password = login.as_ref().map(|(_, password)| password.expose_secret());
                password.is_some_and(|password| message.contains(password))
            }
        };
        if request.leaks_secret(&message) || leaks_login {
            "(withheld: it repeats a secret of the request; see Ironic's log)".clone_into(&mut message);
        }
        error::classify(
            request.effect(),
            Refusal {
                operation: request.operation(),
                status: exchange.status,
                message,
                request_id,
            },
        )
    }

    /// The client for the current files. If a file cannot be used, the last good client stays.
    async fn live(&self, live: &tokio::sync::Mutex<HttpState>) -> (reqwest::Client, Option<(String, SecretString)>) {
        let mut live = live.lock().await;
        let now = self.0.clock.monotonic();
        if now.since(live.checked) >= FILES_CHECKED_EVERY {
            live.checked = now;
            let read = CredentialFiles::read(&self.0.settings).await;
            let fresh = read.and_then(|files| {
                let changed = !files.is_equal(&live.files);
                let client = changed.then(|| files.client(&self.0.settings)).transpose()?;
                Ok(client.map(|http| (http, files)))
            });
            match fresh {
                Ok(Some((http, files))) => (live.http, live.files) = (http, files),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "keeping the last good certificates and login for Ironic"),
            }
        }
        (live.http.clone(), live.files.login.clone())
    }
}

fn method(request: &Request) -> reqwest::Method {
    match request.method() {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    }
}

#[cfg(test)]
pub(crate) mod tests;
