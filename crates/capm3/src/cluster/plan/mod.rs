//! The plan of a Metal3Cluster, from facts alone.

mod attach;
mod serve;
mod status;

use std::time::Duration;

use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, MANAGED_BY_ANNOTATION};
use metal3_api::infrastructure::names::CLUSTER_FINALIZER;
use metal3_api::infrastructure::v1beta2::{ClusterRole, EndpointOrigin, Metal3Cluster, Metal3ClusterStatus};
use metal3_capi::pause;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;

use super::{ClusterLink, Facts, is_primary};
use crate::data::claims::NewClaim;
use crate::diff::changes;
use crate::endpoint::address::Address;
use crate::endpoint::held_claims::HeldClaim;
use crate::endpoint::render::SecretWrite;
use crate::endpoint::spec_endpoint::Derived;

use attach::{Attachment, AttachmentFacts, attachment, is_cluster, is_leaving};
use serve::serve;
use status::{Attached, Phase, StatusReport, with_status};

pub use attach::is_namesake;

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Patches the object at the planned version.
    Patch(MergePatch),
    /// Deletes that version of the object.
    Delete,
}

/// The writes for a Metal3Cluster, in this order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The write to the object. The rest follows it.
    pub action: Option<Action>,
    /// The address claim to create.
    pub claim: Option<NewClaim>,
    /// The endpoint to apply, with its marker, unless another field manager owns the field.
    pub derive: Option<Derived>,
    /// The Secret write, with the endpoint in the object filled in.
    pub render: Option<SecretWrite>,
    /// The idle control plane to touch, and the endpoint that it has not noticed.
    pub touch: Option<(EndpointOrigin, Address)>,
    /// The status, if it changes.
    pub status: Option<Box<Metal3ClusterStatus>>,
    /// The address claims to release.
    pub release: Vec<HeldClaim>,
    /// Delay until the next reconcile.
    pub requeue_after: Option<Duration>,
}

impl Plan {
    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.action.is_none()
            && self.claim.is_none()
            && self.derive.is_none()
            && self.render.is_none()
            && self.status.is_none()
            && self.release.is_empty()
    }
}

/// Computes the plan.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    let object = facts.object;
    let annotations = object.metadata.annotations.as_ref();
    let is_externally_managed = annotations.is_some_and(|all| all.contains_key(MANAGED_BY_ANNOTATION));
    // An unreadable Cluster may be paused.
    if is_externally_managed || pause::is_moved_away(&object.metadata) || facts.cluster.unknown().is_some() {
        return Plan::default();
    }
    let cluster = facts.cluster.present().copied();
    if let Some(message) = pause::why_paused(cluster, "Metal3Cluster", &object.metadata) {
        return with_status(facts, object.clone(), &StatusReport::of(Phase::Paused(message)), None);
    }
    if object.metadata.deletion_timestamp.is_some() {
        return plan_deletion(facts);
    }
    Plan {
        release: facts.held_claims.releasable(object, cluster),
        ..plan_live(facts)
    }
}

fn plan_live(facts: &Facts<'_>) -> Plan {
    let object = facts.object;
    let mut after = object.clone();
    after.status.failure_domains.clone_from(&object.spec.failure_domains);
    let attachment_facts = AttachmentFacts {
        object,
        cluster: facts.cluster.clone(),
        namesake: facts.namesake,
        adopts_namesakes: facts.adopts_namesakes,
    };
    match attachment(&attachment_facts) {
        Attachment::To { cluster, is_secondary } => attached(facts, after, cluster, is_secondary),
        other => {
            after.status.role = uses_extensions(object).then_some(ClusterRole::Unattached);
            with_status(facts, after, &unattached(object, &other), None)
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

/// Whether an object uses fields in addition to those of the Go manager.
const fn uses_extensions(object: &Metal3Cluster) -> bool {
    object.spec.control_plane_endpoint_source.is_some() || object.spec.cluster_name.is_some()
}

fn unattached(object: &Metal3Cluster, attachment: &Attachment<'_>) -> StatusReport {
    let not_attached = |phase: Phase, attached: Attached| StatusReport {
        attached: Some(attached),
        ..StatusReport::of(phase)
    };
    match attachment {
        Attachment::Unattached if is_leaving(object) => not_attached(Phase::Unattached, Attached::Left),
        Attachment::To { .. } | Attachment::Unattached => StatusReport::of(Phase::Unattached),
        Attachment::ClusterMissing(ClusterLink::Owned(name)) => {
            StatusReport::of(Phase::ClusterMissing((*name).to_owned()))
        }
        Attachment::ClusterMissing(ClusterLink::Joined(name)) => {
            let name = (*name).to_owned();
            not_attached(Phase::ClusterMissing(name.clone()), Attached::NotFound(name))
        }
        Attachment::ClusterMissing(ClusterLink::None) => StatusReport::of(Phase::Unattached),
        Attachment::Contradictory(why) => {
            not_attached(Phase::NotAttached(why.clone()), Attached::Contradicts(why.clone()))
        }
        Attachment::OwnedByOther(why) => {
            not_attached(Phase::NotAttached(why.clone()), Attached::OwnedByOther(why.clone()))
        }
        Attachment::NotAdopted(cluster) => {
            let name = cluster.metadata.name.clone().unwrap_or_default();
            not_attached(Phase::Unattached, Attached::NotAdopted(name))
        }
    }
}

/// Removes owner reference, label and finalizer of the join.
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
    let action = patch_object(facts.object, &after);
    let report = StatusReport {
        attached: Some(Attached::Detached(name.to_owned())),
        ..StatusReport::of(Phase::Unattached)
    };
    with_status(facts, after, &report, action)
}

/// Removes the finalizer when the machines are deleted and the claim on the endpoint is released.
fn plan_deletion(facts: &Facts<'_>) -> Plan {
    let mut after = facts.object.clone();
    if let Some(machine) = facts.descendant {
        let message = format!("waiting for the deletion of the Metal3Machines of the cluster, such as {machine}");
        return with_status(facts, after, &StatusReport::of(Phase::Deleting(message)), None);
    }
    if let Some(why) = &facts.held_claims.unreadable {
        let message = format!("waiting for the claim on the endpoint, which cannot be read: {why}");
        return with_status(facts, after, &StatusReport::of(Phase::Deleting(message)), None);
    }
    if !facts.held_claims.all.is_empty() {
        return Plan {
            release: facts.held_claims.all.clone(),
            ..Plan::default()
        };
    }
    if let Some(finalizers) = &mut after.metadata.finalizers {
        finalizers.retain(|name| name != CLUSTER_FINALIZER);
    }
    Plan {
        action: patch_object(facts.object, &after),
        ..Plan::default()
    }
}

fn patch_object(before: &Metal3Cluster, after: &Metal3Cluster) -> Option<Action> {
    let version = ResourceVersion::parse(before.metadata.resource_version.as_deref()?).ok()?;
    changes(before, after)
        .main
        .map(|patch| Action::Patch(patch.with_precondition(&version)))
}

/// Whether the plan depends on descendants.
#[must_use]
pub fn counts_descendants(object: &Metal3Cluster, cluster: &Observed<&Cluster>) -> bool {
    let is_cluster_deleted = cluster
        .present()
        .copied()
        .is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some() && !is_primary(object, cluster));
    object.metadata.deletion_timestamp.is_some() || is_cluster_deleted || is_leaving(object)
}
