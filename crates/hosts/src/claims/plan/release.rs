//! Releases the host of a deleted claim.
//!
//! The host loses the spec of the claim, and is deprovisioned and cleaned while the claim is still its consumer: it is free
//! again only afterwards. Whether it is cleaned was decided when it was bound (`bond`).

use chrono::TimeDelta;
use metal3_api::meta::moment;
use metal3_api::metal3::names::{
    CLAIM_RECORD_ANNOTATION, DETACHED_ANNOTATION, HOST_CLAIM_FINALIZER, NODE_REUSE_LABEL,
    PAUSED_ANNOTATION as HOST_PAUSED_ANNOTATION, PAUSED_BY_CLAIM, STATUS_ANNOTATION,
};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, OperationalStatus, ProvisioningState};
use metal3_runtime::cache::Key;
use metal3_runtime::work::Next;

use super::super::bond::{self, Record};
use super::super::choice::{is_empty, is_in_namespace, reuse_label};
use super::super::copies::Copy;
use super::super::facts::{Facts, Read};
use super::report::Report;
use super::{
    Action, Decision, End, Step, end, has_own_finalizer, is_claim_moving, is_paused, metadata, named, opener, reboot,
    verify,
};
use crate::names::claim_reason::{DELETING, DELETION_FAILED, PAUSED};
use crate::plan::object::{GRACE, is_moving};

pub(super) fn release(facts: &Facts) -> Decision {
    let claim = &facts.claim;
    // A claim that moves exists in another cluster, and its host is served from there.
    if !has_own_finalizer(claim) || is_claim_moving(claim) {
        return Ok(end(None));
    }
    if is_paused(claim) {
        let why = "the claim is deleted and paused, so its host is not released; remove its annotation cluster.x-k8s.io/paused";
        return Ok(end(Some(Report::unbound(PAUSED, why).keeping(claim))));
    }
    let named = named(claim);
    if let Some((key, host)) = bonds(facts).find(|(key, _)| named.as_ref().is_none_or(|named| named == *key)) {
        return release_host(facts, key, host);
    }
    // The claim does not wait for a further one, which a user may have made name it.
    if let Some(step) = of_others(facts, named.as_ref()) {
        return Err(step);
    }
    if let Some(named) = named.filter(|named| !facts.fresh.hosts.contains(named)) {
        return Err(Step::Read(Read::Host(named)));
    }
    if !facts.fresh.claim {
        return Err(Step::Read(Read::Claim));
    }
    let mut released = HostClaim::clone(claim);
    let finalizers = released.metadata.finalizers.get_or_insert_default();
    finalizers.retain(|name| name != HOST_CLAIM_FINALIZER);
    Ok(Step::Do(Action::Claim(Box::new(released))))
}

/// The hosts that were bound to the claim: by this program, or by a Go manager, which gives them nothing. One that the status does
/// not name counts only while a policy permits it: anyone who writes hosts could otherwise keep a claim from its deletion.
fn bonds(facts: &Facts) -> impl Iterator<Item = (&Key, &BareMetalHost)> {
    let named = named(&facts.claim);
    let hosts = facts.hosts.iter().map(|(key, host)| (key, &**host));
    hosts.filter(move |(key, host)| {
        let is_consumer = bond::consumer(host).as_ref() == Some(&facts.key);
        let is_recorded = Record::of_bond(host, &facts.key).is_some();
        let is_permitted = opener(facts, &key.namespace).is_some();
        is_consumer
            && match named.as_ref() == Some(*key) {
                true => is_recorded || is_permitted,
                false => is_recorded && is_permitted && is_in_namespace(&facts.claim, host),
            }
    })
}

/// A step that releases a further host of the claim, which two processes may have bound at the same time.
pub(super) fn of_others(facts: &Facts, own: Option<&Key>) -> Option<Step> {
    let others = bonds(facts).filter(|(key, _)| Some(*key) != own);
    let mut steps = others.map(|(key, host)| release_host(facts, key, host).unwrap_or_else(|step| step));
    steps.find(|step| !matches!(step, Step::End(_)))
}

// differs: `claim-cleaning`. The Go manager removes the consumer only.
fn release_host(facts: &Facts, key: &Key, host: &BareMetalHost) -> Decision {
    require_permission(facts, key, host)?;
    let stripped = stripped(host);
    if stripped.spec != host.spec || stripped.metadata != host.metadata {
        verify(facts, key)?;
        return Ok(Step::Do(Action::Host(
            Box::new(stripped),
            "take the spec of the claim back",
        )));
    }
    if !is_released(host) {
        return Err(wait(facts, key, host));
    }
    let Some(pairs) = facts.copies.get(key) else {
        return Err(Step::Read(Read::Copies(key.clone())));
    };
    for (which, pair) in pairs {
        if matches!(pair.copy, Copy::Unknown | Copy::Refused) {
            let why = "whether copies of its Secrets are emptied is not known, or the API server refuses it; ask the administrators of the \
                       hosts";
            return Err(end(Some(Report::releasing(facts, key, host, DELETION_FAILED, why))));
        }
        if pair.is_filled() {
            verify(facts, key)?;
            return Ok(Step::Do(Action::Empty(*which, key.clone())));
        }
    }
    metadata::remove(facts, key)?;
    verify(facts, key)?;
    Ok(Step::Do(Action::Host(Box::new(freed(facts, host)), "release the host")))
}

