//! The claims that something remains to be done for.

use metal3_api::cluster::names::GROUP;
use metal3_api::meta::{Condition, ConditionStatus};
use metal3_domain::ip::parse_address;

use super::promises::Promises;
use super::{BATCH, Decisions, Pass, Standing};
use crate::accounts::ClusterFact;
use crate::action::{Action, Chain, Event};
use crate::choice::{Allotment, Refusal};
use crate::claim::{Claim, ClaimKind, Named};
use crate::documents::{self, Answer, answered};
use crate::held::Held;
use crate::names::{condition, message, reason};

impl Pass<'_> {
    /// Looks at each claim that is not as it should be, the oldest first, until the pass is full. New grants go to
    /// `pending`.
    pub(super) fn serve(&self, pending: &mut Promises, allotment: &mut Allotment<'_>, decided: &mut Decisions) {
        let mut protected = 0;
        for claim in self.account.unsettled() {
            let full = pending.all().len() >= BATCH;
            if full && protected >= BATCH {
                decided.is_cut_short = true;
                return;
            }
            if self.is_claim_paused(claim) {
                continue;
            }
            if claim.deleting {
                decided.chains.extend(self.leave(claim));
            } else if !claim.pool_is_ours {
                decided.chains.extend(self.refused(claim, &unknown_kind()));
            } else if !self.has_address(claim, pending, allotment, decided) {
                decided.waiting += 1;
                match self.obstacle(claim) {
                    Some(refusal) => decided.chains.extend(self.refused(claim, &refusal)),
                    None if self.must_protect(claim) => {
                        protected += 1;
                        if protected <= BATCH {
                            decided.chains.extend(protect(claim));
                        }
                    }
                    None if full => decided.is_cut_short = true,
                    None => self.grant(claim, pending, allotment, decided),
                }
            }
        }
    }

    fn grant(&self, claim: &Claim, pending: &mut Promises, allotment: &mut Allotment<'_>, decided: &mut Decisions) {
        match allotment.grant(claim) {
            Ok(grant) => pending.make(grant),
            Err(refusal) => decided.chains.extend(self.refused(claim, &refusal)),
        }
    }

    /// Whether the claim has an address object or is promised one. If so, what remains to be done is decided here.
    fn has_address(
        &self,
        claim: &Claim,
        pending: &mut Promises,
        allotment: &mut Allotment<'_>,
        decided: &mut Decisions,
    ) -> bool {
        let named = claim.names.as_deref().map(|name| Named::new(claim.id.kind, name));
        let mut objects = self.objects(claim);
        let found = match &named {
            None => objects.next(),
            Some(named) => objects.find(|held| held.id == *named),
        };
        if let Some(held) = found {
            decided.chains.extend(self.adopt(claim, held));
            return true;
        }
        if pending.to(claim).any(|grant| !self.is_blocked(grant)) {
            if self.must_protect(claim) {
                decided.chains.extend(protect(claim));
            }
            return true;
        }
        let Some(named) = named else { return false };
        match self.facts.evidence.addresses.get(&named) {
            // The cache may be behind: the object it names exists, or did when the reference was written.
            None => decided.reads.addresses.push(named),
            Some(true) => {}
            Some(false) => return self.replace(claim, pending, allotment, decided),
        }
        true
    }

    fn objects<'s>(&'s self, claim: &'s Claim) -> Box<dyn Iterator<Item = &'s Held> + 's> {
        if self.rules.match_by_uid {
            Box::new(self.account.answers(claim))
        } else {
            Box::new(self.account.addresses().filter(|held| held.claim() == claim.id))
        }
    }

    /// Names an address object that exists to its claim, and puts right what is not as we write it.
    fn adopt(&self, claim: &Claim, held: &Held) -> Option<Chain> {
        if self.must_protect(claim) {
            return protect(claim);
        }
        let stale = held.pool.as_deref() != Some(self.uid);
        let repaired = (!held.complete || stale)
            .then(|| documents::repaired(held, claim, self.owner()))
            .flatten();
        let answered = answered(
            claim,
            &self.facts.key.namespace,
            Answer::Granted(&held.id.name),
            self.facts.now,
        )
        .filter(|_| claim.names.is_none() || claim.error.is_some() || !is_ready(claim));
        let actions: Vec<Action> = [
            repaired.map(|patch| Action::PatchAddress(held.id.clone(), patch)),
            answered.map(|patch| Action::PatchClaimStatus(claim.id.clone(), patch)),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!actions.is_empty()).then(|| Chain::of(actions))
    }

    /// The object that a claim names is gone: the same address again if it is still free, else another one. Until that
    /// exists the claim keeps its reference, so that nobody takes the address for unclaimed.
    fn replace(
        &self,
        claim: &Claim,
        pending: &mut Promises,
        allotment: &mut Allotment<'_>,
        decided: &mut Decisions,
    ) -> bool {
        // An object that was created already, and that the claim does not name yet.
        if let Some(held) = self.objects(claim).next() {
            let named = answered(
                claim,
                &self.facts.key.namespace,
                Answer::Granted(&held.id.name),
                self.facts.now,
            );
            decided
                .chains
                .extend(named.map(|patch| Chain::of(vec![Action::PatchClaimStatus(claim.id.clone(), patch)])));
            return true;
        }
        let known = self.pool.status.indexes.get(&self.published_name(claim));
        let address = known.and_then(|text| parse_address(text.as_str()).ok());
        let same = address.and_then(|address| allotment.again(claim, address));
        if self.obstacle(claim).is_some() || self.must_protect(claim) || same.is_none() {
            return false;
        }
        pending.extend(same);
        true
    }

    /// What keeps any claim, or this one, from a new address.
    fn obstacle(&self, claim: &Claim) -> Option<Refusal> {
        let missing = |name: &str| {
            Refusal::waiting(
                reason::CLUSTER_NOT_FOUND,
                format!("there is no Cluster {name} ({GROUP}) in the namespace; the address is granted once it exists"),
            )
        };
        match &self.standing {
            // differs: ipam-pool-deleting. The Go manager goes on granting.
            Standing::Leaving => return Some(Refusal::failed(message::POOL_DELETING)),
            Standing::WithoutCluster(name) => return Some(missing(name)),
            Standing::Serving | Standing::Paused(_) | Standing::Unknown => {}
        }
        if let Some((kind, name)) = self.facts.accounts.unreadable(&self.facts.key.namespace) {
            let text = format!("{kind} {name} cannot be read and may hold any address; correct it or delete it");
            return Some(Refusal::waiting(reason::OBJECT_UNREADABLE, text));
        }
        let cluster = claim.cluster.as_deref()?;
        let absent = self.facts.accounts.cluster(&self.facts.key.namespace, cluster) == ClusterFact::Absent;
        absent.then(|| missing(cluster))
    }

    /// Whether a claim rests: by itself, with its Cluster, or because nobody can say whether its Cluster does.
    pub(super) fn is_claim_paused(&self, claim: &Claim) -> bool {
        let cluster = claim
            .cluster
            .as_deref()
            .map(|name| self.facts.accounts.cluster(&self.facts.key.namespace, name));
        claim.paused
            || matches!(
                cluster,
                Some(ClusterFact::Found { paused: true, .. } | ClusterFact::Unknown)
            )
    }

    fn must_protect(&self, claim: &Claim) -> bool {
        self.rules.protect_first && !claim.is_protected()
    }

    pub(super) fn refused(&self, claim: &Claim, refusal: &Refusal) -> Option<Chain> {
        refused(claim, &self.facts.key.namespace, refusal, self.facts.now)
    }

    fn leave(&self, claim: &Claim) -> Option<Chain> {
        leave(claim, self.objects(claim))
    }

    /// The name under which the map in the pool's status shows a claim.
    fn published_name(&self, claim: &Claim) -> String {
        let of_both = |kind| self.account.claim(&Named::new(kind, &claim.id.name)).is_some();
        if claim.id.kind == ClaimKind::ClusterApi && of_both(ClaimKind::Metal3) {
            super::status::second_name(&claim.id.name)
        } else {
            claim.id.name.clone()
        }
    }
}

