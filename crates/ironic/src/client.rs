//! The connection to one Ironic: sends [`Call`]s, and does nothing that a call does not say.
//!
//! It keeps three promises. At most [`CONNECTIONS`] requests are under way, so that Ironic keeps their connections. A
//! change is sent once: only reads and repeatable changes are sent again, and only when the connection broke. The
//! dialect follows from what Ironic's answers say, without a request of its own (differs: `ironic-no-readiness-probe`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;

use crate::calls;
use crate::credentials::{CONNECTIONS, Material, SetupError};
use crate::endpoint::Settings;
use crate::error::{self, Error, Refusal};
use crate::failure;
use crate::request::{Call, Method, Request};
use crate::text::printable;
use crate::transport::Transport;
use crate::version::{self, Features, Microversion, Range};

const VERSION_HEADER: &str = "x-openstack-ironic-api-version";
const MINIMUM_HEADER: &str = "x-openstack-ironic-api-minimum-version";
const MAXIMUM_HEADER: &str = "x-openstack-ironic-api-maximum-version";
const REQUEST_ID_HEADER: &str = "x-openstack-request-id";

/// How often files are looked at: a rotated certificate is in use within this time.
/// differs (`ironic-credentials-reread`): the Go manager reads those that its environment names at its start alone.
const FILES_CHECKED_EVERY: Duration = Duration::from_secs(10);
/// Pauses before a request is sent again. Ironic's listen backlog is five: a crowd sees resets that pass at once.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];
/// A page of a thousand nodes has some megabytes. What is longer is not ours.
const LONGEST_BODY: usize = 32 << 20;

/// An answer, and what else it told.
#[derive(Debug, Clone, PartialEq)]
pub struct Response<T> {
    /// The answer.
    pub value: T,
    /// The identity that Ironic's log gives the request: for audit lines.
    pub request_id: Option<String>,
    /// What Ironic's clock showed.
    pub server_time: Option<DateTime<Utc>>,
}

/// A client of one Ironic. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    clock: Arc<dyn Clock>,
    way: Way,
    dialect: Mutex<Option<Microversion>>,
    under_way: Semaphore,
    sent: AtomicU64,
}

/// How requests travel.
#[derive(Debug)]
enum Way {
    /// HTTP, with the files as they are.
    Sockets(tokio::sync::Mutex<Live>),
    /// To a simulator in this process: no files, no login.
    Transport(Arc<dyn Transport>),
}

#[derive(Debug)]
struct Live {
    http: reqwest::Client,
    material: Material,
    checked: Monotonic,
}

/// One exchange, whatever its status.
struct Exchange {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    /// Reads the files of the settings and makes a client. Nothing is sent. The process must have installed a crypto
    /// provider for TLS before.
    ///
    /// # Errors
    /// When a file cannot be read or used.
    pub async fn new(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let material = Material::read(&settings).await?;
        let live = Live {
            http: material.client(&settings)?,
            material,
            checked: clock.monotonic(),
        };
        let way = Way::Sockets(tokio::sync::Mutex::new(live));
        Ok(Self::of(settings, clock, way))
    }

    /// Makes a client that sends over a transport of its own. Login and trust of the settings play no part.
    #[must_use]
    pub fn over(transport: Arc<dyn Transport>, settings: Settings, clock: Arc<dyn Clock>) -> Self {
        Self::of(settings, clock, Way::Transport(transport))
    }

    fn of(settings: Settings, clock: Arc<dyn Clock>, way: Way) -> Self {
        Self(Arc::new(Shared {
            settings,
            clock,
            way,
            dialect: Mutex::new(None),
            under_way: Semaphore::new(CONNECTIONS),
            sent: AtomicU64::new(0),
        }))
    }

    /// How many requests were sent, repetitions included.
    #[must_use]
    pub fn requests_sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// What this Ironic can do. Asks its root if nothing was asked yet.
    ///
    /// # Errors
    /// When it cannot be reached or has no dialect in common with us.
    pub async fn features(&self) -> Result<Features, Error> {
        if self.dialect().is_none() {
            self.send(&calls::service::root()).await?;
        }
        Ok(Features::of(self.dialect().unwrap_or(version::MINIMUM)))
    }

