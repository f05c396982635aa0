//! What the controller of Metal3Data can do.

use metal3_runtime::cache::Key;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan;
use metal3_runtime::work::Next;

use crate::data::claims::NewClaim;
use crate::data::release::Release;
use crate::data::secrets::NewSecret;

/// What one reconcile of a Metal3Data does.
pub type Plan = plan::Plan<Vec<Read>, Action>;

/// A live read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The claim that the Metal3Data names.
    Claim(Key),
    /// The Metal3Data.
    Data,
    /// The host of the machine. It enters the cache, which the next plan sees.
    Host(Key),
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Patches the Metal3Data: its finalizers and the names of its Secrets.
    Patch(MergePatch),
    /// Creates a claim on a pool. An existing object of that name is read, and the next reconcile decides.
    Claim(NewClaim),
    /// Creates a Secret.
    CreateSecret(Box<NewSecret>),
    /// Releases a claim on a pool.
    Release {
        /// Whether it is on an IPPool.
        is_metal3: bool,
        /// The release.
        release: Release,
    },
    /// Stops reconciling the Metal3Data after changes of claims on pools. It is the only step that writes nothing.
    StopAwaitingClaims,
}

/// A plan without actions, with this next step.
pub(super) fn only(next: &Next) -> Plan {
    Plan {
        next: next.clone(),
        ..Plan::default()
    }
}

/// These steps, and another reconcile.
pub(super) fn then_requeue(actions: Vec<Action>) -> Plan {
    Plan {
        actions,
        next: Next::Requeue,
        ..Plan::default()
    }
}
