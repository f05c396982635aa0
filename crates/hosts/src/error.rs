//! What can go wrong with a host, as its status tells it.

use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, ErrorType, ProvisioningState};
use metal3_runtime::reason::Reason;

use crate::action::Wait;
use crate::names::reason;

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What, for programs.
    pub(crate) kind: ErrorType,
    /// What and how it is cured, for people. No secrets.
    pub(crate) message: String,
    /// Whether and when it is tried again.
    pub(crate) remedy: Remedy,
    /// What the event is called, where it is not the error's own name.
    pub(crate) event: Option<Reason>,
}

/// What may end a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Another attempt, after a while. Attempts are counted.
    Attempt,
    /// Something else has to change first; nothing is tried meanwhile, and nothing counted.
    Change(Wait),
}

impl Failure {
    /// An attempt that failed.
    pub(crate) fn attempt(kind: ErrorType, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            remedy: Remedy::Attempt,
            event: None,
        }
    }

    /// Something that only a change of the host cures.
    pub(crate) fn standing(kind: ErrorType, message: impl Into<String>) -> Self {
        Self::until(kind, message, Wait::OnUser("the host has to be changed"))
    }

    /// Something that is cured by what is waited for.
    pub(crate) fn until(kind: ErrorType, message: impl Into<String>, wait: Wait) -> Self {
        Self {
            kind,
            message: message.into(),
            remedy: Remedy::Change(wait),
            event: None,
        }
    }

    /// The same under another event.
    pub(crate) fn told_as(self, event: Reason) -> Self {
        Self {
            event: Some(event),
            ..self
        }
    }

    /// Whether the status tells just this.
    pub(crate) fn is_told(&self, status: &BareMetalHostStatus) -> bool {
        status.error_type == Some(self.kind) && status.error_message == self.message
    }
}

/// Event and label of an error.
pub(crate) const fn word(kind: ErrorType) -> Reason {
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

/// The error that a failure in a state is.
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
