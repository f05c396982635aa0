//! What to do where a machine is gone: only what nobody else will ever do.
//!
//! A claim of a host may arrive after its machine has gone, when two programs are at work; and a claim on data stays
//! with our finalizer when somebody takes the machine's by force. Both are undone once a live read has shown that there
//! is no such machine. A host that was told to run something is left alone, whatever became of its machine: it may be
//! in use.

use metal3_api::infrastructure::names::MACHINE_FINALIZER;
use metal3_api::infrastructure::v1beta2::Metal3DataClaim;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::Sight;
use metal3_capi::owner::cluster_of;
use metal3_runtime::patch::{Changes, remove_finalizer};

use super::action::{Action, Deed, Plan};
use super::plan::documents;
use crate::documents::changes;

/// What a machine that is gone has left.
#[derive(Debug, Clone, Copy)]
pub struct Leftovers<'a> {
    /// Whether a live read, made after these were looked up, says that there is no machine of the name.
    pub confirmed: bool,
    /// Hosts whose consumer it was.
    pub hosts: &'a [&'a BareMetalHost],
    /// The claim on data of its name.
    pub claim: Sight<'a, Metal3DataClaim>,
}

/// What to do about them.
#[must_use]
pub fn plan(left: &Leftovers<'_>) -> Plan {
    let hosts = left.hosts.iter().filter_map(|host| release(host));
    let actions: Vec<Action> = hosts.chain(left.claim.seen().and_then(let_go)).collect();
    if actions.is_empty() {
        Plan::default()
    } else if left.confirmed {
        Plan {
            actions,
            ..Plan::default()
        }
    } else {
        Plan::confirm()
    }
}

fn release(host: &BareMetalHost) -> Option<Action> {
    if documents::is_used(host) || host.is_paused() || !documents::is_at_rest(host) {
        return None;
    }
    let mut after = host.clone();
    let cluster = cluster_of(&host.metadata).unwrap_or_default().to_owned();
    documents::release(&mut after, &cluster);
    let Changes { main: Some(patch), .. } = changes(host, &after) else {
        return None;
    };
    Some(Action::PatchHost {
        host: host.metadata.name.clone()?,
        deed: Deed::Release,
        patch: patch.only_at(&documents::version(&host.metadata)?),
    })
}

/// Takes our finalizer off a claim that goes.
pub(super) fn let_go(claim: &Metal3DataClaim) -> Option<Action> {
    claim.metadata.deletion_timestamp.as_ref()?;
    let present = claim.metadata.finalizers.as_deref().unwrap_or_default();
    let patch = remove_finalizer(present, MACHINE_FINALIZER, &documents::version(&claim.metadata)?)?;
    let claim = claim.metadata.name.clone()?;
    Some(Action::PatchClaim { claim, patch })
}
