//! One moment of the small world, and every step that leads on from it.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use metal3_api::ipam::v1alpha1::IPPool;

use crate::action::{Action, Chain, Plan};
use crate::claim::ClaimKind::{ClusterApi, Metal3};
use crate::claim::Named;
use crate::facts::Evidence;
use crate::rules::Rules;
use crate::tests::replica::{Replica, chains};
use crate::tests::world::{Objects, Overlooks, Refused, Stored, World};

/// A step of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Deed {
    Delete(usize),
    Make(usize),
    /// The pool loses all its ranges.
    Empty,
    /// The pool has its ranges again.
    Fill,
    DeletePool,
}

/// How far a world may go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) replicas: usize,
    pub(super) addresses: u8,
    /// The claims that are there from the beginning.
    pub(super) made: &'static [usize],
    pub(super) deeds: &'static [Deed],
    pub(super) late: u8,
    pub(super) restarts: u8,
    /// Whether the pool is served already and its claims are protected: both are told elsewhere.
    pub(super) is_warm: bool,
}

fn spec(addresses: u8) -> Value {
    let end = format!("10.0.0.{addresses}");
    json!({ "spec": { "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": end }] } })
}

#[derive(Debug, Clone)]
struct Worker {
    replica: Replica,
    /// What it is about, as planned.
    work: Option<Arc<Work>>,
    /// The chain and the write in it that come next.
    next: (usize, usize),
    starts: u8,
}

/// A write, and what it is worth without its version.
#[derive(Debug, Clone)]
struct Write {
    action: Action,
    figure: u64,
    relies_on: Option<String>,
}

/// A plan under way.
#[derive(Debug)]
struct Work {
    chains: Vec<Vec<Write>>,
    /// The addresses there were when it was planned.
    there: Vec<Named>,
    /// Whether the first chain is the write to the pool, on which all others rely.
    relies_on_first: bool,
}

/// Plans by what the replica believed, and by what it read live if it did.
pub(super) type Plans = HashMap<(u64, u64), Plan>;

#[derive(Debug, Clone)]
pub(super) struct State {
    world: World,
    workers: Vec<Worker>,
    flights: Vec<Write>,
    deeds: Vec<Deed>,
    late: u8,
    restarts: u8,
    /// What was still there when the pool went.
    left: Option<String>,
}

fn claims() -> [Named; 3] {
    [
        Named::new(Metal3, "a"),
        Named::new(ClusterApi, "a"),
        Named::new(Metal3, "b"),
    ]
}

impl State {
    pub(super) fn start(bounds: Bounds, rules: Rules, overlooks: Overlooks) -> Self {
        let spec = spec(bounds.addresses)["spec"].take();
        let mut world = World::with_pool(spec);
        world.edit_pool(&json!({ "metadata": { "finalizers": ["ippool.ipam.metal3.io"] } }));
        if bounds.is_warm {
            Replica::new("z", &world).settle(&mut world);
        }
        world.overlooks = overlooks;
        for index in bounds.made {
            let id = claims()[*index].clone();
            let finalizers: &[&str] = if bounds.is_warm {
                &[id.kind.claim_finalizer()]
            } else {
                &[]
            };
            world.claim(id.kind, &id.name, json!({ "finalizers": finalizers }));
        }
        let worker = |name: &str| {
            let mut replica = Replica::new(name, &world);
            replica.rules = rules;
            Worker {
                replica,
                work: None,
                next: (0, 0),
                starts: 0,
            }
        };
        let workers = ["x", "y"].into_iter().take(bounds.replicas).map(worker).collect();
        let (deeds, late, restarts) = (bounds.deeds.to_vec(), bounds.late, bounds.restarts);
        Self {
            world,
            workers,
            flights: Vec::new(),
            deeds,
            late,
            restarts,
            left: None,
        }
    }

    /// Every state one step away, with the name of the step.
    pub(super) fn next(&self, plans: &mut Plans) -> Vec<(Step, Self)> {
        let mut next = Vec::new();
        for index in 0..self.workers.len() {
            self.steps_of(index, plans, &mut next);
        }
        for flight in 0..self.flights.len() {
            let mut state = self.clone();
            let action = state.flights.remove(flight).action;
            let outcome = state.world.perform(&action);
            next.push((Step::Arrives(action, outcome), state));
        }
        // Users act in the order of the list: what they do when is what the steps between decide.
        if let Some(deed) = self.deeds.first() {
            let mut state = self.clone();
            state.deeds.remove(0);
            if state.act(*deed) {
                next.push((Step::Acts(*deed), state));
            }
        }
        next
    }

