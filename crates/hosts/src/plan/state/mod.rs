//! The decision of each state, one file per state with more than a step; [`graph`] defines the transitions.

mod available;
mod bios;
mod cleaning;
mod deployed;
mod deprovisioning;
pub(in crate::plan) mod firmware;
mod firmware_order;
pub mod graph;
mod host_ports;
mod inspecting;
mod powering_off;
mod preparing;
mod provisioned;
mod provisioning;
mod register;
mod registering;
mod registry_login;
mod service;
mod shared;
mod volumes;

use metal3_api::metal3::v1alpha1::{ErrorType, OperationalStatus, ProvisioningState as State};

use crate::action::{Action, Count};
use crate::facts::{NodeFreshness, RefusalClass, Refused};
use crate::names::reason;
use crate::node::deployment::method;
use crate::plan::error::{Failure, REJECTED, kind_in};
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld};
use crate::plan::safety::is_still_withheld;
use crate::plan::{deletion, power, status, wait};

pub(crate) use host_ports::is_port_left_out;

pub(crate) fn run(planner: &mut Planner<'_>) -> PlanResult {
    check_refused(planner)?;
    set_operational_status(planner);
    begin_attempts_again(planner);
    match planner.state() {
        // differs: `host-restored-deletion`. The Go manager goes on with a deletion that was not ordered.
        state @ (State::PoweringOffBeforeDelete | State::Deleting)
            if !planner.is_deleting() && planner.rules.keep_saved_status() =>
        {
            Err(Decision::reject(
                ErrorType::Registration,
                format!(
                    "status.provisioning.state is {:?}, a state of a deletion, and this host is not deleted; delete it, \
                     or write the state before the deletion into its status",
                    state.to_string()
                ),
            ))
        }
        State::None | State::Unmanaged => begin(planner),
        State::Registering => registering::run(planner),
        State::MatchProfile => Ok(Decision::ChangeState(graph::Trigger::Inspected)),
        State::Inspecting => inspecting::run(planner),
        State::Preparing => preparing::run(planner),
        State::Available | State::Ready => available::run(planner),
        State::Provisioning => provisioning::run(planner),
        State::Provisioned => provisioned::run(planner),
        State::ExternallyProvisioned => provisioned::run_external(planner),
        State::Deprovisioning => deprovisioning::run(planner),
        State::PoweringOffBeforeDelete => powering_off::run(planner),
        State::Deleting => deletion::finish(planner),
        State::Other(text) => Err(Decision::reject(
            ErrorType::Registration,
            format!(
                "status.provisioning.state is {text:?}, which this version does not support; the host is not \
                 changed. Return to the version that wrote it"
            ),
        )),
    }
}

/// The Go manager sets it at the end of the registration, and may have been replaced before.
fn set_operational_status(planner: &mut Planner<'_>) {
    use OperationalStatus::{Discovered, Ok, Unset};
    let is_managed = !matches!(planner.state(), State::None | State::Unmanaged);
    let status = &mut planner.draft.status.operational_status;
    if is_managed && matches!(status, Unset | Discovered) {
        *status = Ok;
    }
}

/// Whatever an edit of a host with a deploy step changes: no field records which step the counted failures are of.
fn begin_attempts_again(planner: &mut Planner<'_>) {
    let asks_for_step = method(planner.host().spec.custom_deploy.as_ref()).is_some();
    if asks_for_step && planner.has_new_generation() {
        planner.draft.status.provisioning_fail_count = 0;
    }
}

/// New hosts, and hosts without a BMC.
fn begin(planner: &mut Planner<'_>) -> PlanResult {
    if !planner.host().is_unmanaged() {
        planner.draft.status.operational_status = OperationalStatus::Ok;
        planner.count(Count::One("metal3_host_registration_required_total"));
        return Ok(Decision::ChangeState(graph::Trigger::Managed));
    }
    if *planner.state() == State::Unmanaged {
        return Ok(Decision::Wait(wait::on_user("the host has no BMC")));
    }
    planner.draft.status.operational_status = OperationalStatus::Discovered;
    planner.record_event(reason::DISCOVERED, "the host has no BMC; set spec.bmc to manage it");
    planner.count(Count::One("metal3_host_unmanaged_total"));
    Ok(Decision::ChangeState(graph::Trigger::Unmanaged))
}

