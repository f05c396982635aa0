//! The states of all objects of a kind, and how long each has been in its present state.
//!
//! A product records the state of an object when its cache changes; a scrape visits one small record per object. Standbys
//! have caches too, so that every replica reports the same numbers: queries take the maximum, not the sum.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::objectives::{Objectives, Subject};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::cache::Key;

/// Upper bounds in seconds: a minute to a day.
const BUCKETS: [f64; 10] = [
    60.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByState {
    state: &'static str,
}

/// The names of the metrics of a subject.
struct Names {
    objects: &'static str,
    ages: &'static str,
    oldest: &'static str,
    objective: &'static str,
    above: &'static str,
}

const HOSTS: Names = Names {
    objects: "metal3_hosts",
    ages: "metal3_host_state_age_seconds",
    oldest: "metal3_host_state_oldest_seconds",
    objective: "metal3_host_state_objective_seconds",
    above: "metal3_hosts_above_objective",
};
const MACHINES: Names = Names {
    objects: "metal3_machines",
    ages: "metal3_machine_state_age_seconds",
    oldest: "metal3_machine_state_oldest_seconds",
    objective: "metal3_machine_state_objective_seconds",
    above: "metal3_machines_above_objective",
};

/// The state of one object.
#[derive(Debug, Clone, Copy)]
struct Standing {
    state: &'static str,
    /// When this process first observed the state.
    observed: Monotonic,
    /// When it began, as the object records it: the age outlives a restart of this process.
    began: Option<DateTime<Utc>>,
    /// Whether no controller works on it: it is paused, or others come first. That time does not count for the objective.
    is_held: bool,
    /// When that ended.
    resumed: Option<Monotonic>,
}

/// Records the states of all objects of a kind; clones share the records.
#[derive(Clone)]
pub struct StateRecorder(Arc<Shared>);

struct Shared {
    subject: Subject,
    objectives: Objectives,
    clock: Arc<dyn Clock>,
    objects: Mutex<BTreeMap<Key, Standing>>,
}

impl StateRecorder {
    pub(super) fn new(subject: Subject, objectives: Objectives, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            subject,
            objectives,
            clock,
            objects: Mutex::default(),
        }))
    }

    /// The object is in this state, which began then if the object records it. A text that is no state of the
    /// [table](Subject::states) counts as `other`.
    pub fn set(&self, object: Key, state: &str, began: Option<DateTime<Utc>>) {
        let state = self.0.subject.state(state);
        let now = self.0.clock.monotonic();
        let mut objects = self.0.objects.lock();
        let before = objects.get(&object).filter(|before| before.state == state);
        let standing = Standing {
            state,
            observed: before.map_or(now, |before| before.observed),
            began,
            is_held: before.is_some_and(|before| before.is_held),
            resumed: before.and_then(|before| before.resumed),
        };
        objects.insert(object, standing);
    }

    /// Whether no controller works on an object in its present state. The time counts for the objective from the end of that on,
    /// and from the first observation of this process on: an object does not record when a pause ended.
    pub fn hold(&self, object: &Key, is_held: bool) {
        let now = self.0.clock.monotonic();
        if let Some(standing) = self.0.objects.lock().get_mut(object) {
            if standing.is_held && !is_held {
                standing.resumed = Some(now);
            }
            standing.is_held = is_held;
        }
    }

    /// The object does not exist any more.
    pub fn remove(&self, object: &Key) {
        self.0.objects.lock().remove(object);
    }

    pub(super) fn collector(&self) -> Box<dyn Collector> {
        Box::new(self.clone())
    }

    fn tallies(&self) -> Vec<Tally> {
        let (wall, monotonic) = (self.0.clock.now(), self.0.clock.monotonic());
        let subject = self.0.subject;
        let tally = |(state, _): &(&'static str, _)| Tally::of(state, self.0.objectives.of(subject, state));
        let mut tallies: Vec<Tally> = subject.states().iter().map(tally).collect();
        for standing in self.0.objects.lock().values() {
            let recorded = standing.began.map(|began| wall.signed_duration_since(began));
            // A time that is ahead is from another clock: it counts as now.
            let recorded = recorded.and_then(|age| age.to_std().ok()).unwrap_or_default();
            let age = recorded.max(monotonic.since(standing.observed));
            if let Some(tally) = tallies.iter_mut().find(|tally| tally.by.state == standing.state) {
                // A pause that ended before this process observed the object is in no record.
                let counted = monotonic.since(standing.resumed.unwrap_or(standing.observed));
                tally.add(age, counted, standing.is_held);
            }
        }
        tallies
    }
}

