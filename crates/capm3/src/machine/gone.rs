//! What to do where a machine is gone: only what nobody else will ever do.
//!
//! A claim of a host may arrive after its machine has gone, when two programs are at work; and a claim on data stays
//! with our finalizer when somebody takes the machine's by force. Both are undone once a live read has shown that there
//! is no such machine. A host that was told to run something is left alone, whatever became of its machine: it may be
//! in use. As long as there may be such a host, its data are kept too: it answers to the addresses in them.

use metal3_api::infrastructure::names::MACHINE_FINALIZER;
use metal3_api::infrastructure::v1beta2::Metal3DataClaim;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::Sight;
use metal3_capi::owner::cluster_of;
use metal3_runtime::patch::{Changes, remove_finalizer};

use super::action::{Action, Deed, Plan};
use super::plan::documents;
use crate::documents::{changes, version};

/// What a machine that is gone has left.
#[derive(Debug, Clone, Copy)]
pub struct Leftovers<'a> {
    /// Whether a live read, made after these were looked up, says that there is no machine of the name.
    pub confirmed: bool,
    /// Hosts whose consumer it was.
    pub hosts: &'a [&'a BareMetalHost],
    /// A host of the namespace that cannot be read, if there is one: it may be the machine's.
    pub unreadable: Option<&'a str>,
    /// The claim on data of its name.
    pub claim: Sight<'a, Metal3DataClaim>,
}

impl Leftovers<'_> {
    /// Whether no host can run for the machine's name any more.
    fn rests(&self) -> bool {
        self.unreadable.is_none() && self.hosts.iter().all(|host| rests(host))
    }

    /// Why the claim is kept although it goes, where nothing that happens to a host is sure to wake the key.
    #[must_use]
    pub fn obscured(&self) -> Option<&str> {
        self.unreadable.filter(|_| self.claim.seen().and_then(let_go).is_some())
    }
}

/// Whether a host runs nothing and has come to rest.
pub(super) fn rests(host: &BareMetalHost) -> bool {
    !documents::is_used(host) && documents::is_at_rest(host)
}

/// What to do about them.
#[must_use]
pub fn plan(left: &Leftovers<'_>) -> Plan {
    let hosts = left.hosts.iter().filter_map(|host| release(host));
    let claim = left.claim.seen().filter(|_| left.rests()).and_then(let_go);
    let actions: Vec<Action> = hosts.chain(claim).collect();
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
    if host.is_paused() || !rests(host) {
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
        patch: patch.with_precondition(&version(&host.metadata)?),
    })
}

/// Takes our finalizer off a claim that goes.
pub(super) fn let_go(claim: &Metal3DataClaim) -> Option<Action> {
    claim.metadata.deletion_timestamp.as_ref()?;
    let present = claim.metadata.finalizers.as_deref().unwrap_or_default();
    let patch = remove_finalizer(present, MACHINE_FINALIZER, &version(&claim.metadata)?)?;
    let claim = claim.metadata.name.clone()?;
    Some(Action::PatchClaim { claim, patch })
}