    /// Carries out a call.
    ///
    /// # Errors
    /// One kind per thing to do about it; see [`Error`].
    pub async fn send<T>(&self, call: &Call<T>) -> Result<Response<T>, Error> {
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
            // Kinds and positions only: serde would quote values.
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

    fn dialect(&self) -> Option<Microversion> {
        *self.0.dialect.lock()
    }

    /// Sends in the dialect known so far; once more in another one if Ironic does not take that.
    async fn negotiated(&self, request: &Request) -> Result<Exchange, Error> {
        let speaks = self.speak(request)?;
        let exchange = self.patient(request, speaks).await?;
        let Some(range) = range(&exchange.headers) else {
            return Ok(exchange);
        };
        let chosen = version::choose(range)?;
        *self.0.dialect.lock() = Some(chosen);
        // Only a dialect outside the range is refused for its own sake; nothing was done then.
        if exchange.status == 406 && !(range.minimum..=range.maximum).contains(&speaks) {
            let speaks = self.speak(request)?;
            return self.patient(request, speaks).await;
        }
        Ok(exchange)
    }

    fn speak(&self, request: &Request) -> Result<Microversion, Error> {
        let speaks = self.dialect().unwrap_or(version::FIRST);
        match request.min_version() {
            Some(needs) if needs > speaks => Err(Error::TooOld {
                operation: request.operation(),
                needs,
                speaks,
            }),
            _ => Ok(speaks),
        }
    }

    async fn patient(&self, request: &Request, speaks: Microversion) -> Result<Exchange, Error> {
        let pauses: &[Duration] = if request.effect().may_repeat() { &PAUSES } else { &[] };
        for pause in pauses {
            match self.exchange(request, speaks).await {
                Err(Error::Unreachable { .. }) => tokio::time::sleep(*pause).await,
                other => return other,
            }
        }
        self.exchange(request, speaks).await
    }

    async fn exchange(&self, request: &Request, speaks: Microversion) -> Result<Exchange, Error> {
        // The semaphore is never closed, so a permit always comes.
        let _permit = self.0.under_way.acquire().await;
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        match &self.0.way {
            Way::Transport(transport) => self.over_transport(transport.as_ref(), request, speaks).await,
            Way::Sockets(live) => self.over_sockets(live, request, speaks).await,
        }
    }

    async fn over_transport(
        &self,
        transport: &dyn Transport,
        request: &Request,
        speaks: Microversion,
    ) -> Result<Exchange, Error> {
        let (operation, unreachable) = (request.operation(), |reason: String| Error::Unreachable {
            operation: request.operation(),
            reason: printable(&reason),
        });
        let mut outgoing = http::Request::builder()
            .method(method(request))
            .uri(self.0.settings.endpoint.url(request).as_str());
        for (name, value) in headers(speaks) {
            outgoing = outgoing.header(name, value);
        }
        if request.body().is_some() {
            outgoing = outgoing.header(CONTENT_TYPE, "application/json");
        }
        let body = request.body().map(ToString::to_string).unwrap_or_default();
        let outgoing = outgoing
            .body(body.into_bytes())
            .map_err(|error| unreachable(error.to_string()))?;
        let answer = tokio::time::timeout(self.0.settings.time_limit, transport.exchange(outgoing)).await;
        let answer = answer
            .map_err(|_| Error::Timeout { operation })?
            .map_err(|broken| unreachable(broken.0))?;
        let (head, body) = answer.into_parts();
        Ok(Exchange {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    }

    async fn over_sockets(
        &self,
        live: &tokio::sync::Mutex<Live>,
        request: &Request,
        speaks: Microversion,
    ) -> Result<Exchange, Error> {
        let (http, login) = self.live(live).await;
        let mut outgoing = http.request(method(request), self.0.settings.endpoint.url(request));
        for (name, value) in headers(speaks) {
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
        let leaks_login = match &self.0.way {
            Way::Transport(_) => false,
            Way::Sockets(live) => {
                let login = &live.lock().await.material.login;
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

    /// The client for the files as they are. A file that cannot be used leaves the last good client in place.
    async fn live(&self, live: &tokio::sync::Mutex<Live>) -> (reqwest::Client, Option<(String, SecretString)>) {
        let mut live = live.lock().await;
        let now = self.0.clock.monotonic();
        if now.since(live.checked) >= FILES_CHECKED_EVERY {
            live.checked = now;
            let read = Material::read(&self.0.settings).await;
            let fresh = read.and_then(|material| {
                let changed = !material.is_as(&live.material);
                let client = changed.then(|| material.client(&self.0.settings)).transpose()?;
                Ok(client.map(|http| (http, material)))
            });
            match fresh {
                Ok(Some((http, material))) => (live.http, live.material) = (http, material),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "keeping the last good certificates and login for Ironic"),
            }
        }
        (live.http.clone(), live.material.login.clone())
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

fn headers(speaks: Microversion) -> [(&'static str, String); 3] {
    [
        (VERSION_HEADER, speaks.to_string()),
        ("openstack-api-version", format!("baremetal {speaks}")),
        ("accept", "application/json".to_owned()),
    ]
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name).map(HeaderValue::to_str)?.ok()?;
    Some(value.chars().take(200).collect())
}

fn range(headers: &HeaderMap) -> Option<Range> {
    let read = |name| text(headers, name).and_then(|text| Microversion::parse(&text));
    Some(Range {
        minimum: read(MINIMUM_HEADER)?,
        maximum: read(MAXIMUM_HEADER)?,
    })
}

fn parse_date(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc2822(text).ok().map(|date| date.to_utc())
}

#[cfg(test)]
pub(crate) mod tests;