/// Writes why a claim has no address, if its status does not say so already.
pub(super) fn refused(claim: &Claim, namespace: &str, refusal: &Refusal, now: metal3_api::meta::Time) -> Option<Chain> {
    let patch = answered(claim, namespace, Answer::Refused(refusal), now)?;
    let event = Event {
        claim: claim.id.clone(),
        uid: claim.uid.clone(),
        is_warning: true,
        reason: refusal.reason,
        message: refusal.message.clone(),
    };
    Some(Chain::of(vec![Action::PatchClaimStatus(claim.id.clone(), patch)]).telling(event))
}

/// Releases the address objects of a claim that waits for nobody but us, then the claim. A claim with finalizers of
/// others is in use.
pub(super) fn leave<'h>(claim: &Claim, objects: impl Iterator<Item = &'h Held>) -> Option<Chain> {
    if !claim.is_leaving() || !claim.is_protected() {
        return None;
    }
    let (mut actions, mut stays) = (Vec::new(), false);
    for held in objects {
        let kept = held
            .finalizers
            .iter()
            .any(|name| name == held.id.kind.address_finalizer());
        if held.deleting {
            actions.extend(documents::stripped(held).map(|patch| Action::PatchAddress(held.id.clone(), patch)));
        } else {
            stays |= kept;
            actions.push(removal(held));
        }
    }
    if stays {
        // The finalizer goes in the next pass, at the version that the deletion gave it.
        return Some(Chain::of(actions));
    }
    actions.extend(documents::let_go(claim).map(|patch| Action::PatchClaim(claim.id.clone(), patch)));
    let event = Event {
        claim: claim.id.clone(),
        uid: claim.uid.clone(),
        is_warning: false,
        reason: reason::RELEASED,
        message: "released the address".to_owned(),
    };
    Some(Chain::of(actions).telling(event))
}

/// Deletes an address object as it was seen.
pub(super) fn removal(held: &Held) -> Action {
    Action::DeleteAddress {
        address: held.id.clone(),
        uid: held.uid.clone(),
        version: held.version.clone(),
    }
}

fn protect(claim: &Claim) -> Option<Chain> {
    let patch = documents::protected(claim)?;
    Some(Chain::of(vec![Action::PatchClaim(claim.id.clone(), patch)]))
}

fn unknown_kind() -> Refusal {
    Refusal {
        reason: reason::POOL_KIND_UNKNOWN,
        ..Refusal::failed(
            "spec.poolRef.kind: the pools of ipam.metal3.io are of kind IPPool; make a claim that names one",
        )
    }
}

fn is_ready(claim: &Claim) -> bool {
    let is_ready =
        |c: &Condition| c.type_ == condition::READY && c.status == ConditionStatus::True && !c.reason.is_empty();
    claim.conditions.iter().any(is_ready)
}
