//! One Metal3Cluster: what is decided about it, from facts alone.
//!
//! There is nothing to build: the endpoint is the user's business, or that of the Cluster it joined, or of a source that
//! the [endpoint](crate::endpoint) is taken from. What is decided is which Cluster the object belongs to, what that
//! Cluster may wait for, and when the object may go. It goes when no Metal3Machine belongs to it any more; machines of
//! other providers do not count.
//!
//! Invariants: what was provisioned once stays so; nothing is done for an object that somebody else looks after, that
//! is paused, or that lives on elsewhere; a Cluster that cannot be read is not one that is gone; an object that uses
//! nothing of what is new is written as it was before there was anything new.

mod attach;
mod plan;
mod serve;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster, Metal3ClusterStatus};
use metal3_api::kind::Kind;
use metal3_api::meta::Time;
use metal3_capi::owner;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::Observed;

use crate::data::claims::NewClaim;
use crate::endpoint::address::Address;
use crate::endpoint::hold::{Hold, Holds};
use crate::endpoint::own::Derived;
use crate::endpoint::reading::Readings;
use crate::endpoint::render::{Kept, Writing};
use crate::machine::resolve::joins;

pub use attach::is_namesake;
pub use plan::{counts_descendants, plan};

/// Everything that may decide what happens to a Metal3Cluster.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The object.
    pub object: &'a Metal3Cluster,
    /// The Cluster that [`belongs_to`] names. Absent where it names none, or one that is gone.
    pub cluster: Observed<&'a Cluster>,
    /// A Metal3Machine that belongs to the object, if there is one. Of interest only while something goes.
    pub descendant: Option<&'a str>,
    /// A Cluster that [uses the object for its name](is_namesake). Of interest only where it names no Cluster itself.
    pub namesake: Option<&'a Cluster>,
    /// Whether such a Cluster adopts the object.
    pub adopts_namesakes: bool,
    /// What others say of the endpoint, where the object asks for that.
    pub readings: &'a Readings,
    /// The claims on its address that our finalizer holds.
    pub holds: &'a Holds,
    /// The Secret that the endpoint is filled into, where there is one and that is asked for.
    pub secret: Option<Kept<'a>>,
    /// What the server refused to let us write, just now.
    pub refused: Refused<'a>,
    /// The time for what is written.
    pub now: Time,
}

/// What the server refused to let us write. It is not tried again in the same pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The endpoint: somebody else looks after the field.
    pub endpoint: bool,
    /// The Secret with the endpoint, and why.
    pub secret: Option<&'a str>,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Changes the object, at the version that the plan was made from.
    Patch(MergePatch),
    /// Deletes that version of the object.
    Delete,
}

/// What to do for a Metal3Cluster, in this order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The write to the object; the rest follows when it is done.
    pub action: Option<Action>,
    /// The claim on an address to make.
    pub claim: Option<NewClaim>,
    /// The endpoint to write into the object, with its marker, unless somebody else looks after the field.
    pub derive: Option<Derived>,
    /// The Secret to write, with the endpoint that is in the object filled in.
    pub render: Option<Writing>,
    /// The source sleeps although this endpoint of it is in the object: who may, wakes it.
    pub nudge: Option<(EndpointOrigin, Address)>,
    /// What to say of the object. Nothing where it says so already.
    pub status: Option<Box<Metal3ClusterStatus>>,
    /// The claims on an address to give back.
    pub release: Vec<Hold>,
    /// When to look again although nothing changed.
    pub again: Option<Duration>,
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

/// What the object is to a Cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie<'a> {
    /// A Cluster owns it and names it as its infrastructure, or has not said otherwise.
    Owned(&'a str),
    /// It joined a Cluster by name or label.
    Joined(&'a str),
    /// Nobody has claimed it yet.
    Loose,
}

/// Which Cluster an object belongs to, by what it says itself.
#[must_use]
pub fn belongs_to(object: &Metal3Cluster) -> Tie<'_> {
    let stated = object.spec.cluster_name.as_deref().filter(|name| !name.is_empty());
    let owner = owner::first::<Cluster>(&object.metadata).map(|owner| owner.name.as_str());
    match (owner, stated, owner::cluster_of(&object.metadata)) {
        (Some(name), _, _) => Tie::Owned(name),
        (None, Some(name), _) | (None, None, Some(name)) => Tie::Joined(name),
        (None, None, None) => Tie::Loose,
    }
}

/// The name of the Cluster, if the object belongs to one.
#[must_use]
pub fn cluster_name(object: &Metal3Cluster) -> Option<&str> {
    match belongs_to(object) {
        Tie::Owned(name) | Tie::Joined(name) => Some(name),
        Tie::Loose => None,
    }
}

/// Whether the object is the infrastructure that the Cluster names.
#[must_use]
pub fn is_primary(object: &Metal3Cluster, cluster: &Cluster) -> bool {
    let reference = cluster.spec.infrastructure_ref.as_ref();
    reference.is_some_and(|reference| {
        reference.kind == Metal3Cluster::KIND
            && reference.api_group == Metal3Cluster::GROUP
            && Some(&reference.name) == object.metadata.name.as_ref()
    })
}

/// Whether the object joined the Cluster beside the infrastructure that the Cluster names. One that the Cluster owns,
/// and that joined nothing, is its infrastructure as long as the Cluster names none.
#[must_use]
pub fn is_secondary(object: &Metal3Cluster, cluster: &Cluster) -> bool {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let is_beside = || matches!(belongs_to(object), Tie::Owned(owner) if owner == name);
    let has_another = cluster.spec.infrastructure_ref.is_some();
    !is_primary(object, cluster) && (joins(object, name) || has_another && is_beside())
}
