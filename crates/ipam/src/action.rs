//! Writes to the API. Each contains its preconditions.

use std::convert::Infallible;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster;
use metal3_api::ipam::v1alpha1::IPAddress;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::PlannedEvent;
use metal3_runtime::version::ResourceVersion;

use crate::claim::{ClaimKind, ObjectId};
use crate::facts::RequiredReads;

/// The decisions about a pool, its claims and its addresses. The status of the pool is an action: the record of an
/// allocation is written before its object.
pub type Plan = metal3_runtime::plan::Plan<RequiredReads, Chain, Infallible>;

/// Sequential writes. When one fails, the rest is skipped until the next reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The writes, in order.
    pub actions: Vec<Action>,
    /// The event on a claim to record when all writes succeed.
    pub event: Option<(ObjectId, PlannedEvent)>,
    /// Whether all other chains rely on it: the write to the pool, the first chain of a plan. The others are independent
    /// of each other.
    pub is_required: bool,
}

impl Chain {
    /// Writes for one claim or address, without an event.
    #[must_use]
    pub const fn of(actions: Vec<Action>) -> Self {
        Self {
            actions,
            event: None,
            is_required: false,
        }
    }

    /// The write to the pool.
    #[must_use]
    pub fn required(action: Action) -> Self {
        Self {
            is_required: true,
            ..Self::of(vec![action])
        }
    }

    /// Adds an event on a claim.
    #[must_use]
    pub fn with_event(self, claim: &ObjectId, event: PlannedEvent) -> Self {
        Self {
            event: Some((claim.clone(), event)),
            ..self
        }
    }
}

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

impl NewAddress {
    /// The metadata of the object.
    #[must_use]
    pub const fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Metal3(object) => &object.metadata,
            Self::ClusterApi(object) => &object.metadata,
        }
    }

    /// The ID of its claim.
    #[must_use]
    pub fn claim(&self) -> ObjectId {
        match self {
            Self::Metal3(object) => {
                ObjectId::new(ClaimKind::Metal3, object.spec.claim.name.as_deref().unwrap_or_default())
            }
            Self::ClusterApi(object) => ObjectId::new(ClaimKind::ClusterApi, &object.spec.claim_ref.name),
        }
    }
}
