//! The provider and its tenants at work, each at the times that were recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metal3_runtime::hub::Key;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::provider::{Outcome, is_heard, pass};
use super::tenant::{self, SERVICE};
use crate::kinds::{CLUSTER, KAMAJI_CONTROL_PLANE, Kind, METAL3_CLUSTER, TENANT};
use crate::program::{Parts, perform};
use crate::view::World;
use crate::watch::{News, follow};
use crate::write::Write;

/// The pause after the first failure.
const FIRST: Duration = Duration::from_millis(5);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(1000);
/// After a write that the server did not take.
const RETRY: Duration = Duration::from_secs(1);
/// What is followed, the first two only to be looked at.
const FOLLOWED: [&Kind; 5] = [CLUSTER, METAL3_CLUSTER, KAMAJI_CONTROL_PLANE, TENANT, SERVICE];

/// Runs both for ever. Dropping the future ends them.
pub async fn run(parts: Parts) {
    let (to, news) = unbounded_channel();
    let mut watches = JoinSet::new();
    for kind in FOLLOWED {
        let say = move |news| (kind, news);
        watches.spawn(follow(parts.client.clone(), kind.clone(), None, to.clone(), say));
    }
    let mut program = Program {
        parts,
        world: World::default(),
        unlisted: FOLLOWED.iter().map(|kind| kind.kind).collect(),
        failures: BTreeMap::new(),
        passes: BTreeMap::new(),
        steps: BTreeMap::new(),
    };
    program.live(news).await;
}

struct Program {
    parts: Parts,
    world: World,
    unlisted: BTreeSet<&'static str>,
    /// Failures since the last success, by control plane.
    failures: BTreeMap<Key, u32>,
    /// When the provider looks at a control plane next.
    passes: BTreeMap<Key, Instant>,
    /// When something happens to a tenant next.
    steps: BTreeMap<Key, Instant>,
}

impl Program {
    async fn live(&mut self, mut news: UnboundedReceiver<(&'static Kind, News)>) {
        loop {
            let next = self.passes.values().chain(self.steps.values()).min().copied();
            let next = next.filter(|_| self.unlisted.is_empty());
            let waits = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                heard = news.recv() => match heard {
                    Some((kind, news)) => self.take(kind, news),
                    None => return,
                },
                () = waits => self.work().await,
            }
        }
    }

    fn take(&mut self, kind: &'static Kind, news: News) {
        match news {
            News::Seen(object) => {
                let key = object.key();
                if self.world.put(kind, object) {
                    self.stir(kind, &key);
                }
            }
            News::Gone(object) => {
                self.world.remove(kind, &object.key());
                self.stir(kind, &object.key());
            }
            News::Listed(keys) => {
                self.world.keep(kind, &keys);
                self.unlisted.remove(kind.kind);
            }
        }
    }

    /// A control plane, its tenant and that one's Service have one name. Nothing else wakes the provider.
    fn stir(&mut self, kind: &'static Kind, key: &Key) {
        let plane = self.world.get(KAMAJI_CONTROL_PLANE, &key.namespace, &key.name);
        if kind == TENANT || kind == KAMAJI_CONTROL_PLANE && plane.is_none_or(is_heard) {
            sooner(&mut self.passes, key, Instant::now());
        }
        if kind == TENANT || kind == SERVICE {
            let tenant = self.world.get(TENANT, &key.namespace, &key.name);
            match tenant.and_then(|tenant| tenant::next(&self.world, tenant)) {
                Some((after, _)) => sooner(&mut self.steps, key, Instant::now() + after),
                None => drop(self.steps.remove(key)),
            }
        }
    }

    async fn work(&mut self) {
        let now = Instant::now();
        self.world.now = self.parts.clock.now();
        for key in due(&mut self.steps, now) {
            let tenant = self.world.get(TENANT, &key.namespace, &key.name);
            if let Some((_, writes)) = tenant.and_then(|tenant| tenant::next(&self.world, tenant)) {
                self.perform(&writes).await;
                self.stir(TENANT, &key);
            }
        }
        for key in due(&mut self.passes, now) {
            let Some(plane) = self.world.get(KAMAJI_CONTROL_PLANE, &key.namespace, &key.name) else {
                self.failures.remove(&key);
                continue;
            };
            let pass = pass(&self.world, plane);
            let is_done = self.perform(&pass.writes).await;
            let after = match pass.outcome {
                _ if !is_done => Some(RETRY),
                Outcome::Rest => None,
                Outcome::Look(after) => Some(after),
                Outcome::Fail => Some(self.fails(&key)),
            };
            if pass.outcome != Outcome::Fail {
                self.failures.remove(&key);
            }
            if let Some(after) = after {
                sooner(&mut self.passes, &key, Instant::now() + after);
            }
        }
    }

    /// One more failure, and the pause that follows.
    fn fails(&mut self, key: &Key) -> Duration {
        let count = self.failures.entry(key.clone()).or_default();
        let pause = 2_u32.saturating_pow(*count);
        *count = count.saturating_add(1);
        FIRST.saturating_mul(pause).min(LONGEST)
    }

    /// Says whether the server took all of them.
    async fn perform(&mut self, writes: &[Write]) -> bool {
        for write in writes {
            match perform(&self.parts, write).await {
                Ok(Some((kind, object))) => {
                    let key = object.key();
                    if self.world.put(kind, object) {
                        self.stir(kind, &key);
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

fn sooner(times: &mut BTreeMap<Key, Instant>, key: &Key, time: Instant) {
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
