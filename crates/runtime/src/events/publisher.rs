//! Writes events to the API server.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::{Event as ApiEvent, EventSource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use metal3_domain::clock::Clock;
use serde_json::json;

use crate::access::{Permits, verb};
use crate::cache::Key;
use crate::patch::{Changes, MergePatch};
use crate::write::{NoCache, WriteError, WriteErrorKind, Writer};

use super::recorder::EventQueue;
use super::series::{Due, EventAggregator};

/// Longer notes are cut: the API server accepts no more.
const LONGEST_NOTE: usize = 1024;
/// The namespace of events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

/// Writes the events of a queue as role `R`.
pub struct Publisher<R> {
    queue: EventQueue,
    writer: Writer<R>,
    clock: Arc<dyn Clock>,
    component: &'static str,
}

impl<R: Permits<verb::Create, ApiEvent> + Permits<verb::Patch, ApiEvent>> Publisher<R> {
    /// Writes the events of `queue` with `component` as their source.
    #[must_use]
    pub const fn new(queue: EventQueue, writer: Writer<R>, clock: Arc<dyn Clock>, component: &'static str) -> Self {
        Self {
            queue,
            writer,
            clock,
            component,
        }
    }

    /// Publishes until every recorder is dropped and the queue is empty. Dropping the future loses unwritten events.
    pub async fn run(mut self) {
        let mut aggregator = EventAggregator::default();
        let mut open = true;
        while open {
            let pause = aggregator.next_due().map(|due| due.since(self.clock.monotonic()));
            let received = match pause {
                Some(pause) => tokio::time::timeout(pause, self.queue.receiver.recv()).await,
                None => Ok(self.queue.receiver.recv().await),
            };
            if let Ok(received) = received {
                open = received.is_some();
                let rest = std::iter::from_fn(|| self.queue.receiver.try_recv().ok());
                for event in received.into_iter().chain(rest) {
                    aggregator.add(event, self.clock.now(), self.clock.monotonic());
                }
            }
            for due in aggregator.due(self.clock.monotonic()) {
                self.publish(&due).await;
            }
        }
    }

    async fn publish(&self, due: &Due) {
        let counters = &self.queue.counters;
        counters.written.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.write(due).await {
            counters.failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(category = error.kind.category().as_str(), "an event was lost: {error}");
        }
    }

    async fn write(&self, due: &Due) -> Result<(), WriteError> {
        let key = self.key(due);
        let (first, second) = if due.exists {
            (self.patch(&key, due).await, WriteErrorKind::NotFound)
        } else {
            (self.create(&key, due).await, WriteErrorKind::AlreadyExists)
        };
        match first {
            // The first attempt or its response was lost, or the event has expired.
            Err(error) if error.kind == second && due.exists => self.create(&key, due).await,
            Err(error) if error.kind == second => self.patch(&key, due).await,
            other => other,
        }
    }

    async fn create(&self, key: &Key, due: &Due) -> Result<(), WriteError> {
        self.writer.create(&NoCache, &self.object(key, due)).await.map(drop)
    }

    async fn patch(&self, key: &Key, due: &Due) -> Result<(), WriteError> {
        let Some(patch) = progress(due) else { return Ok(()) };
        self.writer.patch::<ApiEvent>(&NoCache, key, patch).await.map(drop)
    }

    /// The name of a series is deterministic; a later series of the same key has another one.
    fn key(&self, due: &Due) -> Key {
        let mut hasher = DefaultHasher::new();
        (self.component, &due.key, due.series.first.timestamp_micros()).hash(&mut hasher);
        let namespace = match due.key.namespace.as_str() {
            "" => DEFAULT_NAMESPACE,
            named => named,
        };
        Key {
            namespace: namespace.to_owned(),
            name: format!("{}.{:016x}", due.key.name, hasher.finish()),
        }
    }

    fn object(&self, key: &Key, due: &Due) -> ApiEvent {
        let series = &due.series;
        ApiEvent {
            metadata: ObjectMeta {
                namespace: Some(key.namespace.clone()),
                name: Some(key.name.clone()),
                ..ObjectMeta::default()
            },
            involved_object: series.about.clone(),
            type_: Some(due.key.importance.as_str().to_owned()),
            reason: Some(due.key.reason.as_str().to_owned()),
            message: Some(cut(&due.key.note)),
            source: Some(EventSource {
                component: Some(self.component.to_owned()),
                host: None,
            }),
            reporting_component: Some(self.component.to_owned()),
            count: Some(series.count),
            first_timestamp: Some(second(series.first)),
            last_timestamp: Some(second(series.last)),
            ..ApiEvent::default()
        }
    }
}

/// The count and time of a series.
fn progress(due: &Due) -> Option<MergePatch> {
    let after = json!({
        "count": due.series.count,
        "lastTimestamp": second(due.series.last),
    });
    Changes::between(&json!({}), &after).main
}

fn second(moment: DateTime<Utc>) -> Time {
    Time(Timestamp::from_second(moment.timestamp()).unwrap_or_default())
}

/// At a character boundary, with a mark.
fn cut(note: &str) -> String {
    if note.len() <= LONGEST_NOTE {
        return note.to_owned();
    }
    let mark = "...";
    let end = note.floor_char_boundary(LONGEST_NOTE.saturating_sub(mark.len()));
    note.get(..end).unwrap_or_default().to_owned() + mark
}
