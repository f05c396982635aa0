//! What is left of a pool that does not exist: claims that wait for it or leave, and addresses it granted.

use super::claims::{leave, refused};
use super::orphans::{is_orphan, swept};
use crate::accounts::Account;
use crate::action::Plan;
use crate::choice::Refusal;
use crate::facts::{Facts, Reads};
use crate::names::reason;
use crate::rules::Rules;

/// Claims that wait are told so; claims that leave are let go. An address is released only if this process has seen the
/// pool go that granted it: in the middle of a restore pools are missing, too.
pub(super) fn plan(facts: &Facts<'_>, account: &Account, rules: &Rules) -> Plan {
    let mut plan = Plan::default();
    for claim in account.unsettled() {
        if claim.deleting {
            plan.chains.extend(leave(claim, account.answers(claim)));
        } else if claim.names.is_none() {
            plan.chains.extend(refused(
                claim,
                &facts.key.namespace,
                &missing(&facts.key.name),
                facts.now,
            ));
        }
    }
    let gone = facts.accounts.pool_seen_going(facts.key);
    let left = account.suspects().filter_map(|id| account.address(id));
    for held in left.filter(|held| gone.is_some() && held.pool.as_deref() == gone) {
        match facts.evidence.claims.get(&held.claim()) {
            Some(seen) if is_orphan(held, seen) => plan.chains.extend(swept(held)),
            Some(_) => {}
            None => plan.reads.claims.push(held.claim()),
        }
    }
    let idle = plan.is_empty() && plan.reads.is_empty();
    if idle || facts.listed || !rules.list_on_takeover {
        return plan;
    }
    Plan {
        reads: Reads {
            list: true,
            ..Reads::default()
        },
        ..Plan::default()
    }
}

fn missing(pool: &str) -> Refusal {
    Refusal::waiting(
        reason::POOL_NOT_FOUND,
        format!("there is no IPPool {pool} in the claim's namespace; create it there"),
    )
}
