//! Index entry of one pool.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use metal3_api::meta::ConditionStatus;
use metal3_domain::ip::{IntervalSet, Range};

use crate::address::AddressObject;
use crate::claim::{Claim, ObjectId};
use crate::names::condition;
use crate::ranges::position;

/// Claims on one pool, and its address objects.
///
/// Invariant: `used` contains the position of every readable address and no other; `unsettled` contains every claim
/// that is not in its final state; `orphan_candidates` contains every address object that its claim does not confirm.
#[derive(Debug, Default)]
pub struct IndexEntry {
    claims: BTreeMap<ObjectId, Claim>,
    addresses: BTreeMap<ObjectId, AddressObject>,
    by_claim: BTreeMap<ObjectId, BTreeSet<String>>,
    positions: BTreeSet<(Ipv6Addr, ObjectId)>,
    used: IntervalSet<Ipv6Addr>,
    unsettled: BTreeSet<(i64, ObjectId)>,
    orphan_candidates: BTreeSet<ObjectId>,
}

impl IndexEntry {
    /// Whether no claim and no address object names the pool.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.addresses.is_empty()
    }

    /// The claim of that ID.
    #[must_use]
    pub fn claim(&self, id: &ObjectId) -> Option<&Claim> {
        self.claims.get(id)
    }

    /// The address object of that ID.
    #[must_use]
    pub fn address(&self, id: &ObjectId) -> Option<&AddressObject> {
        self.addresses.get(id)
    }

    /// All address objects.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = &AddressObject> {
        self.addresses.values()
    }

    /// The positions of all address objects.
    #[must_use]
    pub const fn used(&self) -> &IntervalSet<Ipv6Addr> {
        &self.used
    }

    /// Number of distinct addresses in use.
    #[must_use]
    pub fn used_count(&self) -> usize {
        self.positions.len()
    }

    /// IDs of the address objects with this address.
    pub fn holders(&self, position: Ipv6Addr) -> impl Iterator<Item = &ObjectId> {
        let lowest = ObjectId::new(crate::claim::ClaimKind::Metal3, "");
        self.positions
            .range((position, lowest)..)
            .take_while(move |(at, _)| *at == position)
            .map(|(_, id)| id)
    }

    /// The claims that are not in their final state, oldest first.
    pub fn unsettled(&self) -> impl Iterator<Item = &Claim> {
        self.unsettled.iter().filter_map(|(_, id)| self.claims.get(id))
    }

    /// The address objects that their claims do not confirm.
    pub fn orphan_candidates(&self) -> impl ExactSizeIterator<Item = &ObjectId> {
        self.orphan_candidates.iter()
    }

    /// Whether the claim of an address object does not confirm it.
    #[must_use]
    pub fn is_orphan_candidate(&self, address: &ObjectId) -> bool {
        self.orphan_candidates.contains(address)
    }

    /// The claims that address objects name, in order, each with the object of its address: the one that the claim names,
    /// else one that belongs to it, else any that names it.
    pub fn address_by_claim(&self) -> impl Iterator<Item = (&ObjectId, &AddressObject)> {
        self.by_claim.iter().filter_map(|(id, names)| {
            let claim = self.claims.get(id);
            let rank = |object: &&AddressObject| {
                let is_named = claim.is_some_and(|claim| claim.address_name.as_ref() == Some(&object.id.name));
                let is_own = claim.is_some_and(|claim| belongs(object, claim));
                (is_own && is_named, is_own)
            };
            let objects = names.iter().rev();
            let objects = objects.filter_map(|name| self.addresses.get(&ObjectId::new(id.kind, name)));
            let valid = objects.filter(|object| object.address.is_some());
            Some((id, valid.max_by_key(rank)?))
        })
    }

    /// The address objects that belong to a claim, by its UID.
    pub fn addresses_of(&self, claim: &Claim) -> impl Iterator<Item = &AddressObject> {
        let names = self.by_claim.get(&claim.id).into_iter().flatten();
        names
            .filter_map(|name| self.addresses.get(&ObjectId::new(claim.id.kind, name)))
            .filter(|object| belongs(object, claim))
    }

    pub(super) fn put_claim(&mut self, claim: Claim) {
        let id = claim.id.clone();
        if let Some(old) = self.claims.insert(id.clone(), claim) {
            self.unsettled.remove(&(old.created, id.clone()));
        }
        self.classify(&id);
    }

    pub(super) fn drop_claim(&mut self, id: &ObjectId) {
        if let Some(old) = self.claims.remove(id) {
            self.unsettled.remove(&(old.created, id.clone()));
        }
        self.classify(id);
    }

    pub(super) fn put_address(&mut self, object: AddressObject) {
        if let Some(old) = self.addresses.get(&object.id) {
            let old = old.id.clone();
            self.drop_address(&old);
        }
        if let Some(at) = object.address.map(position) {
            self.positions.insert((at, object.id.clone()));
            self.used.insert(Range::single(at));
        }
        let claim = object.claim();
        self.by_claim
            .entry(claim.clone())
            .or_default()
            .insert(object.id.name.clone());
        self.addresses.insert(object.id.clone(), object);
        self.classify(&claim);
    }

    pub(super) fn drop_address(&mut self, id: &ObjectId) {
        let Some(object) = self.addresses.remove(id) else {
            return;
        };
        self.orphan_candidates.remove(id);
        if let Some(at) = object.address.map(position) {
            self.positions.remove(&(at, id.clone()));
            if self.holders(at).next().is_none() {
                self.used.remove(Range::single(at));
            }
        }
        let claim = object.claim();
        if let Some(names) = self.by_claim.get_mut(&claim) {
            names.remove(&id.name);
            if names.is_empty() {
                self.by_claim.remove(&claim);
            }
        }
        self.classify(&claim);
    }

    /// Updates `unsettled` and `orphan_candidates` for a claim and the address objects that name it.
    fn classify(&mut self, id: &ObjectId) {
        let claim = self.claims.get(id);
        for name in self.by_claim.get(id).into_iter().flatten() {
            let address = ObjectId::new(id.kind, name);
            let is_confirmed = |object: &AddressObject| claim.is_some_and(|claim| belongs(object, claim));
            if self.addresses.get(&address).is_some_and(is_confirmed) {
                self.orphan_candidates.remove(&address);
            } else {
                self.orphan_candidates.insert(address);
            }
        }
        if let Some(claim) = claim {
            let sort_key = (claim.created, id.clone());
            if is_settled(claim, &self.addresses) {
                self.unsettled.remove(&sort_key);
            } else {
                self.unsettled.insert(sort_key);
            }
        }
    }
}

/// Whether an address object belongs to a claim: by the UID of its owner, or, without an owner, because the claim names
/// it.
#[must_use]
pub(super) fn belongs(object: &AddressObject, claim: &Claim) -> bool {
    // differs: ipam-match-by-uid. The Go manager compares names, which a later claim may have again.
    match &object.owner {
        Some(uid) => *uid == claim.uid,
        None => claim.address_name.as_deref() == Some(object.id.name.as_str()),
    }
}

fn is_settled(claim: &Claim, addresses: &BTreeMap<ObjectId, AddressObject>) -> bool {
    let ready = |claim: &Claim| {
        let ready = claim
            .conditions
            .iter()
            .find(|condition| condition.type_ == condition::READY);
        ready.is_some_and(|ready| ready.status == ConditionStatus::True && !ready.reason.is_empty())
    };
    let granted = claim
        .address_name
        .as_deref()
        .and_then(|name| addresses.get(&ObjectId::new(claim.id.kind, name)));
    let complete = |object: &AddressObject| belongs(object, claim) && object.complete;
    !claim.deleting && claim.has_finalizer() && claim.error.is_none() && ready(claim) && granted.is_some_and(complete)
}
