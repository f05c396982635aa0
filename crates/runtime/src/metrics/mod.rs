//! Metrics, under the names that dashboards and alerts for controllers already use.
//!
//! [`Metrics`] is one explicit registry: nothing is global, so every test has its own. The parts of the toolkit get
//! small handles from it ([`ControllerMetrics`], [`RequestMetrics`], [`LeaseMetrics`], [`ServerMetrics`]) and report
//! into these; a product adds its own families with [`Metrics::register`]. What only a look at something can tell
//! (the depth of a queue, the memory of the process) is looked at when somebody scrapes.
//!
//! The names, types and labels are those of the Go managers' framework, and a table in the tests holds them. The format
//! is OpenMetrics, where the name of a counter ends in `_total`: the registry appends that, so counters are registered
//! without it.
//!
//! It does not serve anything: the admin server does. The invariant: no label carries text that a user or an object
//! chose, other than the name of a host of the API server, so the number of series is bounded by the program.

mod controllers;
mod leases;
mod process;
mod queues;
mod requests;
mod servers;

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

pub use controllers::{ActiveReconcile, ControllerMetrics, ReconcileResult};
pub use leases::LeaseMetrics;
pub use requests::RequestMetrics;
pub use servers::{CertificateMetrics, InFlight, ServerMetrics};

use crate::queue::QueueStats;

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Histograms of one name, told apart by labels; the function makes one with its buckets.
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The one label that most of the framework's metrics have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByController {
    controller: String,
}

/// All metrics of one program; clones share them.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Mutex<Registry>,
    controllers: controllers::Families,
    queues: queues::Families,
    requests: RequestMetrics,
    leases: leases::Families,
    servers: ServerMetrics,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A registry with everything the toolkit reports, all of it still at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let inner = Inner {
            controllers: controllers::Families::register(&mut registry),
            queues: queues::Families::register(&mut registry),
            requests: RequestMetrics::register(&mut registry),
            leases: leases::Families::register(&mut registry),
            servers: ServerMetrics::register(&mut registry),
            registry: Mutex::new(registry),
        };
        inner.registry().register_collector(Box::new(process::Process));
        Self { inner: Arc::new(inner) }
    }

    /// The handle that the worker loop of a controller reports into. `workers` is how many passes may run at once.
    ///
    /// The series of the controller appear at once, at zero: an alert on a rate needs the zero before the first error.
    #[must_use]
    pub fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        ControllerMetrics::new(&self.inner.controllers, &self.inner.queues, name, workers)
    }

    /// Shows the queue of that controller: `figures` is asked at every scrape. A second queue of the name replaces the
    /// first.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use metal3_domain::clock::SystemClock;
    /// # use metal3_runtime::{metrics::Metrics, queue::Queue};
    /// let metrics = Metrics::new();
    /// let queue: Queue<String> = Queue::new(Arc::new(SystemClock::start()));
    /// metrics.queue("metal3machine", { let queue = queue.clone(); move || queue.stats() });
    /// assert!(metrics.render().contains("workqueue_adds_total{name=\"metal3machine\",controller=\"metal3machine\"} 0"));
    /// ```
    pub fn queue(&self, name: &str, figures: impl Fn() -> QueueStats + Send + Sync + 'static) {
        self.inner.queues.show(name, Box::new(figures));
    }

    /// The handle for requests to API servers.
    #[must_use]
    pub fn requests(&self) -> RequestMetrics {
        self.inner.requests.clone()
    }

    /// The handle for a lease.
    #[must_use]
    pub fn lease(&self, name: &str) -> LeaseMetrics {
        LeaseMetrics::new(&self.inner.leases, name)
    }

    /// The handle for webhook servers and their certificates.
    #[must_use]
    pub fn servers(&self) -> ServerMetrics {
        self.inner.servers.clone()
    }

    /// Adds a metric of a product. The name of a counter goes without `_total`.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        self.inner.registry().register(name, help, metric);
    }

    /// Everything, in the text format that [`CONTENT_TYPE`] names.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail, and every metric here encodes without one of its own.
        match encode(&mut text, &self.inner.registry()) {
            Ok(()) => text,
            Err(fmt::Error) => "# EOF\n".to_owned(),
        }
    }
}

impl Inner {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock()
    }
}

#[cfg(test)]
mod tests;
