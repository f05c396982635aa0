//! Clients of API servers: the limits of every request.
//!
//! - **No hidden retries** (differs: `client-one-attempt`). A request is sent once. The caller handles its failure; the
//!   work queue waits.
//! - **A response within 30 seconds**, its body included, or [`ResponseTimeout`]. Watches are exempt: they have a silence
//!   limit.
//! - **A limit of requests in flight.** The others wait in order. A watch takes no slot, or watches would starve the
//!   rest.
//! - **The caller receives the delay that a server asks for.** Kubernetes throttles with a header and plain text, which
//!   the client library drops; here the response becomes a `Status` with `details.retryAfterSeconds`.
//! - **An optional rate limit**, requests per second with a burst, from the flags of the Go managers.
//! - **A write is sent only while this process may write**, for a client of [`ClientFactory::writing_for`]: lease and
//!   guard are checked immediately before the request is sent.
//! - Requests are counted, and have a user agent.
//!
//! It does not cache, decode or classify. The invariant: every request other than a watch ends in bounded time,
//! whatever the server does.
//!
//! Leases have a client of their own: a renewal must not wait behind the requests of ten busy controllers.

mod answer;
mod bounds;
mod config;
mod destination;
mod kind;
mod rate_limit;
mod write_gate;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use metal3_domain::allowed::Allowed;
use metal3_domain::clock::Clock;
use tower::buffer::Buffer;
use tower::layer::layer_fn;
use tower::{BoxError, Service};

pub use answer::ResponseTimeout;
pub use config::{Chosen, ConfigError, load_config, load_viewer_config};
pub use destination::ConnectError;
pub(crate) use destination::is_not_allowed;
pub use kind::served_kind;
pub use rate_limit::RateLimit;
pub use write_gate::{WriteBlocked, check_write_allowed};

use crate::guard::Guard;
use crate::lease::Leadership;
use crate::metrics::RequestMetrics;
use bounds::Bounds;
use write_gate::WriteGate;

/// The response timeout. The API server itself has 60 seconds; half of that frees a worker early enough to retry.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Requests in flight. More than the workers of all controllers at their defaults, and far fewer than the 400 or so
/// that an API server processes at once.
pub const IN_FLIGHT: usize = 64;

/// The longest response of an API server of a tenant: a page of 100 Nodes with room to spare.
const TENANT_RESPONSE: usize = 8 << 20;

/// All workload clusters in metrics: a tenant decides how many addresses there are, and what they contain.
const WORKLOAD_CLUSTERS: &str = "workload-clusters";

/// The limits and the user agent of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The user agent.
    pub user_agent: HeaderValue,
    /// The response timeout.
    pub timeout: Duration,
    /// The number of requests in flight, at least one.
    pub in_flight: usize,
    /// The rate limit.
    pub rate_limit: Option<RateLimit>,
    /// The length of a response in bytes; `None` for no limit. Watches are exempt: they limit their lines.
    pub longest_response: Option<usize>,
    /// The addresses that [`ClientFactory::connect_allowed`] connects to.
    pub destinations: Allowed,
    /// Whether the servers are those of tenants.
    pub is_for_tenants: bool,
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
            longest_response: None,
            destinations: Allowed::default(),
            is_for_tenants: false,
        }
    }

    /// The same for clusters of tenants, whose API servers may send anything.
    #[must_use]
    pub fn for_tenants(mut self, destinations: Allowed) -> Self {
        self.longest_response = Some(TENANT_RESPONSE);
        self.destinations = destinations;
        self.is_for_tenants = true;
        self
    }

    /// The server in metrics, without the login of its URL.
    ///
    /// differs (`workload-metrics-host`): in the Go manager each workload cluster has series of its own, for ever.
    fn host_in_metrics(&self, url: &Uri) -> String {
        if self.is_for_tenants {
            return WORKLOAD_CLUSTERS.to_owned();
        }
        let host = url.host().unwrap_or_default();
        match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The same for leases: a response is useful only while there is time to act on it, so the timeout is half of the
    /// renew deadline, and there is no rate limit.
    #[must_use]
    pub fn for_leases(mut self, renew_deadline: Duration) -> Self {
        self.timeout = renew_deadline / 2;
        self.rate_limit = None;
        self
    }
}

/// Creates clients with the same settings. Each has its own slots and its own rate limit.
#[derive(Debug, Clone)]
pub struct ClientFactory {
    settings: Settings,
    clock: Arc<dyn Clock>,
    metrics: RequestMetrics,
    write_gate: Option<WriteGate>,
}

impl ClientFactory {
    /// A factory; `clock` measures the rate limit, `metrics` counts the requests.
    #[must_use]
    pub const fn new(settings: Settings, clock: Arc<dyn Clock>, metrics: RequestMetrics) -> Self {
        Self {
            settings,
            clock,
            metrics,
            write_gate: None,
        }
    }

    /// The same for the controllers of one group: their writes fail with [`WriteBlocked`] unless the process leads and
    /// no other implementation serves the group. Reads are not restricted.
    #[must_use]
    pub fn writing_for(&self, leadership: Leadership, guard: Guard) -> Self {
        Self {
            write_gate: Some(WriteGate { leadership, guard }),
            ..self.clone()
        }
    }

    /// A client of the API server in `config`. Call it inside the async runtime.
    ///
    /// # Errors
    /// When certificates or credentials of `config` cannot be used.
    pub fn connect(&self, mut config: Config) -> kube::Result<Client> {
        config.default_retry = false;
        let host = self.settings.host_in_metrics(&config.cluster_url);
        // The library's stack cannot be cloned, and each waiting request needs a service.
        let layer = layer_fn(|service| self.bounds(Buffer::new(service, self.settings.in_flight.max(1)), &host));
        Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
    }

    /// The same for the API server of a tenant, at an allowed address. Call it inside the async runtime.
    ///
    /// # Errors
    /// When the address is not allowed, or certificates or credentials of `config` cannot be used.
    pub fn connect_allowed(&self, config: Config) -> Result<Client, ConnectError> {
        let allowed = &self.settings.destinations;
        if allowed.is_all() {
            return Ok(self.connect(config)?);
        }
        let service = destination::restricted(&config, allowed)?;
        let bounds = self.bounds(service, &self.settings.host_in_metrics(&config.cluster_url));
        Ok(Client::new(bounds, config.default_namespace))
    }

    /// A client over any service: a simulated API server. `host` is its name in the metrics. Call it inside the async
    /// runtime.
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
