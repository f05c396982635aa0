//! Pools of addresses: how many are free, and who holds which.

use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_api::meta::ConditionStatus;
use serde::Serialize;

use crate::snapshot::Read;
use crate::walk::conditions::{Bad, first_bad};
use crate::walk::{Walk, name};

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRow {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Addresses of all ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<String>,
    /// Addresses that are in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<String>,
    /// Addresses that a claim can get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<String>,
    /// Addresses kept for claims of a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<String>,
    /// Why it cannot serve all claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who holds which address. Absent: they may not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<Vec<Holder>>,
}

/// The holder of an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The address.
    pub address: String,
    /// The claim.
    pub claim: String,
    /// Kind and name of the owner of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// What keeps a pool from serving claims.
const ORDER: [Bad; 3] = [
    ("Paused", ConditionStatus::True),
    ("Ready", ConditionStatus::False),
    ("Exhausted", ConditionStatus::True),
];

pub(super) fn rows(walk: &mut Walk<'_>, only: Option<&str>) -> Vec<PoolRow> {
    let pools: Option<Vec<IPPool>> = walk.each(&Read::list::<IPPool>(None));
    let addresses: Option<Vec<IPAddress>> = walk.each(&Read::list::<IPAddress>(None));
    let claims: Option<Vec<IPClaim>> = walk.each(&Read::list::<IPClaim>(None));
    let pools = pools.unwrap_or_default();
    let pools = pools
        .iter()
        .filter(|pool| only.is_none_or(|only| name(&pool.metadata) == only));
    let rows = pools.map(|pool| row(pool, addresses.as_deref(), claims.as_deref().unwrap_or_default()));
    let mut rows: Vec<PoolRow> = rows.collect();
    rows.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    rows
}

fn row(pool: &IPPool, addresses: Option<&[IPAddress]>, claims: &[IPClaim]) -> PoolRow {
    let status = &pool.status;
    let holders = addresses.map(|addresses| holders(pool, addresses, claims));
    let counted = holders.as_ref().map(|holders| holders.len().to_string());
    PoolRow {
        namespace: pool.metadata.namespace.clone().unwrap_or_default(),
        name: name(&pool.metadata).to_owned(),
        total: status.capacity.clone(),
        used: status.allocated.clone().or(counted),
        free: status.available.clone(),
        reserved: status.reserved.clone(),
        reason: first_bad(&status.conditions, &ORDER).map(|bad| bad.reason.clone()),
        holders,
    }
}

fn holders(pool: &IPPool, addresses: &[IPAddress], claims: &[IPClaim]) -> Vec<Holder> {
    let namespace = &pool.metadata.namespace;
    let is_of_pool = |address: &&IPAddress| {
        address.metadata.namespace == *namespace && address.spec.pool.name.as_deref() == Some(name(&pool.metadata))
    };
    let holder = |address: &IPAddress| {
        let claim = address.spec.claim.name.clone().unwrap_or_default();
        let found = claims
            .iter()
            .find(|one| one.metadata.namespace == *namespace && name(&one.metadata) == claim);
        let owners = found.and_then(|one| one.metadata.owner_references.as_ref());
        Holder {
            address: address.spec.address.to_string(),
            claim,
            owner: owners
                .and_then(|all| all.first())
                .map(|one| format!("{}/{}", one.kind, one.name)),
        }
    };
    let mut holders: Vec<Holder> = addresses.iter().filter(is_of_pool).map(holder).collect();
    holders.sort_by_key(|holder| (holder.address.parse::<std::net::IpAddr>().ok(), holder.address.clone()));
    holders
}
