//! Metrics, under the names of existing dashboards and alerts for controllers.
//!
//! [`Metrics`] is one explicit registry: nothing is global, so every test has its own. The parts of the toolkit have
//! small handles of it ([`ControllerMetrics`], [`RequestMetrics`], [`LeaseMetrics`], [`ServerMetrics`]); a product adds
//! its own families with [`Metrics::register`]. Values such as the depth of a queue or the memory of the process are
//! read at each scrape.
//!
//! Names, types and labels are those of controller-runtime, and a table in the tests compares them. The format is
//! OpenMetrics, where the name of a counter ends in `_total`: the registry appends that, so counters are registered
//! without it.
//!
//! The admin server serves them. The invariant: no label contains text of a user or an object, other than the host name
//! of the API server, so the program bounds the number of series.

mod controllers;
mod expiry;
mod leases;
mod process;
mod queues;
mod requests;
mod servers;
mod states;
mod watches;

use std::fmt;
use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_domain::objectives::{Objectives, Subject};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

pub use controllers::{ActiveReconcile, ControllerMetrics, ReconcileResult};
pub use leases::LeaseMetrics;
pub use requests::RequestMetrics;
pub use servers::{CertificateMetrics, InFlight, ServerMetrics};
pub use states::StateRecorder;
pub use watches::WatchFigures;

use crate::queue::QueueStats;

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Labelled histograms of one name; the function creates one with its buckets.
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// A metric that is registered at zero.
fn registered<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    registered_as(registry, name, help, M::default())
}

fn registered_as<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// The label of most metrics of controller-runtime.
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
    objectives: Objectives,
    watches: watches::Watches,
    controllers: controllers::Families,
    queues: queues::Families,
    requests: RequestMetrics,
    leases: leases::Families,
    servers: ServerMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A registry with all metrics of the toolkit, at zero, and the default objectives.
    #[must_use]
    pub fn new() -> Self {
        Self::with_objectives(Objectives::default())
    }

    /// The same with these objectives of states.
    #[must_use]
    pub fn with_objectives(objectives: Objectives) -> Self {
        let mut registry = Registry::default();
        let inner = Inner {
            objectives,
            watches: watches::Watches::default(),
            controllers: controllers::Families::register(&mut registry),
            queues: queues::Families::register(&mut registry),
            requests: RequestMetrics::register(&mut registry),
            leases: leases::Families::register(&mut registry),
            servers: ServerMetrics::register(&mut registry),
            registry: Mutex::new(registry),
        };
        let own: [Box<dyn Collector>; 2] = [Box::new(process::Process), Box::new(inner.watches.clone())];
        let metrics = Self { inner: Arc::new(inner) };
        own.into_iter().for_each(|collector| metrics.collect(collector));
        metrics
    }

    /// The handle for the workers of a controller. `workers` is the number of concurrent reconciles.
    ///
    /// The series of the controller exist at once, at zero: an alert on a rate needs the zero before the first error.
    #[must_use]
    pub fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        ControllerMetrics::new(&self.inner.controllers, &self.inner.queues, name, workers)
    }

    /// Reports the queue of that controller: `figures` is called at every scrape. A second queue of the name replaces
    /// the first.
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

    /// Reports a watch of this kind: `figures` is called at every scrape. `kind` is a name of a CRD, never text of an
    /// object.
    pub fn watch(&self, kind: &str, figures: impl Fn() -> WatchFigures + Send + Sync + 'static) {
        self.inner.watches.show(kind, Box::new(figures));
    }

    /// The recorder of the states of all hosts, or of all machines. Call it once for each.
    #[must_use]
    pub fn states(&self, subject: Subject, clock: Arc<dyn Clock>) -> StateRecorder {
        let recorder = StateRecorder::new(subject, self.inner.objectives.clone(), clock);
        self.collect(recorder.collector());
        recorder
    }

    /// Reports the version and the controllers of the process, and how long its certificate is valid.
    pub fn program(&self, version: &str, controllers: &str, clock: Arc<dyn Clock>) {
        let labels = vec![("version", version.to_owned()), ("controllers", controllers.to_owned())];
        let help = "Version and controllers of the process";
        self.inner
            .registry
            .lock()
            .register("metal3_build", help, Info::new(labels));
        self.collect(Box::new(expiry::DaysLeft {
            certificates: self.inner.servers.certificates(),
            clock,
        }));
    }

    /// Adds metrics that are computed at each scrape.
    pub fn collect(&self, collector: Box<dyn Collector>) {
        self.inner.registry.lock().register_collector(collector);
    }

    /// Adds a metric of a product. The name of a counter goes without `_total`.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        self.inner.registry.lock().register(name, help, metric);
    }

    /// All metrics, in the text format of [`CONTENT_TYPE`].
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail, and no metric here fails to encode.
        match encode(&mut text, &self.inner.registry.lock()) {
            Ok(()) => text,
            Err(fmt::Error) => "# EOF\n".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
