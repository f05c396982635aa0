//! The claims that are not in their final state.

use std::error::Error as _;

use metal3_api::cluster::names::GROUP;
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, PlannedEvent};
use metal3_runtime::write::WriteError;

use super::{BATCH, Decisions, Planner, PoolState};
use crate::action::{Action, Chain};
use crate::address::AddressObject;
use crate::allocator::{Allocator, Refusal};
use crate::claim::{Claim, ClaimKind, ObjectId};
use crate::documents::{self, ClaimOutcome, claim_status_patch};
use crate::facts::Facts;
use crate::names::{condition, message, reason};

impl Planner<'_> {
    /// Plans the writes of these claims, oldest first, up to the limits. New allocations become pending.
    pub(super) fn serve(&self, allocator: &mut Allocator<'_>, decided: &mut Decisions) {
        let mut new_finalizers = 0;
        for claim in self.entry.unsettled() {
            let full = decided.pending.all().len() >= BATCH;
            if full && new_finalizers >= BATCH {
                decided.is_cut_short = true;
                return;
            }
            if self.is_claim_paused(claim) {
                self.report_unreadable_cluster(claim, decided);
                continue;
            }
            if claim.deleting {
                decided.chains.extend(self.release_claim(claim));
            } else if !claim.has_supported_pool_kind {
                refuse(claim, self.facts, &unknown_kind(), decided);
            } else if !self.has_address(claim, allocator, decided) {
                decided.waiting += 1;
                match self.obstacle(claim) {
                    Some(refusal) => refuse(claim, self.facts, &refusal, decided),
                    None if self.needs_finalizer(claim) => {
                        new_finalizers += 1;
                        if new_finalizers <= BATCH {
                            decided.chains.extend(add_finalizer(claim));
                        }
                    }
                    None if full => decided.is_cut_short = true,
                    None => self.allocate_new(claim, allocator, decided),
                }
            }
        }
    }

    fn allocate_new(&self, claim: &Claim, allocator: &mut Allocator<'_>, decided: &mut Decisions) {
        match allocator.allocate(claim) {
            Ok(allocation) => decided.pending.push(allocation),
            Err(refusal) => refuse(claim, self.facts, &refusal, decided),
        }
    }

    /// Whether the claim has an address object or a pending allocation. If so, plans the remaining writes.
    fn has_address(&self, claim: &Claim, allocator: &mut Allocator<'_>, decided: &mut Decisions) -> bool {
        let named_object = claim
            .address_name
            .as_deref()
            .map(|name| ObjectId::new(claim.id.kind, name));
        let mut objects = self.objects(claim);
        let found = match &named_object {
            None => objects.next(),
            Some(named_object) => objects.find(|object| object.id == *named_object),
        };
        if let Some(object) = found {
            decided.chains.extend(self.adopt(claim, object));
            return true;
        }
        if decided.pending.of(claim).any(|allocation| !self.is_blocked(allocation)) {
            if self.needs_finalizer(claim) {
                decided.chains.extend(add_finalizer(claim));
            }
            return true;
        }
        let Some(named_object) = named_object else { return false };
        match self.facts.live_reads.addresses.get(&named_object) {
            // The cache may be stale: the named object exists, or existed when the reference was written.
            None => decided.reads.addresses.push(named_object),
            Some(true) => {}
            Some(false) => return self.replace(claim, allocator, decided),
        }
        true
    }

    fn objects<'s>(&'s self, claim: &'s Claim) -> Box<dyn Iterator<Item = &'s AddressObject> + 's> {
        if self.rules.match_by_uid() {
            Box::new(self.entry.addresses_of(claim))
        } else {
            Box::new(self.entry.addresses().filter(|object| object.claim() == claim.id))
        }
    }

    /// Writes an existing address object into the status of its claim, and corrects its metadata.
    fn adopt(&self, claim: &Claim, object: &AddressObject) -> Option<Chain> {
        if self.needs_finalizer(claim) {
            return add_finalizer(claim);
        }
        let stale = object.pool.as_deref() != Some(self.uid);
        // The garbage collector removes a pool that is deleted in the foreground from the owners, and looks at it again after
        // each write.
        let is_kept = self.state != PoolState::Deleting;
        let repaired = (is_kept && (!object.complete || stale))
            .then(|| documents::address_repaired(object, claim, self.owner()))
            .flatten();
        let status = self
            .report(claim, &object.id.name)
            .filter(|_| claim.address_name.is_none() || claim.error.is_some() || !is_ready(claim));
        let actions: Vec<Action> = [
            repaired.map(|patch| Action::PatchAddress(object.id.clone(), patch)),
            status,
        ]
        .into_iter()
        .flatten()
        .collect();
        (!actions.is_empty()).then(|| Chain::of(actions))
    }

    /// The named object does not exist: allocates the same address again if it is free, else another one. The claim
    /// keeps its reference until then, so that the address does not count as unclaimed.
    fn replace(&self, claim: &Claim, allocator: &mut Allocator<'_>, decided: &mut Decisions) -> bool {
        // The object exists, and the claim does not name it yet.
        if let Some(object) = self.objects(claim).next() {
            let status = self.report(claim, &object.id.name);
            decided.chains.extend(status.map(|action| Chain::of(vec![action])));
            return true;
        }
        let same = self
            .lost_address(claim)
            .and_then(|address| allocator.reallocate(claim, address));
        if self.obstacle(claim).is_some() || self.needs_finalizer(claim) || same.is_none() {
            return false;
        }
        decided.pending.extend(same);
        true
    }

    /// The reason why a claim cannot get a new address.
    fn obstacle(&self, claim: &Claim) -> Option<Refusal> {
        let missing = |name: &str| {
            Refusal::waiting(
                reason::CLUSTER_NOT_FOUND,
                format!("there is no Cluster {name} ({GROUP}) in the namespace; the address is granted once it exists"),
            )
        };
        match &self.state {
            // differs: ipam-pool-deleting. The Go manager continues to allocate.
            PoolState::Deleting => return Some(Refusal::failed(message::POOL_DELETING)),
            PoolState::ClusterMissing(name) => return Some(missing(name)),
            PoolState::Serving | PoolState::Paused(_) | PoolState::Unknown => {}
        }
        if let Some((kind, name)) = self.facts.index.unreadable(&self.facts.key.namespace) {
            let text = format!("{kind} {name} cannot be read and may hold any address; correct it or delete it");
            return Some(Refusal::waiting(reason::OBJECT_UNREADABLE, text));
        }
        // An IPClaim is not bound to its Cluster: its label only shows when it is paused.
        let cluster = claim
            .cluster
            .as_deref()
            .filter(|_| claim.id.kind == ClaimKind::ClusterApi)?;
        let absent = self.facts.index.cluster(&self.facts.key.namespace, cluster) == Observed::Absent;
        absent.then(|| missing(cluster))
    }

    /// Whether a claim is paused by its annotation or its Cluster, or the state of its Cluster is unknown.
    pub(super) fn is_claim_paused(&self, claim: &Claim) -> bool {
        let of_key = |name| self.facts.index.cluster(&self.facts.key.namespace, name);
        match claim.cluster.as_deref().map(of_key) {
            _ if claim.paused => true,
            Some(Observed::Present(cluster)) => cluster.paused,
            Some(Observed::Unknown(_)) => true,
            Some(Observed::Absent) | None => false,
        }
    }

    /// Says why a claim without address is skipped. A pause is shown by the Cluster.
    fn report_unreadable_cluster(&self, claim: &Claim, decided: &mut Decisions) {
        let Some(name) = claim.cluster.as_deref().filter(|_| !claim.paused) else {
            return;
        };
        let is_unreadable = self.facts.index.is_cluster_unreadable(&self.facts.key.namespace, name);
        if is_unreadable && !claim.deleting && claim.address_name.is_none() {
            refuse(claim, self.facts, &unreadable_cluster(name), decided);
        }
    }

    fn needs_finalizer(&self, claim: &Claim) -> bool {
        self.rules.finalizer_first() && !claim.has_finalizer()
    }

    /// The write of the address object into the status of its claim.
    pub(super) fn report(&self, claim: &Claim, address: &str) -> Option<Action> {
        report(claim, self.facts.key, ClaimOutcome::Allocated(address), self.facts.now)
    }

    fn release_claim(&self, claim: &Claim) -> Option<Chain> {
        release_claim(claim, self.objects(claim))
    }
}

