//! A state of the model, and every step from it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{Value, json};

use metal3_api::ipam::v1alpha1::IPPool;

use crate::action::{Action, Chain, Plan};
use crate::claim::ClaimKind::{ClusterApi, Metal3};
use crate::claim::ObjectId;
use crate::facts::LiveReads;
use crate::rules::Rules;
use crate::tests::api_server::{ApiServer, IgnoredPreconditions, Objects, Refused, Stored};
use crate::tests::record::{holds, unfinished_work};
use crate::tests::replica::Replica;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum UserAction {
    Delete(usize),
    Create(usize),
    /// The pool loses all its ranges.
    Empty,
    /// The pool gets its ranges back.
    Refill,
    DeletePool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) replicas: usize,
    pub(super) addresses: u8,
    /// The claims that exist from the start.
    pub(super) claims: &'static [usize],
    pub(super) user_actions: &'static [UserAction],
    pub(super) late: u8,
    pub(super) restarts: u8,
    /// Whether the pool starts reconciled and its claims with finalizers: other cases cover the steps to that.
    pub(super) is_warm: bool,
}

fn spec(addresses: u8) -> Value {
    let end = format!("10.0.0.{addresses}");
    json!({ "spec": { "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": end }] } })
}

#[derive(Debug, Clone)]
struct Worker {
    replica: Replica,
    /// Its current plan.
    work: Option<Arc<Work>>,
    /// Position of the next chain and write.
    next: (usize, usize),
    starts: u8,
}

/// A write, with a hash of its content without the version.
#[derive(Debug, Clone)]
struct Write {
    action: Action,
    content_hash: u64,
    relies_on: Option<String>,
}

/// A plan in execution.
#[derive(Debug)]
struct Work {
    chains: Vec<Vec<Write>>,
    /// The addresses that existed when it was planned.
    existing: Vec<ObjectId>,
    /// Whether the first chain is the write to the pool, on which all others depend.
    relies_on_first: bool,
}

/// Plans by the hash of the cache and of the live reads.
pub(super) type Plans = HashMap<(u64, u64), Plan>;

#[derive(Debug, Clone)]
pub(super) struct State {
    server: ApiServer,
    workers: Vec<Worker>,
    in_flight: Vec<Write>,
    user_actions: Vec<UserAction>,
    late: u8,
    restarts: u8,
    /// The object that still existed when the pool was deleted.
    leftover: Option<String>,
}

fn claims() -> [ObjectId; 3] {
    [
        ObjectId::new(Metal3, "a"),
        ObjectId::new(ClusterApi, "a"),
        ObjectId::new(Metal3, "b"),
    ]
}

impl State {
    pub(super) fn start(bounds: Bounds, rules: Rules, ignored: IgnoredPreconditions) -> Self {
        let spec = spec(bounds.addresses)["spec"].take();
        let mut server = ApiServer::with_pool(spec);
        server.edit_pool(&json!({ "metadata": { "finalizers": ["ippool.ipam.metal3.io"] } }));
        if bounds.is_warm {
            Replica::new("z", &server).settle(&mut server);
        }
        server.ignored = ignored;
        for index in bounds.claims {
            let id = claims()[*index].clone();
            let finalizers: &[&str] = if bounds.is_warm {
                &[id.kind.claim_finalizer()]
            } else {
                &[]
            };
            server.claim(id.kind, &id.name, json!({ "finalizers": finalizers }));
        }
        let worker = |name: &str| {
            let mut replica = Replica::new(name, &server);
            replica.rules = rules;
            Worker {
                replica,
                work: None,
                next: (0, 0),
                starts: 0,
            }
        };
        let workers = ["x", "y"].into_iter().take(bounds.replicas).map(worker).collect();
        let (user_actions, late, restarts) = (bounds.user_actions.to_vec(), bounds.late, bounds.restarts);
        Self {
            server,
            workers,
            in_flight: Vec::new(),
            user_actions,
            late,
            restarts,
            leftover: None,
        }
    }

    /// Every successor state, with the step.
    pub(super) fn next(&self, plans: &mut Plans) -> Vec<(Step, Self)> {
        let mut next = Vec::new();
        for index in 0..self.workers.len() {
            self.steps_of(index, plans, &mut next);
        }
        for number in 0..self.in_flight.len() {
            let mut state = self.clone();
            let action = state.in_flight.remove(number).action;
            let outcome = state.server.perform(&action);
            next.push((Step::Completes(action, outcome), state));
        }
        // Users act in the order of the list; the steps between vary.
        if let Some(user_action) = self.user_actions.first() {
            let mut state = self.clone();
            state.user_actions.remove(0);
            if state.act(*user_action) {
                next.push((Step::Acts(*user_action), state));
            }
        }
        next
    }

