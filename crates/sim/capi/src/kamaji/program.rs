//! Runs the provider and its tenants with the recorded delays.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metal3_runtime::cache::Key;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::provider::{Outcome, is_watched, plan};
use super::tenant::{self, SERVICE};
use crate::kinds::{CLUSTER, KAMAJI_CONTROL_PLANE, Kind, METAL3_CLUSTER, TENANT};
use crate::program::{Parts, perform};
use crate::view::Snapshot;
use crate::watch::{WatchEvent, follow};
use crate::write::Write;

/// Backoff after the first failure.
const FIRST: Duration = Duration::from_millis(5);
/// Longest backoff.
const LONGEST: Duration = Duration::from_secs(1000);
/// Pause after a rejected write.
const RETRY: Duration = Duration::from_secs(1);
/// Watched kinds; the first two are only read.
const FOLLOWED: [&Kind; 5] = [CLUSTER, METAL3_CLUSTER, KAMAJI_CONTROL_PLANE, TENANT, SERVICE];

/// Runs both until the future is dropped.
pub async fn run(parts: Parts) {
    let (to, events) = unbounded_channel();
    let mut watches = JoinSet::new();
    for kind in FOLLOWED {
        let wrap = move |event| (kind, event);
        watches.spawn(follow(parts.client.clone(), kind.clone(), None, to.clone(), wrap));
    }
    let mut program = Program {
        parts,
        snapshot: Snapshot::default(),
        unlisted: FOLLOWED.iter().map(|kind| kind.kind).collect(),
        failures: BTreeMap::new(),
        reconciles: BTreeMap::new(),
        steps: BTreeMap::new(),
    };
    program.run(events).await;
}

struct Program {
    parts: Parts,
    snapshot: Snapshot,
    unlisted: BTreeSet<&'static str>,
    /// Failures since the last success, by control plane.
    failures: BTreeMap<Key, u32>,
    /// Time of the next reconcile, by control plane.
    reconciles: BTreeMap<Key, Instant>,
    /// Time of the next step, by tenant.
    steps: BTreeMap<Key, Instant>,
}

impl Program {
    async fn run(&mut self, mut events: UnboundedReceiver<(&'static Kind, WatchEvent)>) {
        loop {
            let next = self.reconciles.values().chain(self.steps.values()).min().copied();
            let next = next.filter(|_| self.unlisted.is_empty());
            let next_due = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some((kind, event)) => self.apply(kind, event),
                    None => return,
                },
                () = next_due => self.run_due().await,
            }
        }
    }

    fn apply(&mut self, kind: &'static Kind, event: WatchEvent) {
        match event {
            WatchEvent::Applied(object) => {
                let key = object.key();
                if self.snapshot.put(kind, object) {
                    self.enqueue(kind, &key);
                }
            }
            WatchEvent::Deleted(object) => {
                self.snapshot.remove(kind, &object.key());
                self.enqueue(kind, &object.key());
            }
            WatchEvent::Listed(keys) => {
                self.snapshot.keep(kind, &keys);
                self.unlisted.remove(kind.kind);
            }
        }
    }

    /// A control plane, its tenant and the Service of the tenant have one name. No other object triggers the provider.
    fn enqueue(&mut self, kind: &'static Kind, key: &Key) {
        let plane = self.snapshot.get(KAMAJI_CONTROL_PLANE, &key.namespace, &key.name);
        if kind == TENANT || kind == KAMAJI_CONTROL_PLANE && plane.is_none_or(is_watched) {
            schedule(&mut self.reconciles, key, Instant::now());
        }
        if kind == TENANT || kind == SERVICE {
            let tenant = self.snapshot.get(TENANT, &key.namespace, &key.name);
            match tenant.and_then(|tenant| tenant::next(&self.snapshot, tenant)) {
                Some((after, _)) => schedule(&mut self.steps, key, Instant::now() + after),
                None => drop(self.steps.remove(key)),
            }
        }
    }

    async fn run_due(&mut self) {
        let now = Instant::now();
        self.snapshot.now = self.parts.clock.now();
        for key in due(&mut self.steps, now) {
            let tenant = self.snapshot.get(TENANT, &key.namespace, &key.name);
            if let Some((_, writes)) = tenant.and_then(|tenant| tenant::next(&self.snapshot, tenant)) {
                self.perform(&writes).await;
                self.enqueue(TENANT, &key);
            }
        }
        for key in due(&mut self.reconciles, now) {
            let Some(plane) = self.snapshot.get(KAMAJI_CONTROL_PLANE, &key.namespace, &key.name) else {
                self.failures.remove(&key);
                continue;
            };
            let plan = plan(&self.snapshot, plane);
            let is_done = self.perform(&plan.writes).await;
            let after = match plan.outcome {
                _ if !is_done => Some(RETRY),
                Outcome::Done => None,
                Outcome::RequeueAfter(after) => Some(after),
                Outcome::Failed => Some(self.record_failure(&key)),
            };
            if plan.outcome != Outcome::Failed {
                self.failures.remove(&key);
            }
            if let Some(after) = after {
                schedule(&mut self.reconciles, &key, Instant::now() + after);
            }
        }
    }

    /// Records a failure and returns the backoff.
    fn record_failure(&mut self, key: &Key) -> Duration {
        let count = self.failures.entry(key.clone()).or_default();
        let pause = 2_u32.saturating_pow(*count);
        *count = count.saturating_add(1);
        FIRST.saturating_mul(pause).min(LONGEST)
    }

    /// Returns whether the API server accepted all writes.
    async fn perform(&mut self, writes: &[Write]) -> bool {
        for write in writes {
            match perform(&self.parts, write).await {
                Ok(Some((kind, object))) => {
                    let key = object.key();
                    if self.snapshot.put(kind, object) {
                        self.enqueue(kind, &key);
                    }
                }
                Ok(None) => {}
                Err(why) => {
                    tracing::debug!(?write, "not written: {why}");
                    return false;
                }
            }
        }
        true
    }
}

fn schedule(times: &mut BTreeMap<Key, Instant>, key: &Key, time: Instant) {
    let next = times.entry(key.clone()).or_insert(time);
    *next = time.min(*next);
}

fn due(times: &mut BTreeMap<Key, Instant>, now: Instant) -> Vec<Key> {
    let keys: Vec<Key> = times
        .iter()
        .filter(|(_, time)| **time <= now)
        .map(|(key, _)| key.clone())
        .collect();
    times.retain(|_, time| *time > now);
    keys
}
