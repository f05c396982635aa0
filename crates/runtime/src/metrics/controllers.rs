//! Metrics of workers: reconciles, their results and durations.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::queues::{self, ByQueue};
use super::{ByController, Histograms, registered, registered_as};
use crate::reason::Reason;

/// The buckets of controller-runtime: dashboards compute quantiles from them.
const RECONCILE_SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

/// The result of a reconcile, as controller-runtime labels it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileResult {
    /// Nothing to do until something changes.
    Done,
    /// Requeued after a time.
    RequeueAfter,
    /// Failed, to be retried after a back-off.
    Failed,
    /// Failed until the object changes.
    Terminal,
    /// Panicked: caught, counted and retried.
    Panicked,
}

impl ReconcileResult {
    /// The four values of the label `result`, all present from the start.
    const LABELS: [&'static str; 4] = ["error", "requeue", "requeue_after", "success"];

    const fn label(self) -> &'static str {
        match self {
            Self::Done => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Failed | Self::Terminal | Self::Panicked => "error",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct ByResult {
    controller: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct ByCategory {
    controller: String,
    category: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct ByReason {
    controller: String,
    reason: &'static str,
}

/// One family for each metric.
pub(super) struct Families {
    passes: Family<ByResult, Counter>,
    errors: Family<ByController, Counter>,
    terminal: Family<ByController, Counter>,
    panics: Family<ByController, Counter>,
    seconds: Histograms<ByController>,
    workers: Family<ByController, Gauge>,
    active: Family<ByController, Gauge>,
    faults: Family<ByCategory, Counter>,
    waiting: Family<ByReason, Gauge>,
}

impl Families {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            passes: registered(
                registry,
                "controller_runtime_reconcile",
                "Reconciles of a key, by controller and result",
            ),
            errors: registered(
                registry,
                "controller_runtime_reconcile_errors",
                "Reconciles that failed, by controller",
            ),
            terminal: registered(
                registry,
                "controller_runtime_terminal_reconcile_errors",
                "Reconciles that failed and will not be retried until the object changes, by controller",
            ),
            panics: registered(
                registry,
                "controller_runtime_reconcile_panics",
                "Reconciles that panicked, by controller",
            ),
            seconds: registered_as(
                registry,
                "controller_runtime_reconcile_time_seconds",
                "Seconds a reconcile took, by controller",
                Histograms::new_with_constructor(|| Histogram::new(RECONCILE_SECONDS)),
            ),
            workers: registered(
                registry,
                "controller_runtime_max_concurrent_reconciles",
                "Reconciles that may run at once, by controller",
            ),
            active: registered(
                registry,
                "controller_runtime_active_workers",
                "Reconciles that run now, by controller",
            ),
            faults: registered(
                registry,
                "metal3_controller_faults",
                "Reconciles that failed, by controller and error category",
            ),
            waiting: registered(
                registry,
                "metal3_controller_waiting_keys",
                "Keys that wait for another actor, by controller and reason, as in the condition of the object",
            ),
        }
    }
}

/// The metrics of one controller; clones share them.
#[derive(Clone)]
pub struct ControllerMetrics {
    name: String,
    passes: Family<ByResult, Counter>,
    errors: Counter,
    terminal: Counter,
    panics: Counter,
    seconds: Histogram,
    active: Gauge,
    faults: Family<ByCategory, Counter>,
    waiting: Family<ByReason, Gauge>,
    waited: Histogram,
    worked: Histogram,
}

impl ControllerMetrics {
    pub(super) fn new(families: &Families, queues: &queues::Families, name: &str, workers: usize) -> Self {
        let by = ByController {
            controller: name.to_owned(),
        };
        let by_queue = ByQueue::of(name);
        for result in ReconcileResult::LABELS {
            drop(families.passes.get_or_create_owned(&ByResult {
                controller: name.to_owned(),
                result,
            }));
        }
        families
            .workers
            .get_or_create_owned(&by)
            .set(i64::try_from(workers).unwrap_or(i64::MAX));
        Self {
            name: name.to_owned(),
            passes: families.passes.clone(),
            errors: families.errors.get_or_create_owned(&by),
            terminal: families.terminal.get_or_create_owned(&by),
            panics: families.panics.get_or_create_owned(&by),
            seconds: families.seconds.get_or_create_owned(&by),
            active: families.active.get_or_create_owned(&by),
            faults: families.faults.clone(),
            waiting: families.waiting.clone(),
            waited: queues.waited.get_or_create_owned(&by_queue),
            worked: queues.worked.get_or_create_owned(&by_queue),
        }
    }

    /// The reason of a waiting key changes from `before` to `now`.
    pub fn waits(&self, before: Option<Reason>, now: Option<Reason>) {
        let of = |reason: Reason| {
            self.waiting.get_or_create_owned(&ByReason {
                controller: self.name.clone(),
                reason: reason.as_str(),
            })
        };
        if before == now {
            return;
        }
        if let Some(before) = before {
            of(before).dec();
        }
        if let Some(now) = now {
            of(now).inc();
        }
    }

    /// A reconcile begins, of a key that was ready for `waited`. Keep the result until it ends.
    #[must_use = "the worker counts as idle again when this is dropped"]
    pub fn begin(&self, waited: Duration) -> ActiveReconcile {
        self.waited.observe(waited.as_secs_f64());
        self.active.inc();
        ActiveReconcile { metrics: self.clone() }
    }
}

/// A running reconcile. Dropping it without [`ActiveReconcile::end`], as a cancelled task does, counts no result.
pub struct ActiveReconcile {
    metrics: ControllerMetrics,
}

impl ActiveReconcile {
    /// The reconcile failed with this category of [`Fault::category`](crate::work::Fault::category).
    pub fn failed(&self, category: &'static str) {
        let by = ByCategory {
            controller: self.metrics.name.clone(),
            category,
        };
        self.metrics.faults.get_or_create_owned(&by).inc();
    }

    /// The reconcile ended with this result and duration.
    pub fn end(self, result: ReconcileResult, took: Duration) {
        let metrics = &self.metrics;
        metrics.seconds.observe(took.as_secs_f64());
        metrics.worked.observe(took.as_secs_f64());
        let by = ByResult {
            controller: metrics.name.clone(),
            result: result.label(),
        };
        metrics.passes.get_or_create_owned(&by).inc();
        match result {
            ReconcileResult::Done | ReconcileResult::RequeueAfter => return,
            ReconcileResult::Failed => {}
            ReconcileResult::Terminal => {
                metrics.terminal.inc();
            }
            ReconcileResult::Panicked => {
                metrics.panics.inc();
            }
        }
        metrics.errors.inc();
    }
}

impl Drop for ActiveReconcile {
    fn drop(&mut self) {
        self.metrics.active.dec();
    }
}
