//! The restore of a saved status, after a move between clusters. It comes before everything else: without its status a
//! provisioned host looks like a new one.

use metal3_api::metal3::names::STATUS_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, ErrorType, ProvisioningState as State};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use crate::facts::Read;
use crate::names::FORMER_ANNOTATION;
use crate::plan::object::{has_finalizer, remove_annotation};
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::state::check_refused;
use crate::plan::{deletion, ownership};

/// Restores a saved status into a host without one, then removes the annotation.
pub(crate) fn restore(planner: &mut Planner<'_>) -> PlanResult<()> {
    let Some(text) = planner.host().saved_status() else {
        return Ok(());
    };
    if !planner.host().takes_saved_status() {
        remove_annotation(planner, STATUS_ANNOTATION);
        return Err(Decision::Wait(Next::Requeue));
    }
    let mut status = match serde_json::from_str::<BareMetalHostStatus>(text) {
        Ok(status) => status,
        Err(error) if planner.rules.keep_saved_status() => {
            // Without its status a provisioned host looks like a new one.
            return Err(Decision::reject(
                ErrorType::Registration,
                format!(
                    "the annotation {STATUS_ANNOTATION} is not a valid host status: {error}; correct it, or remove \
                     it to register the host as a new one"
                ),
            ));
        }
        Err(_) => return Ok(()),
    };
    if status.provisioning.state == State::None {
        // Saved before registration: nothing to restore, and a restored status must differ from none.
        remove_annotation(planner, STATUS_ANNOTATION);
        return Err(Decision::Wait(Next::Requeue));
    }
    let is_of_deletion = matches!(
        status.provisioning.state,
        State::PoweringOffBeforeDelete | State::Deleting
    );
    if is_of_deletion && !planner.is_deleting() && planner.rules.keep_saved_status() {
        // differs: `host-restored-deletion`. The Go manager powers the machine off and deletes its node.
        return Err(Decision::reject(
            ErrorType::Registration,
            format!(
                "the annotation {STATUS_ANNOTATION} has the state {:?} of a deletion, and this host is not deleted; write \
                 the state before the deletion into it, or remove it to register the host as a new one",
                status.provisioning.state.to_string()
            ),
        ));
    }
    match planner.facts.hardware_data {
        Observed::Unknown(_) => return Err(Decision::read(Read::HardwareData)),
        Observed::Present(data) if data.spec.hardware.is_some() => status.hardware.clone_from(&data.spec.hardware),
        Observed::Present(_) | Observed::Absent => {}
    }
    if planner.is_deleting() && has_finalizer(planner.host()) {
        deletion::require_ironic(planner)?;
    }
    let refused = planner.facts.refused;
    if refused.is_some_and(|refused| refused.request == "read node") {
        check_refused(planner)?;
    }
    if let Some(instance) = ownership::former_instance(planner, &status)? {
        // differs: `host-moved-instance`. The Go manager does not check which instance a node serves before it
        // deprovisions.
        let annotations = planner.draft.metadata.annotations.get_or_insert_default();
        annotations.insert(FORMER_ANNOTATION.to_owned(), instance);
    }
    planner.draft.status = status;
    Err(Decision::Wait(Next::Requeue))
}
