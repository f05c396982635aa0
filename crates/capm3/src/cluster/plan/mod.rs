//! The plan of a Metal3Cluster, from facts alone.

mod attach;
mod draft;
mod serve;
mod status;

use std::time::Duration;

use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, MANAGED_BY_ANNOTATION};
use metal3_api::infrastructure::conditions::cluster::{REASON_CLUSTER_NOT_FOUND, REASON_DETACHED};
use metal3_api::infrastructure::names::CLUSTER_FINALIZER;
use metal3_api::infrastructure::v1beta2::{ClusterRole, Metal3Cluster};
use metal3_capi::pause;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use super::action::{Action, DeletedPlan, Plan, Read};
use super::facts::Facts;
use super::{ClusterLink, is_primary};
use crate::endpoint::held_claims::HeldClaims;
use crate::endpoint::resolve::earlier;

use attach::{Attachment, attachment, is_cluster, is_leaving, uses_extensions};
use draft::{Draft, patch_object};
use serve::serve;
use status::{Attached, Phase, StatusReport, with_status};

pub use attach::is_namesake;

const CLAIM_RECHECK: Duration = Duration::from_mins(1);

/// Computes the plan.
#[must_use]
pub fn plan(facts: &Facts) -> Plan {
    draft(facts).into_plan(&facts.results)
}

fn draft(facts: &Facts) -> Draft {
    let object = &facts.object;
    let annotations = object.metadata.annotations.as_ref();
    let is_externally_managed = annotations.is_some_and(|all| all.contains_key(MANAGED_BY_ANNOTATION));
    // An unreadable Cluster may be paused.
    if is_externally_managed || pause::is_moved_away(&object.metadata) || facts.cluster.unknown().is_some() {
        return Draft::default();
    }
    if let Some(message) = pause::why_paused(facts.cluster(), "Metal3Cluster", &object.metadata) {
        return with_status(facts, (**object).clone(), &StatusReport::of(Phase::Paused(message)));
    }
    if object.metadata.deletion_timestamp.is_some() {
        return deletion(facts);
    }
    let draft = live(facts);
    Draft {
        release: facts.held_claims.releasable(object, facts.cluster()),
        requeue_after: earlier(draft.requeue_after, facts.join.recheck),
        ..draft
    }
}

/// The plan for the claims of an object that is not in the cache. Only a live read confirms its deletion.
#[must_use]
pub fn plan_deleted(held_claims: &HeldClaims, object: &Observed<Metal3Cluster>) -> DeletedPlan {
    let leftover = held_claims.of_deleted_object();
    match object {
        _ if leftover.is_empty() => DeletedPlan::default(),
        Observed::Unknown(_) => DeletedPlan::reading(vec![Read::Object]),
        Observed::Present(_) => DeletedPlan::default(),
        Observed::Absent => DeletedPlan {
            actions: leftover,
            next: Next::Requeue,
            ..DeletedPlan::default()
        },
    }
}

fn live(facts: &Facts) -> Draft {
    let mut after = (*facts.object).clone();
    after.status.failure_domains.clone_from(&after.spec.failure_domains);
    match attachment(facts) {
        Attachment::To { cluster, is_secondary } => attached(facts, after, cluster, is_secondary),
        other => {
            after.status.role = uses_extensions(&after).then_some(ClusterRole::Unattached);
            with_status(facts, after, &unattached(&facts.object, &other))
        }
    }
}

fn attached(facts: &Facts, after: Metal3Cluster, cluster: &Cluster, is_secondary: bool) -> Draft {
    let is_leaving = is_leaving(&facts.object);
    let ends = is_leaving || cluster.metadata.deletion_timestamp.is_some();
    if is_secondary && ends && facts.descendant.is_none() {
        if !facts.machines_are_live {
            return confirm_machines();
        }
        if is_leaving {
            return detach(facts, after, cluster);
        }
        return Draft {
            writes: vec![Action::Delete],
            ..Draft::default()
        };
    }
    serve(facts, after, cluster, is_secondary)
}

