//! What to do for a Metal3Cluster.

use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, MANAGED_BY_ANNOTATION};
use metal3_api::infrastructure::names::CLUSTER_FINALIZER;
use metal3_api::infrastructure::v1beta2::{ClusterRole, Metal3Cluster};
use metal3_capi::pause;
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;

use super::attach::{Attachment, Ties, attachment, is_cluster, is_leaving};
use super::serve::serve;
use super::status::{Attached, Standing, Words, saying};
use super::{Action, Facts, Plan, Tie, is_primary};
use crate::diff::changes;

/// What to do, given the facts.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    let object = facts.object;
    let annotations = object.metadata.annotations.as_ref();
    let is_foreign = annotations.is_some_and(|all| all.contains_key(MANAGED_BY_ANNOTATION));
    // A Cluster that cannot be read may be paused.
    if is_foreign || pause::is_moved_away(&object.metadata) || facts.cluster.unknown().is_some() {
        return Plan::default();
    }
    let cluster = facts.cluster.present().copied();
    if let Some(message) = pause::why_paused(cluster, "Metal3Cluster", &object.metadata) {
        return saying(facts, object.clone(), &Words::of(Standing::Paused(message)), None);
    }
    if object.metadata.deletion_timestamp.is_some() {
        return leave(facts);
    }
    Plan {
        release: facts.holds.unused(object, cluster),
        ..live(facts)
    }
}

fn live(facts: &Facts<'_>) -> Plan {
    let object = facts.object;
    let mut after = object.clone();
    after.status.failure_domains.clone_from(&object.spec.failure_domains);
    let ties = Ties {
        object,
        cluster: facts.cluster.clone(),
        namesake: facts.namesake,
        adopts_namesakes: facts.adopts_namesakes,
    };
    match attachment(&ties) {
        Attachment::To { cluster, is_secondary } => attached(facts, after, cluster, is_secondary),
        other => {
            after.status.role = uses_what_is_new(object).then_some(ClusterRole::Unattached);
            saying(facts, after, &unattached(object, &other), None)
        }
    }
}

fn attached(facts: &Facts<'_>, after: Metal3Cluster, cluster: &Cluster, is_secondary: bool) -> Plan {
    if is_secondary && is_leaving(facts.object) && facts.descendant.is_none() {
        return detach(facts, after, cluster);
    }
    if is_secondary && cluster.metadata.deletion_timestamp.is_some() && facts.descendant.is_none() {
        return Plan {
            action: Some(Action::Delete),
            ..Plan::default()
        };
    }
    serve(facts, after, cluster, is_secondary)
}

/// Whether an object is more than an endpoint and failure domains, as it always was.
pub(super) const fn uses_what_is_new(object: &Metal3Cluster) -> bool {
    object.spec.control_plane_endpoint_source.is_some() || object.spec.cluster_name.is_some()
}

fn unattached(object: &Metal3Cluster, attachment: &Attachment<'_>) -> Words {
    let not_attached = |standing: Standing, attached: Attached| Words {
        attached: Some(attached),
        ..Words::of(standing)
    };
    match attachment {
        Attachment::Loose if is_leaving(object) => not_attached(Standing::Loose, Attached::Left),
        Attachment::To { .. } | Attachment::Loose => Words::of(Standing::Loose),
        Attachment::Missing(Tie::Owned(name)) => Words::of(Standing::WithoutCluster((*name).to_owned())),
        Attachment::Missing(Tie::Joined(name)) => {
            let name = (*name).to_owned();
            not_attached(Standing::WithoutCluster(name.clone()), Attached::NotFound(name))
        }
        Attachment::Missing(Tie::Loose) => Words::of(Standing::Loose),
        Attachment::Contradicts(why) => {
            not_attached(Standing::NotAttached(why.clone()), Attached::Contradicts(why.clone()))
        }
        Attachment::OwnedByOther(why) => {
            not_attached(Standing::NotAttached(why.clone()), Attached::OwnedByOther(why.clone()))
        }
        Attachment::NotAdopted(cluster) => {
            let name = cluster.metadata.name.clone().unwrap_or_default();
            not_attached(Standing::Loose, Attached::NotAdopted(name))
        }
    }
}

/// Takes back what joining wrote.
fn detach(facts: &Facts<'_>, mut after: Metal3Cluster, cluster: &Cluster) -> Plan {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if let Some(owners) = &mut after.metadata.owner_references {
        owners.retain(|owner| !(is_cluster(owner) && owner.name == name));
    }
    if let Some(labels) = &mut after.metadata.labels {
        labels.remove(CLUSTER_NAME_LABEL);
    }
    if let Some(finalizers) = &mut after.metadata.finalizers {
        finalizers.retain(|name| name != CLUSTER_FINALIZER);
    }
    after.status.role = Some(ClusterRole::Unattached);
    after.status.control_plane_endpoint = None;
    let action = written(facts.object, &after);
    let words = Words {
        attached: Some(Attached::Detached(name.to_owned())),
        ..Words::of(Standing::Loose)
    };
    saying(facts, after, &words, action)
}

/// Goes when nothing that belongs to the object is left: its machines, and then the claim on their endpoint.
fn leave(facts: &Facts<'_>) -> Plan {
    let mut after = facts.object.clone();
    if let Some(machine) = facts.descendant {
        let message = format!("waiting for the Metal3Machines of the cluster to go, such as {machine}");
        return saying(facts, after, &Words::of(Standing::Deleting(message)), None);
    }
    if let Some(why) = &facts.holds.hidden {
        let message = format!("waiting for the claim on the endpoint, which cannot be read: {why}");
        return saying(facts, after, &Words::of(Standing::Deleting(message)), None);
    }
    if !facts.holds.all.is_empty() {
        return Plan {
            release: facts.holds.all.clone(),
            ..Plan::default()
        };
    }
    if let Some(finalizers) = &mut after.metadata.finalizers {
        finalizers.retain(|name| name != CLUSTER_FINALIZER);
    }
    Plan {
        action: written(facts.object, &after),
        ..Plan::default()
    }
}

pub(super) fn written(before: &Metal3Cluster, after: &Metal3Cluster) -> Option<Action> {
    let version = ResourceVersion::parse(before.metadata.resource_version.as_deref()?).ok()?;
    changes(before, after)
        .main
        .map(|patch| Action::Patch(patch.with_precondition(&version)))
}

/// Whether a decision asks for descendants.
#[must_use]
pub fn counts_descendants(object: &Metal3Cluster, cluster: &Observed<&Cluster>) -> bool {
    let cluster_goes = cluster
        .present()
        .copied()
        .is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some() && !is_primary(object, cluster));
    object.metadata.deletion_timestamp.is_some() || cluster_goes || is_leaving(object)
}
