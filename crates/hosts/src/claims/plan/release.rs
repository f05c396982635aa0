//! Releases the host of a deleted claim.
//!
//! The host loses the spec of the claim, and is deprovisioned and cleaned while the claim is still its consumer: it is free
//! again only afterwards. Whether it is cleaned was decided when it was bound (`bond`).

use metal3_api::infrastructure::names::{LEGACY_UNHEALTHY_ANNOTATION, UNHEALTHY_ANNOTATION};
use metal3_api::metal3::names::{
    CLAIM_KEPT_ANNOTATION, CLAIM_RECORD_ANNOTATION, DETACHED_ANNOTATION, HOST_CLAIM_FINALIZER, NODE_REUSE_LABEL,
    PAUSED_ANNOTATION as HOST_PAUSED_ANNOTATION, PAUSED_BY_CLAIM, STATUS_ANNOTATION,
};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, OperationalStatus, ProvisioningState};
use metal3_runtime::cache::Key;
use metal3_runtime::work::Next;

use super::super::bond::{self, Bond, Record, Trace, named};
use super::super::choice::{KEPT, is_clean, is_unused, reuse_label};
use super::super::copies::Copy;
use super::super::facts::{Facts, Read};
use super::report::Report;
use super::{
    Action, Decision, End, Step, bound, closed, end, has_annotation, has_own_finalizer, is_claim_moving, is_known,
    is_paused, metadata, moving, own_hosts, pause, reboot, recheck, recover, traced, verify, without_policy,
};
use crate::names::claim_reason::{DELETING, DELETION_FAILED, PAUSED, POLICY_MISSING};
use crate::names::reason::BUDGET_SPENT;
use crate::plan::object::{GRACE, is_moving};

pub(super) fn release(facts: &Facts) -> Decision {
    let claim = &facts.claim;
    if !has_own_finalizer(claim) {
        return Ok(end(None));
    }
    // A claim that moves exists in another cluster, and its host is served from there.
    if is_claim_moving(claim) {
        return Ok(end(Some(moving(facts))));
    }
    if is_paused(claim) {
        pause::withdraw(facts)?;
        let why = "the claim is deleted and paused, so its host is not released; remove its annotation cluster.x-k8s.io/paused";
        return Ok(end(Some(Report::unbound(PAUSED, why).keeping(claim))));
    }
    if let Some((key, host, bond)) = bound(facts) {
        return match bond {
            Bond::Untraced(trace) => recover(facts, key, &trace),
            bond => release_host(facts, key, host, &bond),
        };
    }
    require_unbound(facts)?;
    if let Some(step) = of_others(facts) {
        return Err(step);
    }
    require_no_other(facts)?;
    if !facts.fresh.claim {
        return Err(Step::Read(Read::Claim));
    }
    let mut released = HostClaim::clone(claim);
    let finalizers = released.metadata.finalizers.get_or_insert_default();
    finalizers.retain(|name| name != HOST_CLAIM_FINALIZER);
    Ok(Step::Do(Action::Claim(Box::new(released))))
}

/// Requires live views that no host which the claim names is bound to it, and that none can be any more: a process that was overtaken
/// may have sent a bind, which it did before the claim was deleted.
fn require_unbound(facts: &Facts) -> Decision<()> {
    let claim = &facts.claim;
    let own = own_hosts(facts);
    if let Some(key) = own.iter().find(|key| !is_known(facts, key)) {
        return Err(Step::Read(Read::Host(key.clone())));
    }
    if own.iter().any(|key| facts.hidden.contains(key)) {
        let why = "the host that the claim names cannot be read, so that it is not known whether it is released; restore the annotation \
                   hostclaim.metal3.io/host if it was changed; otherwise the administrators of the host have to correct it, or to permit this \
                   program to read it";
        let report = Report::unbound(DELETION_FAILED, why).keeping(claim);
        return Err(recheck(report, DELETION_FAILED, why));
    }
    // The status names a host after it was bound, and then no other one is chosen: no bind is on its way any more. Without it one may be,
    // whatever the trace says since.
    let is_unconfirmed = named(claim).is_none() || traced(facts).is_some_and(|traced| Some(traced) != named(claim));
    match left(facts) {
        Some(left) if is_unconfirmed => {
            let why = "a host was about to be bound to the claim; it is released when it is known that none is";
            Err(Step::End(End {
                report: Some(Box::new(Report::unbound(DELETING, why))),
                next: Next::waiting_with_recheck(DELETING, why, left).quiet(),
            }))
        }
        _ => Ok(()),
    }
}

