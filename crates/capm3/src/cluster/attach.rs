//! Which Cluster a Metal3Cluster belongs to, and as what.
//!
//! Joining is said aloud: by an owner, by `spec.clusterName`, or by the label of Cluster API. One that is merely called
//! as the infrastructure of a Cluster is used by machines, as ever, and belongs to nobody: who deletes it does not change
//! behind anybody's back.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::names::DETACH_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::kind::Kind as _;
use metal3_capi::owner::{self, group_of};
use metal3_runtime::plan::Observed;

use super::{Tie, belongs_to, is_secondary};

// differs (`cluster-attached`): for the Go manager only the owner counts, and only the Cluster's infrastructure gets one.
/// What an object is to which Cluster.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Attachment<'a> {
    /// It belongs to this Cluster, as its infrastructure or beside it.
    To {
        /// The Cluster.
        cluster: &'a Cluster,
        /// Whether the Cluster's infrastructure is something else.
        is_secondary: bool,
    },
    /// It names none.
    Loose,
    /// It names one that does not exist.
    Missing(Tie<'a>),
    /// It names two.
    Contradicts(String),
    /// Another Cluster owns it, too.
    OwnedByOther(String),
    /// A Cluster uses it for its name.
    NotAdopted(&'a Cluster),
}

/// What decides about it.
pub(super) struct Ties<'a> {
    /// The object.
    pub(super) object: &'a Metal3Cluster,
    /// The Cluster that it names.
    pub(super) cluster: Observed<&'a Cluster>,
    /// A Cluster whose infrastructure is of another kind and called as the object is.
    pub(super) namesake: Option<&'a Cluster>,
    /// Whether such a Cluster adopts it.
    pub(super) adopts_namesakes: bool,
}

pub(super) fn attachment<'a>(ties: &Ties<'a>) -> Attachment<'a> {
    let object = ties.object;
    if let Some(why) = contradiction(object) {
        return Attachment::Contradicts(why);
    }
    let tie = belongs_to(object);
    let (Tie::Owned(name) | Tie::Joined(name)) = tie else {
        return match ties.namesake {
            Some(cluster) if ties.adopts_namesakes => Attachment::To {
                cluster,
                is_secondary: true,
            },
            Some(cluster) => Attachment::NotAdopted(cluster),
            None => Attachment::Loose,
        };
    };
    let Some(cluster) = ties.cluster.present().copied() else {
        return Attachment::Missing(tie);
    };
    let is_secondary = is_secondary(object, cluster);
    let other = clusters_that_own(object).find(|owner| *owner != name);
    match other {
        Some(other) if is_secondary => Attachment::OwnedByOther(format!(
            "Cluster {other} owns the object, and it joins Cluster {name}; take one of the two back"
        )),
        _ => Attachment::To { cluster, is_secondary },
    }
}

/// Two ways of naming a Cluster that do not agree.
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

/// Whether an owner is a Cluster of Cluster API. Others call things a Cluster too.
pub(super) fn is_cluster(owner: &OwnerReference) -> bool {
    owner.kind == Cluster::KIND && group_of(&owner.api_version) == Cluster::GROUP
}

/// Whether a person wants the object to leave the Cluster that it joined. The Cluster's own infrastructure does not.
#[must_use]
pub(super) fn is_leaving(object: &Metal3Cluster) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(DETACH_ANNOTATION))
}

/// Whether a Cluster uses an object merely for its name: its infrastructure is of another kind, and called as the
/// object is.
#[must_use]
pub fn is_namesake(object_name: &str, cluster: &Cluster) -> bool {
    let reference = cluster.spec.infrastructure_ref.as_ref();
    reference.is_some_and(|reference| {
        let is_ours = reference.kind == Metal3Cluster::KIND && reference.api_group == Metal3Cluster::GROUP;
        !is_ours && reference.name == object_name
    })
}
