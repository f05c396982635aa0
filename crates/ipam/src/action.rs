//! Writes to the API. Each contains its preconditions.

use metal3_api::cluster;
use metal3_api::ipam::v1alpha1::IPAddress;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::reason::Reason;
use metal3_runtime::version::ResourceVersion;

use crate::claim::ObjectId;
use crate::facts::RequiredReads;

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Patches labels, owner references or finalizers of the pool.
    PatchPool(MergePatch),
    /// Patches the status of the pool, including the record of pending allocations.
    PatchPoolStatus(MergePatch),
    /// Patches the finalizers of a claim.
    PatchClaim(ObjectId, MergePatch),
    /// Patches the status of a claim: the address object, or the reason why there is none.
    PatchClaimStatus(ObjectId, MergePatch),
    /// Creates an address object. `AlreadyExists` is a success only if the existing object is the same.
    CreateAddress(NewAddress),
    /// Patches owner references or finalizers of an address object.
    PatchAddress(ObjectId, MergePatch),
    /// Deletes an address object at one version.
    DeleteAddress {
        /// Kind and name.
        address: ObjectId,
        /// UID.
        uid: String,
        /// Resource version.
        version: ResourceVersion,
    },
}

/// A complete address object.
#[derive(Debug, Clone, PartialEq)]
pub enum NewAddress {
    /// For an IPClaim.
    Metal3(Box<IPAddress>),
    /// For an IPAddressClaim.
    ClusterApi(Box<cluster::IPAddress>),
}

impl Eq for NewAddress {}

/// Sequential writes for one claim or address. When one fails, the rest is skipped until the next reconcile. Chains are
/// independent of each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The writes, in order.
    pub actions: Vec<Action>,
    /// The event to record when all writes succeed.
    pub event: Option<Event>,
}

impl Chain {
    /// A chain without an event.
    #[must_use]
    pub const fn of(actions: Vec<Action>) -> Self {
        Self { actions, event: None }
    }

    /// Adds an event.
    #[must_use]
    pub fn with_event(self, event: Event) -> Self {
        Self {
            event: Some(event),
            ..self
        }
    }
}

/// An event about a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The claim.
    pub claim: ObjectId,
    /// UID of the claim.
    pub uid: String,
    /// Whether the type is `Warning`.
    pub is_warning: bool,
    /// The machine-readable reason.
    pub reason: Reason,
    /// The message.
    pub message: String,
}

/// Address counts of a pool, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Addresses of all ranges.
    pub capacity: u128,
    /// Allocated or pending.
    pub used: u128,
    /// Free for any claim.
    pub available: u128,
    /// Pre-allocated and not allocated.
    pub reserved: u128,
    /// Claims without an address.
    pub waiting: usize,
}

/// The writes for one reconcile of a pool. The process may stop after any of them; the next reconcile continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Required live reads. While there are any, the rest may be incomplete, but is safe.
    pub reads: RequiredReads,
    /// The write to the pool. If it fails, nothing else is written.
    pub first: Option<Action>,
    /// All other writes.
    pub chains: Vec<Chain>,
    /// Address counts; `None` without a pool.
    pub counts: Option<PoolCounts>,
}

impl Plan {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none() && self.chains.is_empty()
    }

    /// A plan with a single write.
    #[must_use]
    pub fn only(first: Action) -> Self {
        Self {
            first: Some(first),
            ..Self::default()
        }
    }
}