/// What is left of the grace after the deletion of the claim.
fn left(facts: &Facts) -> Option<std::time::Duration> {
    let left = GRACE.to_std().unwrap_or_default().saturating_sub(facts.deleted_for);
    (!left.is_zero()).then_some(left)
}

/// Further hosts with the identifier of the bond or a record of the object, which an overtaken process bound. Neither text is known to who
/// may not read the claim.
fn others(facts: &Facts) -> impl Iterator<Item = (&Key, &BareMetalHost)> {
    let trace = Trace::of(&facts.claim, &facts.key);
    let bound = bound(facts).map(|bound| bound.0);
    let hosts = facts.hosts.iter().map(|(key, host)| (key, &**host));
    hosts.filter(move |(key, host)| {
        let is_consumer = bond::consumer(host).as_ref() == Some(&facts.key);
        let record = Record::of(host).filter(|record| record.claim == facts.key.to_string());
        let has_id = record.is_some_and(|record| {
            record.is_of_object(&facts.claim, &facts.key) || trace.as_ref().is_some_and(|trace| trace.id == record.id)
        });
        is_consumer && has_id && bound != Some(*key)
    })
}

/// Requires that no further host is bound to a deleted claim, by live views.
fn require_no_other(facts: &Facts) -> Decision<()> {
    let mut others = others(facts).map(|(key, _)| key);
    let Some(first) = others.next() else { return Ok(()) };
    let unread = std::iter::once(first).chain(others).find(|key| !is_known(facts, key));
    if let Some(key) = unread {
        return Err(Step::Read(Read::Host(key.clone())));
    }
    let report = Report::unbound(DELETION_FAILED, CONFLICT).keeping(&facts.claim);
    Err(recheck(report, DELETION_FAILED, CONFLICT))
}

/// A step that releases a further host. It is changed only while nothing was ever given to it: otherwise it may be the one that runs
/// what the tenant uses.
pub(super) fn of_others(facts: &Facts) -> Option<Step> {
    let unused = others(facts).filter(|(_, host)| is_unused(host));
    let mut steps = unused.map(|(key, host)| {
        let record = Record::of(host).map_or(Bond::Unreadable, Bond::Own);
        release_host(facts, key, host, &record).unwrap_or_else(|step| step)
    });
    steps.find(|step| !matches!(step, Step::End(_)))
}

/// Two hosts have the bond of a claim.
pub(super) const CONFLICT: &str = "another host carries the bond of this claim and is in use, paused or not permitted, so that it is not \
     changed; the administrators of the hosts have to find out which of the two is used, and to remove spec.consumerRef of the other one";

/// Whether two hosts have the bond of the claim.
pub(super) fn conflict(facts: &Facts) -> Option<&'static str> {
    others(facts).next().map(|_| CONFLICT)
}

