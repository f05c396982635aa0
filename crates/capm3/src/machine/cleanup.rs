//! Cleanup after a machine that does not exist any more.
//!
//! With two replicas a host may be claimed after its machine is deleted, and a claim on data keeps this finalizer when
//! a user removes the machine's finalizer by hand. Both are undone after a live read confirms that the machine does not
//! exist. A host with an image is not touched, because it may be in use; while such a host may exist its data are kept
//! too, because the host uses the addresses in them.

use metal3_api::infrastructure::names::MACHINE_FINALIZER;
use metal3_api::infrastructure::v1beta2::Metal3DataClaim;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::cluster_of;
use metal3_runtime::patch::{Changes, remove_finalizer};
use metal3_runtime::plan::Observed;

use super::action::{Action, HostChange, Plan};
use super::plan::host_changes;
use crate::diff::{changes, version};

/// The objects of a machine that does not exist.
#[derive(Debug, Clone)]
pub struct Orphans<'a> {
    /// Whether a live read after these objects were observed confirms that no machine of the name exists.
    pub confirmed: bool,
    /// The hosts whose consumer it is.
    pub hosts: &'a [&'a BareMetalHost],
    /// An unreadable host of the namespace, if any: its consumer may be the machine.
    pub unreadable: Option<&'a str>,
    /// The claim on data with its name.
    pub claim: Observed<&'a Metal3DataClaim>,
}

impl Orphans<'_> {
    /// Whether no host can still run with the machine's data.
    fn is_inactive(&self) -> bool {
        self.unreadable.is_none() && self.hosts.iter().all(|host| is_inactive(host))
    }

    /// The unreadable host that blocks the deletion of the claim. No event of that host is certain to enqueue the key.
    #[must_use]
    pub fn blocking_host(&self) -> Option<&str> {
        self.unreadable
            .filter(|_| self.claim.present().copied().and_then(remove_claim_finalizer).is_some())
    }
}

/// Whether a host has no image or data and no operation in progress.
pub(super) fn is_inactive(host: &BareMetalHost) -> bool {
    !host_changes::is_used(host) && host_changes::is_idle(host)
}

/// The cleanup plan.
#[must_use]
pub fn plan(orphans: &Orphans<'_>) -> Plan {
    let hosts = orphans.hosts.iter().filter_map(|host| release(host));
    let claim = orphans
        .claim
        .present()
        .copied()
        .filter(|_| orphans.is_inactive())
        .and_then(remove_claim_finalizer);
    let actions: Vec<Action> = hosts.chain(claim).collect();
    if actions.is_empty() {
        Plan::default()
    } else if orphans.confirmed {
        Plan {
            actions,
            ..Plan::default()
        }
    } else {
        Plan::confirm()
    }
}

fn release(host: &BareMetalHost) -> Option<Action> {
    if host.is_paused() || !is_inactive(host) {
        return None;
    }
    let mut after = host.clone();
    let cluster = cluster_of(&host.metadata).unwrap_or_default().to_owned();
    host_changes::release(&mut after, &cluster);
    let Changes { main: Some(patch), .. } = changes(host, &after) else {
        return None;
    };
    Some(Action::PatchHost {
        host: host.metadata.name.clone()?,
        change: HostChange::Release,
        patch: patch.with_precondition(&version(&host.metadata)?),
    })
}

/// Removes this controller's finalizer from a claim in deletion.
pub(super) fn remove_claim_finalizer(claim: &Metal3DataClaim) -> Option<Action> {
    claim.metadata.deletion_timestamp.as_ref()?;
    let present = claim.metadata.finalizers.as_deref().unwrap_or_default();
    let patch = remove_finalizer(present, MACHINE_FINALIZER, &version(&claim.metadata)?)?;
    let claim = claim.metadata.name.clone()?;
    Some(Action::PatchClaim { claim, patch })
}
