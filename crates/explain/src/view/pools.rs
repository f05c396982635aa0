//! Pools of addresses: how many are free, and who holds which.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_api::kind::Kind as _;
use metal3_api::meta::{Condition, ConditionStatus};
use serde::Serialize;

use crate::index::Index;
use crate::order;
use crate::read::Read;
use crate::values::name;
use crate::walk::Walk;
use crate::walk::conditions::{Bad, first_bad};

/// A pool of this project, or one of another provider with addresses in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRow {
    /// The namespace.
    pub namespace: String,
    /// The name; with its kind before it if it is another provider's.
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
    /// The claims that wait for an address of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingClaim>,
}

/// A claim without address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingClaim {
    /// The claim; with its kind before it if it is Cluster API's.
    pub claim: String,
    /// Kind and name of its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The reason of its condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The holder of an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The address.
    pub address: String,
    /// The claim; with its kind before it if it is Cluster API's.
    pub claim: String,
    /// Kind and name of the owner of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// Namespace and name of a pool. The name of one of another provider begins with its kind.
type Key = (String, String);

/// What keeps a pool from serving claims.
const ORDER: [Bad; 3] = [
    ("Paused", ConditionStatus::True),
    ("Ready", ConditionStatus::False),
    ("Exhausted", ConditionStatus::True),
];