    fn act(&mut self, user_action: UserAction) -> bool {
        match user_action {
            UserAction::Delete(index) => {
                let id = &claims()[index];
                let existing = self
                    .server
                    .objects
                    .claims
                    .get(id)
                    .is_some_and(|claim| !claim.is_deleting());
                if existing {
                    self.server.delete_claim(id);
                }
                existing
            }
            UserAction::Create(index) => {
                let id = &claims()[index];
                let absent = !self.server.objects.claims.contains_key(id);
                if absent {
                    self.server.claim(id.kind, &id.name, json!({}));
                }
                absent
            }
            UserAction::Empty => {
                self.server.edit_pool(&json!({ "spec": { "pools": [] } }));
                true
            }
            UserAction::Refill => {
                self.server.edit_pool(&spec(2));
                true
            }
            UserAction::DeletePool => {
                self.server.delete_pool();
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
            late.in_flight.push(write.clone());
            late.workers[index].fail();
            next.push((Step::Sends(index, write.action.clone()), late));
        }
        if self.restarts > 0 {
            let mut restarted = self.clone();
            restarted.restarts -= 1;
            restarted.restart(index);
            next.push((Step::Restarts(index), restarted));
        }
    }

    /// One of the caches is updated.
    fn refreshes(&self, index: usize, next: &mut Vec<(Step, Self)>) {
        let (cache, truth) = (&self.workers[index].replica.cache, &self.server.objects);
        let exactly = |all: &BTreeMap<ObjectId, Stored>| -> Vec<String> {
            all.values().map(|one| format!("{:?}", one.exactly())).collect()
        };
        let mut fresh = |part: &'static str, refresh: fn(&mut Replica, &ApiServer)| {
            let mut state = self.clone();
            refresh(&mut state.workers[index].replica, &self.server);
            next.push((Step::Observes(index, part), state));
        };
        if cache.pool.as_ref().map(Stored::exactly) != truth.pool.as_ref().map(Stored::exactly) {
            fresh("the pool", Replica::observe_pool);
        }
        if exactly(&cache.claims) != exactly(&truth.claims) {
            fresh("claims", |replica, server| {
                Arc::make_mut(&mut replica.cache)
                    .claims
                    .clone_from(&server.objects.claims);
            });
        }
        if exactly(&cache.addresses) != exactly(&truth.addresses) {
            fresh("addresses", |replica, server| {
                Arc::make_mut(&mut replica.cache)
                    .addresses
                    .clone_from(&server.objects.addresses);
            });
        }
    }

    /// Plans for a worker from its cache; returns whether there is something to write.
    fn plan(&mut self, index: usize, plans: &mut Plans) -> bool {
        let worker = &mut self.workers[index];
        let replica = &mut worker.replica;
        let cache_hash = replica.content_hash();
        let first = plans
            .entry((cache_hash, 0))
            .or_insert_with(|| replica.plan_with(&LiveReads::default()));
        let first = first.clone();
        let plan = if first.reads.is_empty() {
            first
        } else {
            let mut hasher = DefaultHasher::new();
            self.server.objects.hash(&mut hasher);
            let lists = first.reads.list;
            if lists {
                replica.list(&self.server);
            }
            let plan = plans.entry((cache_hash, hasher.finish()));
            plan.or_insert_with(|| replica.plan_on(first, &self.server)).clone()
        };
        if plan.actions.is_empty() {
            return false;
        }
        let relies_on_first = plan.actions.first().is_some_and(|chain| chain.is_required);
        let existing = self.server.objects.addresses.keys().cloned().collect();
        let writes = |chain: Chain| chain.actions.into_iter().map(Write::of).collect();
        let chains = plan.actions.into_iter().map(writes).collect();
        worker.work = Some(Arc::new(Work {
            chains,
            relies_on_first,
            existing,
        }));
        worker.next = (0, 0);
        true
    }

    fn perform(&mut self, index: usize) -> Result<(), Refused> {
        let worker = &mut self.workers[index];
        let action = worker.write().unwrap().action.clone();
        let pool = self.server.objects.pool.clone();
        let outcome = self.server.perform(&action);
        if let (Some(pool), None) = (pool, &self.server.objects.pool) {
            let existing = &worker.work.as_ref().unwrap().existing;
            self.leftover = leftovers(&self.server.objects, pool.pool(), existing);
        }
        if outcome.is_ok() {
            worker.replica.observe_write(&action, &self.server);
            worker.next.1 += 1;
            worker.advance();
        } else {
            worker.fail();
        }
        outcome
    }

