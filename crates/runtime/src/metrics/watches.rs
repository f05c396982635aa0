//! Metrics of watches: how old the caches are, and how often their watches failed. Read at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: String,
}

/// One watch at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WatchFigures {
    /// Time since the last event, bookmark or list.
    pub silent: Duration,
    /// Failed attempts.
    pub failures: u64,
}

type ReadFigures = Box<dyn Fn() -> WatchFigures + Send + Sync>;

/// One collector for all watches. Several watches of a kind are one series: the oldest cache, and the sum of failures.
#[derive(Clone, Default)]
pub(super) struct Watches {
    of_kind: Arc<Mutex<BTreeMap<String, Vec<ReadFigures>>>>,
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.of_kind.lock().keys()).finish()
    }
}

impl Watches {
    pub(super) fn show(&self, kind: &str, figures: ReadFigures) {
        self.of_kind.lock().entry(kind.to_owned()).or_default().push(figures);
    }
}

impl Collector for Watches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let of_kind = self.of_kind.lock();
        let read = |(kind, watches): (&String, &Vec<ReadFigures>)| {
            let merged = watches
                .iter()
                .map(|watch| watch())
                .fold(WatchFigures::default(), |one, other| WatchFigures {
                    silent: one.silent.max(other.silent),
                    failures: one.failures.saturating_add(other.failures),
                });
            (ByKind { kind: kind.clone() }, merged)
        };
        let all: Vec<_> = of_kind.iter().map(read).collect();
        let help = "Seconds since the watch of a cache last received an event, a bookmark or a list";
        let mut age = encoder.encode_descriptor("metal3_cache_age_seconds", help, None, MetricType::Gauge)?;
        for (by, figures) in &all {
            age.encode_family(by)?.encode_gauge(&figures.silent.as_secs_f64())?;
        }
        let help = "Attempts to list or watch a kind that failed";
        let mut failures = encoder.encode_descriptor("metal3_watch_failures", help, None, MetricType::Counter)?;
        for (by, figures) in &all {
            failures
                .encode_family(by)?
                .encode_counter::<NoLabelSet, u64, u64>(&figures.failures, None)?;
        }
        Ok(())
    }
}
