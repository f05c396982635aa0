//! The decision about one claim. Pure.
//!
//! Each step is a read, one write, or the end. A write that serves a claim, or takes a host from it, follows live reads of the
//! claim, its namespace, a policy that permits it and the host in the same reconcile; a host is changed by a patch of the version
//! that was read. After each step the decision is made again from the start.

pub(super) mod apply;
mod bind;
pub(super) mod metadata;
mod owned;
mod pause;
mod permission;
pub(super) mod reboot;
mod release;
mod report;

use std::time::Duration;

use metal3_api::cluster::names::{DELETE_FOR_MOVE_ANNOTATION, PAUSED_ANNOTATION};
use metal3_api::metal3::names::{CLAIM_CLASS_LABEL, HOST_CLAIM_FINALIZER, PAUSED_ANNOTATION as HOST_PAUSED_ANNOTATION};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData, HostClaim};
use metal3_runtime::cache::Key;
use metal3_runtime::patch::has_finalizer;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

use super::RECHECK;
use super::bond::{self, Bond, Record, Trace, named};
use super::copies::Use;
use super::facts::{Facts, Read};
use crate::names::claim_reason::{MISSING_HOST, NOT_BOUND, NOT_SYNCED, PAUSED, POLICY_MISSING, POLICY_UNKNOWN};
use crate::plan::object::is_moving;
use metal3_api::metal3::names::claim_condition::ASSOCIATED;
pub(super) use owned::strays;
use owned::{bound, own_hosts, traced, unnamed};
use permission::{accepting, closed, is_namespace_known, opener, verify};
pub(super) use report::Report;

/// What a live read showed differs from a cache that was not refreshed by it: the watch will show it.
pub(super) const CATCH_UP: Duration = Duration::from_secs(1);

/// Why a host is written that is bound by it.
pub(super) const BIND: &str = "bind the host";

/// A write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Metadata of the claim.
    Claim(Box<HostClaim>),
    /// The status of the claim, before a host gets anything of it.
    Status(Box<Report>),
    /// Metadata and spec of a host.
    Host(Box<BareMetalHost>, &'static str),
    /// Metadata of HardwareData.
    Hardware(Box<HardwareData>),
    /// Copies a Secret for this host.
    Fill(Use, Key),
    /// Empties the copy for this host.
    Empty(Use, Key),
}

impl Action {
    /// What is changed, and why: the same one more often than a few times is changed back.
    pub(super) fn subject(&self) -> (&'static str, Option<Key>) {
        match self {
            Self::Claim(claim) => {
                let trace = Trace::of(claim, &Key::of(&**claim));
                ("metadata", trace.and_then(|trace| trace.host()))
            }
            Self::Status(_) => ("status", None),
            Self::Host(host, what) => (what, Some(Key::of(&**host))),
            Self::Hardware(hardware) => ("HardwareData", Some(Key::of(&**hardware))),
            Self::Fill(which, host) | Self::Empty(which, host) => ("copy", Some(host.sibling(&which.name(host)))),
        }
    }
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
    if is_of_other_class(claim) && !is_served(facts) {
        return end(None);
    }
    match claim.metadata.deletion_timestamp.is_some() {
        true => release::release(facts),
        false => serve(facts),
    }
    .unwrap_or_else(|step| step)
}

/// Whether this program has bound a host to the claim, or is about to: a class that it gets then changes nothing.
fn is_served(facts: &Facts) -> bool {
    Trace::of(&facts.claim, &facts.key).is_some() || bound(facts).is_some_and(|bound| bound.2.is_of_this_program())
}

fn end(report: Option<Report>) -> Step {
    Step::End(End {
        report: report.map(Box::new),
        next: Next::Done,
    })
}

