//! The pause of a claim, which its host gets, so that nothing acts on the machine while claim and host move to another cluster.
//!
//! A pause gives a host nothing and erases nothing: no policy permits it, and it is passed on without one. The status of the host goes
//! with it in an annotation, because a move leaves statuses behind, and without one a provisioned host looks like a new one.

use metal3_api::metal3::names::{
    CLAIM_NO_PAUSE_ANNOTATION, PAUSED_ANNOTATION as HOST_PAUSED_ANNOTATION, PAUSED_BY_CLAIM, STATUS_ANNOTATION,
};
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use metal3_runtime::cache::Key;

use super::super::bond::Bond;
use super::super::facts::{Facts, Read};
use super::report::Report;
use super::{Action, Decision, Step, bound, closed, end, is_paused, metadata};
use crate::names::claim_reason::{PAUSED, POLICY_MISSING};
use crate::plan::object::is_moving;

/// What a user of a paused claim reads.
const WHY: &str = "the claim is paused; remove its annotation cluster.x-k8s.io/paused, or baremetalhost.metal3.io/paused if it has that one";

/// A paused claim: its host is paused, and nothing else is written.
pub(super) fn paused(facts: &Facts) -> Decision {
    withdraw(facts)?;
    if let Some((key, host, Bond::Own(_) | Bond::Untraced(_))) = bound(facts)
        && host.metadata.deletion_timestamp.is_none()
        && !is_moving(host)
    {
        pass_on(facts, (key, host), &Report::of_host(facts, key, host))?;
    }
    Ok(end(Some(Report::unbound(PAUSED, WHY).keeping(&facts.claim))))
}

/// Takes back what the HardwareData got, if no policy permits the host any more: a tenant does not keep it by pausing his claim.
pub(super) fn withdraw(facts: &Facts) -> Decision<()> {
    let Some((key, _, Bond::Own(_))) = bound(facts) else {
        return Ok(());
    };
    match closed(facts, &key.namespace)? {
        Some((POLICY_MISSING, _)) => metadata::remove(facts, key),
        _ => Ok(()),
    }
}

/// Pauses the host of a paused claim, and ends a pause by its claim.
pub(super) fn pass_on(facts: &Facts, (key, host): (&Key, &BareMetalHost), report: &Report) -> Decision<()> {
    let stop = |why: &str| Err(end(Some(report.clone().unsynced(PAUSED, why))));
    let is_paused = is_paused(&facts.claim);
    let may_pause = host.annotation(CLAIM_NO_PAUSE_ANNOTATION).is_none();
    let mut changed = host.clone();
    match (is_paused && may_pause, host.annotation(HOST_PAUSED_ANNOTATION)) {
        (false, None) if is_paused => {
            return stop("the claim is paused, and the administrators of the host do not let claims pause it");
        }
        (false, None) => return Ok(()),
        (true, Some(_)) => return stop(WHY),
        (true, None) => {
            changed.save_status();
            let annotations = changed.metadata.annotations.get_or_insert_default();
            annotations.insert(HOST_PAUSED_ANNOTATION.to_owned(), PAUSED_BY_CLAIM.to_owned());
        }
        (false, Some(PAUSED_BY_CLAIM)) if has_lost_status(host) => {
            return stop(
                "the host was moved to this cluster without its status, so that it looks like a new one and stays paused; the administrators of \
                 the host have to restore its annotation baremetalhost.metal3.io/status",
            );
        }
        (false, Some(PAUSED_BY_CLAIM)) => {
            if let Some(annotations) = &mut changed.metadata.annotations {
                annotations.remove(HOST_PAUSED_ANNOTATION);
            }
        }
        (false, Some(_)) => return stop("the administrators of the host paused it"),
    }
    require_live(facts, key)?;
    Err(Step::Do(Action::Host(Box::new(changed), "pass the pause on")))
}

/// Whether its machine would be registered, cleaned and deployed as a new one although it runs something.
fn has_lost_status(host: &BareMetalHost) -> bool {
    let is_asked = host.spec.image.is_some() || host.spec.custom_deploy.is_some();
    host.status.provisioning.state == ProvisioningState::None
        && host.annotation(STATUS_ANNOTATION).is_none()
        && is_asked
}

/// Requires live views of claim and host.
fn require_live(facts: &Facts, host: &Key) -> Decision<()> {
    if !facts.fresh.claim {
        return Err(Step::Read(Read::Claim));
    }
    if !facts.fresh.hosts.contains(host) {
        return Err(Step::Read(Read::Host(host.clone())));
    }
    Ok(())
}
