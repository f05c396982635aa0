//! Cleanup after a machine that does not exist any more.
//!
//! With two replicas a host may be claimed after its machine is deleted, and a claim on data keeps this finalizer when
//! a user removes the machine's finalizer by hand. Both are undone after a live read confirms that the machine does not
//! exist. A host with an image is not touched, because it may be in use; while such a host may exist its data are kept
//! too, because the host uses the addresses in them.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::infrastructure::names::{DATA_CLAIM_FINALIZER, MACHINE_FINALIZER};
use metal3_api::infrastructure::v1beta2::Metal3DataClaim;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::cluster_of;
use metal3_runtime::patch::{Changes, has_finalizer, remove_finalizer};
use metal3_runtime::work::Next;

use super::host_changes;
use super::owners::{has_owner, refused, remove_owner};
use crate::diff::{changes, version};
use crate::machine::action::{Action, HostChange, Plan, Reads};
use crate::machine::conditions::OWNER_RETRY;
use crate::machine::facts::Facts;
use crate::reasons::machine as reasons;

/// No event of an unreadable host is certain to enqueue the machine's key.
const RECHECK: Duration = Duration::from_secs(60);

/// Whether a host has no image or data and no operation in progress.
pub(super) fn is_inactive(host: &BareMetalHost) -> bool {
    !host_changes::is_used(host) && host_changes::is_idle(host)
}

/// The cleanup plan.
pub(super) fn plan(facts: &Facts) -> Plan {
    let hosts = &facts.hosts;
    let claim = facts.claim.present().and_then(|claim| remove_claim_finalizer(claim));
    // An unreadable host may run with the data, as may one that is not idle.
    let is_claim_free = hosts.unreadable.is_none() && hosts.claimed().all(is_inactive);
    let is_blocked = claim.is_some();
    let actions: Vec<Action> = hosts
        .claimed()
        .filter(|host| kept_by_owner(host, facts).is_none())
        .filter_map(|host| disown(host, facts).or_else(|| release(host)))
        .chain(claim.filter(|_| is_claim_free))
        .collect();
    let kept = hosts.claimed().find_map(|host| kept_by_owner(host, facts));
    match &hosts.unreadable {
        _ if actions.is_empty() && kept.is_some() => Plan {
            next: Next::waiting_with_recheck(reasons::HOST_OWNER_KEPT, kept.unwrap_or_default(), OWNER_RETRY),
            ..Plan::default()
        },
        Some(host) if actions.is_empty() && is_blocked => Plan {
            next: Next::waiting_with_recheck(
                reasons::UNREADABLE,
                format!("BareMetalHost {host} cannot be read and may run with the data; correct it"),
                RECHECK,
            ),
            ..Plan::default()
        },
        _ if actions.is_empty() => Plan::default(),
        _ if facts.confirmed => Plan {
            actions,
            next: Next::Requeue,
            ..Plan::default()
        },
        _ => Plan::reading(Reads::Machine),
    }
}

/// Why a host is not released: an owner may not be removed from it, and the host would be deleted with that owner while another
/// machine uses it.
fn kept_by_owner(host: &BareMetalHost, facts: &Facts) -> Option<String> {
    let why = facts.owner_refused.as_ref()?;
    refused(host, &consumer(host)?, why).filter(|_| !host.is_paused() && is_inactive(host))
}

fn consumer(host: &BareMetalHost) -> Option<ObjectMeta> {
    let name = host.spec.consumer_ref.as_ref()?.name.clone();
    Some(ObjectMeta {
        name,
        ..ObjectMeta::default()
    })
}

/// Removes machines from the owners of the host, before it is released.
fn disown(host: &BareMetalHost, facts: &Facts) -> Option<Action> {
    let machine = consumer(host)?;
    if facts.owner_refused.is_some() || host.is_paused() || !is_inactive(host) || !has_owner(host, &machine) {
        return None;
    }
    let mut after = host.clone();
    remove_owner(&mut after, &machine);
    Some(Action::PatchHost {
        host: host.metadata.name.clone()?,
        change: HostChange::Disown,
        patch: changes(host, &after).main?.with_precondition(&version(&host.metadata)?),
    })
}

fn release(host: &BareMetalHost) -> Option<Action> {
    if host.is_paused() || !is_inactive(host) {
        return None;
    }
    let mut after = host.clone();
    let cluster = cluster_of(&host.metadata).unwrap_or_default().to_owned();
    let kept = host_changes::kept_before(host);
    host_changes::release(&mut after, &cluster, kept.as_ref());
    let Changes { main: Some(patch), .. } = changes(host, &after) else {
        return None;
    };
    Some(Action::PatchHost {
        host: host.metadata.name.clone()?,
        change: HostChange::Release,
        patch: patch.with_precondition(&version(&host.metadata)?),
    })
}

/// Removes this controller's finalizer from a claim in deletion. The controller of data removes its own first: if both wrote at the
/// same time, the precondition of one would fail.
pub(super) fn remove_claim_finalizer(claim: &Metal3DataClaim) -> Option<Action> {
    claim.metadata.deletion_timestamp.as_ref()?;
    if has_finalizer(claim, DATA_CLAIM_FINALIZER) {
        return None;
    }
    let present = claim.metadata.finalizers.as_deref().unwrap_or_default();
    let patch = remove_finalizer(present, MACHINE_FINALIZER, &version(&claim.metadata)?)?;
    let claim = claim.metadata.name.clone()?;
    Some(Action::PatchClaim { claim, patch })
}