fn unattached(object: &Metal3Cluster, attachment: &Attachment<'_>) -> StatusReport {
    let (phase, attached) = match attachment {
        Attachment::Unattached if is_leaving(object) => (Phase::Unattached, Some(Attached::Left)),
        Attachment::To { .. } | Attachment::Unattached | Attachment::ClusterMissing(ClusterLink::None) => {
            (Phase::Unattached, None)
        }
        Attachment::ClusterMissing(ClusterLink::Owned(name)) => (Phase::ClusterMissing((*name).to_owned()), None),
        Attachment::ClusterMissing(ClusterLink::Joined(name)) => {
            let why = format!("Cluster {name} does not exist in this namespace; create it, or correct the name");
            let phase = Phase::ClusterMissing((*name).to_owned());
            (phase, Some(Attached::No(REASON_CLUSTER_NOT_FOUND, why)))
        }
        Attachment::Conflict(reason, why) => (
            Phase::NotAttached(why.clone()),
            Some(Attached::No(*reason, why.clone())),
        ),
        Attachment::NotAdopted(cluster) => (Phase::Unattached, Some(Attached::not_adopted(cluster))),
    };
    StatusReport {
        attached,
        ..StatusReport::of(phase)
    }
}

/// The watch may be behind: the machines of a Metal3Cluster use its endpoint and its finalizer protects them.
fn confirm_machines() -> Draft {
    Draft {
        reads: vec![Read::Machines],
        ..Draft::default()
    }
}

/// Removes owner reference, label and finalizer of the join.
fn detach(facts: &Facts, mut after: Metal3Cluster, cluster: &Cluster) -> Draft {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if let Some(owners) = &mut after.metadata.owner_references {
        owners.retain(|owner| !(is_cluster(owner) && owner.name == name));
    }
    if let Some(labels) = &mut after.metadata.labels {
        labels.remove(CLUSTER_NAME_LABEL);
    }
    remove_finalizer(&mut after);
    after.status.role = Some(ClusterRole::Unattached);
    after.status.control_plane_endpoint = None;
    let writes = patch_object(facts, &after).into_iter().collect();
    let why = format!("detached from Cluster {name}; remove the detach annotation to join it again");
    let report = StatusReport {
        attached: Some(Attached::No(REASON_DETACHED, why)),
        ..StatusReport::of(Phase::Unattached)
    };
    Draft {
        writes,
        ..with_status(facts, after, &report)
    }
}

/// Removes the finalizer when the machines are deleted and the claim on the endpoint is released.
fn deletion(facts: &Facts) -> Draft {
    let mut after = (*facts.object).clone();
    let blocker = match (&facts.descendant, &facts.held_claims.unreadable) {
        (Some(machine), _) => Some(format!(
            "waiting for the deletion of the Metal3Machines of the cluster, such as {machine}"
        )),
        (None, Some(why)) => Some(format!(
            "waiting for the claim on the endpoint, which cannot be read: {why}"
        )),
        (None, None) => None,
    };
    if let Some(message) = blocker {
        return Draft {
            // The first list of claims that may be read at last wakes nothing if it is empty.
            requeue_after: facts.held_claims.unreadable.as_ref().map(|_| CLAIM_RECHECK),
            ..with_status(facts, after, &StatusReport::of(Phase::Deleting(message)))
        };
    }
    let finalizers = after.metadata.finalizers.as_deref().unwrap_or_default();
    let is_held = finalizers.iter().any(|name| name == CLUSTER_FINALIZER) || !facts.held_claims.all.is_empty();
    if is_held && !facts.machines_are_live {
        return confirm_machines();
    }
    if !facts.held_claims.all.is_empty() {
        return Draft {
            release: facts.held_claims.all.clone(),
            ..Draft::default()
        };
    }
    remove_finalizer(&mut after);
    Draft {
        writes: patch_object(facts, &after).into_iter().collect(),
        ..Draft::default()
    }
}

fn remove_finalizer(object: &mut Metal3Cluster) {
    if let Some(finalizers) = &mut object.metadata.finalizers {
        finalizers.retain(|name| name != CLUSTER_FINALIZER);
    }
}

/// Whether the plan depends on descendants.
#[must_use]
pub fn counts_descendants(object: &Metal3Cluster, cluster: Option<&Cluster>) -> bool {
    let is_cluster_deleted =
        cluster.is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some() && !is_primary(object, cluster));
    object.metadata.deletion_timestamp.is_some() || is_cluster_deleted || is_leaving(object)
}