fn report(claim: &Claim, pool: &Key, outcome: ClaimOutcome<'_>, now: Time) -> Option<Action> {
    let patch = claim_status_patch(claim, &pool.namespace, outcome, now)?;
    Some(Action::PatchClaimStatus(claim.id.clone(), patch))
}

/// Writes the reason for a missing address, unless the status is current. The claim stays unsettled.
///
/// differs (`ipam-refused-again`): the Go manager skips it from then on.
pub(super) fn refuse(claim: &Claim, facts: &Facts<'_>, refusal: &Refusal, decided: &mut Decisions) {
    let report = report(claim, facts.key, ClaimOutcome::Refused(refusal), facts.now);
    decided.chains.extend(report.map(|action| {
        let event = PlannedEvent::warning(refusal.reason, refusal.message.clone());
        Chain::of(vec![action]).with_event(&claim.id, event)
    }));
    decided
        .refused
        .get_or_insert_with(|| Refusal::waiting(refusal.reason, format!("{}: {}", claim.id, refusal.message)));
}

/// Reports on a claim that the API server rejects its address object.
#[must_use]
pub fn rejected(claim: &Claim, pool: &Key, error: &WriteError, now: Time) -> Option<Action> {
    let why = error.source().map(ToString::to_string).unwrap_or_default();
    let refusal = Refusal::failed(format!("{}: {why}", message::NOT_CREATED));
    report(claim, pool, ClaimOutcome::Refused(&refusal), now)
}

