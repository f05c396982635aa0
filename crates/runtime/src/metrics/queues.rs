//! Metrics of work queues.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::{Histograms, registered_as};
use crate::queue::QueueStats;

/// The labels of controller-runtime's queue metrics; both are the controller's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByQueue {
    name: String,
    controller: String,
}

impl ByQueue {
    pub(super) fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            controller: name.to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPriority {
    name: String,
    controller: String,
    priority: &'static str,
}

/// The priority of the high lane in controller-runtime's queue.
const HIGH: &str = "0";
/// The priority of the low lane, which controller-runtime also uses for the first list and resyncs.
const LOW: &str = "-100";

type ReadStats = Box<dyn Fn() -> QueueStats + Send + Sync>;

/// The histograms of reconciles, and the queues to read.
pub(super) struct Families {
    pub(super) waited: Histograms<ByQueue>,
    pub(super) worked: Histograms<ByQueue>,
    queues: Queues,
}

impl Families {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let from_nanoseconds = || Histogram::new(exponential_buckets(10e-9, 10.0, 12));
        let families = Self {
            waited: registered_as(
                registry,
                "workqueue_queue_duration_seconds",
                "Seconds a key was ready before it was taken",
                Histograms::new_with_constructor(from_nanoseconds),
            ),
            worked: registered_as(
                registry,
                "workqueue_work_duration_seconds",
                "Seconds a key was worked on",
                Histograms::new_with_constructor(from_nanoseconds),
            ),
            queues: Queues::default(),
        };
        registry.register_collector(Box::new(families.queues.clone()));
        families
    }

    pub(super) fn show(&self, name: &str, stats: ReadStats) {
        self.queues.queues.lock().insert(name.to_owned(), stats);
    }
}

/// One collector for all queues: a metric may be described once only.
#[derive(Clone, Default)]
struct Queues {
    queues: Arc<Mutex<BTreeMap<String, ReadStats>>>,
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.queues.lock().keys()).finish()
    }
}

impl Collector for Queues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let read = |(name, read): (&String, &ReadStats)| (ByQueue::of(name), read());
        let queues_read: Vec<_> = self.queues.lock().iter().map(read).collect();
        depths(&mut encoder, &queues_read)?;
        for (name, help, read) in COUNTERS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (by, stats) in &queues_read {
                metric
                    .encode_family(by)?
                    .encode_counter::<NoLabelSet, u64, u64>(&read(stats), None)?;
            }
        }
        for (name, help, read) in GAUGES {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (by, stats) in &queues_read {
                metric.encode_family(by)?.encode_gauge(&read(stats))?;
            }
        }
        Ok(())
    }
}

fn depths(encoder: &mut DescriptorEncoder<'_>, queues_read: &[(ByQueue, QueueStats)]) -> Result<(), fmt::Error> {
    let help = "Keys that are ready, by lane";
    let mut depth = encoder.encode_descriptor("workqueue_depth", help, None, MetricType::Gauge)?;
    for (by, stats) in queues_read {
        for (priority, keys) in [(HIGH, stats.high), (LOW, stats.low)] {
            let by = ByPriority {
                name: by.name.clone(),
                controller: by.controller.clone(),
                priority,
            };
            depth.encode_family(&by)?.encode_gauge(&keys)?;
        }
    }
    Ok(())
}

/// Name, help, and the value to read.
type Row<T> = (&'static str, &'static str, fn(&QueueStats) -> T);

const COUNTERS: [Row<u64>; 2] = [
    (
        "workqueue_adds",
        "Adds of keys that were not enqueued already",
        |stats| stats.adds,
    ),
    ("workqueue_retries", "Keys that are retried after a failure", |stats| {
        stats.retries
    }),
];

const GAUGES: [Row<f64>; 5] = [
    (
        "workqueue_unfinished_work_seconds",
        "Seconds spent so far on keys that are still worked on: it grows when workers are stuck",
        |stats| stats.unfinished.as_secs_f64(),
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "Seconds the longest of them has taken so far",
        |stats| stats.longest_unfinished.as_secs_f64(),
    ),
    (
        "metal3_workqueue_oldest_ready_seconds",
        "Seconds that the oldest ready key has waited for a worker",
        |stats| stats.oldest_ready.as_secs_f64(),
    ),
    (
        "metal3_workqueue_failing_keys",
        "Keys with a failure and no success since",
        |stats| count(stats.failing),
    ),
    (
        "metal3_workqueue_held_keys",
        "Keys that are held until one of their writes is in the cache",
        |stats| count(stats.held),
    ),
];

/// Metrics are floating-point numbers.
fn count(keys: usize) -> f64 {
    u32::try_from(keys).unwrap_or(u32::MAX).into()
}
