//! One process beside the small API server: what it believes, and the plans it makes of that.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::meta::Time;
use metal3_runtime::cache::Key;
use serde_json::Value;

use super::world::{NAMESPACE, Objects, POOL, Stored, World};
use crate::accounts::{Accounts, key};
use crate::action::{Action, Chain, NewAddress, Plan};
use crate::claim::{ClaimKind, Named};
use crate::facts::{Evidence, Facts, Reads, Seen};
use crate::plan::plan_under;
use crate::rules::Rules;

/// One process that plans for the pool, with what it believes.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    pub(super) me: String,
    pub(super) cache: Arc<Objects>,
    /// The pool as it was when the addresses were last listed after it.
    pub(super) listed: Option<String>,
    pub(super) rules: Rules,
    /// The pool that it has seen go.
    pub(super) gone: Option<String>,
}

impl Replica {
    pub(super) fn new(me: &str, world: &World) -> Self {
        Self {
            me: me.to_owned(),
            cache: world.objects.clone(),
            listed: None,
            rules: Rules::ALL,
            gone: None,
        }
    }

    /// Plans with what the cache shows, reading live what the plan asks for.
    pub(super) fn plan(&mut self, world: &World) -> Plan {
        let first = self.plan_with(&Evidence::default());
        self.plan_on(first, world)
    }

    /// Goes on from a plan made without evidence.
    pub(super) fn plan_on(&mut self, first: Plan, world: &World) -> Plan {
        let (mut evidence, mut plan) = (Evidence::default(), first);
        for _ in 0..5 {
            if plan.reads.is_empty() {
                return plan;
            }
            self.answer(&plan.reads, world, &mut evidence);
            plan = self.plan_with(&evidence);
        }
        panic!("a plan asks for more and more reads: {plan:?}");
    }

    /// Differs when a plan made without evidence may.
    pub(super) fn figure(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.cache.hash(&mut hasher);
        (&self.me, self.is_listed(), &self.gone).hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn plan_with(&self, evidence: &Evidence) -> Plan {
        let pool = self.cache.pool.as_ref().map(Stored::pool);
        let accounts = self.accounts(pool);
        let facts = Facts {
            key: &key(NAMESPACE, POOL),
            pool,
            accounts: &accounts,
            me: &self.me,
            listed: self.is_listed(),
            evidence,
            now: Time::default(),
        };
        plan_under(&facts, &self.rules)
    }

    pub(super) fn list(&mut self, world: &World) {
        self.listed = Some(self.pool_version());
        Arc::make_mut(&mut self.cache)
            .addresses
            .clone_from(&world.objects.addresses);
    }

    fn answer(&mut self, reads: &Reads, world: &World, evidence: &mut Evidence) {
        if reads.list {
            self.list(world);
        }
        for id in &reads.claims {
            let seen = world.objects.claims.get(id).map_or(Seen::Absent, |stored| Seen::Live {
                uid: stored.uid().to_owned(),
                names: stored.claim().names.clone(),
            });
            evidence.claims.insert(id.clone(), seen);
        }
        for id in &reads.addresses {
            evidence
                .addresses
                .insert(id.clone(), world.objects.addresses.contains_key(id));
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

    fn accounts(&self, pool: Option<&IPPool>) -> Accounts {
        let mut accounts = Accounts::default();
        for stored in self.cache.claims.values() {
            accounts.put_claim(NAMESPACE, POOL, stored.claim().clone());
        }
        for stored in self.cache.addresses.values() {
            let (pool, held) = stored.held_from();
            accounts.put_address(NAMESPACE, pool, held.clone());
        }
        if let Some(pool) = pool {
            accounts.put_pool(
                key(NAMESPACE, POOL),
                crate::ranges::Ranges::of(&pool.spec).covered().clone(),
            );
        }
        if pool.is_none() {
            accounts.drop_pool(&key(NAMESPACE, POOL), self.gone.clone());
        }
        accounts.clusters_are_known();
        for (name, fact) in &self.cache.clusters {
            accounts.put_cluster(
                Key {
                    namespace: NAMESPACE.into(),
                    name: name.clone(),
                },
                Some(fact.clone()),
            );
        }
        accounts
    }

    /// Its cache of the pool catches up.
    pub(super) fn see_pool(&mut self, world: &World) {
        if let (Some(pool), None) = (&self.cache.pool, &world.objects.pool) {
            self.gone = Some(pool.uid().to_owned());
        }
        Arc::make_mut(&mut self.cache).pool.clone_from(&world.objects.pool);
    }

    /// What its own write did enters its cache.
    pub(super) fn saw(&mut self, action: &Action, world: &World) {
        let copy = |from: &BTreeMap<Named, Stored>, to: &mut BTreeMap<Named, Stored>, id: &Named| match from.get(id) {
            Some(stored) => to.insert(id.clone(), stored.clone()),
            None => to.remove(id),
        };
        let objects = &world.objects;
        if matches!(action, Action::PatchPool(_) | Action::PatchPoolStatus(_)) {
            return self.see_pool(world);
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
                let id = match new {
                    NewAddress::Metal3(object) => {
                        Named::new(ClaimKind::Metal3, object.metadata.name.as_deref().unwrap())
                    }
                    NewAddress::ClusterApi(object) => {
                        Named::new(ClaimKind::ClusterApi, object.metadata.name.as_deref().unwrap())
                    }
                };
                copy(&objects.addresses, &mut cache.addresses, &id);
            }
        }
    }

    /// Plans and acts on a fresh cache until nothing is left to do; how many passes it took.
    pub(super) fn settle(&mut self, world: &mut World) -> usize {
        for pass in 0..200 {
            self.see_pool(world);
            self.cache = world.objects.clone();
            let plan = self.plan(world);
            if plan.is_empty() {
                return pass;
            }
            for chain in chains(&plan) {
                for action in &chain.actions {
                    if world.perform(action).is_err() {
                        break;
                    }
                }
            }
        }
        panic!("never at rest: {:#?}", self.plan(world));
    }
}

/// The writes of a plan as chains, the one to the pool first.
pub(super) fn chains(plan: &Plan) -> Vec<Chain> {
    let first = plan.first.iter().map(|action| Chain::of(vec![action.clone()]));
    first.chain(plan.chains.iter().cloned()).collect()
}

/// A pool in its world and one replica.
pub(super) fn alone(spec: Value) -> (World, Replica) {
    let world = World::with_pool(spec);
    let replica = Replica::new("a", &world);
    (world, replica)
}
