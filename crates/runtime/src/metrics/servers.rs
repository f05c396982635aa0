//! Metrics of webhook requests and of certificates.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{Histograms, registered, registered_as};

/// The default buckets of Prometheus clients, which controller-runtime uses here.
const REQUEST_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWebhook {
    webhook: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    webhook: String,
    code: u16,
}

/// The metrics of servers; clones share them.
#[derive(Debug, Clone)]
pub struct ServerMetrics {
    requests: Family<ByAnswer, Counter>,
    seconds: Histograms<ByWebhook>,
    in_flight: Family<ByWebhook, Gauge>,
    panics: Counter,
    certificates: CertificateMetrics,
}

impl ServerMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            requests: registered(
                registry,
                "controller_runtime_webhook_requests",
                "Requests to webhooks, by path and status code",
            ),
            seconds: registered_as(
                registry,
                "controller_runtime_webhook_latency_seconds",
                "Seconds a webhook took to answer, by path",
                Histograms::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
            ),
            in_flight: registered(
                registry,
                "controller_runtime_webhook_requests_in_flight",
                "Requests that webhooks work on now, by path",
            ),
            panics: registered(
                registry,
                "controller_runtime_webhook_panics",
                "Requests whose webhook panicked",
            ),
            certificates: CertificateMetrics {
                reads: registered(
                    registry,
                    "certwatcher_read_certificate",
                    "Times a certificate was read from its files",
                ),
                failures: registered(
                    registry,
                    "certwatcher_read_certificate_errors",
                    "Times that failed, so that the pair before stayed in use",
                ),
                valid_until: Arc::default(),
            },
        }
    }

    /// A request to the webhook at `path` arrived. `path` is a registered path, never text of a caller.
    #[must_use = "the request counts as done when this is dropped"]
    pub fn begin(&self, path: &'static str) -> InFlight {
        let by = ByWebhook {
            webhook: path.to_owned(),
        };
        self.in_flight.get_or_create_owned(&by).inc();
        InFlight {
            metrics: self.clone(),
            by,
        }
    }

    /// A webhook panicked; the caller received an error.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// The handle for certificates.
    #[must_use]
    pub fn certificates(&self) -> CertificateMetrics {
        self.certificates.clone()
    }
}

/// A running webhook request.
pub struct InFlight {
    metrics: ServerMetrics,
    by: ByWebhook,
}

impl InFlight {
    /// The response had this status code after this time.
    pub fn end(self, code: u16, took: Duration) {
        let by = ByAnswer {
            webhook: self.by.webhook.clone(),
            code,
        };
        self.metrics.requests.get_or_create_owned(&by).inc();
        let seconds = self.metrics.seconds.get_or_create_owned(&self.by);
        seconds.observe(took.as_secs_f64());
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.metrics.in_flight.get_or_create_owned(&self.by).dec();
    }
}

/// The metrics of a certificate from files; clones share them.
#[derive(Debug, Clone)]
pub struct CertificateMetrics {
    reads: Counter,
    failures: Counter,
    valid_until: Arc<Mutex<Option<DateTime<Utc>>>>,
}

impl CertificateMetrics {
    /// The files were read, and their key pair is used or invalid.
    pub fn read(&self, usable: bool) {
        self.reads.inc();
        if !usable {
            self.failures.inc();
        }
    }

    /// The certificate in use is valid until then; `None` if that cannot be read.
    pub fn expires(&self, until: Option<DateTime<Utc>>) {
        *self.valid_until.lock() = until;
    }

    pub(super) fn valid_until(&self) -> Option<DateTime<Utc>> {
        *self.valid_until.lock()
    }
}
