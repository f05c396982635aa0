//! What is due, as a function of what is stored, what the API server is told, and the time.
//!
//! An authority is replaced in three steps, each of which everybody has the time to notice: the new one is announced
//! beside the old one, then it signs the serving pair, then the old one goes.

use chrono::{DateTime, Utc};

use super::ledger::{Authority, Ledger};

/// The next step. One at a time: each is one write, and each makes the next one safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is nothing that could be used: make an authority and a pair.
    Begin,
    /// Make a further authority and let it be trusted.
    Announce,
    /// Make a pair, signed by this authority.
    Sign(String),
    /// Drop these authorities.
    Retire(Vec<String>),
}

/// What is due; nothing when all is well.
///
/// `trusted` tells that every configuration carried all authorities of the ledger when it was last looked at.
#[must_use]
pub fn due(ledger: Option<&Ledger>, names: &[String], trusted: bool, now: DateTime<Utc>) -> Option<Step> {
    let Some(ledger) = ledger else {
        return Some(Step::Begin);
    };
    let Some(signer) = signer(ledger, trusted, now) else {
        return Some(Step::Begin);
    };
    let serving = &ledger.serving;
    let worn = serving.span.is_aging(now) || serving.names != names || serving.signed_by != signer.name;
    if worn && would_last(ledger, signer, names, now) {
        return Some(Step::Sign(signer.name.clone()));
    }
    let newest = ledger.authorities.last().is_none_or(|newest| newest.span.is_aging(now));
    if newest {
        return Some(Step::Announce);
    }
    let unused = unused(ledger, signer, now);
    (!unused.is_empty()).then_some(Step::Retire(unused))
}

/// Who signs: the newest authority that everybody trusts. While that is in doubt, whoever signs now goes on.
fn signer(ledger: &Ledger, trusted: bool, now: DateTime<Utc>) -> Option<&Authority> {
    let live = || {
        ledger
            .authorities
            .iter()
            .filter(|authority| !authority.span.is_over(now))
    };
    let current = live().find(|authority| authority.name == ledger.serving.signed_by);
    let noticed = live().rfind(|authority| authority.span.is_noticed(now));
    match (current, noticed) {
        (Some(current), Some(noticed)) if trusted && noticed.span.from > current.span.from => Some(noticed),
        (Some(current), _) => Some(current),
        (None, noticed) => noticed.or_else(|| live().next()),
    }
}

/// Whether a new pair would be better than the one there is: near the end of its authority it would not.
fn would_last(ledger: &Ledger, signer: &Authority, names: &[String], now: DateTime<Utc>) -> bool {
    let serving = &ledger.serving;
    let same = serving.signed_by == signer.name && serving.names == names;
    !same || serving.span.is_over(now) || serving.span.until < signer.span.until
}

/// Authorities older than the signer, once nobody serves what they signed; and those whose time is over.
fn unused(ledger: &Ledger, signer: &Authority, now: DateTime<Utc>) -> Vec<String> {
    let settled = ledger.serving.signed_by == signer.name && ledger.serving.span.is_noticed(now);
    let others = ledger
        .authorities
        .iter()
        .filter(|authority| authority.name != signer.name);
    others
        .filter(|authority| authority.span.is_over(now) || (settled && authority.span.from < signer.span.from))
        .map(|authority| authority.name.clone())
        .collect()
}
