//! One process on the API server stand-in: its cache, and its plans.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::meta::Time;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::Value;

use super::api_server::{ApiServer, NAMESPACE, Objects, POOL, Stored};
use crate::action::{Action, Plan};
use crate::claim::ObjectId;
use crate::facts::{Facts, LiveClaim, LiveReads, RequiredReads};
use crate::index::{PoolIndex, key};
use crate::plan::decide_under;
use crate::rules::Rules;

/// One process that plans for the pool, with its cache.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    pub(super) identity: String,
    pub(super) cache: Arc<Objects>,
    /// The version of the pool before the last list of addresses.
    pub(super) listed: Option<String>,
    pub(super) rules: Rules,
    /// UID of the pool whose deletion it observed.
    pub(super) deleted_pool: Option<String>,
    /// Name of a Cluster that it cannot read.
    pub(super) unreadable: Option<String>,
}

impl Replica {
    pub(super) fn new(identity: &str, server: &ApiServer) -> Self {
        Self {
            identity: identity.to_owned(),
            cache: server.objects.clone(),
            listed: None,
            rules: Rules::ALL,
            deleted_pool: None,
            unreadable: None,
        }
    }

    /// Plans from the cache, with the live reads that the plan requires.
    pub(super) fn plan(&mut self, server: &ApiServer) -> Plan {
        let first = self.plan_with(&LiveReads::default());
        self.plan_on(first, server)
    }

    /// Continues from a plan without live reads.
    pub(super) fn plan_on(&mut self, first: Plan, server: &ApiServer) -> Plan {
        let (mut live_reads, mut plan) = (LiveReads::default(), first);
        for _ in 0..5 {
            if plan.reads.is_empty() {
                return plan;
            }
            self.answer(&plan.reads, server, &mut live_reads);
            plan = self.plan_with(&live_reads);
        }
        panic!("a plan keeps requesting reads: {plan:?}");
    }

    /// Hash of the input of a plan without live reads.
    pub(super) fn content_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.cache.hash(&mut hasher);
        (&self.identity, self.is_listed(), &self.deleted_pool).hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn plan_with(&self, live_reads: &LiveReads) -> Plan {
        let pool = self.cache.pool.as_ref().map(Stored::pool);
        let index = self.index(pool);
        let facts = Facts {
            key: &key(NAMESPACE, POOL),
            pool,
            index: &index,
            identity: &self.identity,
            listed: self.is_listed(),
            live_reads,
            now: Time::default(),
        };
        decide_under(&facts, &self.rules).0
    }

    pub(super) fn list(&mut self, server: &ApiServer) {
        self.listed = Some(self.pool_version());
        Arc::make_mut(&mut self.cache)
            .addresses
            .clone_from(&server.objects.addresses);
    }

    fn answer(&mut self, reads: &RequiredReads, server: &ApiServer, live_reads: &mut LiveReads) {
        if reads.list {
            self.list(server);
        }
        for id in &reads.claims {
            let claim_read = server.objects.claims.get(id).map(|stored| LiveClaim {
                uid: stored.uid().to_owned(),
                address_name: stored.claim().address_name.clone(),
            });
            live_reads.claims.insert(id.clone(), claim_read.into());
        }
        for id in &reads.addresses {
            live_reads
                .addresses
                .insert(id.clone(), server.objects.addresses.contains_key(id));
        }
    }

    pub(super) fn is_listed(&self) -> bool {
        self.listed.as_ref() == Some(&self.pool_version())
    }

    fn pool_version(&self) -> String {
        self.cache
            .pool
            .as_ref()
            .map_or_else(String::new, |pool| format!("{:?}", pool.exactly()))
    }

    fn index(&self, pool: Option<&IPPool>) -> PoolIndex {
        let mut index = PoolIndex::default();
        for stored in self.cache.claims.values() {
            index.put_claim(NAMESPACE, POOL, stored.claim().clone());
        }
        for stored in self.cache.addresses.values() {
            let (pool, object) = stored.address_with_pool();
            index.put_address(NAMESPACE, pool, object.clone());
        }
        if let Some(pool) = pool {
            index.put_pool(
                key(NAMESPACE, POOL),
                crate::ranges::Ranges::of(&pool.spec).covered().clone(),
            );
        }
        if pool.is_none() {
            index.drop_pool(&key(NAMESPACE, POOL), self.deleted_pool.clone());
        }
        index.set_clusters_synced();
        for (name, fact) in &self.cache.clusters {
            index.put_cluster(
                Key {
                    namespace: NAMESPACE.into(),
                    name: name.clone(),
                },
                Observed::Present(fact.clone()),
            );
        }
        if let Some(name) = &self.unreadable {
            let why = UnknownReason::Unreadable("it cannot be read".to_owned());
            index.put_cluster(key(NAMESPACE, name), Observed::Unknown(why));
        }
        index
    }

    /// Updates its cache of the pool.
    pub(super) fn observe_pool(&mut self, server: &ApiServer) {
        if let (Some(pool), None) = (&self.cache.pool, &server.objects.pool) {
            self.deleted_pool = Some(pool.uid().to_owned());
        }
        Arc::make_mut(&mut self.cache).pool.clone_from(&server.objects.pool);
    }

    /// Updates its cache with its own write.
    pub(super) fn observe_write(&mut self, action: &Action, server: &ApiServer) {
        let copy = |from: &BTreeMap<ObjectId, Stored>, to: &mut BTreeMap<ObjectId, Stored>, id: &ObjectId| match from
            .get(id)
        {
            Some(stored) => to.insert(id.clone(), stored.clone()),
            None => to.remove(id),
        };
        let objects = &server.objects;
        if matches!(action, Action::PatchPool(_) | Action::PatchPoolStatus(_)) {
            return self.observe_pool(server);
        }
        let cache = Arc::make_mut(&mut self.cache);
        match action {
            Action::PatchPool(_) | Action::PatchPoolStatus(_) => {}
            Action::PatchClaim(id, _) | Action::PatchClaimStatus(id, _) => {
                copy(&objects.claims, &mut cache.claims, id);
            }
            Action::PatchAddress(id, _) | Action::DeleteAddress { address: id, .. } => {
                copy(&objects.addresses, &mut cache.addresses, id);
            }
            Action::CreateAddress(new) => {
                let id = ObjectId::new(new.claim().kind, new.metadata().name.as_deref().unwrap());
                copy(&objects.addresses, &mut cache.addresses, &id);
            }
        }
    }

    /// Plans and writes with a current cache until nothing is left; returns the number of reconciles.
    pub(super) fn settle(&mut self, server: &mut ApiServer) -> usize {
        for reconciles in 0..200 {
            self.observe_pool(server);
            self.cache = server.objects.clone();
            let plan = self.plan(server);
            if plan.actions.is_empty() {
                return reconciles;
            }
            for chain in plan.actions {
                for action in &chain.actions {
                    if server.perform(action).is_err() {
                        break;
                    }
                }
            }
        }
        panic!("not idle: {:#?}", self.plan(server));
    }
}

pub(super) fn one_replica(spec: Value) -> (ApiServer, Replica) {
    let server = ApiServer::with_pool(spec);
    let replica = Replica::new("a", &server);
    (server, replica)
}
