//! The Cluster that a Metal3Cluster belongs to, and its role.
//!
//! Joining is explicit: by owner reference, `spec.clusterName`, or the label of Cluster API. An object that only has
//! the name of a Cluster's infrastructure is used by machines and not owned, so that its deletion semantics do not
//! change implicitly.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::conditions::cluster::{REASON_CLUSTER_REF_CONFLICT, REASON_OWNED_BY_OTHER};
use metal3_api::infrastructure::names::DETACH_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::kind::Kind as _;
use metal3_capi::owner::{self, group_of};
use metal3_runtime::reason::Reason;

use crate::cluster::facts::Facts;
use crate::cluster::{ClusterLink, cluster_link, is_secondary};

// differs (`cluster-attached`): the Go manager considers the owner alone, and only the Cluster's infrastructure gets
// one.
/// The relation of an object to a Cluster.
pub(super) enum Attachment<'a> {
    /// Belongs to this Cluster, as Primary or Secondary.
    To {
        /// The Cluster.
        cluster: &'a Cluster,
        /// Whether the Cluster names another infrastructure.
        is_secondary: bool,
    },
    /// Names no Cluster.
    Unattached,
    /// Names a Cluster that does not exist.
    ClusterMissing(ClusterLink<'a>),
    /// Names two Clusters, or another Cluster owns it as well: the reason of the condition, and its message.
    Conflict(Reason, String),
    /// A Cluster references infrastructure of another kind by this name.
    NotAdopted(&'a Cluster),
}

pub(super) fn attachment(facts: &Facts) -> Attachment<'_> {
    let object = &*facts.object;
    if let Some(why) = contradiction(object) {
        return Attachment::Conflict(REASON_CLUSTER_REF_CONFLICT, why);
    }
    let link = cluster_link(object);
    let (ClusterLink::Owned(name) | ClusterLink::Joined(name)) = link else {
        return match facts.namesake.as_deref() {
            Some(cluster) if facts.adopts_namesakes => Attachment::To {
                cluster,
                is_secondary: true,
            },
            Some(cluster) => Attachment::NotAdopted(cluster),
            None => Attachment::Unattached,
        };
    };
    let Some(cluster) = facts.cluster() else {
        return Attachment::ClusterMissing(link);
    };
    let is_secondary = is_secondary(object, cluster);
    let other = clusters_that_own(object).find(|owner| *owner != name);
    match other {
        Some(other) if is_secondary => {
            let why = format!("Cluster {other} owns the object, and it joins Cluster {name}; remove one of the two");
            Attachment::Conflict(REASON_OWNED_BY_OTHER, why)
        }
        _ => Attachment::To { cluster, is_secondary },
    }
}

/// Contradicting references to Clusters.
fn contradiction(object: &Metal3Cluster) -> Option<String> {
    let owner = owner::first::<Cluster>(&object.metadata).map(|owner| ("its owner", owner.name.as_str()));
    let stated = object.spec.cluster_name.as_deref().filter(|name| !name.is_empty());
    let stated = stated.map(|name| ("spec.clusterName", name));
    let label = owner::cluster_of(&object.metadata).map(|name| ("its label", name));
    let mut all = [owner, stated, label].into_iter().flatten();
    let (first_way, first) = all.next()?;
    let (other_way, other) = all.find(|(_, name)| *name != first)?;
    Some(format!(
        "{first_way} says Cluster {first}, {other_way} says Cluster {other}; make them agree"
    ))
}

fn clusters_that_own(object: &Metal3Cluster) -> impl Iterator<Item = &str> {
    let owners = object.metadata.owner_references.iter().flatten();
    owners
        .filter(|owner| is_cluster(owner))
        .map(|owner| owner.name.as_str())
}

/// Whether an owner is a Cluster of Cluster API. Other groups have the kind too.
pub(super) fn is_cluster(owner: &OwnerReference) -> bool {
    owner.kind == Cluster::KIND && group_of(&owner.api_version) == Cluster::GROUP
}

/// Whether the detach annotation is set. It has no effect on the Cluster's own infrastructure.
pub(super) fn is_leaving(object: &Metal3Cluster) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(DETACH_ANNOTATION))
}

/// Whether an object uses fields in addition to those of the Go manager.
pub(super) const fn uses_extensions(object: &Metal3Cluster) -> bool {
    object.spec.control_plane_endpoint_source.is_some() || object.spec.cluster_name.is_some()
}

/// Whether the infrastructure of a Cluster is of another kind and has the object's name.
#[must_use]
pub fn is_namesake(object_name: &str, cluster: &Cluster) -> bool {
    let reference = cluster.spec.infrastructure_ref.as_ref();
    reference.is_some_and(|reference| {
        let is_ours = reference.kind == Metal3Cluster::KIND && reference.api_group == Metal3Cluster::GROUP;
        !is_ours && reference.name == object_name
    })
}