// differs: `claim-cleaning`. The Go manager removes the consumer only.
fn release_host(facts: &Facts, key: &Key, host: &BareMetalHost, bond: &Bond) -> Decision {
    require_permission(facts, key, host)?;
    if *bond == Bond::Unrecorded {
        require_unused(facts, key, host)?;
    } else {
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
    }
    let Some(pairs) = facts.copies.get(key) else {
        return Err(Step::Read(Read::Copies(key.clone())));
    };
    for (which, pair) in pairs {
        let problem = match pair.copy {
            Copy::Unknown => "whether copies of its Secrets are emptied is not known",
            Copy::Refused => "the API server refuses to empty a copy of its Secrets",
            Copy::Absent | Copy::Own(_) | Copy::Foreign => "",
        };
        if !problem.is_empty() {
            let why = format!("{problem}; it is tried again, and the administrators of the hosts have to permit it");
            let report = Report::releasing(facts, key, host, DELETION_FAILED, &why);
            return Err(recheck(report, DELETION_FAILED, &why));
        }
        if pair.is_filled() {
            verify(facts, key)?;
            return Ok(Step::Do(Action::Empty(*which, key.clone())));
        }
    }
    metadata::remove(facts, key)?;
    verify(facts, key)?;
    Ok(Step::Do(Action::Host(
        Box::new(freed(facts, host, bond)),
        "release the host",
    )))
}

/// A host without a record of this bond: a Go manager bound it, which gives it nothing, or the record was removed. What runs on it may
/// be of the claim, and how it is to be cleaned is not known.
fn require_unused(facts: &Facts, key: &Key, host: &BareMetalHost) -> Decision<()> {
    if is_unused(host) {
        return Ok(());
    }
    let why = "the host names this claim, and what was recorded when it was bound is missing, so that it is neither erased nor freed; the \
               administrators of the hosts have to restore its annotation hostclaim.metal3.io/bond, or to bring the host into the state \
               available without an image, or to remove its spec.consumerRef";
    Err(end(Some(Report::releasing(facts, key, host, DELETION_FAILED, why))))
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
    if let Some((reason, why)) = closed(facts, &key.namespace)? {
        if reason == POLICY_MISSING {
            metadata::remove(facts, key)?;
        }
        let why = format!(
            "{why}, so it is not erased for this claim; ask the administrators of the hosts to permit it again, or to remove the consumer \
             of the host"
        );
        let report = Report::releasing(facts, key, host, DELETION_FAILED, &why);
        return Err(without_policy(facts, report, reason, &why));
    }
    match host.annotation(HOST_PAUSED_ANNOTATION) {
        None => Ok(()),
        Some(PAUSED_BY_CLAIM) => require_grace(facts, key, host),
        Some(_) => stop(PAUSED, "the administrators of the host paused it"),
    }
}

/// The claim was paused until shortly before its deletion, as during a move that removes its annotations. The pause is recorded on the
/// host, so that a restart only waits once more.
fn require_grace(facts: &Facts, key: &Key, host: &BareMetalHost) -> Decision<()> {
    let is_deleted = facts.claim.metadata.deletion_timestamp.is_some();
    let left = match is_deleted {
        true => left(facts),
        // A claim that exists takes its pause back where it serves a host.
        false => GRACE.to_std().ok(),
    };
    let Some(left) = left else { return Ok(()) };
    let why = "the claim was paused until its deletion, and may be moved to another cluster; its host is released if it is not";
    Err(Step::End(End {
        report: Some(Box::new(Report::releasing(facts, key, host, PAUSED, why))),
        next: Next::waiting_with_recheck(PAUSED, why, left).quiet(),
    }))
}

/// The host without anything of the claim but the bond.
fn stripped(host: &BareMetalHost) -> BareMetalHost {
    let mut stripped = host.clone();
    let spec = &mut stripped.spec;
    // One that its owner never powers off may not be asked for it.
    spec.online = spec.disable_power_off == Some(true);
    (spec.image, spec.custom_deploy) = (None, None);
    (spec.user_data, spec.network_data, spec.meta_data) = (None, None, None);
    if let Some(annotations) = &mut stripped.metadata.annotations {
        annotations.retain(|name, value| name != HOST_PAUSED_ANNOTATION || value != PAUSED_BY_CLAIM);
    }
    reboot::let_go(&mut stripped);
    // What ran is known until the host is deprovisioned.
    let is_running = host.status.provisioning.state == ProvisioningState::Provisioned;
    if let Some(record) = Record::of(host).filter(|record| is_running && !record.deployed) {
        Record {
            deployed: true,
            ..record
        }
        .write(&mut stripped);
    }
    stripped
}

