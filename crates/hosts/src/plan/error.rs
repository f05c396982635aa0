//! Failures of a host, as its status records them.

use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, ErrorType, ProvisioningState};
use metal3_domain::uri::public_text;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

use crate::names::reason;
use crate::plan::{backoff, wait};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorType,
    /// Cause and remedy, without secrets: the logins of URLs are hidden.
    // differs: `host-login-hidden`. The Go manager shows them in the status and in Events.
    pub(crate) message: String,
    /// Whether and when the operation is retried.
    pub(crate) remedy: Remedy,
    /// The event reason, if it differs from the one of the error type.
    pub(crate) event: Option<Reason>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A retry after a backoff. Attempts are counted.
    Retry,
    /// The same, and no attempt: the cause is not the host.
    RetryUncounted,
    /// Another change; nothing is retried or counted until then.
    WaitFor(Next),
}

impl Failure {
    pub(crate) fn retryable(kind: ErrorType, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: public_text(&message.into()),
            remedy: Remedy::Retry,
            event: None,
        }
    }

    /// The same failure, not counted as an attempt.
    pub(crate) fn uncounted(self) -> Self {
        Self {
            remedy: Remedy::RetryUncounted,
            ..self
        }
    }

    /// A failure that only a change of the host resolves.
    pub(crate) fn until_host_changes(kind: ErrorType, message: impl Into<String>) -> Self {
        Self::until(kind, message, wait::on_user("the host must be changed"))
    }

    /// A failure that ends with the given wait.
    pub(crate) fn until(kind: ErrorType, message: impl Into<String>, next: Next) -> Self {
        Self {
            kind,
            message: public_text(&message.into()),
            remedy: Remedy::WaitFor(next),
            event: None,
        }
    }

    pub(crate) fn with_event(self, event: Reason) -> Self {
        Self {
            event: Some(event),
            ..self
        }
    }

    /// The number of failures that determines its backoff.
    pub(crate) const fn backoff_step(&self, counted: i64) -> i64 {
        match &self.remedy {
            // No number says how long it lasts, and those of other failures would delay the host for hours.
            Remedy::RetryUncounted => backoff::UNCOUNTED,
            Remedy::Retry | Remedy::WaitFor(_) => counted,
        }
    }

    pub(crate) fn is_recorded_in(&self, status: &BareMetalHostStatus) -> bool {
        status.error_type == Some(self.kind) && status.error_message == self.message
    }
}

/// The beginnings of the messages about a node that Ironic does not operate.
pub(crate) use metal3_api::metal3::names::host_error::IN_MAINTENANCE as MAINTENANCE;
pub(crate) const FAULT: &str = "Ironic reports a fault of the node (";
pub(crate) const POWER_FAILURE: &str = "Ironic cannot reach the BMC (power failure)";
/// The beginnings of the messages about a request that Ironic rejects, and about a node that is not changed.
pub(crate) const REJECTED: &str = "Ironic rejected the request (";
pub(crate) const IN_IRONIC: &str = "in Ironic the node ";

/// The beginning of the message about a login that the BMC refuses.
pub(crate) const LOGIN_REFUSED: &str = "the BMC refuses the login of ";

/// Whether the message is about a node that Ironic does not operate, and not about an operation that failed.
pub(crate) fn is_of_inoperable_node(message: &str) -> bool {
    [MAINTENANCE, FAULT, POWER_FAILURE]
        .iter()
        .any(|begin| message.starts_with(begin))
}

/// Event reason and metric label of an error.
pub(crate) const fn event_reason(kind: ErrorType) -> Reason {
    match kind {
        ErrorType::ProvisionedRegistration => reason::PROVISIONED_REGISTRATION_ERROR,
        ErrorType::Registration => reason::REGISTRATION_ERROR,
        ErrorType::Inspection => reason::INSPECTION_ERROR,
        ErrorType::Preparation => reason::PREPARATION_ERROR,
        ErrorType::Provisioning => reason::PROVISIONING_ERROR,
        ErrorType::PowerManagement => reason::POWER_ERROR,
        ErrorType::Servicing => reason::SERVICING_ERROR,
    }
}

/// The error type of a failure in a state.
pub(crate) const fn kind_in(state: &ProvisioningState) -> ErrorType {
    match state {
        ProvisioningState::None
        | ProvisioningState::Unmanaged
        | ProvisioningState::Registering
        | ProvisioningState::Deleting
        | ProvisioningState::Other(_) => ErrorType::Registration,
        ProvisioningState::Inspecting => ErrorType::Inspection,
        ProvisioningState::MatchProfile
        | ProvisioningState::Preparing
        | ProvisioningState::Available
        | ProvisioningState::Ready => ErrorType::Preparation,
        ProvisioningState::Provisioning | ProvisioningState::Deprovisioning => ErrorType::Provisioning,
        ProvisioningState::Provisioned | ProvisioningState::ExternallyProvisioned => ErrorType::ProvisionedRegistration,
        ProvisioningState::PoweringOffBeforeDelete => ErrorType::PowerManagement,
    }
}