/// Applies what is known on entering a state, so that it is written together with the state and watchers of the state
/// see a complete host.
pub(crate) fn on_enter(planner: &mut Planner<'_>, at: &State) {
    match at {
        State::Available => available::on_enter(planner),
        State::Provisioned => {}
        _ => return,
    }
    if let Some((node, freshness)) = planner.facts.own_node()
        && freshness != NodeFreshness::Stale
    {
        power::record_power_state(planner, node);
    }
}

/// Whether a rejected request is a failure of the host.
pub(crate) fn is_failure(refused: &Refused) -> bool {
    let is_soft_unsupported = refused.class == RefusalClass::Invalid && power::is_soft(refused.request);
    refused.class != RefusalClass::Transient && !is_soft_unsupported
}

/// Reports the port that is left out, unless the budget withholds the host: only that condition records it.
fn report_left_out_port(planner: &mut Planner<'_>, refused: &Refused) {
    if is_still_withheld(planner) {
        return;
    }
    let message = format!(
        "Ironic does not accept a port of this host ({}), which its running machine does not need; remove that address \
         from the other node in Ironic, and do not delete the host for it, which deprovisions its machine; the port is requested \
         again about every hour",
        refused.message
    );
    let reason = reason::BOOT_PORT_REFUSED;
    planner.withheld.get_or_insert(Withheld { reason, message });
}

/// Whether Ironic worked with the node, which was the reason, and does not any more.
fn is_lock_ended(planner: &Planner<'_>, refused: &Refused) -> bool {
    let is_free = matches!(planner.facts.own_node(), Some((node, freshness))
        if freshness >= NodeFreshness::Current && node.reservation.is_none());
    refused.is_lock && !refused.is_fresh && is_free
}

/// Records a rejected request. It is repeated after its backoff, or when the host has changed.
pub(crate) fn check_refused(planner: &mut Planner<'_>) -> PlanResult<()> {
    let Some(refused) = planner.facts.refused.filter(|refused| is_failure(refused)) else {
        return Ok(());
    };
    if refused.request == service::SERVICE {
        // The system is started without it.
        return Ok(());
    }
    if is_port_left_out(planner.host(), refused) {
        report_left_out_port(planner, refused);
        return Ok(());
    }
    if !refused.is_fresh && planner.host().status.operational_status == OperationalStatus::Delayed {
        // The retry is due and only waits for a slot: the error was cleared for it.
        return Ok(());
    }
    // differs: `host-refusals-reported`. The Go manager repeats the request without a word.
    let message = format!("{REJECTED}{}): {}", refused.request, refused.message);
    let failure = Failure::retryable(kind_in(planner.state()), message);
    // A power-off before the deletion comes after the cleaning: it has its attempts, and a lock ends.
    let is_power_off = *planner.state() == State::PoweringOffBeforeDelete;
    let is_last = is_power_off && !refused.is_lock;
    let is_removed = (planner.is_deleting() || *planner.state() == State::Deprovisioning) && !is_last;
    let failure = match refused.class {
        // A repair of the access does not wake every host: none waits for hours because of it.
        RefusalClass::Access => failure.uncounted(),
        // It works with other hosts, and does not say when it has ended.
        RefusalClass::Busy if !is_power_off => failure.uncounted(),
        // Repaired, Ironic cleans the disks; attempts that end before would skip that.
        RefusalClass::ServerError if is_removed => failure.uncounted(),
        _ => failure,
    };
    if refused.is_over || is_lock_ended(planner, refused) {
        if failure.is_recorded_in(&planner.host().status) {
            status::clear(&mut planner.draft.status);
        }
        planner.add(Action::EndRefusal);
        return Ok(());
    }
    if refused.is_fresh {
        // Attempted in this reconcile, whatever is recorded of earlier attempts.
        return Err(Decision::Fail(failure));
    }
    planner.retry(&failure)?;
    // A rejection of the retry is recorded again. Without one, the request is not needed any more.
    planner.add(Action::EndRefusal);
    Ok(())
}