/// Whether the claim gets a host once one is free.
pub(super) fn may_be_bound(claim: &HostClaim) -> bool {
    !is_of_other_class(claim) && !is_paused(claim) && !is_claim_moving(claim) && !is_reported_missing(claim)
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

/// By Cluster API's annotation, or by the one of hosts, which newer Go managers write to claims.
fn is_paused(claim: &HostClaim) -> bool {
    has_annotation(claim, PAUSED_ANNOTATION) || has_annotation(claim, HOST_PAUSED_ANNOTATION)
}

fn has_own_finalizer(claim: &HostClaim) -> bool {
    has_finalizer(claim, HOST_CLAIM_FINALIZER)
}

fn later() -> Step {
    Step::End(End {
        report: None,
        next: Next::RequeueAfter(CATCH_UP),
    })
}

/// An end that no watch ends: it is looked at again.
fn recheck(report: Report, reason: Reason, why: &str) -> Step {
    Step::End(End {
        report: Some(Box::new(report)),
        next: Next::waiting_with_recheck(reason, why, RECHECK).quiet(),
    })
}

/// An end because of the policies: they are watched, unless they cannot be read. Labels that one asks for need not be watched.
fn without_policy(facts: &Facts, report: Report, reason: Reason, why: &str) -> Step {
    match reason == POLICY_UNKNOWN || permission::needs_unwatched_labels(facts) {
        true => recheck(report, reason, why),
        false => end(Some(report)),
    }
}

fn serve(facts: &Facts) -> Decision {
    let claim = &facts.claim;
    if is_claim_moving(claim) {
        return Ok(end(Some(moving(facts))));
    }
    if is_paused(claim) {
        return pause::paused(facts);
    }
    if let Some((key, host, bond)) = bound(facts) {
        require_uncontested(facts, key)?;
        return serve_bound(facts, (key, host), bond);
    }
    if unnamed(facts).next().is_some() {
        return release::of_others(facts).map_or_else(|| Ok(not_bound(facts, release::CONFLICT)), Err);
    }
    if facts.is_beyond {
        return bind::bind(facts);
    }
    // What a cache shows of a host that the claim names may be old.
    if let Some(key) = own_hosts(facts).into_iter().find(|key| !is_known(facts, key)) {
        return Err(Step::Read(Read::Host(key)));
    }
    let trace = Trace::of(claim, &facts.key);
    let is_restored = trace.as_ref().is_some_and(|trace| !trace.is_of_object(claim));
    if named(claim).is_some() || is_restored || is_reported_missing(claim) {
        return Ok(missing(facts));
    }
    // A claim that was moved or restored has no status. Without a host the finalizer is that of a bond, whose trace was removed since.
    if trace.is_none() && has_own_finalizer(claim) && claim.status.conditions.is_empty() {
        let why = "the claim has the finalizer metal3.io/hostclaim and neither a status nor its annotation hostclaim.metal3.io/host, so that \
                   it may have a host that is not known: restore the annotation, or delete the claim and create another one if it never had a host";
        return Ok(end(Some(Report::unbound(MISSING_HOST, why))));
    }
    bind::bind(facts)
}

/// Whether the claim waits for a host that it had: what its annotation says since then changes nothing.
fn is_reported_missing(claim: &HostClaim) -> bool {
    let mut conditions = claim.status.conditions.iter();
    conditions.any(|one| one.type_ == ASSOCIATED && one.reason == MISSING_HOST.as_str())
}

/// Requires that the status names no other host that is bound to the claim: it would be forgotten while it runs.
fn require_uncontested(facts: &Facts, key: &Key) -> Decision<()> {
    let Some(other) = named(&facts.claim).filter(|named| named != key) else {
        return Ok(());
    };
    if !is_known(facts, &other) {
        return Err(Step::Read(Read::Host(other)));
    }
    let host = facts.hosts.get(&other);
    let names_claim = host.is_some_and(|host| bond::consumer(host).as_ref() == Some(&facts.key));
    if names_claim || facts.hidden.contains(&other) {
        let why = "the annotation hostclaim.metal3.io/host names another host than the status does, and that one is bound to the claim or \
                   cannot be read, so that none is changed; restore the annotation";
        return Err(not_bound(facts, why));
    }
    Ok(())
}

fn not_bound(facts: &Facts, why: &str) -> Step {
    end(Some(Report::unbound(NOT_BOUND, why).keeping(&facts.claim)))
}

/// Whether the host was read in this reconcile, or cannot be.
fn is_known(facts: &Facts, key: &Key) -> bool {
    facts.fresh.hosts.contains(key) || facts.hidden.contains(key)
}

/// The claim has the mark of clusterctl, which removes its finalizer afterwards.
fn moving(facts: &Facts) -> Report {
    let why = "the claim moves to another cluster, so that its host is not changed here; if it does not, remove its annotation \
               clusterctl.cluster.x-k8s.io/delete-for-move";
    match bound(facts) {
        Some((key, host, _)) => Report::of_host(facts, key, host).unsynced(PAUSED, why),
        None => Report::unbound(PAUSED, why).keeping(&facts.claim),
    }
}

fn serve_bound(facts: &Facts, (key, host): (&Key, &BareMetalHost), bond: Bond) -> Decision {
    let not_bound = |why: &str| Ok(not_bound(facts, why));
    match bond {
        Bond::Own(record) if has_own_finalizer(&facts.claim) => serve_host(facts, key, host, &record),
        Bond::Own(_) => Ok(traced_claim(facts, None)),
        Bond::Untraced(trace) => recover(facts, key, &trace),
        Bond::Unreadable => not_bound(
            "what was recorded on the host when it was bound cannot be read, so that it is not changed; the administrators of the hosts \
             have to restore its annotation hostclaim.metal3.io/bond; if the claim is deleted, the host is deprovisioned and cleaned",
        ),
        Bond::Unrecorded => bind::adopt(facts, key, host).unwrap_or_else(|| {
            not_bound(
                "a host names this claim, and is in use or not in order, so it is not changed; the administrators of the hosts have to \
                 release it, or bring it into the state available without an image",
            )
        }),
    }
}

/// The trace that was removed from the claim, as the record of its host has it.
fn recover(facts: &Facts, key: &Key, trace: &Trace) -> Decision {
    if !facts.fresh.hosts.contains(key) {
        return Err(Step::Read(Read::Host(key.clone())));
    }
    if !facts.fresh.claim {
        return Err(Step::Read(Read::Claim));
    }
    Ok(traced_claim(facts, Some(trace)))
}

/// The claim with its finalizer and with this trace. Both are written before a host is bound.
// differs: `claim-bond`. The Go manager sets the finalizer first, and has no trace.
fn traced_claim(facts: &Facts, trace: Option<&Trace>) -> Step {
    let mut changed = HostClaim::clone(&facts.claim);
    if !has_own_finalizer(&changed) {
        let finalizers = changed.metadata.finalizers.get_or_insert_default();
        finalizers.push(HOST_CLAIM_FINALIZER.to_owned());
    }
    if let Some(trace) = trace {
        trace.write(&mut changed);
    }
    Step::Do(Action::Claim(Box::new(changed)))
}

/// The host does not exist, or is another's. It is not replaced: what runs on it may still run.
fn missing(facts: &Facts) -> Step {
    let report = |why: &str| Report::unbound(MISSING_HOST, why).keeping(&facts.claim);
    if own_hosts(facts).iter().any(|key| facts.hidden.contains(key)) {
        let why =
            "the host cannot be read; its administrators have to correct it, or to permit this program to read it";
        return recheck(report(why), MISSING_HOST, why);
    }
    end(Some(report(
        "the host that was bound to this claim does not exist, or is not bound to it any more; restore the annotation \
         hostclaim.metal3.io/host if it was changed; if the host does not come back, delete the claim and create another one",
    )))
}

fn serve_host(facts: &Facts, key: &Key, host: &BareMetalHost, record: &Record) -> Decision {
    let report = Report::of_host(facts, key, host);
    let stop = |reason, why: &str| Err(end(Some(report.clone().unsynced(reason, why))));
    if host.metadata.deletion_timestamp.is_some() {
        return stop(NOT_SYNCED, "the administrators of the host remove it");
    }
    if is_moving(host) {
        return stop(PAUSED, "the host moves to another cluster");
    }
    pause::pass_on(facts, (key, host), &report)?;
    if let Some((reason, why)) = closed(facts, &key.namespace)? {
        if reason == POLICY_MISSING {
            metadata::remove(facts, key)?;
        }
        let why =
            format!("{why}, so nothing is changed on it and nothing is erased; ask the administrators of the hosts");
        return Err(without_policy(facts, report.unsynced(reason, &why), reason, &why));
    }
    require_named(facts, key, &report)?;
    reboot::pass_on(facts, (key, host), record)?;
    apply::apply(facts, (key, host), &report)?;
    metadata::copy(facts, key, host)?;
    if let Some(step) = release::of_others(facts) {
        return Err(step);
    }
    match apply::shortfall(facts, host).or_else(|| release::conflict(facts)) {
        Some(why) => stop(NOT_SYNCED, why),
        None => Ok(end(Some(report.synced()))),
    }
}

/// Requires that the status names the host before it gets anything: who removes the annotation afterwards gets no second host.
fn require_named(facts: &Facts, key: &Key, report: &Report) -> Decision<()> {
    if named(&facts.claim).as_ref() == Some(key) {
        return Ok(());
    }
    verify(facts, key)?;
    let why = "the host is bound, and gets the spec of the claim next";
    let report = report.clone().unsynced(NOT_SYNCED, why);
    Err(Step::Do(Action::Status(Box::new(report))))
}