    fn act(&mut self, deed: Deed) -> bool {
        match deed {
            Deed::Delete(index) => {
                let id = &claims()[index];
                let there = self
                    .world
                    .objects
                    .claims
                    .get(id)
                    .is_some_and(|claim| !claim.is_deleting());
                if there {
                    self.world.delete_claim(id);
                }
                there
            }
            Deed::Make(index) => {
                let id = &claims()[index];
                let absent = !self.world.objects.claims.contains_key(id);
                if absent {
                    self.world.claim(id.kind, &id.name, json!({}));
                }
                absent
            }
            Deed::Empty => {
                self.world.edit_pool(&json!({ "spec": { "pools": [] } }));
                true
            }
            Deed::Fill => {
                self.world.edit_pool(&spec(2));
                true
            }
            Deed::DeletePool => {
                self.world.delete_pool();
                true
            }
        }
    }

    fn steps_of(&self, index: usize, plans: &mut Plans, next: &mut Vec<(Step, Self)>) {
        let Some(write) = self.workers[index].write() else {
            self.refreshes(index, next);
            let mut planned = self.clone();
            if planned.plan(index, plans) {
                next.push((Step::Plans(index), planned));
            }
            return;
        };
        let mut done = self.clone();
        let outcome = done.perform(index);
        next.push((Step::Writes(index, write.action.clone(), outcome), done));
        if self.late > 0 {
            let mut late = self.clone();
            late.late -= 1;
            late.flights.push(write.clone());
            late.workers[index].give_up();
            next.push((Step::Sends(index, write.action.clone()), late));
        }
        if self.restarts > 0 {
            let mut restarted = self.clone();
            restarted.restarts -= 1;
            restarted.restart(index);
            next.push((Step::Restarts(index), restarted));
        }
    }

