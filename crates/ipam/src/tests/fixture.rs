//! The controller on a simulated API server, with any number of replicas and no leader.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::{NamespaceResourceScope, Resource};
use metal3_api::cluster::{self, Cluster as Owner, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sim_cluster::{Cluster, Options};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::api_server::{NAMESPACE, POOL};
use super::program::{claim_document, create_claim, delete_claim, kinds, start};
use crate::claim::{ClaimKind, ObjectId};

/// The Cluster of a pool, if any.
pub(super) const OWNER: &str = "alpha";

/// A cluster, and a client of its user.
pub(super) struct Fixture {
    pub(super) cluster: Cluster,
    pub(super) user: kube::Client,
    /// Address objects that a user removed by force.
    pub(super) lost: Mutex<BTreeSet<ObjectId>>,
}

pub(super) struct Running {
    tasks: JoinSet<()>,
}

impl Running {
    /// Stops it without shutdown.
    pub(super) fn kill(mut self) {
        self.tasks.abort_all();
    }
}

/// The server that every fixture forks: installing the kinds would take a quarter of a short history. Its seed is
/// unique, so that no fixture creates the UIDs of the kinds.
static PREPARED: LazyLock<Cluster> = LazyLock::new(|| {
    let cluster = Cluster::start(&Options::seeded(u64::MAX));
    cluster.install(&kinds()).unwrap();
    cluster
});

impl Fixture {
    pub(super) async fn new(seed: u64) -> Self {
        let cluster = PREPARED.fork(&Options::seeded(seed).clock);
        cluster.reseed(seed);
        let user = cluster.client("user");
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(user.clone());
        let namespace = serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } })).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        Self {
            cluster,
            user,
            lost: Mutex::default(),
        }
    }

    pub(super) fn replica(&self, identity: &str) -> Running {
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        Running {
            tasks: start(&self.cluster.client("ipam"), &clock, identity, 2),
        }
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.user.clone(), NAMESPACE)
    }

    pub(super) async fn pool(&self, spec: Value) {
        self.make::<IPPool>(json!({ "metadata": { "name": POOL }, "spec": spec }))
            .await;
    }

    pub(super) async fn claim(&self, kind: ClaimKind, name: &str) {
        // Claims of this name belong to a Cluster, whatever their pool belongs to.
        let labels = if name == "c" {
            json!({ "cluster.x-k8s.io/cluster-name": OWNER })
        } else {
            json!({})
        };
        let document = claim_document(kind, POOL, json!({ "name": name, "labels": labels }));
        // The name may still be used by a claim that is being deleted.
        let _ = create_claim((&self.user, NAMESPACE), kind, document).await;
    }

    pub(super) async fn make<K>(&self, document: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Serialize
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(document).unwrap();
        // The name may still be used by an object that is being deleted.
        let _ = self.api::<K>().create(&PostParams::default(), &object).await;
    }

    pub(super) async fn delete(&self, kind: ClaimKind, name: &str) {
        drop(delete_claim((&self.user, NAMESPACE), kind, name).await);
    }

    /// Creates the Cluster of pools.
    pub(super) async fn make_owner(&self) {
        self.make::<Owner>(json!({ "metadata": { "name": OWNER }, "spec": {} }))
            .await;
    }

    pub(super) async fn delete_owner(&self) {
        drop(self.api::<Owner>().delete(OWNER, &DeleteParams::default()).await);
    }

    /// Pauses or resumes the Cluster, if it exists.
    pub(super) async fn pause_owner(&self, paused: bool) {
        let change = Patch::Merge(json!({ "spec": { "paused": paused } }));
        drop(self.api::<Owner>().patch(OWNER, &PatchParams::default(), &change).await);
    }

    /// Removes an address object with its finalizer.
    pub(super) async fn lose(&self, kind: ClaimKind, name: &str) {
        self.lost.lock().insert(ObjectId::new(kind, name));
        match kind {
            ClaimKind::Metal3 => self.force::<IPAddress>(name).await,
            ClaimKind::ClusterApi => self.force::<cluster::IPAddress>(name).await,
        }
    }

    async fn force<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        drop(self.api::<K>().patch(name, &PatchParams::default(), &none).await);
        drop(self.api::<K>().delete(name, &DeleteParams::default()).await);
    }

    pub(super) async fn delete_pool(&self) {
        drop(self.api::<IPPool>().delete(POOL, &DeleteParams::default()).await);
    }

    pub(super) async fn edit_pool(&self, change: Value) {
        let _ = self
            .api::<IPPool>()
            .patch(POOL, &PatchParams::default(), &Patch::Merge(change))
            .await;
    }

    /// The address of each claim, by kind and name.
    pub(super) async fn allocations(&self) -> Vec<(String, Option<String>)> {
        let own: Vec<IPAddress> = self.api().list(&Default::default()).await.unwrap().items;
        let of_own = |name: &str| {
            own.iter()
                .find(|a| a.metadata.name.as_deref() == Some(name))
                .map(|a| a.spec.address.to_string())
        };
        let cluster_api: Vec<cluster::IPAddress> = self.api().list(&Default::default()).await.unwrap().items;
        let of_theirs = |name: &str| {
            cluster_api
                .iter()
                .find(|a| a.metadata.name.as_deref() == Some(name))
                .map(|a| a.spec.address.clone())
        };
        let mut allocations = Vec::new();
        for claim in self.api::<IPClaim>().list(&Default::default()).await.unwrap() {
            let named = claim.status.address.and_then(|address| address.name);
            allocations.push((
                format!("IPClaim {}", claim.metadata.name.unwrap()),
                named.and_then(|name| of_own(&name)),
            ));
        }
        for claim in self.api::<IPAddressClaim>().list(&Default::default()).await.unwrap() {
            let named = claim.status.address_ref.map(|address| address.name);
            allocations.push((
                format!("IPAddressClaim {}", claim.metadata.name.unwrap()),
                named.and_then(|name| of_theirs(&name)),
            ));
        }
        allocations
    }

    /// Waits until nothing is written for a while.
    pub(super) async fn wait_until_idle(&self) {
        let mut before = 0;
        for _ in 0..500 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let writes = self.writes();
            if writes == before {
                return;
            }
            before = writes;
        }
        panic!("not idle: {:?}", self.cluster.audit());
    }

    /// Number of writes of the controller.
    pub(super) fn writes(&self) -> u64 {
        let audit = self.cluster.audit();
        let of_ours = audit
            .counts()
            .filter(|((user, verb, _), _)| user == "ipam" && ["create", "patch", "delete"].contains(verb));
        of_ours.map(|(_, number)| number).sum()
    }
}
