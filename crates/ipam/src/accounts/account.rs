//! The account of one pool.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use metal3_api::meta::ConditionStatus;
use metal3_domain::ip::{IntervalSet, Range};

use crate::claim::{Claim, Named};
use crate::held::Held;
use crate::names::condition;
use crate::ranges::place;

/// Claims on one pool and address objects of it.
///
/// Invariant: `used` holds the place of every readable address and no other; `unsettled` holds every claim that is not
/// as it should be at rest; `suspects` holds every address object whose claim does not own up to it.
#[derive(Debug, Default)]
pub struct Account {
    claims: BTreeMap<Named, Claim>,
    addresses: BTreeMap<Named, Held>,
    answers: BTreeMap<Named, BTreeSet<String>>,
    places: BTreeSet<(Ipv6Addr, Named)>,
    used: IntervalSet<Ipv6Addr>,
    unsettled: BTreeSet<(i64, Named)>,
    suspects: BTreeSet<Named>,
}

impl Account {
    /// Whether nothing names the pool any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.addresses.is_empty()
    }

    /// The claim of that kind and name.
    #[must_use]
    pub fn claim(&self, id: &Named) -> Option<&Claim> {
        self.claims.get(id)
    }

    /// The address object of that kind and name.
    #[must_use]
    pub fn address(&self, id: &Named) -> Option<&Held> {
        self.addresses.get(id)
    }

    /// All address objects.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = &Held> {
        self.addresses.values()
    }

    /// All claims.
    pub fn claims(&self) -> impl ExactSizeIterator<Item = &Claim> {
        self.claims.values()
    }

    /// Every place that an address object holds.
    #[must_use]
    pub const fn used(&self) -> &IntervalSet<Ipv6Addr> {
        &self.used
    }

    /// How many different addresses are held.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.places.len()
    }

    /// The objects that hold an address.
    pub fn holders(&self, place: Ipv6Addr) -> impl Iterator<Item = &Named> {
        let lowest = Named::new(crate::claim::ClaimKind::Metal3, "");
        self.places
            .range((place, lowest)..)
            .take_while(move |(at, _)| *at == place)
            .map(|(_, id)| id)
    }

    /// The claims that are not as they should be at rest, the oldest first.
    pub fn unsettled(&self) -> impl Iterator<Item = &Claim> {
        self.unsettled.iter().filter_map(|(_, id)| self.claims.get(id))
    }

    /// Whether every claim has what it asks for.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// The address objects whose claims do not own up to them.
    pub fn suspects(&self) -> impl ExactSizeIterator<Item = &Named> {
        self.suspects.iter()
    }

    /// Whether the claim of an address object does not own up to it.
    #[must_use]
    pub fn is_suspect(&self, address: &Named) -> bool {
        self.suspects.contains(address)
    }

    /// Claims by what their address objects say, each with the addresses, in order.
    pub fn answered(&self) -> impl Iterator<Item = (&Named, impl Iterator<Item = &Held>)> {
        self.answers.iter().map(|(claim, names)| {
            let held = names
                .iter()
                .filter_map(|name| self.addresses.get(&Named::new(claim.kind, name)));
            (claim, held)
        })
    }

    /// The address objects that belong to a claim, by its UID.
    pub fn answers(&self, claim: &Claim) -> impl Iterator<Item = &Held> {
        let names = self.answers.get(&claim.id).into_iter().flatten();
        names
            .filter_map(|name| self.addresses.get(&Named::new(claim.id.kind, name)))
            .filter(|held| belongs(held, claim))
    }

    pub(super) fn put_claim(&mut self, claim: Claim) {
        let id = claim.id.clone();
        if let Some(old) = self.claims.insert(id.clone(), claim) {
            self.unsettled.remove(&(old.created, id.clone()));
        }
        self.judge(&id);
    }

    pub(super) fn drop_claim(&mut self, id: &Named) {
        if let Some(old) = self.claims.remove(id) {
            self.unsettled.remove(&(old.created, id.clone()));
        }
        self.judge(id);
    }

    pub(super) fn put_address(&mut self, held: Held) {
        if let Some(old) = self.addresses.get(&held.id) {
            let old = old.id.clone();
            self.drop_address(&old);
        }
        if let Some(at) = held.address.map(place) {
            self.places.insert((at, held.id.clone()));
            self.used.insert(Range::single(at));
        }
        let claim = held.claim();
        self.answers
            .entry(claim.clone())
            .or_default()
            .insert(held.id.name.clone());
        self.addresses.insert(held.id.clone(), held);
        self.judge(&claim);
    }

    pub(super) fn drop_address(&mut self, id: &Named) {
        let Some(held) = self.addresses.remove(id) else { return };
        self.suspects.remove(id);
        if let Some(at) = held.address.map(place) {
            self.places.remove(&(at, id.clone()));
            if self.holders(at).next().is_none() {
                self.used.remove(Range::single(at));
            }
        }
        let claim = held.claim();
        if let Some(names) = self.answers.get_mut(&claim) {
            names.remove(&id.name);
            if names.is_empty() {
                self.answers.remove(&claim);
            }
        }
        self.judge(&claim);
    }

    /// Sorts a claim, and the address objects that name it, into what is settled and what is not.
    fn judge(&mut self, id: &Named) {
        let claim = self.claims.get(id);
        for name in self.answers.get(id).into_iter().flatten() {
            let address = Named::new(id.kind, name);
            let owned_up = |held: &Held| claim.is_some_and(|claim| belongs(held, claim) && !names_another(claim, held));
            if self.addresses.get(&address).is_some_and(owned_up) {
                self.suspects.remove(&address);
            } else {
                self.suspects.insert(address);
            }
        }
        if let Some(claim) = claim {
            let place = (claim.created, id.clone());
            if is_settled(claim, &self.addresses) {
                self.unsettled.remove(&place);
            } else {
                self.unsettled.insert(place);
            }
        }
    }
}

/// Whether an address object is a claim's: by the UID of its owner, or, without one, because the claim names it.
#[must_use]
pub(super) fn belongs(held: &Held, claim: &Claim) -> bool {
    // differs: ipam-match-by-uid. The Go manager compares names, which a later claim may have again.
    match &held.owner {
        Some(uid) => *uid == claim.uid,
        None => claim.names.as_deref() == Some(held.id.name.as_str()),
    }
}

fn names_another(claim: &Claim, held: &Held) -> bool {
    claim.names.as_deref().is_some_and(|name| name != held.id.name)
}

fn is_settled(claim: &Claim, addresses: &BTreeMap<Named, Held>) -> bool {
    let ready = |claim: &Claim| {
        let ready = claim
            .conditions
            .iter()
            .find(|condition| condition.type_ == condition::READY);
        ready.is_some_and(|ready| ready.status == ConditionStatus::True && !ready.reason.is_empty())
    };
    let granted = claim
        .names
        .as_deref()
        .and_then(|name| addresses.get(&Named::new(claim.id.kind, name)));
    let complete = |held: &Held| belongs(held, claim) && held.complete;
    !claim.deleting && claim.is_protected() && claim.error.is_none() && ready(claim) && granted.is_some_and(complete)
}
