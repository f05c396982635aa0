//! The flow on `kube::runtime`: a `Controller` for each stage, and its store for whoever looks its kind up.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, ResourceExt as _};
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::kind::Kind;
use metal3_sim_faults::Plan;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::account::{Account, Tally};
use crate::flow::{self, NAMESPACE, Port, Seen, Stage, claim_of};
use crate::late;
use crate::ours::Numbers;
use crate::site::Site;

/// The library has no back-off of a key; a second is kind to it.
const RETRY: Duration = Duration::from_secs(1);
/// The stream that wakes a key and the store that it looks into are two watches. Where the first is ahead, the pass sees
/// nothing, and nothing wakes the key again: without a timer the flow stands still for ever.
const RECHECK: Duration = Duration::from_secs(30);

pub(crate) struct Stores {
    claims: Store<Metal3DataClaim>,
    children: Store<Metal3Data>,
    pool_claims: Store<IPClaim>,
    addresses: Store<IPAddress>,
}

/// A part with a store.
pub(crate) trait Held: Kind {
    fn store(stores: &Stores) -> &Store<Self>;
}

macro_rules! held {
    ($($kind:ty: $store:ident;)+) => {$(
        impl Held for $kind {
            fn store(stores: &Stores) -> &Store<Self> {
                &stores.$store
            }
        }
    )+};
}

held! {
    Metal3DataClaim: claims;
    Metal3Data: children;
    IPClaim: pool_claims;
    IPAddress: addresses;
}

struct Theirs {
    stage: Stage,
    stores: Arc<Stores>,
    numbers: Numbers,
    client: Client,
    account: Account,
}

impl Port for Theirs {
    type Refusal = kube::Error;

    fn named<K: Seen>(&self, name: &str) -> Option<Arc<K>> {
        <K as Held>::store(&self.stores).get(&ObjectRef::new(name).within(NAMESPACE))
    }

    fn made_for<K: Seen>(&self, claim: &str) -> Option<Arc<K>> {
        <K as Held>::store(&self.stores).find(|object| claim_of(object).as_deref() == Some(claim))
    }

    fn number<K: Seen>(&self) -> u32 {
        let name = |number| K::numbered(number, "").name_any();
        self.numbers
            .next::<K>(|number| self.named::<K>(&name(number)).is_some())
    }

    async fn create<K: Seen>(&self, object: K) -> Result<K, kube::Error> {
        let api: Api<K> = Api::namespaced(self.client.clone(), NAMESPACE);
        api.create(&PostParams::default(), &object).await
    }

    async fn report<K: Seen>(&self, object: &K, status: Value) -> Result<(), kube::Error> {
        let api: Api<K> = Api::namespaced(self.client.clone(), NAMESPACE);
        let patch = json!({"metadata": {"resourceVersion": object.resource_version()}, "status": status});
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        api.patch_status(&object.name_any(), &params, &patch).await.map(drop)
    }
}

async fn reconcile<K: Kind>(object: Arc<K>, theirs: Arc<Theirs>) -> Result<Action, kube::Error> {
    let key = object.name_any();
    theirs.account.pass(theirs.stage, &key);
    let passed = flow::pass(&*theirs, theirs.stage, &key).await;
    passed
        .inspect_err(|_| theirs.account.failure(theirs.stage, &key))
        .map(|()| Action::requeue(RECHECK))
}

fn retry<K: Kind>(_: Arc<K>, _: &kube::Error, _: Arc<Theirs>) -> Action {
    Action::requeue(RETRY)
}

fn fill<K: Kind>(process: &mut JoinSet<()>, client: &Client) -> Store<K> {
    let (store, writer) = reflector::store();
    let events = watcher(Api::<K>::all(client.clone()), watcher::Config::default());
    let filled = reflector(writer, events).default_backoff();
    process.spawn(filled.for_each(|_| async {}));
    store
}

fn controller<K: Kind>(client: &Client) -> Controller<K> {
    let api = Api::all(client.clone());
    Controller::new(api, watcher::Config::default()).with_config(Config::default().concurrency(10))
}

fn process(client: &Client, account: &Account) -> JoinSet<()> {
    let mut process = JoinSet::new();
    let claims = controller::<Metal3DataClaim>(client);
    let children = controller::<Metal3Data>(client);
    let pool = controller::<IPClaim>(client);
    let stores = Arc::new(Stores {
        claims: claims.store(),
        children: children.store(),
        pool_claims: pool.store(),
        addresses: fill(&mut process, client),
    });
    let numbers = Numbers::default();
    let context = |stage| {
        Arc::new(Theirs {
            stage,
            stores: Arc::clone(&stores),
            numbers: numbers.clone(),
            client: client.clone(),
            account: account.clone(),
        })
    };
    let config = watcher::Config::default;
    let claims = claims
        .watches(Api::<Metal3Data>::all(client.clone()), config(), |child| {
            claim_of(&child).map(|claim| ObjectRef::new(&claim).within(NAMESPACE))
        })
        .run(reconcile, retry, context(Stage::Claim));
    process.spawn(claims.for_each(|_| async {}));
    let children = children
        .watches(Api::<IPClaim>::all(client.clone()), config(), |claim| {
            Some(ObjectRef::new(&claim.name_any()).within(NAMESPACE))
        })
        .run(reconcile, retry, context(Stage::Child));
    process.spawn(children.for_each(|_| async {}));
    let pool = pool
        .watches(Api::<IPAddress>::all(client.clone()), config(), |address| {
            claim_of(&address).map(|claim| ObjectRef::new(&claim).within(NAMESPACE))
        })
        .run(reconcile, retry, context(Stage::Pool));
    process.spawn(pool.for_each(|_| async {}));
    process
}

/// As [`crate::ours::run`], without crashes.
pub(crate) async fn run(claims: u32, faults: Plan) -> Tally {
    let site = Site::open(claims).await;
    let account = Account::default();
    let client = late::client(site.server.client("flow"), faults, &account);
    let running = process(&client, &account);
    site.finished().await;
    site.echoes().await;
    drop(running);
    account.close(&site.server, claims).await
}
