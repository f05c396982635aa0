//! Orphaned address objects.
//!
//! They result from a create that completes after the deletion of its claim. They are deleted when a live read of the
//! claim confirms this. A restore that assigns new UIDs looks the same for all objects at once: then nothing is deleted
//! until a user confirms.

use metal3_runtime::plan::Observed;

use super::{Decisions, Planner, claims::removal};
use crate::action::{Action, Chain};
use crate::address::AddressObject;
use crate::claim::ObjectId;
use crate::documents;
use crate::facts::LiveClaim;
use crate::names::RELEASE_ORPHANS_ANNOTATION;

/// Limit for unconfirmed deletion: the number of concurrent creates.
const MAX_EXPECTED_ORPHANS: usize = 16;
/// Most orphans per reconcile: each requires a live read.
const MAX_READS: usize = 100;

impl Planner<'_> {
    /// Deletes the orphans, or records that they are kept.
    pub(super) fn delete_orphans(&self, decided: &mut Decisions) {
        if !self.rules.delete_orphans() {
            return;
        }
        let (candidates, of_other_pools) = self.orphan_candidates();
        let count = candidates.len() + of_other_pools.len();
        let is_confirmed = self.confirmed_count() >= count;
        let are_many = count > MAX_EXPECTED_ORPHANS && count * 10 > self.entry.addresses().len();
        let keep = self.rules.keep_many_orphans() && !is_confirmed;
        let kept: Vec<&AddressObject> = match (keep, are_many) {
            (true, true) => candidates.iter().chain(&of_other_pools).copied().collect(),
            (true, false) => of_other_pools.clone(),
            (false, _) => Vec::new(),
        };
        decided.kept_orphans = kept.first().map(|first| (kept.len(), first.id.name.clone()));
        let deletable = candidates
            .iter()
            .filter(|_| !(keep && are_many))
            .chain(of_other_pools.iter().filter(|_| !keep));
        for object in deletable.take(MAX_READS) {
            if self.is_orphan(object, decided) {
                decided.chains.extend(orphan_deletion(object));
            }
        }
    }

    /// Orphan candidates of this pool by UID, and the others: a restored pool has a new UID.
    fn orphan_candidates(&self) -> (Vec<&AddressObject>, Vec<&AddressObject>) {
        let all = self.entry.orphan_candidates().filter_map(|id| self.entry.address(id));
        let candidates = all.filter(|object| !self.is_being_replaced(object));
        candidates.partition(|object| object.pool.as_deref() == Some(self.uid))
    }

    /// Whether its claim names an object that does not exist: then the claim gets this object next.
    fn is_being_replaced(&self, object: &AddressObject) -> bool {
        let claim = self
            .entry
            .claim(&object.claim())
            .filter(|claim| object.owner.as_ref() == Some(&claim.uid));
        let named = claim.and_then(|claim| claim.address_name.as_deref());
        named.is_some_and(|name| self.entry.address(&ObjectId::new(object.id.kind, name)).is_none())
    }

    fn is_orphan(&self, object: &AddressObject, decided: &mut Decisions) -> bool {
        if !self.rules.orphan_by_read() {
            return true;
        }
        match self.facts.live_reads.claims.get(&object.claim()) {
            Some(claim) => is_orphan(object, claim),
            None => {
                decided.reads.claims.push(object.claim());
                false
            }
        }
    }

    /// The number of orphans whose release the user confirmed.
    fn confirmed_count(&self) -> usize {
        let annotations = self.pool.metadata.annotations.as_ref();
        let text = annotations.and_then(|all| all.get(RELEASE_ORPHANS_ANNOTATION));
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }
}

/// Whether an address object is an orphan, given a live read of its claim.
pub(super) fn is_orphan(object: &AddressObject, claim: &Observed<LiveClaim>) -> bool {
    match claim {
        Observed::Absent => true,
        Observed::Unknown(_) => false,
        Observed::Present(LiveClaim { uid, address_name }) => {
            match &object.owner {
                // differs: `ipam-owned-address-kept`. It may be in use, also if the claim names another one: after a move a
                // claim can arrive before its address.
                Some(owner) => owner != uid,
                None => address_name.as_deref() != Some(object.id.name.as_str()),
            }
        }
    }
}

/// Deletes an orphan, or removes the finalizer if it is already being deleted.
pub(super) fn orphan_deletion(object: &AddressObject) -> Option<Chain> {
    if !object.deleting {
        return Some(Chain::of(vec![removal(object)]));
    }
    let patch = documents::address_finalizer_removed(object)?;
    Some(Chain::of(vec![Action::PatchAddress(object.id.clone(), patch)]))
}
