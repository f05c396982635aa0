//! IPClaim, Cluster API's IPAddressClaim, and IPPool.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::IPAddressClaim;
use metal3_api::ipam::v1alpha1::{IPClaim, IPPool};
use metal3_api::meta::{Condition, ConditionStatus};

use super::conditions::{Bad, first_bad, link, since};
use super::{End, Next, Walk, is_deleting};
use crate::chain::Link;
use crate::object::ObjectId;
use crate::table::{Actor, Area, Severity};

/// What a pool cannot do, causes first.
const ORDER: [Bad; 4] = [
    ("Paused", ConditionStatus::True),
    ("Ready", ConditionStatus::False),
    ("Exhausted", ConditionStatus::True),
    ("OrphansHeld", ConditionStatus::True),
];
/// The reason of a claim that cannot be served, also because its pool is being deleted.
const ALLOCATION_FAILED: &str = "AllocationFailed";
/// Reasons of a claim that its pool does not explain further.
const OF_CLAIM: [&str; 4] = [ALLOCATION_FAILED, "PoolNotFound", "PoolKindUnknown", "NameCollision"];

impl Walk<'_> {
    pub(crate) fn ip_claim(&mut self, at: &ObjectId) -> Result<Next, End> {
        let claim: IPClaim = self.required(at)?;
        let pool = claim.spec.pool.name.as_deref().unwrap_or_default();
        let pool = ObjectId::of::<IPPool>(pool);
        if self.is_done(at, &claim.metadata, claim.status.address.is_some())? {
            return Ok(None);
        }
        let error = claim
            .status
            .error_message
            .as_deref()
            .filter(|message| !message.is_empty());
        self.unserved_claim(at, &claim.status.conditions, error, pool)
    }

    pub(crate) fn ip_address_claim(&mut self, at: &ObjectId) -> Result<Next, End> {
        let claim: IPAddressClaim = self.required(at)?;
        if self.is_done(at, &claim.metadata, claim.status.address_ref.is_some())? {
            return Ok(None);
        }
        let reference = &claim.spec.pool_ref;
        let pool = ObjectId::foreign(&reference.api_group, &reference.kind, &reference.name);
        self.unserved_claim(at, &claim.status.conditions, None, pool)
    }

    /// Whether nothing is left to say about a claim: it has its address, is paused, or is being deleted.
    fn is_done(&mut self, at: &ObjectId, meta: &ObjectMeta, has_address: bool) -> Result<bool, End> {
        if has_address && !is_deleting(meta) {
            return Ok(true);
        }
        let cluster = self.labelled_cluster(meta)?;
        if self.is_paused(at, meta, cluster.as_ref()) {
            return Ok(true);
        }
        if is_deleting(meta) {
            self.push_deleting(at, meta);
            return Ok(true);
        }
        Ok(false)
    }

    /// A claim without address.
    fn unserved_claim(
        &mut self,
        at: &ObjectId,
        conditions: &[Condition],
        error: Option<&str>,
        pool: ObjectId,
    ) -> Result<Next, End> {
        let bad = first_bad(conditions, &[("Ready", ConditionStatus::False)]);
        match (bad, error) {
            (Some(bad), _) => {
                if !pool.is::<IPPool>() {
                    // The words of the contract, with another meaning: the provider of the pool has its own cures.
                    let cure = format!("See {pool}, and the log of the controller that serves it.");
                    self.push(Link {
                        reason: Some(bad.reason.clone()),
                        message: bad.message.clone(),
                        since: since(bad),
                        at_most: true,
                        ..Link::plain(at, "has no address", Actor::System, cure)
                    });
                    return Ok(Some(pool));
                }
                let is_end = OF_CLAIM.contains(&bad.reason.as_str());
                let link = link(at, Area::Addresses, bad);
                self.push(link);
                let is_followed = !is_end || (bad.reason == ALLOCATION_FAILED && self.is_pool_deleting(&pool));
                return Ok(is_followed.then_some(pool));
            }
            (None, Some(message)) => self.push(Link {
                message: message.to_owned(),
                severity: Severity::Error,
                ..Link::plain(at, "has no address", Actor::User, "Do what the message says.")
            }),
            (None, None) => {
                let cure = format!(
                    "Wait. If it lasts, check that what serves {} runs: kubectl get deploy -A",
                    pool.kind
                );
                self.push(Link::plain(at, "waits for an address of its pool", Actor::System, cure));
            }
        }
        Ok(Some(pool))
    }

    /// Whether an IPPool is being deleted. Without the right to read it the claim is the last link.
    fn is_pool_deleting(&mut self, pool: &ObjectId) -> bool {
        let found = pool.is::<IPPool>().then(|| self.find::<IPPool>(&pool.name));
        matches!(found, Some(Ok(Some(pool))) if is_deleting(&pool.metadata))
    }

    pub(crate) fn pool(&mut self, at: &ObjectId) -> Result<Next, End> {
        let pool: IPPool = self.required(at)?;
        if is_deleting(&pool.metadata) {
            self.push_deleting(at, &pool.metadata);
            let used = pool.status.indexes.len();
            let last = self.chain.last_mut().filter(|_| used > 0);
            last.into_iter().for_each(|last| {
                last.message = format!("{used} of its addresses are in use; {}", last.message);
                "The pool goes with the last address. Delete the machines, or the IPClaims, that hold them: kubectl get ipclaims."
                    .clone_into(&mut last.cure);
            });
            return Ok(None);
        }
        let Some(bad) = first_bad(&pool.status.conditions, &ORDER) else {
            return Ok(None);
        };
        let link = link(at, Area::Addresses, bad);
        self.push(link);
        Ok(None)
    }
}
