//! The flow on caches, writers and controllers of this crate.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use chrono::DateTime;
use futures::future::BoxFuture;
use kube::{Client, Resource};
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::kind::Kind;
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::cache::{Identity, Index, Indexes, Key, SharedCache};
use metal3_runtime::clock::TimerClock;
use metal3_runtime::patch::{Changes, MergePatch, apply};
use metal3_runtime::role;
use metal3_runtime::watch::{Scope, Watch};
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{Mode, NoCache, Writer};
use metal3_sim_faults::Plan;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::delays;
use crate::flow::{self, Backend, FlowKind, NAMESPACE, Stage, claim_of};
use crate::report::{Counters, Counts};
use crate::setup::TestEnv;

role! {
    /// All requests of the flow.
    pub(crate) struct Flow {
        Metal3DataClaim: List, Watch, PatchStatus;
        Metal3Data: List, Watch, Create, PatchStatus;
        IPClaim: List, Watch, Create, PatchStatus;
        IPAddress: List, Watch, Create;
    }
}

/// Whether own writes enter the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Barrier {
    On,
    Off,
}

/// Keys by the claim that an object was made for.
#[derive(Debug, Default)]
pub(crate) struct ByClaim(Index<String>);

impl<K: Resource> Indexes<K> for ByClaim {
    fn replace(&mut self, key: &Key, old: Option<&K>, new: Option<&K>) {
        self.0.replace(key, old.and_then(claim_of), new.and_then(claim_of));
    }
}

type FlowCache<K> = SharedCache<K, ByClaim>;

#[derive(Clone, Default)]
pub(crate) struct Caches {
    claims: FlowCache<Metal3DataClaim>,
    children: FlowCache<Metal3Data>,
    pool_claims: FlowCache<IPClaim>,
    addresses: FlowCache<IPAddress>,
}

/// A kind with a cache and the verbs of the flow.
pub(crate) trait Cached: Kind {
    fn cache(caches: &Caches) -> &FlowCache<Self>;
    fn create(backend: &RuntimeBackend, object: Self) -> BoxFuture<'_, Result<Self, Fault>>;
    fn report(backend: &RuntimeBackend, key: Key, patch: MergePatch) -> BoxFuture<'_, Result<(), Fault>>;
}

macro_rules! cached {
    ($kind:ty, $cache:ident, create: $create:ident, report: $report:ident) => {
        impl Cached for $kind {
            fn cache(caches: &Caches) -> &FlowCache<Self> {
                &caches.$cache
            }

            fn create(backend: &RuntimeBackend, object: Self) -> BoxFuture<'_, Result<Self, Fault>> {
                cached!(@$create backend, object)
            }

            fn report(backend: &RuntimeBackend, key: Key, patch: MergePatch) -> BoxFuture<'_, Result<(), Fault>> {
                cached!(@$report backend, key, patch)
            }
        }
    };
    (@creates $backend:ident, $object:ident) => {
        Box::pin(async move {
            let written = match $backend.barrier {
                Barrier::On => $backend.writer.create(Self::cache(&$backend.caches), &$object).await?,
                Barrier::Off => $backend.writer.create(&NoCache, &$object).await?,
            };
            Ok(written.object().unwrap_or($object))
        })
    };
    (@reports $backend:ident, $key:ident, $patch:ident) => {
        Box::pin(async move {
            match $backend.barrier {
                Barrier::On => $backend.writer.patch_status(Self::cache(&$backend.caches), &$key, $patch).await?,
                Barrier::Off => $backend.writer.patch_status::<Self>(&NoCache, &$key, $patch).await?,
            };
            Ok(())
        })
    };
    (@never $($ignored:ident),+) => {{
        $(let _ = $ignored;)+
        Box::pin(async { Err(Fault::bug("the flow never sends this request")) })
    }};
}

cached!(Metal3DataClaim, claims, create: never, report: reports);
cached!(Metal3Data, children, create: creates, report: reports);
cached!(IPClaim, pool_claims, create: creates, report: reports);
cached!(IPAddress, addresses, create: creates, report: never);

/// Numbers allocated in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbers(Arc<Mutex<BTreeMap<&'static str, u32>>>);

impl Numbers {
    /// The next number of a kind that is not taken.
    pub(crate) fn next<K: Kind>(&self, taken: impl Fn(u32) -> bool) -> u32 {
        let mut numbers = self.0.lock();
        let next = numbers.entry(K::KIND).or_default();
        while taken(*next) {
            *next += 1;
        }
        *next += 1;
        *next - 1
    }
}

pub(crate) struct RuntimeBackend {
    caches: Caches,
    numbers: Numbers,
    writer: Writer<Flow>,
    barrier: Barrier,
}

fn key(name: &str) -> Key {
    Key {
        namespace: NAMESPACE.to_owned(),
        name: name.to_owned(),
    }
}

impl Backend for RuntimeBackend {
    type Error = Fault;

