//! A small controller of two kinds with the parts of a real one: for each claim it creates a child, records the UID of
//! the child in the status of the claim, and cleans up before the claim is deleted.
//!
//! Invariants: every child has a claim with the finalizer of this controller, unless the garbage collector is about to
//! delete the child; a ready claim refers to its existing child.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_domain::clock::Clock;
use metal3_harness::Instance;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::queue::Queue;
use metal3_runtime::reason::Reason;
use metal3_runtime::watch::{Scope, Watch};
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{Mode, Writer};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::plan::{Action, Facts, Plan, child_of, plan};

const UNREADABLE: Reason = Reason::new("ClaimUnreadable");

metal3_runtime::role! {
    /// The permissions of the demo.
    pub(crate) struct Demo {
        IPClaim: List, Watch, Patch, PatchStatus;
        ConfigMap: List, Watch, Create, Delete;
    }
}

pub(crate) struct Children {
    claims: SharedCache<IPClaim>,
    children: SharedCache<ConfigMap>,
    clock: Arc<dyn Clock>,
    defect: Defect,
    seed: u64,
    /// For [`Defect::InMemoryState`].
    made: Mutex<BTreeSet<Key>>,
}

/// Defects that the crash sweep must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    /// Creates the child before the finalizer.
    NoFinalizer,
    /// Completes only claims that this process started.
    InMemoryState,
    /// Adds the seed to the name of the child, so that two programs create two.
    OwnNames,
    /// Changes a condition message every hour.
    NeverSettles,
}

impl Children {
    fn child_key(&self, claim: &Key) -> Key {
        match self.defect {
            Defect::OwnNames => Key {
                name: format!("{}-{}", claim.name, self.seed),
                ..claim.clone()
            },
            _ => claim.clone(),
        }
    }

    /// The plan, changed by the defect.
    fn apply_defect(&self, key: &Key, facts: &Facts, mut plan: Plan) -> Plan {
        match (self.defect, &mut plan.action, &mut plan.after) {
            (Defect::NoFinalizer, Some(action @ Action::Protect(_)), _) => {
                *action = Action::Make(Box::new(child_of(&facts.claim)));
            }
            (Defect::OwnNames, Some(Action::Make(child)), _) => {
                child.metadata.name = Some(self.child_key(key).name);
            }
            (Defect::InMemoryState, Some(Action::Make(_)), _) => {
                self.made.lock().insert(key.clone());
            }
            (Defect::InMemoryState, None, after) if !self.made.lock().contains(key) => *after = None,
            (Defect::NeverSettles, None, Some(after)) => {
                for condition in &mut after.status.conditions {
                    condition.message = format!("still so at {}", self.clock.now());
                }
                plan.next = Next::RequeueAfter(Duration::from_hours(1));
            }
            _ => {}
        }
        plan
    }
}

impl Children {
    async fn stage(&self, key: &Key, action: Action, writer: &Writer<Demo>) -> Result<(), Fault> {
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
        let (claim, child) = (self.claims.find(key), self.children.find(&self.child_key(key)));
        let (claim, child) = match (claim, child) {
            // The garbage collector deletes the children of a deleted claim.
            (Observed::Absent, _) => return Ok(Next::Done),
            (Observed::Present(claim), Observed::Present(child)) => (claim, Some(child)),
            (Observed::Present(claim), Observed::Absent) => (claim, None),
            (Observed::Unknown(why), _) | (_, Observed::Unknown(why)) => {
                return match why {
                    UnknownReason::Unreadable(why) => Ok(Next::waiting(UNREADABLE, why)),
                    UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead => {
                        Err(Fault::bug("a pass before the first list"))
                    }
                };
            }
        };
        let facts = Facts { claim, child };
        let plan = self.apply_defect(key, &facts, plan(&facts, self.clock.now().into())?);
        if let Some(action) = plan.action {
            self.stage(key, action, writer).await?;
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

/// A running demo: caches, watches, controller.
pub(crate) struct Running {
    pub(crate) claims: SharedCache<IPClaim>,
    pub(crate) children: SharedCache<ConfigMap>,
    pub(crate) queue: Queue<Key>,
    /// Dropping it stops the program.
    _tasks: JoinSet<()>,
}

pub(crate) fn start(instance: &Instance, defect: Defect) -> Running {
    let Instance { client, clock, seed } = instance;
    let (claims, children) = (SharedCache::default(), SharedCache::default());
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    let watch = Watch::whole::<Demo>(
        client.clone(),
        SharedCache::clone(&claims),
        &(),
        Scope::everywhere(),
        Arc::clone(clock),
    );
    tasks.spawn(watch.spread_by(*seed).run(stop.clone()));
    let watch = Watch::whole::<Demo>(
        client.clone(),
        SharedCache::clone(&children),
        &(),
        Scope::everywhere(),
        Arc::clone(clock),
    );
    tasks.spawn(watch.spread_by(*seed).run(stop.clone()));
    let reconciler = Children {
        claims: claims.clone(),
        children: children.clone(),
        clock: Arc::clone(clock),
        defect,
        seed: *seed,
        made: Mutex::default(),
    };
    let writer = Writer::new(client.clone(), Mode::Perform);
    let controller = Controller::new("children", Arc::clone(clock), writer, reconciler)
        .watches(&claims, |change| change.key())
        .watches(&children, |change| change.key().map(claim_key))
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
