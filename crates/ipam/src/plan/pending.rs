//! The record of grants under way: what stays in it, and what is made of it.

use std::net::IpAddr;

use metal3_api::ipam::v1alpha1::PendingAddress;
use metal3_api::meta::IpText;
use metal3_domain::derived::address_object;
use metal3_domain::ip::{address_text, parse_address};

use super::promises::Promises;
use super::{Decisions, Pass};
use crate::action::{Action, Chain, Event};
use crate::choice::Grant;
use crate::claim::{Claim, ClaimKind, Named};
use crate::documents::{Answer, address_of, answered};
use crate::facts::Seen;
use crate::names::reason;

impl Pass<'_> {
    /// The recorded grants that stay recorded. An entry that says nothing anybody could create is dropped.
    pub(super) fn still_pending(&self, decided: &mut Decisions) -> Promises {
        let recorded = self
            .pool
            .status
            .allocator
            .iter()
            .flat_map(|allocator| &allocator.pending);
        let grants = recorded.filter_map(|entry| self.recorded(entry));
        grants.filter(|grant| !self.is_done(grant, decided)).collect()
    }

    fn recorded(&self, entry: &PendingAddress) -> Option<Grant> {
        let address = parse_address(entry.address.as_str()).ok()?;
        Some(Grant {
            claim: Named::new(ClaimKind::of_name(&entry.claim_kind)?, &entry.claim_name),
            uid: entry.claim_uid.clone(),
            address,
            object: address_object(&self.pool.spec.name_prefix, address).ok()?.to_string(),
        })
    }

    /// Whether nothing can come of an entry any more: its object has been seen, or a live read says that the claim is
    /// gone or has another address.
    fn is_done(&self, grant: &Grant, decided: &mut Decisions) -> bool {
        if !self.rules.keep_until_seen || self.is_seen(grant) {
            return true;
        }
        let claim = self.account.claim(&grant.claim).filter(|claim| claim.uid == grant.uid);
        if let Some(claim) = claim {
            let in_range = self.ranges.contains(grant.address);
            let has_another = claim.names.as_ref().is_some_and(|name| *name != grant.object);
            if !self.rules.finish_the_living && !in_range {
                return true;
            }
            if !has_another {
                return false;
            }
        } else if !self.rules.void_by_read {
            return true;
        }
        match self.facts.evidence.claims.get(&grant.claim) {
            None => {
                decided.reads.claims.push(grant.claim.clone());
                false
            }
            Some(Seen::Unreadable) => false,
            Some(Seen::Absent) => true,
            Some(Seen::Live { uid, .. }) if *uid != grant.uid => true,
            Some(Seen::Live { names, .. }) => {
                // A claim whose object has vanished gets another, and names the old one until that exists.
                let named = names.as_ref().filter(|name| **name != grant.object);
                named.is_some_and(|name| self.account.address(&Named::new(grant.claim.kind, name)).is_some())
            }
        }
    }

    fn is_seen(&self, grant: &Grant) -> bool {
        let held = self.account.address(&grant.object());
        held.is_some_and(|held| held.owner.as_ref() == Some(&grant.uid) && held.address == Some(grant.address))
    }

    /// Whether somebody else's object has the name that the entry's object needs.
    pub(super) fn is_blocked(&self, grant: &Grant) -> bool {
        match self
            .facts
            .accounts
            .pool_of_address(&self.facts.key.namespace, &grant.object())
        {
            None => false,
            Some(pool) if pool == self.facts.key.name => {
                !self.account.is_suspect(&grant.object()) && !self.is_seen(grant)
            }
            Some(_) => true,
        }
    }

    /// Creates what is recorded and names it to the claims. `recorded` entries stood there before this pass; the
    /// others count only once the pool has taken them.
    pub(super) fn create(&self, pending: &[Grant], recorded: usize, decided: &mut Decisions) {
        for (position, grant) in pending.iter().enumerate() {
            let claim = self.account.claim(&grant.claim).filter(|claim| claim.uid == grant.uid);
            let Some(claim) = claim.filter(|claim| !claim.deleting && !self.is_claim_paused(claim)) else {
                continue;
            };
            let exists = self
                .facts
                .accounts
                .pool_of_address(&self.facts.key.namespace, &grant.object())
                .is_some();
            if exists || (self.rules.protect_first && !claim.is_protected()) {
                continue;
            }
            let is_new = position >= recorded;
            decided.chains.push(self.creation(claim, grant, is_new));
        }
    }

    fn creation(&self, claim: &Claim, grant: &Grant, is_new: bool) -> Chain {
        let settings = self.ranges.settings(grant.address);
        let object = address_of(grant, &claim.labels, self.owner(), settings);
        let mut actions = vec![Action::CreateAddress(object)];
        let named = answered(
            claim,
            &self.facts.key.namespace,
            Answer::Granted(&grant.object),
            self.facts.now,
        );
        actions.extend(named.map(|patch| Action::PatchClaimStatus(claim.id.clone(), patch)));
        let chain = Chain::of(actions);
        if is_new {
            chain.telling(granted(claim, grant.address))
        } else {
            chain
        }
    }
}

fn granted(claim: &Claim, address: IpAddr) -> Event {
    Event {
        claim: claim.id.clone(),
        uid: claim.uid.clone(),
        is_warning: false,
        reason: reason::GRANTED,
        message: format!("granted {}", address_text(address)),
    }
}

/// A grant as the pool's status records it.
pub(super) fn entry(grant: &Grant) -> PendingAddress {
    PendingAddress {
        address: IpText(address_text(grant.address)),
        claim_kind: grant.claim.kind.name().to_owned(),
        claim_name: grant.claim.name.clone(),
        claim_uid: grant.uid.clone(),
    }
}
