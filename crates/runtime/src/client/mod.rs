//! Clients of API servers: what every request of ours obeys, in one place.
//!
//! - **No hidden retries** (differs: `client-one-attempt`). A request is sent once. Who asked decides what its failure
//!   means; the work queue waits.
//! - **An answer within 30 seconds**, its body included, or [`NoAnswer`]. Watches are exempt: they have a sign of life
//!   of their own.
//! - **So many requests in flight, no more.** The others wait in order. A watch takes no place, or watches would starve
//!   the rest.
//! - **The wait that a server asks for reaches the caller.** Kubernetes throttles with a header and plain text, which
//!   the client library throws away; here the answer becomes a `Status` whose `details.retryAfterSeconds` carries it.
//! - **Optionally a pace**, requests a second with a burst, as the flags of the Go managers set it.
//! - **A write leaves only while it is ours to make**, for a client made by [`ClientFactory::writing_for`]: the lease and
//!   the guard are asked when the request has its place and its turn, immediately before it is sent.
//! - Requests are counted, and carry a user agent.
//!
//! It does not cache, decode or classify. The invariant: a call through such a client ends in bounded time, whatever
//! the server does, if it is not a watch.
//!
//! Leases get a client of their own: a renewal must not wait behind the requests of ten busy controllers.

mod answer;
mod bounds;
mod config;
mod rate_limit;
mod write_gate;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use metal3_domain::clock::Clock;
use tower::buffer::Buffer;
use tower::layer::layer_fn;
use tower::{BoxError, Service};

pub use answer::NoAnswer;
pub use config::{ConfigError, load_config};
pub use rate_limit::RateLimit;
pub use write_gate::{WriteBlocked, check_write_allowed};

use crate::guard::Guard;
use crate::lease::Leadership;
use crate::metrics::RequestMetrics;
use bounds::Bounds;
use write_gate::WriteGate;

/// How long an answer may take. The API server itself gives up after 60 seconds; half of that frees a worker early
/// enough to try again before anybody waits for it.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Requests in flight. More than the workers of all controllers together at their defaults, and far fewer than the
/// 400 or so that an API server works on at once for everybody.
pub const IN_FLIGHT: usize = 64;

/// What requests of a client obey.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What the requests call themselves.
    pub user_agent: HeaderValue,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How many may be in flight at once, at least one.
    pub in_flight: usize,
    /// How fast they may follow each other.
    pub rate_limit: Option<RateLimit>,
}

impl Settings {
    /// The defaults, for a program of this name and version.
    #[must_use]
    pub fn new(program: &str, version: &str) -> Self {
        let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
        let text = format!("{program}/{version} ({system}/{processor})");
        let visible: String = text.chars().filter(|c| matches!(c, ' '..='~')).collect();
        Self {
            user_agent: HeaderValue::from_str(&visible).unwrap_or(HeaderValue::from_static("metal3")),
            timeout: TIMEOUT,
            in_flight: IN_FLIGHT,
            rate_limit: None,
        }
    }

    /// The same for leases: an answer counts only while there is time to act on it, so it may take half of what a
    /// renewal has, and no rate_limit holds it up.
    #[must_use]
    pub fn for_leases(mut self, renew_deadline: Duration) -> Self {
        self.timeout = renew_deadline / 2;
        self.rate_limit = None;
        self
    }
}

/// Makes clients that obey the same settings. Each has its own places in flight and its own rate_limit.
#[derive(Debug, Clone)]
pub struct ClientFactory {
    settings: Settings,
    clock: Arc<dyn Clock>,
    metrics: RequestMetrics,
    write_gate: Option<WriteGate>,
}

impl ClientFactory {
    /// A connector; `clock` measures the rate_limit, `metrics` counts the requests.
    #[must_use]
    pub const fn new(settings: Settings, clock: Arc<dyn Clock>, metrics: RequestMetrics) -> Self {
        Self {
            settings,
            clock,
            metrics,
            write_gate: None,
        }
    }

    /// The same for the controllers of one group: their writes end with [`WriteBlocked`] unless the group is led and nobody
    /// else serves it. What they read is not restricted.
    #[must_use]
    pub fn writing_for(&self, leadership: Leadership, guard: Guard) -> Self {
        Self {
            write_gate: Some(WriteGate { leadership, guard }),
            ..self.clone()
        }
    }

    /// A client of the API server that `config` names. Must be called inside the async runtime.
    ///
    /// # Errors
    /// When certificates or credentials of `config` cannot be used.
    pub fn connect(&self, mut config: Config) -> kube::Result<Client> {
        config.default_retry = false;
        let host = config
            .cluster_url
            .authority()
            .map(ToString::to_string)
            .unwrap_or_default();
        // The library's stack cannot be cloned, and a request that waits for its place needs a service of its own.
        let layer = layer_fn(|service| self.bounds(Buffer::new(service, self.settings.in_flight.max(1)), &host));
        Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
    }

    /// A client over any service that answers requests: a simulated API server. `host` is its name in the metrics.
    /// Must be called inside the async runtime.
    pub fn over<S, B>(&self, service: S, host: &str) -> Client
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Client::new(self.bounds(service, host), "default")
    }

    fn bounds<S>(&self, service: S, host: &str) -> Bounds<S> {
        Bounds::new(service, host, self)
    }
}

#[cfg(test)]
mod tests;