/// Releases the address objects of a claim that is being deleted, then the claim. A claim with other finalizers is in
/// use.
pub(super) fn release_claim<'h>(claim: &Claim, objects: impl Iterator<Item = &'h AddressObject>) -> Option<Chain> {
    if !claim.is_releasable() || !claim.has_finalizer() {
        return None;
    }
    let (mut actions, mut blocked) = (Vec::new(), false);
    for object in objects {
        let has_finalizer = object
            .finalizers
            .iter()
            .any(|name| name == object.id.kind.address_finalizer());
        if object.deleting {
            actions.extend(
                documents::address_finalizer_removed(object)
                    .map(|patch| Action::PatchAddress(object.id.clone(), patch)),
            );
        } else {
            blocked |= has_finalizer;
            actions.push(removal(object));
        }
    }
    if blocked {
        // The finalizer is removed in the next reconcile, at the version that the deletion produces.
        return Some(Chain::of(actions));
    }
    actions.extend(documents::claim_finalizer_removed(claim).map(|patch| Action::PatchClaim(claim.id.clone(), patch)));
    let event = PlannedEvent::normal(reason::RELEASED, "released the address");
    Some(Chain::of(actions).with_event(&claim.id, event))
}

/// Deletes an address object at the observed version.
pub(super) fn removal(object: &AddressObject) -> Action {
    Action::DeleteAddress {
        address: object.id.clone(),
        uid: object.uid.clone(),
        version: object.version.clone(),
    }
}

fn add_finalizer(claim: &Claim) -> Option<Chain> {
    let patch = documents::claim_finalizer_added(claim)?;
    Some(Chain::of(vec![Action::PatchClaim(claim.id.clone(), patch)]))
}

/// Whether a pause of a Cluster that cannot be read allows anything is unknown.
pub(super) fn unreadable_cluster(name: &str) -> Refusal {
    let text = format!("Cluster {name} ({GROUP}) cannot be read, and may be paused; correct it");
    Refusal::waiting(reason::OBJECT_UNREADABLE, text)
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
