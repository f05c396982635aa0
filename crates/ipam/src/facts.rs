//! Input of the plan of a pool.

use std::collections::BTreeMap;

use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::meta::Time;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;

use crate::claim::ObjectId;
use crate::index::PoolIndex;

/// All input of the plan of a pool, its claims and its addresses.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Key of the pool.
    pub key: &'a Key,
    /// The pool from the cache; `None` when it does not exist.
    pub pool: Option<&'a IPPool>,
    /// Index of all other cached objects.
    pub index: &'a PoolIndex,
    /// Identity of this process, unique per process start.
    pub identity: &'a str,
    /// Whether both address caches contain a list that began after this version of the pool was read.
    pub listed: bool,
    /// Results of live reads made after this version of the pool was read.
    pub live_reads: &'a LiveReads,
    /// Timestamp for writes.
    pub now: Time,
}

/// Results of live reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveReads {
    /// Claims by ID.
    pub claims: BTreeMap<ObjectId, Observed<LiveClaim>>,
    /// Existence of address objects by ID.
    pub addresses: BTreeMap<ObjectId, bool>,
}

/// The fields of a claim that a plan uses, read live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveClaim {
    /// UID.
    pub uid: String,
    /// The address object in its status.
    pub address_name: Option<String>,
}

/// Live reads that a plan requires. The plan is computed again with the results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredReads {
    /// Whether to list the address objects of both kinds into the caches.
    pub list: bool,
    /// Claims to get.
    pub claims: Vec<ObjectId>,
    /// Address objects to get.
    pub addresses: Vec<ObjectId>,
}

impl RequiredReads {
    /// Whether nothing needs to be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.list && self.claims.is_empty() && self.addresses.is_empty()
    }
}