    /// One of the caches catches up.
    fn refreshes(&self, index: usize, next: &mut Vec<(Step, Self)>) {
        let (cache, truth) = (&self.workers[index].replica.cache, &self.world.objects);
        let exactly = |all: &BTreeMap<Named, Stored>| -> Vec<String> {
            all.values().map(|one| format!("{:?}", one.exactly())).collect()
        };
        let mut fresh = |part: &'static str, refresh: fn(&mut Replica, &World)| {
            let mut state = self.clone();
            refresh(&mut state.workers[index].replica, &self.world);
            next.push((Step::Sees(index, part), state));
        };
        if cache.pool.as_ref().map(Stored::exactly) != truth.pool.as_ref().map(Stored::exactly) {
            fresh("the pool", Replica::see_pool);
        }
        if exactly(&cache.claims) != exactly(&truth.claims) {
            fresh("claims", |replica, world| {
                Arc::make_mut(&mut replica.cache)
                    .claims
                    .clone_from(&world.objects.claims);
            });
        }
        if exactly(&cache.addresses) != exactly(&truth.addresses) {
            fresh("addresses", |replica, world| {
                Arc::make_mut(&mut replica.cache)
                    .addresses
                    .clone_from(&world.objects.addresses);
            });
        }
    }

    /// Whether there is something to do.
    fn plan(&mut self, index: usize, plans: &mut Plans) -> bool {
        let worker = &mut self.workers[index];
        let replica = &mut worker.replica;
        let believed = replica.figure();
        let first = plans
            .entry((believed, 0))
            .or_insert_with(|| replica.plan_with(&Evidence::default()));
        let first = first.clone();
        let plan = if first.reads.is_empty() {
            first
        } else {
            let mut hasher = DefaultHasher::new();
            self.world.objects.hash(&mut hasher);
            let lists = first.reads.list;
            if lists {
                replica.list(&self.world);
            }
            let plan = plans.entry((believed, hasher.finish()));
            plan.or_insert_with(|| replica.plan_on(first, &self.world)).clone()
        };
        if plan.is_empty() {
            return false;
        }
        let relies_on_first = plan.first.is_some();
        let there = self.world.objects.addresses.keys().cloned().collect();
        let writes = |chain: Chain| chain.actions.into_iter().map(Write::of).collect();
        let chains = chains(&plan).into_iter().map(writes).collect();
        worker.work = Some(Arc::new(Work {
            chains,
            relies_on_first,
            there,
        }));
        worker.next = (0, 0);
        true
    }

    fn perform(&mut self, index: usize) -> Result<(), Refused> {
        let worker = &mut self.workers[index];
        let action = worker.write().unwrap().action.clone();
        let pool = self.world.objects.pool.clone();
        let outcome = self.world.perform(&action);
        if let (Some(pool), None) = (pool, &self.world.objects.pool) {
            let there = &worker.work.as_ref().unwrap().there;
            self.left = leftovers(&self.world.objects, pool.pool(), there);
        }
        if outcome.is_ok() {
            worker.replica.saw(&action, &self.world);
            worker.next.1 += 1;
            worker.turn();
        } else {
            worker.give_up();
        }
        outcome
    }

    fn restart(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        worker.starts += 1;
        let rules = worker.replica.rules;
        let name = format!("{}{}", worker.replica.me, worker.starts);
        worker.replica = Replica::new(&name, &self.world);
        worker.replica.rules = rules;
        worker.work = None;
        worker.next = (0, 0);
    }

    pub(super) fn figure(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let truth = &self.world.objects;
        truth.figure(truth).hash(&mut hasher);
        for worker in &self.workers {
            let replica = &worker.replica;
            (
                replica.cache.figure(truth),
                &replica.me,
                replica.is_listed(),
                &replica.gone,
            )
                .hash(&mut hasher);
            if let Some(work) = &worker.work {
                (work.relies_on_first && worker.next.0 == 0).hash(&mut hasher);
                let begun = work.chains.iter().skip(worker.next.0);
                for (number, chain) in begun.enumerate() {
                    let done = if number == 0 { worker.next.1 } else { 0 };
                    for write in chain.iter().skip(done) {
                        self.effect(write).hash(&mut hasher);
                    }
                }
            }
        }
        for flight in &self.flights {
            self.effect(flight).hash(&mut hasher);
        }
        (&self.deeds, self.late, self.restarts).hash(&mut hasher);
        hasher.finish()
    }

    /// What must hold in every state.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(left) = &self.left {
            return Err(format!("the pool went before {left}"));
        }
        let objects = &self.world.objects;
        let mut holders: BTreeMap<IpAddr, Named> = BTreeMap::new();
        for held in objects.addresses.values().map(Stored::held) {
            let claim = objects.claims.get(&held.claim()).map(Stored::claim);
            let Some(claim) = claim.filter(|claim| held.owner.as_ref() == Some(&claim.uid)) else {
                continue;
            };
            if claim.names.as_ref().is_some_and(|named| *named != held.id.name) {
                continue;
            }
            let address = held.address.unwrap();
            if let Some(other) = holders.insert(address, claim.id.clone()) {
                return Err(format!("I1: {} and {other} both hold {address}", claim.id));
            }
            if !claim.is_protected() {
                return Err(format!("I2: {} holds an address without being protected", claim.id));
            }
        }
        for claim in objects.claims.values().map(Stored::claim) {
            let Some(named) = claim.names.as_ref().filter(|_| !claim.deleting) else {
                continue;
            };
            let held = objects
                .addresses
                .get(&Named::new(claim.id.kind, named))
                .map(Stored::held);
            if held.is_none_or(|held| held.owner.as_ref() != Some(&claim.uid)) {
                return Err(format!("{} names an address that is not its own", claim.id));
            }
        }
        Ok(())
    }

    /// What must hold once nothing more will happen.
    pub(super) fn check_at_rest(&self) -> Result<(), String> {
        let objects = &self.world.objects;
        for held in objects.addresses.values().map(Stored::held) {
            let claim = objects.claims.get(&held.claim()).map(Stored::claim);
            let owned = claim.is_some_and(|claim| {
                held.owner.as_ref() == Some(&claim.uid) && claim.names.as_ref() == Some(&held.id.name)
            });
            if !owned || held.deleting {
                return Err(format!("at rest: {} is nobody's", held.id));
            }
        }
        let Some(pool) = &objects.pool else { return Ok(()) };
        let pending = pool.pool().status.allocator.clone().unwrap_or_default().pending;
        if !pending.is_empty() {
            return Err(format!("at rest: {pending:?} is pending"));
        }
        for claim in objects.claims.values().map(Stored::claim) {
            let told = claim
                .conditions
                .iter()
                .any(|c| c.type_ == "Ready" && !c.reason.is_empty());
            if claim.deleting || !told {
                return Err(format!("at rest: {} waits and nobody says why", claim.id));
            }
        }
        Ok(())
    }
}

