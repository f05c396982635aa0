//! The flow on `kube::runtime`: a `Controller` for each stage, and its store for reads of other kinds.

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

use crate::delays;
use crate::flow::{self, Backend, FlowKind, NAMESPACE, Stage, claim_of};
use crate::own_controller::Numbers;
use crate::report::{Counters, Counts};
use crate::setup::TestEnv;

/// The library has no backoff per key.
const RETRY: Duration = Duration::from_secs(1);
/// The stream that triggers a key and the store that a reconcile reads are two watches. When the first is ahead, the
/// reconcile finds no object and the key is not triggered again: without a timer the flow stops.
const RECHECK: Duration = Duration::from_secs(30);

pub(crate) struct Stores {
    claims: Store<Metal3DataClaim>,
    children: Store<Metal3Data>,
    pool_claims: Store<IPClaim>,
    addresses: Store<IPAddress>,
}

/// A kind with a store.
pub(crate) trait Stored: Kind {
    fn store(stores: &Stores) -> &Store<Self>;
}

macro_rules! stored {
    ($($kind:ty: $store:ident;)+) => {$(
        impl Stored for $kind {
            fn store(stores: &Stores) -> &Store<Self> {
                &stores.$store
            }
        }
    )+};
}

stored! {
    Metal3DataClaim: claims;
    Metal3Data: children;
    IPClaim: pool_claims;
    IPAddress: addresses;
}

struct KubeBackend {
    stage: Stage,
    stores: Arc<Stores>,
    numbers: Numbers,
    client: Client,
    counters: Counters,
}

impl Backend for KubeBackend {
    type Error = kube::Error;

    fn named<K: FlowKind>(&self, name: &str) -> Option<Arc<K>> {
        <K as Stored>::store(&self.stores).get(&ObjectRef::new(name).within(NAMESPACE))
    }

    fn made_for<K: FlowKind>(&self, claim: &str) -> Option<Arc<K>> {
        <K as Stored>::store(&self.stores).find(|object| claim_of(object).as_deref() == Some(claim))
    }

    fn number<K: FlowKind>(&self) -> u32 {
        let name = |number| K::numbered(number, "").name_any();
        self.numbers
            .next::<K>(|number| self.named::<K>(&name(number)).is_some())
    }

    async fn create<K: FlowKind>(&self, object: K) -> Result<K, kube::Error> {
        let api: Api<K> = Api::namespaced(self.client.clone(), NAMESPACE);
        api.create(&PostParams::default(), &object).await
    }

    async fn report<K: FlowKind>(&self, object: &K, status: Value) -> Result<(), kube::Error> {
        let api: Api<K> = Api::namespaced(self.client.clone(), NAMESPACE);
        let patch = json!({"metadata": {"resourceVersion": object.resource_version()}, "status": status});
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        api.patch_status(&object.name_any(), &params, &patch).await.map(drop)
    }
}

async fn reconcile<K: Kind>(object: Arc<K>, backend: Arc<KubeBackend>) -> Result<Action, kube::Error> {
    let key = object.name_any();
    backend.counters.reconcile(backend.stage, &key);
    let passed = flow::reconcile(&*backend, backend.stage, &key).await;
    passed
        .inspect_err(|_| backend.counters.failure(backend.stage, &key))
        .map(|()| Action::requeue(RECHECK))
}

fn retry<K: Kind>(_: Arc<K>, _: &kube::Error, _: Arc<KubeBackend>) -> Action {
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

fn process(client: &Client, counters: &Counters) -> JoinSet<()> {
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
        Arc::new(KubeBackend {
            stage,
            stores: Arc::clone(&stores),
            numbers: numbers.clone(),
            client: client.clone(),
            counters: counters.clone(),
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

/// Like [`crate::own_controller::run`], without crashes.
pub(crate) async fn run(claims: u32, faults: Plan) -> Counts {
    let env = TestEnv::open(claims).await;
    let counters = Counters::default();
    let client = delays::client(env.server.client("flow"), faults, &counters);
    let running = process(&client, &counters);
    env.finished().await;
    env.wait_for_watches().await;
    drop(running);
    counters.close(&env.server, claims).await
}
