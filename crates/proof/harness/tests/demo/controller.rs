//! A small controller of two kinds with everything a real one has: for each claim it makes a child, remembers the
//! child's identity in the status of the claim, and cleans up before the claim goes.
//!
//! Invariants: no child without a claim that carries our finalizer, unless the garbage collector is about to take it;
//! a claim that says it is ready names the child it has.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_domain::clock::Clock;
use metal3_harness::Instance;
use metal3_runtime::hub::{Found, Key, SharedHub};
use metal3_runtime::queue::Queue;
use metal3_runtime::reason::Reason;
use metal3_runtime::watch::{Scope, Watch};
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{Mode, Writer};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::plan::{Action, Facts, Plan, child_of, plan};

const UNREADABLE: Reason = Reason::new("ClaimUnreadable");

metal3_runtime::needs! {
    /// The demo.
    pub(crate) struct Demo {
        IPClaim: List, Watch, Patch, PatchStatus;
        ConfigMap: List, Watch, Create, Delete;
    }
}

pub(crate) struct Children {
    claims: SharedHub<IPClaim>,
    children: SharedHub<ConfigMap>,
    clock: Arc<dyn Clock>,
    flaw: Flaw,
    seed: u64,
    /// For [`Flaw::Remembers`].
    made: Mutex<BTreeSet<Key>>,
}

/// What can be wrong with a controller, so that the trial has something to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// Makes the child before the claim is protected.
    Unprotected,
    /// Finishes only what this very process began.
    Remembers,
    /// Names the child by itself, so that two programs make two.
    OwnNames,
    /// Says the same in new words every hour.
    Restless,
}

impl Children {
    fn child_key(&self, claim: &Key) -> Key {
        match self.flaw {
            Flaw::OwnNames => Key {
                name: format!("{}-{}", claim.name, self.seed),
                ..claim.clone()
            },
            _ => claim.clone(),
        }
    }

    /// The plan as the flaw would have it.
    fn spoil(&self, key: &Key, facts: &Facts, mut plan: Plan) -> Plan {
        match (self.flaw, &mut plan.action, &mut plan.after) {
            (Flaw::Unprotected, Some(action @ Action::Protect(_)), _) => {
                *action = Action::Make(Box::new(child_of(&facts.claim)));
            }
            (Flaw::OwnNames, Some(Action::Make(child)), _) => {
                child.metadata.name = Some(self.child_key(key).name);
            }
            (Flaw::Remembers, Some(Action::Make(_)), _) => {
                self.made.lock().unwrap().insert(key.clone());
            }
            (Flaw::Remembers, None, after) if !self.made.lock().unwrap().contains(key) => *after = None,
            (Flaw::Restless, None, Some(after)) => {
                for condition in &mut after.status.conditions {
                    condition.message = format!("still so at {}", self.clock.now());
                }
                plan.next = Next::Recheck(Duration::from_hours(1));
            }
            _ => {}
        }
        plan
    }
}

impl Children {
    async fn act(&self, key: &Key, action: Action, writer: &Writer<Demo>) -> Result<(), Fault> {
        match action {
            Action::Protect(patch) | Action::Release(patch) => drop(writer.patch(&self.claims, key, patch).await?),
            Action::Make(child) => drop(writer.create(&self.children, &*child).await?),
            Action::Remove(child) => drop(writer.delete(&self.children, &*child).await?),
        }
        Ok(())
    }
}

impl Reconciler for Children {
    type Key = Key;
    type Role = Demo;

    async fn reconcile(&self, key: &Key, writer: &Writer<Demo>) -> Result<Next, Fault> {
        let claim = match self.claims.find(key) {
            Found::Live(claim) => claim,
            // The garbage collector takes what a claim that is gone has left.
            Found::Absent => return Ok(Next::Settled),
            Found::Unreadable { why } => return Ok(Next::waiting(UNREADABLE, why)),
            Found::Unknown => return Err(Fault::bug("a pass before the first list")),
        };
        let child = match self.children.find(&self.child_key(key)) {
            Found::Live(child) => Some(child),
            Found::Absent => None,
            Found::Unreadable { why } => return Ok(Next::waiting(UNREADABLE, why)),
            Found::Unknown => return Err(Fault::bug("a pass before the first list")),
        };
        let facts = Facts { claim, child };
        let plan = self.spoil(key, &facts, plan(&facts, self.clock.now().into())?);
        if let Some(action) = plan.action {
            self.act(key, action, writer).await?;
        }
        if let Some(after) = plan.after {
            writer.status(&self.claims, &facts.claim, &after).await?;
        }
        Ok(plan.next)
    }
}

/// The claim of a child.
fn claim_key(child: Key) -> Key {
    let name = child.name.split('-').next().unwrap_or_default().to_owned();
    Key { name, ..child }
}

/// A running demo: hubs, watches, controller.
pub(crate) struct Running {
    pub(crate) claims: SharedHub<IPClaim>,
    pub(crate) children: SharedHub<ConfigMap>,
    pub(crate) queue: Queue<Key>,
    /// All of it; dropping it kills the program.
    _tasks: JoinSet<()>,
}

pub(crate) fn start(instance: &Instance, flaw: Flaw) -> Running {
    let Instance { client, clock, seed } = instance;
    let (claims, children) = (SharedHub::default(), SharedHub::default());
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    let watch = Watch::whole::<Demo>(
        client.clone(),
        SharedHub::clone(&claims),
        &(),
        Scope::everywhere(),
        Arc::clone(clock),
    );
    tasks.spawn(watch.spread_by(*seed).run(stop.clone()));
    let watch = Watch::whole::<Demo>(
        client.clone(),
        SharedHub::clone(&children),
        &(),
        Scope::everywhere(),
        Arc::clone(clock),
    );
    tasks.spawn(watch.spread_by(*seed).run(stop.clone()));
    let reconciler = Children {
        claims: claims.clone(),
        children: children.clone(),
        clock: Arc::clone(clock),
        flaw,
        seed: *seed,
        made: Mutex::default(),
    };
    let writer = Writer::new(client.clone(), Mode::Perform);
    let controller = Controller::new("children", Arc::clone(clock), writer, reconciler)
        .reads(&claims, |change| change.key())
        .reads(&children, |change| change.key().map(claim_key))
        .workers(4);
    let queue = controller.queue().clone();
    tasks.spawn(async move {
        controller.run(stop).await;
    });
    Running {
        claims,
        children,
        queue,
        _tasks: tasks,
    }
}