/// Why the host may not be touched.
fn require_permission(facts: &Facts, key: &Key, host: &BareMetalHost) -> Decision<()> {
    let stop = |reason, why: &str| Err(end(Some(Report::releasing(facts, key, host, reason, why))));
    if host.metadata.deletion_timestamp.is_some() {
        return stop(DELETING, "the administrators of the host remove it");
    }
    if is_moving(host) {
        return stop(PAUSED, "the host moves to another cluster");
    }
    if opener(facts, &key.namespace).is_none() {
        return stop(
            DELETION_FAILED,
            "no HostDeployPolicy permits this namespace to use the host any more, so it is not erased for this claim; ask the \
             administrators of the hosts to permit it again, or to remove the consumer of the host",
        );
    }
    match host.annotation(HOST_PAUSED_ANNOTATION) {
        None => Ok(()),
        Some(PAUSED_BY_CLAIM) => require_grace(facts, key, host),
        Some(_) => stop(PAUSED, "the administrators of the host paused it"),
    }
}

/// The claim was paused until shortly before its deletion, as during a move that removes its annotations. Both are recorded in
/// objects, so that a restart changes nothing.
fn require_grace(facts: &Facts, key: &Key, host: &BareMetalHost) -> Decision<()> {
    let deleted = facts.claim.metadata.deletion_timestamp.as_ref().and_then(moment);
    let passed = deleted.map_or(GRACE, |at| facts.now.signed_duration_since(at).max(TimeDelta::zero()));
    let left = (GRACE - passed.min(GRACE)).to_std().unwrap_or_default();
    if left.is_zero() {
        return Ok(());
    }
    let why = "the claim was paused until its deletion, and may be moved to another cluster; its host is released if it is not";
    Err(Step::End(End {
        report: Some(Box::new(Report::releasing(facts, key, host, PAUSED, why))),
        next: Next::waiting_with_recheck(PAUSED, why, left).quiet(),
    }))
}

/// The host without anything of the claim but the bond.
fn stripped(host: &BareMetalHost) -> BareMetalHost {
    let mut stripped = host.clone();
    // A host that a Go manager bound has nothing of the claim.
    if Record::of(host).is_none() {
        return stripped;
    }
    let spec = &mut stripped.spec;
    spec.online = false;
    (spec.image, spec.custom_deploy) = (None, None);
    (spec.user_data, spec.network_data, spec.meta_data) = (None, None, None);
    if let Some(annotations) = &mut stripped.metadata.annotations {
        annotations.retain(|name, value| name != HOST_PAUSED_ANNOTATION || value != PAUSED_BY_CLAIM);
    }
    reboot::let_go(&mut stripped);
    stripped
}

/// Whether nothing of the claim is on the host any more: it was deprovisioned, and cleaned unless its owner forbade that before.
fn is_released(host: &BareMetalHost) -> bool {
    let status = &host.status;
    let is_ready = matches!(
        status.provisioning.state,
        ProvisioningState::Available | ProvisioningState::Ready
    );
    let marks = [DETACHED_ANNOTATION, STATUS_ANNOTATION];
    let is_marked = marks.iter().any(|mark| host.annotation(mark).is_some());
    // A Go manager takes hosts that are in order, and gives them nothing.
    Record::of(host).is_none()
        || (is_ready && is_empty(host) && !is_marked && status.operational_status != OperationalStatus::Detached)
}

fn wait(facts: &Facts, key: &Key, host: &BareMetalHost) -> Step {
    let (reason, why) = match host.status.error_message.is_empty() {
        true => (
            DELETING,
            "what was deployed on the host is removed, and then the host is released",
        ),
        false => (
            DELETION_FAILED,
            "what was deployed on the host is not removed yet, because the host has an error; ask the administrators of the hosts",
        ),
    };
    end(Some(Report::releasing(facts, key, host, reason, why)))
}

/// The host without the bond, kept for the next claim of the same reuse.
fn freed(facts: &Facts, host: &BareMetalHost) -> BareMetalHost {
    let mut freed = host.clone();
    freed.spec.consumer_ref = None;
    if let Some(annotations) = &mut freed.metadata.annotations {
        annotations.remove(CLAIM_RECORD_ANNOTATION);
    }
    if let Some(label) = reuse_label(&facts.claim, &facts.key.namespace).filter(|_| Record::of(host).is_some()) {
        let labels = freed.metadata.labels.get_or_insert_default();
        labels.insert(NODE_REUSE_LABEL.to_owned(), label);
    }
    freed
}