/// What a pool that goes leaves behind: an address that a list would have shown, or one that is promised to a claim
/// that lives. An address that arrives after the list belongs to a claim that is gone, and is swept later.
fn leftovers(objects: &Objects, pool: &IPPool, there: &[Named]) -> Option<String> {
    let promised = pool.status.allocator.iter().flat_map(|allocator| &allocator.pending);
    let living = |uid: &str| objects.claims.values().any(|claim| claim.uid() == uid);
    let mut promised = promised.filter(|entry| living(&entry.claim_uid));
    let mut addresses = objects.addresses.keys().filter(|id| there.contains(id));
    let address = addresses.next().map(ToString::to_string);
    address.or_else(|| promised.next().map(|entry| entry.address.to_string()))
}

impl Worker {
    /// The write that comes next.
    fn write(&self) -> Option<&Write> {
        self.work.as_ref()?.chains.get(self.next.0)?.get(self.next.1)
    }

    /// A write failed, or nobody knows: the chain ends, and with the write to the pool everything.
    fn give_up(&mut self) {
        let stops = self.work.as_ref().is_some_and(|work| work.relies_on_first) && self.next.0 == 0;
        if stops {
            self.work = None;
        } else {
            self.next = (self.next.0 + 1, 0);
        }
        self.turn();
    }

    /// Goes to the next chain behind the end of one, and to nothing behind the last.
    fn turn(&mut self) {
        let chains = self
            .work
            .as_ref()
            .map(|work| work.chains.as_slice())
            .unwrap_or_default();
        if chains.get(self.next.0).is_some_and(|chain| self.next.1 == chain.len()) {
            self.next = (self.next.0 + 1, 0);
        }
        if self.next.0 >= chains.len() {
            (self.work, self.next) = (None, (0, 0));
        }
    }
}

impl Write {
    fn of(action: Action) -> Self {
        let (mut text, mut relies_on) = (format!("{action:?}"), None);
        match &action {
            Action::PatchPool(patch)
            | Action::PatchPoolStatus(patch)
            | Action::PatchClaim(_, patch)
            | Action::PatchClaimStatus(_, patch)
            | Action::PatchAddress(_, patch) => {
                let mut document = patch.clone().into_document();
                let version = document["metadata"].as_object_mut().unwrap().remove("resourceVersion");
                relies_on = version.as_ref().and_then(Value::as_str).map(ToOwned::to_owned);
                text.push_str(&document.to_string());
            }
            Action::CreateAddress(_) => {}
            Action::DeleteAddress { address, uid, version } => {
                text = format!("{address} {uid}");
                relies_on = Some(version.to_string());
            }
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self {
            action,
            figure: hasher.finish(),
            relies_on,
        }
    }
}

impl State {
    /// What a write would do: its content, and whether the version it relies on is the present one.
    fn effect(&self, write: &Write) -> (u64, bool) {
        let objects = &self.world.objects;
        let on = match &write.action {
            Action::PatchPool(_) | Action::PatchPoolStatus(_) => objects.pool.as_ref(),
            Action::PatchClaim(id, _) | Action::PatchClaimStatus(id, _) => objects.claims.get(id),
            Action::PatchAddress(id, _) | Action::DeleteAddress { address: id, .. } => objects.addresses.get(id),
            Action::CreateAddress(_) => None,
        };
        (write.figure, on.map(Stored::version) == write.relies_on.as_deref())
    }
}

/// A step, for the story of a history that went wrong. The first number says which replica.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "read through Debug alone")]
pub(super) enum Step {
    Plans(usize),
    Writes(usize, Action, Result<(), Refused>),
    Sends(usize, Action),
    Arrives(Action, Result<(), Refused>),
    Restarts(usize),
    Sees(usize, &'static str),
    Acts(Deed),
}
