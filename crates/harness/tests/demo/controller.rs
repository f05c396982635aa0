//! A small controller of two kinds with everything a real one has: for each claim it makes a child, remembers the
//! child's identity in the status of the claim, and cleans up before the claim goes.
//!
//! Invariants: no child without a claim that carries our finalizer, unless the garbage collector is about to take it;
//! a claim that says it is ready names the child it has.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource as _, ResourceExt as _};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::meta::{ObjectReference, Time};
use metal3_domain::clock::Clock;
use metal3_harness::Instance;
use metal3_runtime::condition::{Statement, put};
use metal3_runtime::hub::{Found, Key, SharedHub};
use metal3_runtime::patch::{MergePatch, add_finalizer, remove_finalizer};
use metal3_runtime::queue::Queue;
use metal3_runtime::reason::Reason;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::watch::{Scope, Watch};
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{Mode, Writer};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) const FINALIZER: &str = "demo.example.com/child";
const MADE: Reason = Reason::new("ChildMade");
const UNREADABLE: Reason = Reason::new("ClaimUnreadable");

metal3_runtime::needs! {
    /// The demo.
    pub(crate) struct Demo {
        IPClaim: List, Watch, Patch, PatchStatus;
        ConfigMap: List, Watch, Create, Delete;
    }
}

/// All that a decision may see.
pub(crate) struct Facts {
    pub(crate) claim: Arc<IPClaim>,
    pub(crate) child: Option<Arc<ConfigMap>>,
}

/// One write, with everything it needs.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// Before there is a child to clean up.
    Protect(MergePatch),
    /// Its answer carries the identity that the status names, so it ends a plan.
    Make(Box<ConfigMap>),
    Remove(Arc<ConfigMap>),
    /// After there is no child any more.
    Release(MergePatch),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) action: Option<Action>,
    /// The claim with its status as it should be.
    pub(crate) after: Option<IPClaim>,
    pub(crate) next: Next,
}

/// Pure, total, deterministic: one step at a time.
pub(crate) fn plan(facts: &Facts, now: Time) -> Result<Plan, Fault> {
    let claim = &facts.claim;
    let step = |action| Plan {
        action: Some(action),
        after: None,
        next: Next::Again,
    };
    let version = claim.resource_version().unwrap_or_default();
    let version = ResourceVersion::parse(&version).map_err(|error| Fault::bug(error.to_string()))?;
    let going = claim.metadata.deletion_timestamp.is_some();
    let finalizers = claim.finalizers();
    let uid = claim.uid().unwrap_or_default();
    Ok(match &facts.child {
        Some(child) if going || !is_of(child, &uid) => step(Action::Remove(Arc::clone(child))),
        Some(child) => status(claim, child, now),
        None if going => match remove_finalizer(finalizers, FINALIZER, &version) {
            Some(patch) => step(Action::Release(patch)),
            None => settled(),
        },
        None => match add_finalizer(finalizers, FINALIZER, &version) {
            Some(patch) => step(Action::Protect(patch)),
            None => step(Action::Make(Box::new(child_of(claim)))),
        },
    })
}

fn settled() -> Plan {
    Plan {
        action: None,
        after: None,
        next: Next::Settled,
    }
}

fn status(claim: &IPClaim, child: &ConfigMap, now: Time) -> Plan {
    let mut after = claim.clone();
    after.status.address = Some(ObjectReference {
        name: child.metadata.name.clone(),
        uid: child.uid(),
        ..ObjectReference::default()
    });
    put(
        &mut after.status.conditions,
        Statement::holds("Ready", MADE).standard(claim.metadata.generation, now),
    );
    Plan {
        after: Some(after),
        ..settled()
    }
}

fn child_of(claim: &IPClaim) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: claim.namespace(),
            name: claim.metadata.name.clone(),
            owner_references: Some(vec![OwnerReference {
                api_version: IPClaim::api_version(&()).into_owned(),
                kind: IPClaim::kind(&()).into_owned(),
                name: claim.name_any(),
                uid: claim.uid().unwrap_or_default(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

pub(crate) fn is_of(child: &ConfigMap, uid: &str) -> bool {
    child.owner_references().iter().any(|owner| owner.uid == uid)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(going: bool, protected: bool) -> IPClaim {
        let mut claim = IPClaim::default();
        claim.metadata.name = Some("c".to_owned());
        claim.metadata.uid = Some("u".to_owned());
        claim.metadata.resource_version = Some("7".to_owned());
        claim.metadata.finalizers = protected.then(|| vec![FINALIZER.to_owned()]);
        claim.metadata.deletion_timestamp = going.then(|| serde_json::from_str("\"2026-01-01T00:00:00Z\"").unwrap());
        claim
    }

    #[test]
    fn each_state_of_claim_and_child_has_one_next_step() {
        let stranger = ConfigMap::default();
        // going, protected, child, step
        let table: [(bool, bool, Option<ConfigMap>, &str); 7] = [
            (false, false, None, "Protect"),
            (false, true, None, "Make"),
            (false, true, Some(child_of(&claim(false, true))), "status"),
            (false, true, Some(stranger), "Remove"),
            (true, true, Some(child_of(&claim(true, true))), "Remove"),
            (true, true, None, "Release"),
            (true, false, None, "nothing"),
        ];
        for (going, protected, child, step) in table {
            let facts = Facts {
                claim: Arc::new(claim(going, protected)),
                child: child.map(Arc::new),
            };
            let plan = plan(&facts, Time::default()).unwrap();
            let found = match (&plan.action, &plan.after) {
                (Some(Action::Protect(_)), _) => "Protect",
                (Some(Action::Make(_)), _) => "Make",
                (Some(Action::Remove(_)), _) => "Remove",
                (Some(Action::Release(_)), _) => "Release",
                (None, Some(_)) => "status",
                (None, None) => "nothing",
            };
            assert_eq!(found, step, "going {going}, protected {protected}");
        }
    }
}
