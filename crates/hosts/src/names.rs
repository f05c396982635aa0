//! Names visible to users that are not part of the API: reasons of conditions and events, annotations.

/// Annotation that allows deprovisioning a host beyond the budget. Any value.
pub(crate) const CONFIRM_ANNOTATION: &str = "baremetalhost.metal3.io/confirm-deprovision";
pub(crate) use metal3_api::metal3::names::FORMER_INSTANCE_ANNOTATION as FORMER_ANNOTATION;

/// Condition: a change is withheld on purpose. Present only while it holds.
pub(crate) const HELD: &str = "Held";

/// Reasons. Equal to those of the Go manager where it has one.
pub(crate) mod reason {
    use metal3_runtime::reason::Reason;

    macro_rules! reasons {
        ($($(#[$doc:meta])* $name:ident = $word:literal;)+) => {
            $($(#[$doc])* pub(crate) const $name: Reason = Reason::new($word);)+
        };
    }

    reasons! {
        /// Condition: the BMC accepts commands.
        MANAGEABLE = "Manageable";
        /// Condition: the host has no BMC.
        NOT_MANAGED = "NotManaged";
        /// Condition: Ironic verifies the BMC.
        REGISTERING = "Registering";
        /// Condition: the verification failed.
        REGISTRATION_FAILED = "RegistrationFailed";
        /// Condition: the BMC does not respond.
        POWER_FAILURE = "PowerFailure";
        /// Condition: the host may be given an image.
        AVAILABLE = "Available";
        /// Condition: the host may not be given an image.
        NOT_AVAILABLE = "NotAvailable";
        /// Condition: the host runs an image.
        PROVISIONED = "Provisioned";
        /// Condition: the host runs no image.
        NOT_PROVISIONED = "NotProvisioned";
        /// Condition: nothing is in progress.
        NOT_PROGRESSING = "NotProgressing";
        /// Condition: the hardware is inspected.
        INSPECTING = "Inspecting";
        /// Condition: the host is prepared.
        PREPARING = "Preparing";
        /// Condition: an image is deployed.
        PROVISIONING = "Provisioning";
        /// Condition: the image is removed.
        DEPROVISIONING = "Deprovisioning";
        /// Condition: the machine is powered off before deletion.
        POWERING_OFF = "PoweringOffBeforeDelete";
        /// Condition: the host is deleted.
        DELETING = "Deleting";
        /// Condition: an error is recorded.
        ERROR = "Error";
        /// Condition: the host is detached from Ironic.
        DETACHED = "Detached";
        /// Condition: the host is serviced.
        SERVICING = "Servicing";
        /// Condition: the hardware is healthy.
        HEALTHY = "Healthy";
        /// Condition: the BMC reports a warning.
        WARNING = "Warning";
        /// Condition: the BMC reports a critical error.
        CRITICAL = "CriticalError";
        /// Condition: the health is not known.
        UNKNOWN = "Unknown";
        /// Condition: the deprovision budget is spent.
        BUDGET_SPENT = "DeprovisionBudgetSpent";
        /// Condition: the request contradicts another field.
        REFUSED = "RequestRefused";
        /// Condition: Ironic does not accept a port of a running host.
        BOOT_PORT_REFUSED = "BootPortRefused";
        /// Condition: the host is deleted, and an annotation delays it.
        DELETION_DELAYED = "DeletionDelayed";
        /// Condition: Ironic is not reachable, and the deletion needs it.
        IRONIC_UNREACHABLE = "IronicUnreachable";

        // Events.
        DISCOVERED = "Discovered";
        REGISTERED = "Registered";
        ACCESS_VALIDATED = "BMCAccessValidated";
        PROFILE_SET = "ProfileSet";
        INSPECTION_STARTED = "InspectionStarted";
        INSPECTION_SKIPPED = "InspectionSkipped";
        INSPECTION_COMPLETE = "InspectionComplete";
        PROVISIONING_STARTED = "ProvisioningStarted";
        PROVISIONING_COMPLETE = "ProvisioningComplete";
        DEPROVISIONING_STARTED = "DeprovisioningStarted";
        DEPROVISIONING_COMPLETE = "DeprovisioningComplete";
        POWER_ON = "PowerOn";
        POWER_OFF = "PowerOff";
        INVALID_ANNOTATION = "InvalidAnnotationValue";
        CREDENTIAL_ERROR = "BMCCredentialError";
        UPDATE_HARDWARE = "UpdateHardwareDetails";
        /// Event: a node that does not belong to the host stays in Ironic.
        NODE_LEFT = "NodeLeftInIronic";
        REMOVE_ANNOTATION = "RemoveAnnotation";
        /// Event and metric label: registration failed.
        REGISTRATION_ERROR = "RegistrationError";
        /// Event and metric label: registration of a provisioned host failed.
        PROVISIONED_REGISTRATION_ERROR = "ProvisionedRegistrationError";
        /// Event and metric label: inspection failed.
        INSPECTION_ERROR = "InspectionError";
        /// Event and metric label: preparation failed.
        PREPARATION_ERROR = "PreparationError";
        /// Event and metric label: deployment or deprovisioning failed.
        PROVISIONING_ERROR = "ProvisioningError";
        /// Event and metric label: a power change failed.
        POWER_ERROR = "PowerManagementError";
        /// Event and metric label: servicing failed.
        SERVICING_ERROR = "ServicingError";
    }
}
