//! The client of one Ironic: sends [`Call`]s.
//!
//! Invariants: at most [`CONNECTIONS`] requests are in flight, so that Ironic keeps their connections open. The others wait
//! for a [`SendPermit`], without limit: who must not send late takes the permit first. A change is sent once: only reads and
//! repeatable changes are retried, and only when the connection broke. The microversion follows from Ironic's responses,
//! without a request of its own (differs: `ironic-no-readiness-probe`).

mod connection;
mod headers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_domain::clock::Clock;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::watch;

use crate::calls;
use crate::credentials::{CONNECTIONS, SetupError};
use crate::endpoint::{Endpoint, QUICK_POLL, Settings};
use crate::error::{self, Error, Refusal};
use crate::failure;
use crate::request::{Call, Method, Request};
use crate::send_permit::{SendPermit, SendPermits};
use crate::statistics::{Ending, Statistics};
use crate::text::printable;
use crate::transport::Transport;
use crate::version::{self, Features, Microversion};
use connection::{At, Connection, Current, Via};
use headers::{REQUEST_ID_HEADER, headers, parse_date, range, text};

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
    clock: Arc<dyn Clock>,
    connection: Connection,
    /// That of the first destination: it does not change with the others.
    quick_poll: Duration,
    microversion: Mutex<Option<Microversion>>,
    send_permits: SendPermits,
    sent: AtomicU64,
    statistics: Mutex<Statistics>,
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
        let quick_poll = settings.quick_poll;
        let connection = Connection::http(settings, clock.monotonic()).await?;
        Ok(Self::of(clock, connection, quick_poll))
    }

    /// Creates a client with another transport. Login and trust of the settings are not used.
    #[must_use]
    pub fn over(transport: Arc<dyn Transport>, settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let quick_poll = settings.quick_poll;
        Self::of(clock, Connection::over(transport, settings), quick_poll)
    }

    /// Creates a client that sends nothing until it has a destination; until then `why` is the reason of each failure.
    #[must_use]
    pub fn without_destination(why: String, clock: Arc<dyn Clock>) -> Self {
        Self::of(clock, Connection::missing(why), QUICK_POLL)
    }

    fn of(clock: Arc<dyn Clock>, connection: Connection, quick_poll: Duration) -> Self {
        Self(Arc::new(Shared {
            clock,
            connection,
            quick_poll,
            microversion: Mutex::new(None),
            send_permits: SendPermits::new(CONNECTIONS),
            sent: AtomicU64::new(0),
            statistics: Mutex::new(Statistics::at_zero()),
        }))
    }

    /// Sends to another destination from now on; `Err` is the reason why there is none. Requests in flight end where they
    /// began.
    ///
    /// # Errors
    /// When the certificates of the settings cannot be used. The destination stays as it was.
    pub async fn change_destination(&self, to: Result<Settings, String>) -> Result<(), SetupError> {
        self.0.connection.change(to, self.0.clock.monotonic()).await
    }

    /// Changes of the destination from now on. They last as long as the client.
    pub(crate) fn destination_changes(&self) -> watch::Receiver<At> {
        self.0.connection.changes()
    }

    /// How often the endpoint has become another one.
    pub(crate) fn destination(&self) -> u64 {
        self.0.connection.at().number
    }

    /// Where requests are sent now. `None`: nowhere.
    #[must_use]
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.0.connection.at().endpoint
    }

    /// The number of requests sent, retries included.
    #[must_use]
    pub fn requests_sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// The longest pause of a feed of this client while a managed node changes state.
    pub(crate) fn quick_poll(&self) -> Duration {
        self.0.quick_poll
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
    pub async fn send_with<T>(&self, permit: &SendPermit, call: &Call<T>) -> Result<Response<T>, Error> {
        self.send_with_reader(permit, call, |body| call.decode(body)).await
    }

    /// Sends a call when there is a permit for it, and reads the body of its response in another way.
    pub(crate) async fn send_reading<T>(
        &self,
        call: &Call<T>,
        read: impl FnOnce(&[u8]) -> Result<T, serde_json::Error>,
    ) -> Result<Response<T>, Error> {
        self.send_with_reader(&self.send_permit().await, call, read).await
    }

    async fn send_with_reader<T>(
        &self,
        _permit: &SendPermit,
        call: &Call<T>,
        read: impl FnOnce(&[u8]) -> Result<T, serde_json::Error>,
    ) -> Result<Response<T>, Error> {
        let request = call.request();
        let exchange = self.negotiated(request).await?;
        let request_id = text(&exchange.headers, REQUEST_ID_HEADER);
        if !(200..300).contains(&exchange.status) {
            return Err(self.refused(request, &exchange, request_id).await);
        }
        match read(&exchange.body) {
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
        let began = self.0.clock.monotonic();
        let current = self.0.connection.current(began).await;
        let Current { settings, via } = current.map_err(|reason| Error::NotReady {
            operation: request.operation(),
            reason: printable(&reason),
        })?;
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        let exchange = match via {
            Via::Transport(transport) => over_transport(transport.as_ref(), &settings, request, microversion).await,
            Via::Http(http, login) => over_http(&http, login, &settings, request, microversion).await,
        };
        let took = self.0.clock.monotonic().since(began);
        let ending = Ending::of(exchange.as_ref().map(|exchange| exchange.status));
        self.0.statistics.lock().record(request.method(), ending, took);
        exchange
    }

    async fn refused(&self, request: &Request, exchange: &Exchange, request_id: Option<String>) -> Error {
        let mut message = error::message(exchange.status, &exchange.body);
        let leaks_login = self.0.connection.leaks_login(&message).await;
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
}

async fn over_transport(
    transport: &dyn Transport,
    settings: &Settings,
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
        .uri(settings.endpoint.url(request).as_str());
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
    let answer = tokio::time::timeout(settings.time_limit, transport.exchange(outgoing)).await;
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
    http: &reqwest::Client,
    login: Option<(String, SecretString)>,
    settings: &Settings,
    request: &Request,
    microversion: Microversion,
) -> Result<Exchange, Error> {
    let mut outgoing = http.request(method(request), settings.endpoint.url(request));
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
