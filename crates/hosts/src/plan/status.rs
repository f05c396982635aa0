//! Changes of the status that several decisions share: errors, operations, states.

use std::time::Duration;

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{
    BareMetalHostStatus, BootMode, CredentialsStatus, ErrorType, OperationHistory, OperationMetric, OperationalStatus,
    ProvisioningState,
};
use metal3_runtime::work::Next;

use crate::action::Count;
use crate::plan::error::{Failure, Remedy, is_of_inoperable_node};
use crate::plan::wait;

pub(crate) fn record_failure(status: &mut BareMetalHostStatus, failure: &Failure) {
    status.operational_status = OperationalStatus::Error;
    status.error_type = Some(failure.kind);
    status.error_message.clone_from(&failure.message);
    let is_counted = match &failure.remedy {
        Remedy::Retry => true,
        Remedy::RetryUncounted => false,
        // Nothing was attempted. The next failure must not wait longer for it.
        Remedy::WaitFor(_) => !is_of_inoperable_node(&failure.message),
    };
    if is_counted {
        status.error_count = status.error_count.saturating_add(1);
    }
}

pub(crate) fn restore_error(status: &mut BareMetalHostStatus, recorded: &BareMetalHostStatus) {
    status.operational_status = recorded.operational_status;
    status.error_type = recorded.error_type;
    status.error_message.clone_from(&recorded.error_message);
    status.error_count = recorded.error_count;
}

/// How long a new version of the credentials Secret with unchanged credentials waits for another status write. Labels
/// often change together with the host.
const LOGIN_WRITE_DELAY: Duration = Duration::from_secs(10);

/// Records the version of the Secret with unchanged credentials: with another change of the status, or alone after a
/// delay. Without the record, the next leader would send the credentials again. Returns what the host waits for.
pub(crate) fn record_login_version(
    status: &mut BareMetalHostStatus,
    recorded: &BareMetalHostStatus,
    (login, known): &(CredentialsStatus, Duration),
    next: Next,
) -> Next {
    let left = LOGIN_WRITE_DELAY.saturating_sub(*known);
    if status == recorded && next != Next::Done {
        return next;
    }
    if status == recorded && !left.is_zero() {
        return wait::for_time(left, "the version of the BMC's Secret is recorded later");
    }
    if status.good_credentials == status.tried_credentials {
        status.good_credentials.clone_from(login);
    }
    status.tried_credentials.clone_from(login);
    next
}

/// Clears the error, not the error count.
pub(crate) fn clear(status: &mut BareMetalHostStatus) {
    if status.error_type.is_some() || status.operational_status == OperationalStatus::Error {
        status.operational_status = OperationalStatus::Ok;
    }
    status.error_type = None;
    status.error_message.clear();
}

pub(crate) fn clear_kind(status: &mut BareMetalHostStatus, kind: ErrorType) {
    if status.error_type == Some(kind) {
        clear(status);
    }
}

/// Records a service, unless an error is shown.
pub(crate) fn begin_service(status: &mut BareMetalHostStatus) {
    if status.operational_status == OperationalStatus::Ok {
        status.operational_status = OperationalStatus::Servicing;
    }
}

/// Ends the record of a service.
pub(crate) fn end_service(status: &mut BareMetalHostStatus) {
    clear_kind(status, ErrorType::Servicing);
    if status.operational_status == OperationalStatus::Servicing {
        status.operational_status = OperationalStatus::Ok;
    }
}

/// The host does not wait for a slot any more.
pub(crate) fn end_delay(status: &mut BareMetalHostStatus) {
    if status.operational_status == OperationalStatus::Delayed {
        status.operational_status = if status.error_type.is_some() {
            OperationalStatus::Error
        } else {
            OperationalStatus::Ok
        };
    }
}

/// Enters a state: ends the operation of the old state and starts the one of the new. Returns the metrics to count.
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
