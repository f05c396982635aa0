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

use crate::account::{Account, Tally};
use crate::flow::{self, NAMESPACE, Port, Seen, Stage, claim_of};
use crate::late;
use crate::site::Site;

role! {
    /// All that the flow does.
    pub(crate) struct Flow {
        Metal3DataClaim: List, Watch, PatchStatus;
        Metal3Data: List, Watch, Create, PatchStatus;
        IPClaim: List, Watch, Create, PatchStatus;
        IPAddress: List, Watch, Create;
    }
}

/// Whether the caches hear of what we write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awareness {
    Barrier,
    None,
}

/// Keys by the claim that an object was made for.
#[derive(Debug, Default)]
pub(crate) struct ByClaim(Index<String>);

impl<K: Resource> Indexes<K> for ByClaim {
    fn replace(&mut self, key: &Key, old: Option<&K>, new: Option<&K>) {
        self.0.replace(key, old.and_then(claim_of), new.and_then(claim_of));
    }
}

type Shelf<K> = SharedCache<K, ByClaim>;

#[derive(Clone, Default)]
pub(crate) struct Caches {
    claims: Shelf<Metal3DataClaim>,
    children: Shelf<Metal3Data>,
    pool_claims: Shelf<IPClaim>,
    addresses: Shelf<IPAddress>,
}

/// A part with a cache and the verbs that the flow needs of it.
pub(crate) trait Held: Kind {
    fn cache(caches: &Caches) -> &Shelf<Self>;
    fn create(ours: &Ours, object: Self) -> BoxFuture<'_, Result<Self, Fault>>;
    fn report(ours: &Ours, key: Key, patch: MergePatch) -> BoxFuture<'_, Result<(), Fault>>;
}

macro_rules! held {
    ($kind:ty, $cache:ident, create: $create:ident, report: $report:ident) => {
        impl Held for $kind {
            fn cache(caches: &Caches) -> &Shelf<Self> {
                &caches.$cache
            }

            fn create(ours: &Ours, object: Self) -> BoxFuture<'_, Result<Self, Fault>> {
                held!(@$create ours, object)
            }

            fn report(ours: &Ours, key: Key, patch: MergePatch) -> BoxFuture<'_, Result<(), Fault>> {
                held!(@$report ours, key, patch)
            }
        }
    };
    (@creates $ours:ident, $object:ident) => {
        Box::pin(async move {
            let written = match $ours.awareness {
                Awareness::Barrier => $ours.writer.create(Self::cache(&$ours.caches), &$object).await?,
                Awareness::None => $ours.writer.create(&NoCache, &$object).await?,
            };
            Ok(written.object().unwrap_or($object))
        })
    };
    (@reports $ours:ident, $key:ident, $patch:ident) => {
        Box::pin(async move {
            match $ours.awareness {
                Awareness::Barrier => $ours.writer.patch_status(Self::cache(&$ours.caches), &$key, $patch).await?,
                Awareness::None => $ours.writer.patch_status::<Self>(&NoCache, &$key, $patch).await?,
            };
            Ok(())
        })
    };
    (@never $($ignored:ident),+) => {{
        $(let _ = $ignored;)+
        Box::pin(async { Err(Fault::bug("the flow never does this")) })
    }};
}

held!(Metal3DataClaim, claims, create: never, report: reports);
held!(Metal3Data, children, create: creates, report: reports);
held!(IPClaim, pool_claims, create: creates, report: reports);
held!(IPAddress, addresses, create: creates, report: never);

/// Numbers given out in this process.
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

pub(crate) struct Ours {
    caches: Caches,
    numbers: Numbers,
    writer: Writer<Flow>,
    awareness: Awareness,
}

fn key(name: &str) -> Key {
    Key {
        namespace: NAMESPACE.to_owned(),
        name: name.to_owned(),
    }
}

impl Port for Ours {
    type Refusal = Fault;

    fn named<K: Seen>(&self, name: &str) -> Option<Arc<K>> {
        <K as Held>::cache(&self.caches).find(&key(name)).into_present()
    }

    fn made_for<K: Seen>(&self, claim: &str) -> Option<Arc<K>> {
        let found =
            <K as Held>::cache(&self.caches).read(|cache| cache.indexes().0.get(&claim.to_owned()).next().cloned());
        self.named(&found?.name)
    }

    fn number<K: Seen>(&self) -> u32 {
        let name = |number| K::numbered(number, "").meta().name.clone().unwrap_or_default();
        self.numbers
            .next::<K>(|number| self.named::<K>(&name(number)).is_some())
    }

    async fn create<K: Seen>(&self, object: K) -> Result<K, Fault> {
        <K as Held>::create(self, object).await
    }

    async fn report<K: Seen>(&self, object: &K, status: Value) -> Result<(), Fault> {
        let seen = Identity::of(object).unwrap();
        let before = serde_json::to_value(object).unwrap();
        let mut after = before.clone();
        apply(&json!({"status": status}), &mut after);
        let patch = Changes::between(&before, &after).status.unwrap();
        <K as Held>::report(self, seen.key, patch.with_precondition(&seen.version)).await
    }
}

/// One controller of the flow.
struct Desk {
    stage: Stage,
    caches: Caches,
    numbers: Numbers,
    awareness: Awareness,
    account: Account,
}

impl Reconciler for Desk {
    type Key = String;
    type Role = Flow;

    async fn reconcile(&self, key: &String, writer: &Writer<Flow>) -> Result<Next, Fault> {
        self.account.pass(self.stage, key);
        let ours = Ours {
            caches: self.caches.clone(),
            numbers: self.numbers.clone(),
            writer: writer.clone(),
            awareness: self.awareness,
        };
        let passed = flow::pass(&ours, self.stage, key).await;
        passed
            .inspect_err(|_| self.account.failure(self.stage, key))
            .map(|()| Next::Done)
    }
}

fn watch<K>(process: &mut JoinSet<()>, client: &Client, cache: &Shelf<K>, clock: &Arc<TimerClock>)
where
    K: Held,
    Flow: Permits<verb::List, K> + Permits<verb::Watch, K>,
{
    let clock = Arc::clone(clock);
    let watch = Watch::whole::<Flow>(client.clone(), cache.clone(), &(), Scope::everywhere(), clock);
    process.spawn(watch.run(CancellationToken::new()));
}

/// A process from its start: nothing is known. Dropping it is a crash.
fn process(client: &Client, awareness: Awareness, account: &Account) -> JoinSet<()> {
    let (caches, numbers) = (Caches::default(), Numbers::default());
    let clock = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let mut process = JoinSet::new();
    let controller = |name, stage| {
        let desk = Desk {
            stage,
            caches: caches.clone(),
            numbers: numbers.clone(),
            awareness,
            account: account.clone(),
        };
        let writer = Writer::new(client.clone(), Mode::Perform);
        Controller::new(name, clock.clone(), writer, desk).workers(10)
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

/// Runs the flow to its end, and on for as long as echoes may come.
pub(crate) async fn run(claims: u32, faults: Plan, awareness: Awareness) -> Tally {
    let site = Site::open(claims).await;
    let account = Account::default();
    let mut crashes = account.crashes.subscribe();
    let client = late::client(site.server.client("flow"), faults, &account);
    let mut running = process(&client, awareness, &account);
    let mut end = pin!(site.finished());
    loop {
        tokio::select! {
            biased;
            crashed = crashes.changed() => {
                crashed.unwrap();
                running.shutdown().await;
                account.restart().await;
                running = process(&client, awareness, &account);
            }
            () = &mut end => break,
        }
    }
    site.echoes().await;
    account.close(&site.server, claims).await
}
