//! Changes of a host's status that several decisions share: errors, operations, states.

use std::time::Duration;

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{
    BareMetalHostStatus, BootMode, CredentialsStatus, ErrorType, OperationHistory, OperationMetric, OperationalStatus,
    ProvisioningState,
};

use crate::action::{Count, Wait};
use crate::error::Failure;

/// Records a failure, and counts it.
pub(crate) fn fail(status: &mut BareMetalHostStatus, failure: &Failure) {
    status.operational_status = OperationalStatus::Error;
    status.error_type = Some(failure.kind);
    status.error_message.clone_from(&failure.message);
    status.error_count = status.error_count.saturating_add(1);
}

/// Leaves the error as it was told.
pub(crate) fn keep_error(status: &mut BareMetalHostStatus, told: &BareMetalHostStatus) {
    status.operational_status = told.operational_status;
    status.error_type = told.error_type;
    status.error_message.clone_from(&told.error_message);
    status.error_count = told.error_count;
}

/// How long a host rests before another version of the BMC's Secret, with the same login, is a reason to write. Labels come
/// and go with machines, and most often something else is written soon.
const LOGIN_WAITS: Duration = Duration::from_secs(10);

/// Names the version of the Secret that holds the login, which is known for so long: with what changes anyway, or alone
/// where the host has rested for a while. Who leads next has read neither version, and would order Ironic to take the login
/// again. Gives what the host waits for then.
pub(crate) fn settle_login(
    status: &mut BareMetalHostStatus,
    told: &BareMetalHostStatus,
    (login, known): &(CredentialsStatus, Duration),
    wait: Wait,
) -> Wait {
    let left = LOGIN_WAITS.saturating_sub(*known);
    if status == told && wait != Wait::Settled {
        return wait;
    }
    if status == told && !left.is_zero() {
        return Wait::After(left, "the version of the BMC's Secret is to be recorded");
    }
    if status.good_credentials == status.tried_credentials {
        status.good_credentials.clone_from(login);
    }
    status.tried_credentials.clone_from(login);
    wait
}

/// Forgets the error, not how many there were.
pub(crate) fn clear(status: &mut BareMetalHostStatus) {
    if status.error_type.is_some() || status.operational_status == OperationalStatus::Error {
        status.operational_status = OperationalStatus::Ok;
    }
    status.error_type = None;
    status.error_message.clear();
}

/// Forgets the error if it is of that kind.
pub(crate) fn clear_of(status: &mut BareMetalHostStatus, kind: ErrorType) {
    if status.error_type == Some(kind) {
        clear(status);
    }
}

/// The host does not wait for its turn any more.
pub(crate) fn end_delay(status: &mut BareMetalHostStatus) {
    if status.operational_status == OperationalStatus::Delayed {
        status.operational_status = if status.error_type.is_some() {
            OperationalStatus::Error
        } else {
            OperationalStatus::Ok
        };
    }
}

/// Enters a state: closes the operation of the old one and opens that of the new. Answers with what to count.
pub(crate) fn enter(
    status: &mut BareMetalHostStatus,
    to: &ProvisioningState,
    boot_mode: BootMode,
    now: Time,
) -> Vec<Count> {
    let from = std::mem::replace(&mut status.provisioning.state, to.clone());
    let mut counts = vec![Count::StateChange {
        from: from.to_string(),
        to: to.to_string(),
    }];
    if let Some((name, metric)) = operation(&mut status.operation_history, &from)
        && metric.end.is_none()
    {
        metric.end = Some(now);
        counts.extend(metric.start.map(|start| Count::Duration(name, between(start, now))));
    }
    if let Some((_, metric)) = operation(&mut status.operation_history, to)
        && (metric.start.is_none() || metric.end.is_some())
    {
        *metric = OperationMetric {
            start: Some(now),
            end: None,
        };
    }
    if matches!(
        to,
        ProvisioningState::Registering | ProvisioningState::Inspecting | ProvisioningState::Provisioning
    ) {
        status.provisioning.boot_mode = Some(boot_mode);
    }
    counts
}

fn between(start: Time, end: Time) -> Duration {
    (end.get() - start.get()).to_std().unwrap_or_default()
}

/// The operation that a state is, and its histogram.
fn operation<'a>(
    history: &'a mut OperationHistory,
    state: &ProvisioningState,
) -> Option<(&'static str, &'a mut OperationMetric)> {
    match state {
        ProvisioningState::Registering => Some(("metal3_operation_register_duration_seconds", &mut history.register)),
        ProvisioningState::Inspecting => Some(("metal3_operation_inspect_duration_seconds", &mut history.inspect)),
        ProvisioningState::Provisioning => {
            Some(("metal3_operation_provision_duration_seconds", &mut history.provision))
        }
        ProvisioningState::Deprovisioning => Some((
            "metal3_operation_deprovision_duration_seconds",
            &mut history.deprovision,
        )),
        _ => None,
    }
}
