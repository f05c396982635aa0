//! Every word that users see and that is not the API's: reasons of conditions and events, annotations of our own.

/// Annotation that lets a host be torn down although the budget is spent. Any value.
pub const CONFIRM_ANNOTATION: &str = "baremetalhost.metal3.io/confirm-deprovision";
/// Annotation that names the instance that the node of a host serves since before the host moved between clusters: the
/// UID that the host had there.
pub const FORMER_ANNOTATION: &str = "baremetalhost.metal3.io/former-instance";
/// Condition of ours: something is not done on purpose. Only there while it holds.
pub const HELD: &str = "Held";

/// Reasons, each a word for programs. The Go manager's where it has one.
pub mod reason {
    use metal3_runtime::reason::Reason;

    macro_rules! reasons {
        ($($(#[$doc:meta])* $name:ident = $word:literal;)+) => {
            $($(#[$doc])* pub const $name: Reason = Reason::new($word);)+
        };
    }

    reasons! {
        /// Condition: it obeys.
        MANAGEABLE = "Manageable";
        /// Condition: no BMC is given.
        NOT_MANAGED = "NotManaged";
        /// Condition: its BMC is tried.
        REGISTERING = "Registering";
        /// Condition: its BMC was tried in vain.
        REGISTRATION_FAILED = "RegistrationFailed";
        /// Condition: the BMC does not answer.
        POWER_FAILURE = "PowerFailure";
        /// Condition: it may be chosen.
        AVAILABLE = "Available";
        /// Condition: it may not.
        NOT_AVAILABLE = "NotAvailable";
        /// Condition: it runs an image.
        PROVISIONED = "Provisioned";
        /// Condition: it does not.
        NOT_PROVISIONED = "NotProvisioned";
        /// Condition: nothing is under way.
        NOT_PROGRESSING = "NotProgressing";
        /// Condition: hardware is looked at.
        INSPECTING = "Inspecting";
        /// Condition: it is set up.
        PREPARING = "Preparing";
        /// Condition: an image is deployed.
        PROVISIONING = "Provisioning";
        /// Condition: what ran is removed.
        DEPROVISIONING = "Deprovisioning";
        /// Condition: it is switched off to be let go.
        POWERING_OFF = "PoweringOffBeforeDelete";
        /// Condition: it is let go.
        DELETING = "Deleting";
        /// Condition: something is wrong.
        ERROR = "Error";
        /// Condition: it is not in Ironic, as asked.
        DETACHED = "Detached";
        /// Condition: changed while in use.
        SERVICING = "Servicing";
        /// Condition: the hardware is well.
        HEALTHY = "Healthy";
        /// Condition: the hardware warns.
        WARNING = "Warning";
        /// Condition: the hardware fails.
        CRITICAL = "CriticalError";
        /// Condition: nobody can say.
        UNKNOWN = "Unknown";
        /// Condition: too many hosts were torn down in a short time.
        BUDGET_SPENT = "DeprovisionBudgetSpent";
        /// Condition: what is asked for cannot be done.
        REFUSED = "RequestRefused";
        /// Condition: Ironic is not reached, and the host cannot go without.
        IRONIC_UNREACHABLE = "IronicUnreachable";

        /// Event.
        DISCOVERED = "Discovered";
        /// Event.
        REGISTERED = "Registered";
        /// Event.
        ACCESS_VALIDATED = "BMCAccessValidated";
        /// Event.
        PROFILE_SET = "ProfileSet";
        /// Event.
        INSPECTION_STARTED = "InspectionStarted";
        /// Event.
        INSPECTION_SKIPPED = "InspectionSkipped";
        /// Event.
        INSPECTION_COMPLETE = "InspectionComplete";
        /// Event.
        PROVISIONING_STARTED = "ProvisioningStarted";
        /// Event.
        PROVISIONING_COMPLETE = "ProvisioningComplete";
        /// Event.
        DEPROVISIONING_STARTED = "DeprovisioningStarted";
        /// Event.
        DEPROVISIONING_COMPLETE = "DeprovisioningComplete";
        /// Event.
        POWER_ON = "PowerOn";
        /// Event.
        POWER_OFF = "PowerOff";
        /// Event.
        INVALID_ANNOTATION = "InvalidAnnotationValue";
        /// Event.
        CREDENTIAL_ERROR = "BMCCredentialError";
        /// Event.
        UPDATE_HARDWARE = "UpdateHardwareDetails";
        /// Event: a node that is not the host's stays in Ironic.
        NODE_LEFT = "NodeLeftInIronic";
        /// Event.
        REMOVE_ANNOTATION = "RemoveAnnotation";
        /// Event and figure: an error of registration.
        REGISTRATION_ERROR = "RegistrationError";
        /// Event and figure: an error of a provisioned host's registration.
        PROVISIONED_REGISTRATION_ERROR = "ProvisionedRegistrationError";
        /// Event and figure: an error of inspection.
        INSPECTION_ERROR = "InspectionError";
        /// Event and figure: an error of preparation.
        PREPARATION_ERROR = "PreparationError";
        /// Event and figure: an error of deployment or of its removal.
        PROVISIONING_ERROR = "ProvisioningError";
        /// Event and figure: an error of power.
        POWER_ERROR = "PowerManagementError";
        /// Event and figure: an error of a change while in use.
        SERVICING_ERROR = "ServicingError";
    }
}