/// Whether nothing of the claim is on the host any more: it was deprovisioned, and cleaned unless its owner forbade that before.
fn is_released(host: &BareMetalHost) -> bool {
    is_clean(host) && held(host).is_none()
}

/// Why a host does not end its deprovisioning by itself.
fn held(host: &BareMetalHost) -> Option<&'static str> {
    let status = &host.status;
    let marks = [DETACHED_ANNOTATION, STATUS_ANNOTATION];
    let is_marked = marks.iter().any(|mark| host.annotation(mark).is_some());
    if is_marked || status.operational_status == OperationalStatus::Detached {
        return Some("it is detached, or has a status to be restored");
    }
    if status.provisioning.state == ProvisioningState::ExternallyProvisioned {
        return Some("it is marked as externally provisioned");
    }
    let mut conditions = status.conditions.iter();
    let is_withheld = conditions.any(|condition| condition.reason == BUDGET_SPENT.as_str());
    is_withheld.then_some("too many hosts were deprovisioned within an hour, so that it waits for a confirmation")
}

fn wait(facts: &Facts, key: &Key, host: &BareMetalHost) -> Step {
    let (reason, why) = match (held(host), host.status.error_message.is_empty()) {
        (Some(why), _) => (
            DELETION_FAILED,
            format!("what was deployed on the host is not removed yet: {why}; ask the administrators of the hosts"),
        ),
        (None, true) => (
            DELETING,
            "what was deployed on the host is removed, and then the host is released".to_owned(),
        ),
        (None, false) => (
            DELETION_FAILED,
            "what was deployed on the host is not removed yet, because the host has an error; ask the administrators of the hosts".to_owned(),
        ),
    };
    end(Some(Report::releasing(facts, key, host, reason, &why)))
}

/// Whether there is a reason to keep the host: something of the claim ran on it. One that was kept before is kept again only after it
/// was used for as long, so that a tenant does not keep what he has no claim for.
fn is_worth_keeping(facts: &Facts, record: &Record) -> bool {
    record.deployed && !(record.reused && facts.now < record.at.get() + KEPT)
}

/// The marks of a machine that is given up.
const UNHEALTHY: [&str; 2] = [UNHEALTHY_ANNOTATION, LEGACY_UNHEALTHY_ANNOTATION];

/// The host without the bond, kept for a while for the next claim of the same reuse.
fn freed(facts: &Facts, host: &BareMetalHost, bond: &Bond) -> BareMetalHost {
    let mut freed = host.clone();
    freed.spec.consumer_ref = None;
    let reuse = reuse_label(&facts.claim, &facts.key.namespace);
    // A host that a controller of machines keeps, or that a Go manager bound, keeps its label.
    let is_own = traced(facts).as_ref() == Some(&Key::of(host));
    let is_worth = matches!(bond, Bond::Own(record) if is_worth_keeping(facts, record));
    // Who replaces a machine that was given up wants another one.
    let is_healthy = !UNHEALTHY.iter().any(|mark| has_annotation(&facts.claim, mark));
    let reuse = reuse.filter(|_| is_own && is_worth && is_healthy && host.label(NODE_REUSE_LABEL).is_none());
    let annotations = freed.metadata.annotations.get_or_insert_default();
    annotations.remove(CLAIM_RECORD_ANNOTATION);
    if let Some(label) = reuse {
        let until = (facts.now + KEPT).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        annotations.insert(CLAIM_KEPT_ANNOTATION.to_owned(), until);
        let labels = freed.metadata.labels.get_or_insert_default();
        labels.insert(NODE_REUSE_LABEL.to_owned(), label);
    }
    freed
}