impl fmt::Debug for StateRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateRecorder").field(&self.0.subject).finish()
    }
}

/// The objects in one state.
struct Tally {
    by: ByState,
    objective: Option<Duration>,
    objects: u32,
    above: u32,
    oldest: Duration,
    sum: f64,
    /// One for each bound of [`BUCKETS`], and one for what is above all.
    buckets: [u64; BUCKETS.len() + 1],
}

impl Tally {
    const fn of(state: &'static str, objective: Option<Duration>) -> Self {
        Self {
            by: ByState { state },
            objective,
            objects: 0,
            above: 0,
            oldest: Duration::ZERO,
            sum: 0.0,
            buckets: [0; BUCKETS.len() + 1],
        }
    }

    /// Adds an object of this age, of which this part counts for the objective.
    fn add(&mut self, age: Duration, counted: Duration, is_held: bool) {
        self.objects = self.objects.saturating_add(1);
        let is_above = !is_held && self.objective.is_some_and(|objective| counted > objective);
        self.above = self.above.saturating_add(u32::from(is_above));
        self.oldest = self.oldest.max(age);
        self.sum += age.as_secs_f64();
        let bound = BUCKETS.iter().position(|bound| age.as_secs_f64() <= *bound);
        if let Some(bucket) = self.buckets.get_mut(bound.unwrap_or(BUCKETS.len())) {
            *bucket = bucket.saturating_add(1);
        }
    }
}

impl Collector for StateRecorder {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (names, tallies) = (
            match self.0.subject {
                Subject::Host => HOSTS,
                Subject::Machine => MACHINES,
            },
            self.tallies(),
        );
        let with_objective = |tally: &&Tally| tally.objective.is_some();
        gauge(
            &mut encoder,
            (names.objects, "Objects by state"),
            tallies.iter().map(|tally| (&tally.by, tally.objects.into())),
        )?;
        gauge(
            &mut encoder,
            (names.oldest, "Seconds that the oldest object of a state has been in it"),
            tallies.iter().map(|tally| (&tally.by, tally.oldest.as_secs_f64())),
        )?;
        gauge(
            &mut encoder,
            (
                names.objective,
                "Seconds that an object is in the state at most, by --state-objectives",
            ),
            tallies
                .iter()
                .filter_map(|tally| Some((&tally.by, tally.objective?.as_secs_f64()))),
        )?;
        gauge(
            &mut encoder,
            (
                names.above,
                "Objects that have been in the state for longer than its objective",
            ),
            tallies
                .iter()
                .filter(with_objective)
                .map(|tally| (&tally.by, tally.above.into())),
        )?;
        let help = "Seconds that the objects of a state have been in it, at this scrape: to be queried without rate()";
        let mut ages = encoder.encode_descriptor(names.ages, help, None, MetricType::Histogram)?;
        for tally in &tallies {
            let bounds = BUCKETS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(tally.buckets).collect();
            ages.encode_family(&tally.by)?.encode_histogram::<NoLabelSet>(
                tally.sum,
                tally.objects.into(),
                &buckets,
                None,
            )?;
        }
        Ok(())
    }
}

/// One gauge with a series for each label set.
fn gauge<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    series: impl Iterator<Item = (&'a ByState, f64)>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (by, value) in series {
        metric.encode_family(by)?.encode_gauge(&value)?;
    }
    Ok(())
}