pub(super) fn rows(walk: &mut Walk<'_>, only: Option<&str>) -> Vec<PoolRow> {
    let pools = walk.each::<IPPool>(&Read::list::<IPPool>(None));
    let holders = holders(walk);
    let waiting = waiting(walk, holders.as_ref());
    let mut rows: Vec<PoolRow> = Vec::new();
    let pools = pools
        .iter()
        .flat_map(|pools| pools.iter())
        .map(|pool| (key(pool), pool));
    let pools = Index::of(pools);
    for (key, pool) in pools.entries() {
        let held = holders.as_ref().map(|all| all.all(key).cloned().collect());
        rows.push(PoolRow {
            waiting: waiting.all(key).cloned().collect(),
            ..row(pool, held)
        });
    }
    // Pools of other providers, whose sizes are not known here. Without the right to read pools those of this project are among
    // them.
    let keys_of_holders = holders.iter().flat_map(|all| all.entries()).map(|(key, _)| key);
    let keys_of_claims = waiting.entries().iter().map(|(key, _)| key);
    let mut others: Vec<&Key> = keys_of_holders.chain(keys_of_claims).collect();
    order::sort(&mut others);
    others.dedup();
    for key in others.into_iter().filter(|key| pools.first(*key).is_none()) {
        let held: Vec<Holder> = holders.iter().flat_map(|all| all.all(key)).cloned().collect();
        let (namespace, name) = key.clone();
        rows.push(PoolRow {
            used: (!held.is_empty()).then(|| held.len().to_string()),
            holders: (!held.is_empty()).then(|| sorted(held)),
            waiting: waiting.all(key).cloned().collect(),
            ..PoolRow::named(namespace, name)
        });
    }
    let is_wanted = |row: &PoolRow| {
        let bare = row.name.split_once('/').map_or(row.name.as_str(), |(_, name)| name);
        only.is_none_or(|only| only == row.name || only == bare)
    };
    rows.retain(is_wanted);
    order::sort_by(&mut rows, |a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    rows
}

impl PoolRow {
    const fn named(namespace: String, name: String) -> Self {
        Self {
            namespace,
            name,
            total: None,
            used: None,
            free: None,
            reserved: None,
            reason: None,
            holders: None,
            waiting: Vec::new(),
        }
    }
}

fn key(pool: &IPPool) -> Key {
    let namespace = pool.metadata.namespace.clone().unwrap_or_default();
    (namespace, name(&pool.metadata).to_owned())
}

fn row(pool: &IPPool, held: Option<Vec<Holder>>) -> PoolRow {
    let status = &pool.status;
    let counted = held.as_ref().map(|held| held.len().to_string());
    let (namespace, name) = (pool.metadata.namespace.clone(), name(&pool.metadata).to_owned());
    PoolRow {
        total: status.capacity.clone(),
        used: status.allocated.clone().or(counted),
        free: status.available.clone(),
        reserved: status.reserved.clone(),
        reason: first_bad(&status.conditions, &ORDER).map(|bad| bad.reason.clone()),
        holders: held.map(sorted),
        ..PoolRow::named(namespace.unwrap_or_default(), name)
    }
}

fn sorted(mut held: Vec<Holder>) -> Vec<Holder> {
    let parsed = |holder: &Holder| holder.address.parse::<std::net::IpAddr>().ok();
    order::sort_by(&mut held, |a, b| (parsed(a), &a.address).cmp(&(parsed(b), &b.address)));
    held
}

/// The holders of addresses. Absent: addresses may not be read.
fn holders(walk: &mut Walk<'_>) -> Option<Index<Key, Holder>> {
    let own = walk.each::<IPAddress>(&Read::list::<IPAddress>(None));
    let general = walk.each::<cluster::IPAddress>(&Read::list::<cluster::IPAddress>(None));
    let claims = walk.each::<IPClaim>(&Read::list::<IPClaim>(None)).unwrap_or_default();
    let general_claims = walk
        .each::<IPAddressClaim>(&Read::list::<IPAddressClaim>(None))
        .unwrap_or_default();
    if own.is_none() && general.is_none() {
        return None;
    }
    let mut all: Vec<(Key, Holder)> = Vec::new();
    for address in own.iter().flat_map(|all| all.iter()) {
        let namespace = address.metadata.namespace.clone().unwrap_or_default();
        let claim = address.spec.claim.name.clone().unwrap_or_default();
        let holder = Holder {
            address: address.spec.address.to_string(),
            owner: claims
                .named(&namespace, &claim)
                .and_then(|claim| owner(&claim.metadata)),
            claim,
        };
        let pool = address.spec.pool.name.clone().unwrap_or_default();
        all.push(((namespace, pool), holder));
    }
    for address in general.iter().flat_map(|all| all.iter()) {
        let namespace = address.metadata.namespace.clone().unwrap_or_default();
        let claim = &address.spec.claim_ref.name;
        let holder = Holder {
            address: address.spec.address.clone(),
            owner: general_claims
                .named(&namespace, claim)
                .and_then(|claim| owner(&claim.metadata)),
            claim: format!("{}/{claim}", IPAddressClaim::KIND),
        };
        let pool = &address.spec.pool_ref;
        let pool = name_of(&pool.api_group, &pool.kind, &pool.name);
        all.push(((namespace, pool), holder));
    }
    Some(Index::of(all))
}

/// The claims without address. One whose address exists is served: its status follows.
fn waiting(walk: &mut Walk<'_>, holders: Option<&Index<Key, Holder>>) -> Index<Key, WaitingClaim> {
    const READY: Bad = ("Ready", ConditionStatus::False);
    let own = walk.each::<IPClaim>(&Read::list::<IPClaim>(None)).unwrap_or_default();
    let general = walk
        .each::<IPAddressClaim>(&Read::list::<IPAddressClaim>(None))
        .unwrap_or_default();
    let held = holders.into_iter().flat_map(|all| all.entries());
    let held = Index::of(held.map(|((namespace, _), one)| ((namespace.as_str(), one.claim.as_str()), ())));
    let mut found: Vec<(Key, WaitingClaim)> = Vec::new();
    let mut add = |meta: &ObjectMeta, claim: String, pool: String, all: &[Condition]| {
        let namespace = meta.namespace.clone().unwrap_or_default();
        if meta.deletion_timestamp.is_none() && held.first(&(namespace.as_str(), claim.as_str())).is_none() {
            let waiting = WaitingClaim {
                claim,
                owner: owner(meta),
                reason: first_bad(all, &[READY]).map(|bad| bad.reason.clone()),
            };
            found.push(((namespace, pool), waiting));
        }
    };
    for claim in own.iter().filter(|claim| claim.status.address.is_none()) {
        let pool = claim.spec.pool.name.clone().unwrap_or_default();
        add(
            &claim.metadata,
            name(&claim.metadata).to_owned(),
            pool,
            &claim.status.conditions,
        );
    }
    for claim in general.iter().filter(|claim| claim.status.address_ref.is_none()) {
        let pool = &claim.spec.pool_ref;
        let pool = name_of(&pool.api_group, &pool.kind, &pool.name);
        let of = format!("{}/{}", IPAddressClaim::KIND, name(&claim.metadata));
        add(&claim.metadata, of, pool, &claim.status.conditions);
    }
    order::sort_by(&mut found, |a, b| a.1.cmp(&b.1));
    Index::of(found)
}

/// The name of a pool; with its kind before it if it is another provider's.
fn name_of(group: &str, kind: &str, name: &str) -> String {
    if kind == IPPool::KIND && group == IPPool::GROUP {
        return name.to_owned();
    }
    format!("{kind}/{name}")
}

/// Kind and name of the first owner.
fn owner(meta: &ObjectMeta) -> Option<String> {
    let first = meta.owner_references.as_ref()?.first()?;
    Some(format!("{}/{}", first.kind, first.name))
}
