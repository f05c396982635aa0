//! Reports that Ironic serves no request, in the condition `Held` of each host that waits for it.
//!
//! A host that waits for nothing has no such condition: an outage costs no write of an idle fleet. It is written once when the
//! outage is reported and once when it has ended: the message of the first report stays, whatever each attempt says. Only what
//! the `Ironic` resource says is written when it changes: who looks at the host would see what was cured long ago.

use metal3_api::meta::{Condition, ConditionStatus};
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState as State};
use metal3_domain::uri::public_text;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::reason::Reason;

use crate::facts::{Outage, OutageKind, RefusalClass};
use crate::names::{HELD, reason};
use crate::node::Deployment;
use crate::plan::conditions;
use crate::plan::firmware_record::is_firmware_still_unknown;
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld, document};
use crate::plan::safety::{is_cancelled, is_still_withheld};
use crate::plan::wait;

/// What ends the message about a host that is not deleted.
const ADVICE: &str = ", and the next step of this host needs it. Restore it; then the host continues without help";

/// Reports an outage, and waits for its end once an attempt of this reconcile failed.
pub(crate) fn report(planner: &mut Planner<'_>) -> PlanResult<()> {
    let Some(outage) = planner
        .facts
        .outage
        .filter(|_| !planner.is_deleting() && is_waiting(planner.host()))
    else {
        return Ok(());
    };
    // differs: `host-outage-reported`. The Go manager writes nothing while Ironic does not respond.
    // What a user has to do first stays visible.
    if !is_still_withheld(planner) && !is_firmware_still_unknown(planner) {
        planner.withheld = Some(withheld(planner, outage, ADVICE));
    }
    let refused = planner.facts.refused;
    if refused.is_some_and(|refused| refused.is_fresh && refused.class == RefusalClass::Transient) {
        return Err(Decision::Wait(wait::on_unreachable_ironic()));
    }
    Ok(())
}

/// The report of an outage; that which the host has already, if it says the same.
pub(crate) fn withheld(planner: &Planner<'_>, outage: &Outage, advice: &str) -> Withheld {
    let ironic = match &outage.ironic {
        Some(name) => format!("Ironic {name:?}"),
        None => "Ironic".to_owned(),
    };
    let (reason, fact) = match outage.kind {
        OutageKind::NotReady => {
            return Withheld {
                reason: reason::IRONIC_UNREACHABLE,
                message: public_text(&format!("{}{advice}", outage.reason)),
            };
        }
        OutageKind::Unreachable => (reason::IRONIC_UNREACHABLE, format!("{ironic} is unreachable")),
        OutageKind::Login => (
            reason::IRONIC_LOGIN_REFUSED,
            format!("{ironic} refuses the login of this program"),
        ),
        OutageKind::Certificate => (
            reason::IRONIC_NOT_TRUSTED,
            format!("this program and {ironic} do not trust each other's certificate"),
        ),
    };
    let is_same = |held: &&Condition| {
        held.reason == reason.as_str() && held.message.starts_with(&fact) && held.message.ends_with(advice)
    };
    let recorded = held(planner.host()).filter(is_same);
    let message = recorded.map_or_else(
        || public_text(&format!("{fact} since {} ({}){advice}", outage.since, outage.reason)),
        |held| held.message.clone(),
    );
    Withheld { reason, message }
}

/// The change of the condition for a plan that writes nothing else, as during a backoff: the times of the status stay, from which
/// the backoff counts.
pub(crate) fn change(planner: &Planner<'_>) -> Option<MergePatch> {
    if !planner.may_report {
        return None;
    }
    let is_reported = |reason: &str| REASONS.iter().any(|one| one.as_str() == reason);
    let recorded = held(planner.host()).filter(|held| is_reported(&held.reason));
    let withheld = planner.withheld.as_ref().filter(|one| is_reported(one.reason.as_str()));
    if recorded.map(|held| (held.reason.as_str(), held.message.as_str()))
        == withheld.map(|one| (one.reason.as_str(), one.message.as_str()))
    {
        return None;
    }
    let mut host = planner.host().clone();
    let generation = host.metadata.generation;
    match withheld {
        Some(withheld) => conditions::hold(&mut host.status, withheld, generation, planner.facts.now),
        None => host.status.conditions.retain(|condition| condition.type_ != HELD),
    }
    Changes::between(&document(planner.host()), &document(&host)).status
}

/// The reasons of an outage, and of a label that is refused.
const REASONS: [Reason; 4] = [
    reason::IRONIC_CHANGE_REFUSED,
    reason::IRONIC_UNREACHABLE,
    reason::IRONIC_LOGIN_REFUSED,
    reason::IRONIC_NOT_TRUSTED,
];

fn held(host: &BareMetalHost) -> Option<&Condition> {
    let mut conditions = host.status.conditions.iter();
    conditions.find(|condition| condition.type_ == HELD && condition.status == ConditionStatus::True)
}

/// Whether the state is an operation of Ironic.
pub(crate) const fn is_in_progress(state: &State) -> bool {
    match state {
        State::Registering
        | State::MatchProfile
        | State::Inspecting
        | State::Preparing
        | State::Provisioning
        | State::Deprovisioning
        | State::PoweringOffBeforeDelete
        | State::Deleting => true,
        State::None
        | State::Unmanaged
        | State::Available
        | State::Ready
        | State::Provisioned
        | State::ExternallyProvisioned
        | State::Other(_) => false,
    }
}

/// Whether the next step of the host needs Ironic.
fn is_waiting(host: &BareMetalHost) -> bool {
    let is_power_wrong = host.spec.online != host.status.powered_on;
    match &host.status.provisioning.state {
        State::Available | State::Ready => is_power_wrong || (host.spec.online && !Deployment::asked(host).is_none()),
        State::Provisioned => is_power_wrong || is_cancelled(host),
        State::ExternallyProvisioned => is_power_wrong,
        state => is_in_progress(state),
    }
}
