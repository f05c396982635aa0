//! The decision about one claim. Pure.
//!
//! Each step is a read, one write, or the end. A write that serves a claim, or takes a host from it, follows live reads of the
//! claim, its namespace, a policy that permits it and the host in the same reconcile; a host is changed by a patch of the version
//! that was read. After each step the decision is made again from the start.

mod apply;
mod bind;
mod metadata;
mod reboot;
mod release;
mod report;

use std::time::Duration;

use metal3_api::cluster::names::{DELETE_FOR_MOVE_ANNOTATION, PAUSED_ANNOTATION};
use metal3_api::metal3::names::{
    CLAIM_CLASS_LABEL, HOST_CLAIM_FINALIZER, PAUSED_ANNOTATION as HOST_PAUSED_ANNOTATION, PAUSED_BY_CLAIM,
};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData, HostClaim};
use metal3_runtime::cache::Key;
use metal3_runtime::patch::has_finalizer;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use super::bond::{self, Record};
use super::choice::{Chooser, is_in_namespace, is_unused};
use super::copies::Use;
use super::facts::{Facts, Read};
use super::policy;
use crate::names::claim_reason::{MISSING_HOST, NOT_BOUND, NOT_SYNCED, PAUSED, POLICY_MISSING};
use crate::plan::object::is_moving;
pub(super) use report::Report;

/// What a live read showed differs from a cache that was not refreshed by it: the watch will show it.
const CATCH_UP: Duration = Duration::from_secs(1);

/// A write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Metadata of the claim.
    Claim(Box<HostClaim>),
    /// Metadata and spec of a host.
    Host(Box<BareMetalHost>, &'static str),
    /// Metadata of HardwareData.
    Hardware(Box<HardwareData>),
    /// Copies a Secret for this host.
    Fill(Use, Key),
    /// Empties the copy for this host.
    Empty(Use, Key),
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Read(Read),
    Do(Action),
    End(End),
}

/// The end of a reconcile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct End {
    /// `None`: the status stays.
    pub(super) report: Option<Box<Report>>,
    pub(super) next: Next,
}

/// A step, or the step that must come first.
pub(super) type Decision<T = Step> = Result<T, Step>;

pub(super) fn plan(facts: &Facts) -> Step {
    let claim = &facts.claim;
    if is_of_other_class(claim) {
        return end(None);
    }
    match claim.metadata.deletion_timestamp.is_some() {
        true => release::release(facts),
        false => serve(facts),
    }
    .unwrap_or_else(|step| step)
}

fn end(report: Option<Report>) -> Step {
    Step::End(End {
        report: report.map(Box::new),
        next: Next::Done,
    })
}

/// A class names another program that serves the claim.
fn is_of_other_class(claim: &HostClaim) -> bool {
    let labels = claim.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.get(CLAIM_CLASS_LABEL).is_some_and(|class| !class.is_empty()))
}

fn has_annotation(claim: &HostClaim, name: &str) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(name))
}

fn is_claim_moving(claim: &HostClaim) -> bool {
    has_annotation(claim, DELETE_FOR_MOVE_ANNOTATION)
}

fn is_paused(claim: &HostClaim) -> bool {
    has_annotation(claim, PAUSED_ANNOTATION)
}

fn has_own_finalizer(claim: &HostClaim) -> bool {
    has_finalizer(claim, HOST_CLAIM_FINALIZER)
}

/// The host that the status of the claim names.
pub(super) fn named(claim: &HostClaim) -> Option<Key> {
    let named = claim.status.bare_metal_host.as_ref()?;
    bond::key(&named.namespace, &named.name)
}

/// The policy that permits the claim a host of this namespace: one that was read in this reconcile, if there is one.
fn opener<'a>(facts: &'a Facts, namespace: &str) -> Option<&'a Key> {
    let labels = facts.namespace.present();
    let claim = &facts.key.namespace;
    let of_namespace = facts.policies.iter().filter(|(key, _)| key.namespace == namespace);
    let accepting = of_namespace.filter(|(_, one)| policy::accepts(one, claim, labels));
    let keys = accepting.map(|(key, _)| key);
    keys.max_by_key(|key| facts.fresh.policies.contains(*key))
}

/// Requires live views of all that permits a write to this host.
fn verify(facts: &Facts, host: &Key) -> Decision<()> {
    let fresh = &facts.fresh;
    if !fresh.claim {
        return Err(Step::Read(Read::Claim));
    }
    if !fresh.namespace {
        return Err(Step::Read(Read::Namespace));
    }
    let Some(policy) = opener(facts, &host.namespace) else {
        return Err(later());
    };
    if !fresh.policies.contains(policy) {
        return Err(Step::Read(Read::Policy(policy.clone())));
    }
    if !fresh.hosts.contains(host) {
        return Err(Step::Read(Read::Host(host.clone())));
    }
    Ok(())
}

fn later() -> Step {
    Step::End(End {
        report: None,
        next: Next::RequeueAfter(CATCH_UP),
    })
}

/// Whether this program bound the host to the claim, or may. Who writes hosts and policies of a namespace could otherwise have the
/// Secrets of a claim copied there that asks for hosts of another one.
fn is_own(facts: &Facts, host: &BareMetalHost) -> bool {
    let claim = &facts.claim;
    let selects = || Chooser::new(claim, &facts.key).is_some_and(|chooser| chooser.selects(host));
    let is_recorded = Record::of_bond(host, &facts.key).is_some();
    is_in_namespace(claim, host) && (is_recorded || (is_unused(host) && selects()))
}

