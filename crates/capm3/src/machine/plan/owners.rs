//! The machine as an owner of its host.
//!
//! Go managers up to 1.13 write that owner, and when it is deleted, the garbage collector deletes the host. An API server
//! with the admission plugin `OwnerReferencesPermissionEnforcement` lets only those remove an owner who may delete the host.
//! So no other write of a host in use depends on that permission, and only the end of the machine waits for the removal: an update of
//! the host that contains it is sent again without it when it is refused. A host that is claimed loses them with the claim: one
//! that may end with another machine is not taken.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner;

use super::{Decision, HostOwnership, Planner};
use crate::machine::action::HostChange;
use crate::machine::conditions::{Deletion, OWNER_RETRY, Stage};

/// The machines that this one removes from the owners of a host: itself, by UID or by name, and all when it is the consumer. The
/// host would be deleted with any of them.
fn is_removed(owner: &OwnerReference, host: &BareMetalHost, machine: &ObjectMeta) -> bool {
    let is_named = Some(&owner.name) == machine.name.as_ref() || Some(&owner.uid) == machine.uid.as_ref();
    owner::is_of_kind::<Metal3Machine>(owner) && (is_named || is_consumer(host, machine))
}

fn is_consumer(host: &BareMetalHost, machine: &ObjectMeta) -> bool {
    let consumer = host.spec.consumer_ref.as_ref();
    consumer.is_some_and(|one| one.kind.as_deref() == Some(Metal3Machine::KIND) && one.name == machine.name)
}

fn position(host: &BareMetalHost, machine: &ObjectMeta) -> Option<usize> {
    let mut owners = host.metadata.owner_references.iter().flatten();
    owners.position(|owner| is_removed(owner, host, machine))
}

/// Whether the host has an owner that the machine removes.
pub(super) fn has_owner(host: &BareMetalHost, machine: &ObjectMeta) -> bool {
    position(host, machine).is_some()
}

/// Removes the machine from the owners of its host.
pub(super) fn remove_owner(host: &mut BareMetalHost, machine: &ObjectMeta) {
    // differs (`host-machine-owner`): Go managers up to 1.13 write the machine as an owner of its host.
    keep_owners(host, |host, owner| !is_removed(owner, host, machine));
}

/// Removes all machines from the owners of a host that is claimed: it has no consumer, so none of them uses it.
pub(super) fn remove_owners(host: &mut BareMetalHost) {
    keep_owners(host, |_, owner| !owner::is_of_kind::<Metal3Machine>(owner));
}

fn keep_owners(host: &mut BareMetalHost, is_kept: impl Fn(&BareMetalHost, &OwnerReference) -> bool) {
    let mut owners = host.metadata.owner_references.take().unwrap_or_default();
    owners.retain(|owner| is_kept(host, owner));
    host.metadata.owner_references = Some(owners).filter(|owners| !owners.is_empty());
}

/// What a refused removal means, and what to do.
pub(crate) fn refused(host: &BareMetalHost, machine: &ObjectMeta, why: &str) -> Option<String> {
    let index = position(host, machine)?;
    let OwnerReference { uid, name: owner, .. } = host.metadata.owner_references.as_ref()?.get(index)?;
    let [name, namespace] =
        [&host.metadata.name, &host.metadata.namespace].map(|text| text.as_deref().unwrap_or_default());
    Some(format!(
        "Metal3Machine {owner} is an owner of BareMetalHost {name}, as a Go manager wrote it, and may not be removed: the host \
         would be deleted with the machine, so the machine is not deleted before (with --cascade=foreground the host is deleted at \
         once); permit this program to delete BareMetalHosts, or remove the owner: kubectl patch baremetalhost {name} --namespace {namespace} --type=json \
         --patch='[{{\"op\":\"test\",\"path\":\"/metadata/ownerReferences/{index}/uid\",\"value\":\"{uid}\"}},\
         {{\"op\":\"remove\",\"path\":\"/metadata/ownerReferences/{index}\"}}]' ({why})"
    ))
}

impl Planner<'_> {
    /// Removes the machine from the owners of its host, when nothing else is to be written. Returns when a refused removal is
    /// tried again: nothing else may change until then.
    pub(super) fn disown_at_rest(&mut self, stage: &Stage) -> Option<Duration> {
        let HostOwnership::Claimed(host) = self.host_ownership() else {
            return None;
        };
        let is_at_rest = matches!(stage, Stage::Hosted { .. }) && self.actions.is_empty();
        if !is_at_rest || !has_owner(host, &self.before.metadata) {
            return None;
        }
        if self.facts.owner_refused.is_some() {
            return Some(OWNER_RETRY);
        }
        self.disown(host);
        None
    }

    fn disown(&mut self, host: &BareMetalHost) {
        let machine = &self.before.metadata;
        if has_owner(host, machine) {
            self.patch_host(host, HostChange::Disown, |host| remove_owner(host, machine));
        }
    }

    /// Whether the machine is an owner of a host that it does not need; removes it, unless that was refused.
    pub(super) fn disown_surplus(&mut self, host: &BareMetalHost) -> bool {
        let is_owned = has_owner(host, &self.before.metadata);
        if is_owned && self.facts.owner_refused.is_none() {
            self.disown(host);
        }
        is_owned
    }

    /// Removes the machine from the owners of a host before the machine may end, or waits for a person who does; `None` when
    /// it is no owner.
    pub(super) fn disown_first(&mut self, host: &BareMetalHost) -> Option<Decision> {
        let machine = &self.before.metadata;
        if !has_owner(host, machine) {
            return None;
        }
        if let Some(why) = &self.facts.owner_refused {
            let message = refused(host, machine, why).unwrap_or_default();
            return Some(Decision::UpdateStatus(Stage::Deleting(Deletion::HostOwned(message))));
        }
        self.disown(host);
        Some(Decision::Unchanged)
    }
}
