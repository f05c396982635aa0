//! The record of pending allocations in the status of the pool.

use metal3_api::ipam::v1alpha1::PendingAddress;
use metal3_api::meta::IpText;
use metal3_domain::derived::address_object;
use metal3_domain::ip::{address_text, parse_address};
use metal3_runtime::plan::{Observed, PlannedEvent};

use super::{Decisions, Planner};
use crate::action::{Action, Chain};
use crate::allocator::{Allocation, PendingAllocations};
use crate::claim::{Claim, ClaimKind, ObjectId};
use crate::documents::address_of;
use crate::facts::{LiveClaim, RequiredReads};
use crate::names::reason;

impl Planner<'_> {
    /// The recorded allocations that stay recorded. Invalid entries are dropped.
    pub(super) fn pending_allocations(&self, reads: &mut RequiredReads) -> PendingAllocations {
        let recorded = self
            .pool
            .status
            .allocator
            .iter()
            .flat_map(|allocator| &allocator.pending);
        let allocations = recorded.filter_map(|pending_address| self.recorded(pending_address));
        allocations
            .filter(|allocation| !self.is_obsolete(allocation, reads))
            .collect()
    }

    fn recorded(&self, pending_address: &PendingAddress) -> Option<Allocation> {
        let address = parse_address(pending_address.address.as_str()).ok()?;
        Some(Allocation {
            claim: ObjectId::new(
                ClaimKind::of_name(&pending_address.claim_kind)?,
                &pending_address.claim_name,
            ),
            uid: pending_address.claim_uid.clone(),
            address,
            object: address_object(&self.pool.spec.name_prefix, address).ok()?.to_string(),
        })
    }

    /// Whether an entry is obsolete: its object is observed, or a live read reports that the claim does not exist or
    /// has another address.
    fn is_obsolete(&self, allocation: &Allocation, reads: &mut RequiredReads) -> bool {
        if !self.rules.keep_until_seen() || self.is_observed(allocation) {
            return true;
        }
        let claim = self
            .entry
            .claim(&allocation.claim)
            .filter(|claim| claim.uid == allocation.uid);
        if let Some(claim) = claim {
            let in_range = self.ranges.contains(allocation.address);
            let has_another = claim
                .address_name
                .as_ref()
                .is_some_and(|name| *name != allocation.object);
            if !self.rules.complete_live_claims() && !in_range {
                return true;
            }
            if !has_another {
                return false;
            }
        } else if !self.rules.void_by_read() {
            return true;
        }
        match self.facts.live_reads.claims.get(&allocation.claim) {
            None => {
                reads.claims.push(allocation.claim.clone());
                false
            }
            Some(Observed::Unknown(_)) => false,
            Some(Observed::Absent) => true,
            Some(Observed::Present(LiveClaim { uid, .. })) if *uid != allocation.uid => true,
            Some(Observed::Present(LiveClaim { address_name, .. })) => {
                // A claim whose object was deleted gets another, and names the old one until that exists.
                let named = address_name.as_ref().filter(|name| **name != allocation.object);
                named.is_some_and(|name| {
                    self.entry
                        .address(&ObjectId::new(allocation.claim.kind, name))
                        .is_some()
                })
            }
        }
    }

    fn is_observed(&self, allocation: &Allocation) -> bool {
        let object = self.entry.address(&allocation.object());
        object.is_some_and(|object| {
            object.owner.as_ref() == Some(&allocation.uid) && object.address == Some(allocation.address)
        })
    }

    /// Whether the name of the address object is used by another object.
    pub(super) fn is_blocked(&self, allocation: &Allocation) -> bool {
        match self
            .facts
            .index
            .pool_of_address(&self.facts.key.namespace, &allocation.object())
        {
            None => false,
            Some(pool) if pool == self.facts.key.name => {
                !self.entry.is_orphan_candidate(&allocation.object()) && !self.is_observed(allocation)
            }
            Some(_) => true,
        }
    }

    /// Creates the recorded objects and writes them into the claims. The first `recorded` entries existed before this
    /// reconcile; the others depend on the write to the pool.
    pub(super) fn create(&self, recorded: usize, decided: &mut Decisions) {
        let Decisions { pending, chains, .. } = decided;
        for (position, allocation) in pending.all().iter().enumerate() {
            let claim = self
                .entry
                .claim(&allocation.claim)
                .filter(|claim| claim.uid == allocation.uid);
            let Some(claim) = claim.filter(|claim| !claim.deleting && !self.is_claim_paused(claim)) else {
                continue;
            };
            let exists = self
                .facts
                .index
                .pool_of_address(&self.facts.key.namespace, &allocation.object())
                .is_some();
            if exists || (self.rules.finalizer_first() && !claim.has_finalizer()) {
                continue;
            }
            let is_new = position >= recorded;
            chains.push(self.creation(claim, allocation, is_new));
        }
    }

    fn creation(&self, claim: &Claim, allocation: &Allocation, is_new: bool) -> Chain {
        let settings = self.ranges.settings(allocation.address);
        let object = address_of(allocation, &claim.labels, self.owner(), settings);
        let mut actions = vec![Action::CreateAddress(object)];
        actions.extend(self.report(claim, &allocation.object));
        let chain = Chain::of(actions);
        if is_new {
            let text = format!("granted {}", address_text(allocation.address));
            chain.with_event(&claim.id, PlannedEvent::normal(reason::GRANTED, text))
        } else {
            chain
        }
    }
}

/// An allocation as the status of the pool records it.
pub(super) fn pending_address(allocation: &Allocation) -> PendingAddress {
    PendingAddress {
        address: IpText(address_text(allocation.address)),
        claim_kind: allocation.claim.kind.name().to_owned(),
        claim_name: allocation.claim.name.clone(),
        claim_uid: allocation.uid.clone(),
    }
}