/// The host of the claim: the one that its status names while that names the claim, else one that a policy permits.
fn bound(facts: &Facts) -> Option<(&Key, &BareMetalHost)> {
    let named = named(&facts.claim);
    let of_claim = facts.hosts.iter().map(|(key, host)| (key, &**host));
    let mut of_claim = of_claim.filter(|(_, host)| bond::consumer(host).as_ref() == Some(&facts.key));
    let is_named = |key: &Key| named.as_ref() == Some(key);
    // A host that a user made name this claim does not keep it from another one.
    let is_permitted = |key: &Key, host: &BareMetalHost| opener(facts, &key.namespace).is_some() && is_own(facts, host);
    let first = of_claim.clone().find(|(key, _)| is_named(key));
    first.or_else(|| of_claim.find(|(key, host)| is_permitted(key, host)))
}

fn serve(facts: &Facts) -> Decision {
    let claim = &facts.claim;
    if is_claim_moving(claim) {
        return Ok(end(None));
    }
    match bound(facts) {
        Some((key, host)) if has_own_finalizer(claim) => serve_host(facts, key, host),
        _ if is_paused(claim) => {
            let why = "the claim is paused; remove its annotation cluster.x-k8s.io/paused";
            Ok(end(Some(Report::unbound(PAUSED, why).keeping(claim))))
        }
        _ if !has_own_finalizer(claim) => {
            let mut adopted = HostClaim::clone(claim);
            let finalizers = adopted.metadata.finalizers.get_or_insert_default();
            finalizers.push(HOST_CLAIM_FINALIZER.to_owned());
            Ok(Step::Do(Action::Claim(Box::new(adopted))))
        }
        _ if claim.status.bare_metal_host.is_some() => Ok(missing(facts)),
        Some(_) | None => bind::bind(facts),
    }
}

/// The host does not exist, or is another's. It is not replaced: what runs on it may still run.
fn missing(facts: &Facts) -> Step {
    let why = match facts.is_host_unreadable {
        true => "the host cannot be decoded; its administrators have to correct it",
        false => {
            "the host that was bound to this claim does not exist, or is not bound to it any more; if it does not come back, delete \
             the claim and create another one"
        }
    };
    end(Some(Report::unbound(MISSING_HOST, why).keeping(&facts.claim)))
}

fn serve_host(facts: &Facts, key: &Key, host: &BareMetalHost) -> Decision {
    let report = Report::of_host(facts, key, host);
    let stop = |reason, why: &str| Err(end(Some(report.clone().unsynced(reason, why))));
    if host.metadata.deletion_timestamp.is_some() {
        return stop(NOT_SYNCED, "the administrators of the host remove it");
    }
    if is_moving(host) {
        return stop(PAUSED, "the host moves to another cluster");
    }
    if opener(facts, &key.namespace).is_none() {
        return stop(
            POLICY_MISSING,
            "no HostDeployPolicy permits this namespace to use the host any more, so nothing is changed on it and nothing is \
             erased; ask the administrators of the hosts",
        );
    }
    let Some(record) = Record::of_bond(host, &facts.key) else {
        return bind::adopt(facts, key, host).ok_or_else(|| {
            let why = "a host names this claim, and is in use or not in order, so it is not changed; the administrators of the hosts \
                       have to release it, or bring it into the state available without an image";
            end(Some(Report::unbound(NOT_BOUND, why).keeping(&facts.claim)))
        })?;
    };
    require_unpaused(facts, key, host, &report)?;
    reboot::pass_on(facts, (key, host), &record)?;
    apply::apply(facts, (key, host), &report)?;
    metadata::copy(facts, key, host)?;
    if let Some(step) = release::of_others(facts, Some(key)) {
        return Err(step);
    }
    Ok(end(Some(report.synced())))
}

/// Passes a pause of the claim on, so that a host does not act while its claim moves to another cluster.
fn require_unpaused(facts: &Facts, key: &Key, host: &BareMetalHost, report: &Report) -> Decision<()> {
    let paused = host.annotation(HOST_PAUSED_ANNOTATION);
    let mut changed = host.clone();
    let annotations = changed.metadata.annotations.get_or_insert_default();
    match (is_paused(&facts.claim), paused) {
        (false, None) => return Ok(()),
        (true, Some(_)) => {
            let why = "the claim is paused; remove its annotation cluster.x-k8s.io/paused";
            return Err(end(Some(report.clone().unsynced(PAUSED, why))));
        }
        (true, None) => {
            annotations.insert(HOST_PAUSED_ANNOTATION.to_owned(), PAUSED_BY_CLAIM.to_owned());
        }
        (false, Some(PAUSED_BY_CLAIM)) => {
            annotations.remove(HOST_PAUSED_ANNOTATION);
        }
        (false, Some(_)) => {
            let why = "the administrators of the host paused it";
            return Err(end(Some(report.clone().unsynced(PAUSED, why))));
        }
    }
    verify(facts, key)?;
    Err(Step::Do(Action::Host(Box::new(changed), "pass the pause on")))
}

/// Whether what is known of the namespace of the claim suffices to say that no policy permits it.
fn is_namespace_known(facts: &Facts) -> bool {
    !matches!(facts.namespace, Observed::Unknown(_))
}
