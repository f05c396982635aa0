//! What may be done: one write each, with the version it relies on inside.

use metal3_api::cluster;
use metal3_api::ipam::v1alpha1::IPAddress;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::version::ResourceVersion;

use crate::claim::Named;
use crate::facts::Reads;

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Changes labels, owners or finalizers of the pool.
    PatchPool(MergePatch),
    /// Records what is about to be granted, and what is.
    PatchPoolStatus(MergePatch),
    /// Changes the finalizers of a claim.
    PatchClaim(Named, MergePatch),
    /// Names a claim's address, or says why there is none.
    PatchClaimStatus(Named, MergePatch),
    /// Creates an address object. That it exists already is a success only if it is this one.
    CreateAddress(NewAddress),
    /// Changes owners or finalizers of an address object.
    PatchAddress(Named, MergePatch),
    /// Deletes one version of one address object.
    DeleteAddress {
        /// Kind and name.
        address: Named,
        /// Which object of that name.
        uid: String,
        /// Which version of it.
        version: ResourceVersion,
    },
}

/// An address object to be created, whole: nothing is added to it later.
#[derive(Debug, Clone, PartialEq)]
pub enum NewAddress {
    /// For an IPClaim.
    Metal3(Box<IPAddress>),
    /// For an IPAddressClaim.
    ClusterApi(Box<cluster::IPAddress>),
}

impl Eq for NewAddress {}

/// Writes that follow one another for one claim or address: when one fails, the rest is left for another pass. Chains
/// do not depend on each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// In order.
    pub actions: Vec<Action>,
    /// What to tell about the claim when all are done.
    pub event: Option<Event>,
}

impl Chain {
    /// These writes, and nothing to tell.
    #[must_use]
    pub const fn of(actions: Vec<Action>) -> Self {
        Self { actions, event: None }
    }

    /// The same, with something to tell.
    #[must_use]
    pub fn telling(self, event: Event) -> Self {
        Self {
            event: Some(event),
            ..self
        }
    }
}

/// Something to tell about a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The claim.
    pub claim: Named,
    /// Which claim of that name.
    pub uid: String,
    /// Whether somebody should look.
    pub is_warning: bool,
    /// A word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Figures of a pool, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Addresses of all ranges.
    pub capacity: u128,
    /// Granted, or about to be.
    pub used: u128,
    /// Free for any claim.
    pub available: u128,
    /// Kept for claims of a given name and not granted.
    pub reserved: u128,
    /// Claims without an address.
    pub waiting: usize,
}

/// What to do for a pool. After any number of its writes the process may stop, and the next pass goes on from there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What to read before anything is done. While this is not empty the rest may be incomplete, but not unsafe.
    pub reads: Reads,
    /// The write to the pool. When it fails nothing else is done: the rest relies on it.
    pub first: Option<Action>,
    /// Everything else.
    pub chains: Vec<Chain>,
    /// How the pool stands; nothing where there is no pool.
    pub figures: Option<Figures>,
}

impl Plan {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none() && self.chains.is_empty()
    }

    /// A plan of one write.
    #[must_use]
    pub fn only(first: Action) -> Self {
        Self {
            first: Some(first),
            ..Self::default()
        }
    }
}
