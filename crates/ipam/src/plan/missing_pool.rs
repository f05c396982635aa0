//! Claims and address objects of a pool that does not exist.

use super::Decisions;
use super::claims::{refuse, release_claim};
use super::orphans::{is_orphan, orphan_deletion};
use crate::action::Plan;
use crate::allocator::Refusal;
use crate::facts::Facts;
use crate::index::IndexEntry;
use crate::names::reason;
use crate::rules::Rules;

/// Waiting claims get a condition; claims that are being deleted are released. An address is released only if this
/// process observed the deletion of its pool: during a restore pools are missing, too.
pub(super) fn plan(facts: &Facts<'_>, entry: &IndexEntry, rules: &Rules) -> Plan {
    let mut decided = Decisions::default();
    for claim in entry.unsettled() {
        if claim.deleting {
            decided.chains.extend(release_claim(claim, entry.addresses_of(claim)));
        } else if claim.address_name.is_none() {
            refuse(claim, facts, &missing(&facts.key.name), &mut decided);
        }
    }
    let deleted_uid = facts.index.deleted_pool_uid(facts.key);
    let orphans = entry.orphan_candidates().filter_map(|id| entry.address(id));
    for object in orphans.filter(|object| deleted_uid.is_some() && object.pool.as_deref() == deleted_uid) {
        match facts.live_reads.claims.get(&object.claim()) {
            Some(claim) if is_orphan(object, claim) => decided.chains.extend(orphan_deletion(object)),
            Some(_) => {}
            None => decided.reads.claims.push(object.claim()),
        }
    }
    decided.into_plan(None, facts.listed || !rules.list_on_takeover())
}

fn missing(pool: &str) -> Refusal {
    Refusal::waiting(
        reason::POOL_NOT_FOUND,
        format!("there is no IPPool {pool} in the claim's namespace; create it there"),
    )
}