    fn restart(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        worker.starts += 1;
        let rules = worker.replica.rules;
        let name = format!("{}{}", worker.replica.identity, worker.starts);
        worker.replica = Replica::new(&name, &self.server);
        worker.replica.rules = rules;
        worker.work = None;
        worker.next = (0, 0);
    }

    pub(super) fn content_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let truth = &self.server.objects;
        truth.content_hash(truth).hash(&mut hasher);
        for worker in &self.workers {
            let replica = &worker.replica;
            (
                replica.cache.content_hash(truth),
                &replica.identity,
                replica.is_listed(),
                &replica.deleted_pool,
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
        for write in &self.in_flight {
            self.effect(write).hash(&mut hasher);
        }
        (&self.user_actions, self.late, self.restarts).hash(&mut hasher);
        hasher.finish()
    }

    /// Invariants of every state.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(leftover) = &self.leftover {
            return Err(format!("the pool was deleted before {leftover}"));
        }
        holds(
            &self.server.objects.claims,
            &self.server.objects.addresses,
            &BTreeSet::new(),
        )
    }

    /// Invariants of final states.
    pub(super) fn check_when_idle(&self) -> Result<(), String> {
        let objects = &self.server.objects;
        let pool = objects.pool.as_ref().map(Stored::pool);
        let mut addresses = objects.addresses.values().map(Stored::address_object);
        if let Some(object) = addresses.find(|object| object.deleting) {
            return Err(format!("at rest: {} is being deleted", object.id));
        }
        match unfinished_work(pool, &objects.claims, &objects.addresses).first() {
            Some(problem) => Err(format!("at rest: {problem}")),
            None => Ok(()),
        }
    }
}

/// The object that a deleted pool leaves: an address that a list would have shown, or a pending allocation of a live
/// claim. An address created after the list belongs to a deleted claim and is deleted later.
fn leftovers(objects: &Objects, pool: &IPPool, existing: &[ObjectId]) -> Option<String> {
    let promised = pool.status.allocator.iter().flat_map(|allocator| &allocator.pending);
    let living = |uid: &str| objects.claims.values().any(|claim| claim.uid() == uid);
    let mut promised = promised.filter(|entry| living(&entry.claim_uid));
    let mut addresses = objects.addresses.keys().filter(|id| existing.contains(id));
    let address = addresses.next().map(ToString::to_string);
    address.or_else(|| promised.next().map(|entry| entry.address.to_string()))
}

impl Worker {
    fn write(&self) -> Option<&Write> {
        self.work.as_ref()?.chains.get(self.next.0)?.get(self.next.1)
    }

    /// A write failed or its result is unknown: the chain ends, and with the write to the pool the whole plan.
    fn fail(&mut self) {
        let stops = self.work.as_ref().is_some_and(|work| work.relies_on_first) && self.next.0 == 0;
        if stops {
            self.work = None;
        } else {
            self.next = (self.next.0 + 1, 0);
        }
        self.advance();
    }

    /// Moves to the next chain, or ends the plan.
    fn advance(&mut self) {
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
            content_hash: hasher.finish(),
            relies_on,
        }
    }
}

impl State {
    /// Effect of a write: its content, and whether its version is current.
    fn effect(&self, write: &Write) -> (u64, bool) {
        let objects = &self.server.objects;
        let on = match &write.action {
            Action::PatchPool(_) | Action::PatchPoolStatus(_) => objects.pool.as_ref(),
            Action::PatchClaim(id, _) | Action::PatchClaimStatus(id, _) => objects.claims.get(id),
            Action::PatchAddress(id, _) | Action::DeleteAddress { address: id, .. } => objects.addresses.get(id),
            Action::CreateAddress(_) => None,
        };
        (
            write.content_hash,
            on.map(Stored::version) == write.relies_on.as_deref(),
        )
    }
}

/// A step, for the trace of a failed history. The first number is the replica.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "read through Debug alone")]
pub(super) enum Step {
    Plans(usize),
    Writes(usize, Action, Result<(), Refused>),
    Sends(usize, Action),
    Completes(Action, Result<(), Refused>),
    Restarts(usize),
    Observes(usize, &'static str),
    Acts(UserAction),
}
