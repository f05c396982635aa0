//! The next step, as a function of the stored state, the injected bundles, and the time.
//!
//! An authority is rotated in three steps, each with time to propagate: the new one is added to the bundle, then it
//! signs the serving pair, then the old one is removed.

use chrono::{DateTime, Utc};

use super::state::{Authority, CertificateState};

/// A step. Each is one write and makes the next one safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing usable is stored: issue an authority and a pair.
    Begin,
    /// Issue another authority and add it to the bundle.
    Announce,
    /// Issue a pair, signed by this authority.
    Sign(String),
    /// Remove these authorities.
    Retire(Vec<String>),
}

/// The next step; `None` when no step is due.
///
/// `trusted`: every configuration had all authorities of the state when it was last read.
#[must_use]
pub fn next_step(
    state: Option<&CertificateState>,
    names: &[String],
    trusted: bool,
    now: DateTime<Utc>,
) -> Option<Step> {
    let Some(state) = state else {
        return Some(Step::Begin);
    };
    let Some(signer) = signer(state, trusted, now) else {
        return Some(Step::Begin);
    };
    let serving = &state.serving;
    let outdated = serving.span.needs_renewal(now) || serving.names != names || serving.signed_by != signer.name;
    if outdated && would_last(state, signer, names, now) {
        return Some(Step::Sign(signer.name.clone()));
    }
    let newest = state
        .authorities
        .last()
        .is_none_or(|newest| newest.span.needs_renewal(now));
    if newest {
        return Some(Step::Announce);
    }
    let unused = unused(state, signer, now);
    (!unused.is_empty()).then_some(Step::Retire(unused))
}

/// The authority that signs: the newest one with a propagated bundle. While that is uncertain, the current one.
fn signer(state: &CertificateState, trusted: bool, now: DateTime<Utc>) -> Option<&Authority> {
    let live = || {
        state
            .authorities
            .iter()
            .filter(|authority| !authority.span.is_expired(now))
    };
    let current = live().find(|authority| authority.name == state.serving.signed_by);
    let propagated = live().rfind(|authority| authority.span.is_propagated(now));
    match (current, propagated) {
        (Some(current), Some(propagated)) if trusted && propagated.span.from > current.span.from => Some(propagated),
        (Some(current), _) => Some(current),
        (None, propagated) => propagated.or_else(|| live().next()),
    }
}

/// Whether a new pair would be better than the current one. It would not if the current pair is valid for as long as
/// its authority.
fn would_last(state: &CertificateState, signer: &Authority, names: &[String], now: DateTime<Utc>) -> bool {
    let serving = &state.serving;
    let same = serving.signed_by == signer.name && serving.names == names;
    !same || serving.span.is_expired(now) || serving.span.until < signer.span.until
}

/// Authorities older than the signer, once no replica serves a pair signed by them, and expired ones.
fn unused(state: &CertificateState, signer: &Authority, now: DateTime<Utc>) -> Vec<String> {
    let settled = state.serving.signed_by == signer.name && state.serving.span.is_propagated(now);
    let others = state
        .authorities
        .iter()
        .filter(|authority| authority.name != signer.name);
    others
        .filter(|authority| authority.span.is_expired(now) || (settled && authority.span.from < signer.span.from))
        .map(|authority| authority.name.clone())
        .collect()
}