    fn named<K: FlowKind>(&self, name: &str) -> Option<Arc<K>> {
        <K as Cached>::cache(&self.caches).find(&key(name)).into_present()
    }

    fn made_for<K: FlowKind>(&self, claim: &str) -> Option<Arc<K>> {
        let found =
            <K as Cached>::cache(&self.caches).read(|cache| cache.indexes().0.get(&claim.to_owned()).next().cloned());
        self.named(&found?.name)
    }

    fn number<K: FlowKind>(&self) -> u32 {
        let name = |number| K::numbered(number, "").meta().name.clone().unwrap_or_default();
        self.numbers
            .next::<K>(|number| self.named::<K>(&name(number)).is_some())
    }

    async fn create<K: FlowKind>(&self, object: K) -> Result<K, Fault> {
        <K as Cached>::create(self, object).await
    }

    async fn report<K: FlowKind>(&self, object: &K, status: Value) -> Result<(), Fault> {
        let seen = Identity::of(object).unwrap();
        let before = serde_json::to_value(object).unwrap();
        let mut after = before.clone();
        apply(&json!({"status": status}), &mut after);
        let patch = Changes::between(&before, &after).status.unwrap();
        <K as Cached>::report(self, seen.key, patch.with_precondition(&seen.version)).await
    }
}

/// One controller of the flow.
struct FlowReconciler {
    stage: Stage,
    caches: Caches,
    numbers: Numbers,
    barrier: Barrier,
    counters: Counters,
}

impl Reconciler for FlowReconciler {
    type Key = String;
    type Role = Flow;

    async fn reconcile(&self, key: &String, writer: &Writer<Flow>) -> Result<Next, Fault> {
        self.counters.reconcile(self.stage, key);
        let backend = RuntimeBackend {
            caches: self.caches.clone(),
            numbers: self.numbers.clone(),
            writer: writer.clone(),
            barrier: self.barrier,
        };
        let passed = flow::reconcile(&backend, self.stage, key).await;
        passed
            .inspect_err(|_| self.counters.failure(self.stage, key))
            .map(|()| Next::Done)
    }
}

fn watch<K>(process: &mut JoinSet<()>, client: &Client, cache: &FlowCache<K>, clock: &Arc<TimerClock>)
where
    K: Cached,
    Flow: Permits<verb::List, K> + Permits<verb::Watch, K>,
{
    let clock = Arc::clone(clock);
    let watch = Watch::whole::<Flow>(client.clone(), cache.clone(), &(), Scope::everywhere(), clock);
    process.spawn(watch.run(CancellationToken::new()));
}

/// A process with empty caches. Dropping it is a crash.
fn process(client: &Client, barrier: Barrier, counters: &Counters) -> JoinSet<()> {
    let (caches, numbers) = (Caches::default(), Numbers::default());
    let clock = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let mut process = JoinSet::new();
    let controller = |name, stage| {
        let reconciler = FlowReconciler {
            stage,
            caches: caches.clone(),
            numbers: numbers.clone(),
            barrier,
            counters: counters.clone(),
        };
        let writer = Writer::new(client.clone(), Mode::Perform);
        Controller::new(name, clock.clone(), writer, reconciler).workers(10)
    };
    let controllers = [
        controller("claims", Stage::Claim)
            .watches(&caches.claims, |change| change.key().map(|key| key.name))
            .watches(&caches.children, |change| change.object().and_then(claim_of)),
        controller("children", Stage::Child)
            .watches(&caches.children, |change| change.key().map(|key| key.name))
            .watches(&caches.pool_claims, |change| change.key().map(|key| key.name)),
        controller("pool", Stage::Pool)
            .watches(&caches.pool_claims, |change| change.key().map(|key| key.name))
            .watches(&caches.addresses, |change| change.object().and_then(claim_of)),
    ];
    for controller in controllers {
        process.spawn(async move {
            controller.run(CancellationToken::new()).await;
        });
    }
    watch(&mut process, client, &caches.claims, &clock);
    watch(&mut process, client, &caches.children, &clock);
    watch(&mut process, client, &caches.pool_claims, &clock);
    watch(&mut process, client, &caches.addresses, &clock);
    process
}

/// Runs the flow to its end, and until late watch events have arrived.
pub(crate) async fn run(claims: u32, faults: Plan, barrier: Barrier) -> Counts {
    let env = TestEnv::open(claims).await;
    let counters = Counters::default();
    let mut crashes = counters.crashes.subscribe();
    let client = delays::client(env.server.client("flow"), faults, &counters);
    let mut running = process(&client, barrier, &counters);
    let mut end = pin!(env.finished());
    loop {
        tokio::select! {
            biased;
            crashed = crashes.changed() => {
                crashed.unwrap();
                running.shutdown().await;
                counters.restart().await;
                running = process(&client, barrier, &counters);
            }
            () = &mut end => break,
        }
    }
    env.wait_for_watches().await;
    counters.close(&env.server, claims).await
}
