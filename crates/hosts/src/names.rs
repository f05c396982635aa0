//! Names visible to users that are not part of the API: reasons of conditions and events, annotations.

/// Annotation that allows deprovisioning a host beyond the budget. Any value.
pub(crate) const CONFIRM_ANNOTATION: &str = "baremetalhost.metal3.io/confirm-deprovision";
/// Annotation that shows the running step of Ironic in the conditions. Any value.
pub(crate) const SHOW_STEPS_ANNOTATION: &str = "baremetalhost.metal3.io/show-steps";
pub(crate) use metal3_api::metal3::names::FORMER_INSTANCE_ANNOTATION as FORMER_ANNOTATION;

/// Condition: a change is withheld on purpose. Present only while it holds.
pub(crate) use metal3_api::metal3::names::held::TYPE as HELD;

/// Condition: what the next cleaning erases and keeps. Only hosts with `spec.cleaning` have it.
pub(crate) const CLEANING_PLAN: &str = "CleaningPlan";

/// Reasons. Equal to those of the Go manager where it has one.
pub mod reason {
    use metal3_domain::reasons;

    reasons! {
        /// Condition: the BMC accepts commands.
        pub(crate) MANAGEABLE = "Manageable";
        /// Condition: the host has no BMC.
        pub(crate) NOT_MANAGED = "NotManaged";
        /// Condition: Ironic verifies the BMC.
        pub(crate) REGISTERING = "Registering";
        /// Condition: the verification failed.
        pub(crate) REGISTRATION_FAILED = "RegistrationFailed";
        /// Condition: the BMC does not respond.
        pub(crate) POWER_FAILURE = "PowerFailure";
        /// Condition: the BMC refuses the login that its Secret gained.
        pub(crate) LOGIN_REFUSED = "BMCLoginRefused";
        /// Condition: the host may be given an image.
        pub(crate) AVAILABLE = "Available";
        /// Condition: the host may not be given an image.
        pub(crate) NOT_AVAILABLE = "NotAvailable";
        /// Condition: the host runs an image.
        pub(crate) PROVISIONED = "Provisioned";
        /// Condition: the host runs no image.
        pub(crate) NOT_PROVISIONED = "NotProvisioned";
        /// Condition: nothing is in progress.
        pub(crate) NOT_PROGRESSING = "NotProgressing";
        /// Condition: the hardware is inspected.
        pub(crate) INSPECTING = "Inspecting";
        /// Condition: the host is prepared.
        pub(crate) PREPARING = "Preparing";
        /// Condition: an image is deployed.
        pub(crate) PROVISIONING = "Provisioning";
        /// Condition: the image is removed.
        pub(crate) DEPROVISIONING = "Deprovisioning";
        /// Condition: the machine is powered off before deletion.
        pub(crate) POWERING_OFF = "PoweringOffBeforeDelete";
        /// Condition: the host is deleted.
        pub(crate) DELETING = "Deleting";
        /// Condition: an error is recorded.
        pub(crate) ERROR = "Error";
        /// Condition: the host is detached from Ironic.
        pub(crate) DETACHED = "Detached";
        /// Condition: the host is serviced.
        pub(crate) SERVICING = "Servicing";
        /// Condition: the hardware is healthy.
        pub(crate) HEALTHY = "Healthy";
        /// Condition: the BMC reports a warning.
        pub(crate) WARNING = "Warning";
        /// Condition: the BMC reports a critical error.
        pub(crate) CRITICAL = "CriticalError";
        /// Condition: the health is not known.
        pub(crate) UNKNOWN = "Unknown";
        /// Condition: the deprovision budget is spent.
        pub(crate) BUDGET_SPENT = "DeprovisionBudgetSpent";
        /// Condition: the request contradicts another field.
        pub(crate) REFUSED = "RequestRefused";
        /// Condition: Ironic does not accept a port of a running host.
        pub(crate) BOOT_PORT_REFUSED = "BootPortRefused";
        /// Condition: the host is deleted, and an annotation delays it.
        pub(crate) DELETION_DELAYED = "DeletionDelayed";
        /// Condition: updates of the firmware are requested, or may be, and cannot be read or recorded.
        pub(crate) FIRMWARE_PENDING = "FirmwarePending";
        /// Condition: Ironic has updates of an earlier cleaning, which it gives up by itself.
        pub(crate) FIRMWARE_UPDATES_LEFT = "FirmwareUpdatesLeft";
        /// Condition: the image of the agent that is built for the host is not ready.
        pub(crate) AGENT_IMAGE_PENDING = "PreprovisioningImagePending";
        /// Condition: the API server does not accept the image of the agent.
        pub(crate) AGENT_IMAGE_REFUSED = "PreprovisioningImageRefused";
        /// Condition: Ironic is not reachable, and the next step of the host needs it.
        pub(crate) IRONIC_UNREACHABLE = "IronicUnreachable";
        /// Condition: Ironic refuses the login of this program.
        pub(crate) IRONIC_LOGIN_REFUSED = "IronicLoginRefused";
        /// Condition: this program and Ironic do not trust each other's certificate.
        pub(crate) IRONIC_NOT_TRUSTED = "IronicNotTrusted";
        /// Condition: the host names an Ironic that is not configured.
        pub(crate) IRONIC_UNKNOWN = "IronicUnknown";
        /// Condition: the Ironic with the node of the host is not configured any more.
        pub(crate) IRONIC_NOT_CONFIGURED = "IronicNotConfigured";
        /// Condition: the host names another Ironic than the one with its node.
        pub(crate) IRONIC_CHANGE_REFUSED = "IronicChangeRefused";
        /// Condition: another Ironic than the recorded one has the node of the host.
        pub(crate) IRONIC_MISPLACED = "IronicMisplaced";
        /// Condition: two names lead to the Ironic of the host.
        pub(crate) IRONIC_AMBIGUOUS = "IronicAmbiguous";
        /// Condition: nothing records which Ironic has the node, and not all can be searched.
        pub(crate) NODE_NOT_LOCATED = "NodeNotLocated";
        /// Condition: the next cleaning erases all disks.
        pub(crate) ALL_DISKS_ERASED = "AllDisksErased";
        /// Condition: the next cleaning keeps some disks.
        pub(crate) DISKS_KEPT = "DisksKept";
        /// Condition: no disk is erased.
        pub(crate) NO_DISK_ERASED = "NoDiskErased";
        /// Condition: a disk that is to be kept is not protected, so nothing is erased or deployed.
        pub(crate) DISKS_NOT_PROTECTED = "DisksNotProtected";

        // Events.
        pub(crate) DISCOVERED = "Discovered";
        pub(crate) REGISTERED = "Registered";
        pub(crate) ACCESS_VALIDATED = "BMCAccessValidated";
        pub(crate) PROFILE_SET = "ProfileSet";
        pub(crate) INSPECTION_STARTED = "InspectionStarted";
        pub(crate) INSPECTION_SKIPPED = "InspectionSkipped";
        pub(crate) INSPECTION_COMPLETE = "InspectionComplete";
        pub(crate) PROVISIONING_STARTED = "ProvisioningStarted";
        pub(crate) PROVISIONING_COMPLETE = "ProvisioningComplete";
        pub(crate) DEPROVISIONING_STARTED = "DeprovisioningStarted";
        pub(crate) DEPROVISIONING_COMPLETE = "DeprovisioningComplete";
        pub(crate) POWER_ON = "PowerOn";
        pub(crate) POWER_OFF = "PowerOff";
        /// Event: the firmware of a running machine is changed at a reboot.
        pub(crate) SERVICE_BEGUN = "ServiceBegun";
        /// Event: a machine is started without the changes that its HostUpdatePolicy lets a reboot make.
        pub(crate) SERVICE_SKIPPED = "ServiceSkipped";
        pub(crate) INVALID_ANNOTATION = "InvalidAnnotationValue";
        pub(crate) CREDENTIAL_ERROR = "BMCCredentialError";
        /// Event: the Secret with the login to the registry of the image is of another type.
        pub(crate) IMAGE_AUTH_FORMAT_UNSUPPORTED = "ImageAuthFormatUnsupported";
        /// Event: that Secret has no login to the registry.
        pub(crate) IMAGE_AUTH_PARSE_ERROR = "ImageAuthParseError";
        pub(crate) UPDATE_HARDWARE = "UpdateHardwareDetails";
        /// Event: a node that does not belong to the host stays in Ironic.
        pub(crate) NODE_LEFT = "NodeLeftInIronic";
        /// Event: whether the host has a DataImage is not known, so its virtual drive is left as it is.
        pub(crate) DATA_IMAGE_UNKNOWN = "DataImageUnknown";
        pub(crate) REMOVE_ANNOTATION = "RemoveAnnotation";
        /// Event and metric label: registration failed.
        pub(crate) REGISTRATION_ERROR = "RegistrationError";
        /// Event and metric label: registration of a provisioned host failed.
        pub(crate) PROVISIONED_REGISTRATION_ERROR = "ProvisionedRegistrationError";
        /// Event and metric label: inspection failed.
        pub(crate) INSPECTION_ERROR = "InspectionError";
        /// Event and metric label: preparation failed.
        pub(crate) PREPARATION_ERROR = "PreparationError";
        /// Event and metric label: deployment or deprovisioning failed.
        pub(crate) PROVISIONING_ERROR = "ProvisioningError";
        /// Event and metric label: a power change failed.
        pub(crate) POWER_ERROR = "PowerManagementError";
        /// Event and metric label: servicing failed.
        pub(crate) SERVICING_ERROR = "ServicingError";
    }
}

/// Reasons of the conditions of HostFirmwareSettings, and of its Events.
pub mod settings_reason {
    use metal3_domain::reasons;

    reasons! {
        /// Condition: the settings were compared with the machine.
        pub(crate) SUCCESS = "Success";
        /// Condition: the machine cannot have the settings.
        pub(crate) CONFIGURATION_ERROR = "ConfigurationError";
        /// Event: the machine cannot have the settings.
        pub(crate) VALIDATION_FAILED = "ValidationFailed";
    }
}

/// Reasons of the conditions of HostFirmwareComponents, and of its Events.
pub mod components_reason {
    use metal3_domain::reasons;

    reasons! {
        /// Condition: the updates were compared with the machine.
        pub(crate) OK = "OK";
        /// Condition: the machine cannot have the updates.
        pub(crate) INVALID_COMPONENT = "InvalidComponent";
        /// Condition: updates were ordered, or are about to be.
        pub(crate) UPDATE_ORDERED = "UpdateOrdered";
        /// Condition: Ironic makes the updates.
        pub(crate) UPDATE_BEGUN = "UpdateBegun";
        /// Condition: the updates failed.
        pub(crate) UPDATE_FAILED = "UpdateFailed";
        /// Condition: the updates were made.
        pub(crate) UPDATE_MADE = "UpdateMade";
        /// Event: the machine cannot have the updates.
        pub(crate) VALIDATION_FAILED = "ValidationFailed";
    }
}

/// Reasons of waits: the log and the metric of waiting hosts have them.
pub mod wait_reason {
    use metal3_domain::reasons;

    reasons! {
        /// Ironic works, or does not respond.
        pub(crate) WAITING_FOR_IRONIC = "WaitingForIronic";
        /// A Secret must be created or changed.
        pub(crate) WAITING_FOR_SECRET = "WaitingForSecret";
        /// Other hosts use all slots for busy hosts.
        pub(crate) WAITING_FOR_SLOT = "WaitingForSlot";
        /// A user or an administrator must act.
        pub(crate) WAITING_FOR_USER = "WaitingForUser";
        /// A failed operation is retried later.
        pub(crate) BACKING_OFF = "BackingOff";
        /// A delay ends.
        pub(crate) WAITING_FOR_TIME = "WaitingForTime";
        /// The image of the agent must be built.
        pub(crate) WAITING_FOR_AGENT_IMAGE = "WaitingForPreprovisioningImage";
        /// The cached host cannot be decoded.
        pub(crate) OBJECT_UNREADABLE = "ObjectUnreadable";
    }
}

/// Reasons of waits and Events of DataImages. The kind has no conditions.
pub mod disc_reason {
    use metal3_domain::reasons;

    reasons! {
        /// Event: the virtual drive of the host holds the image.
        pub(crate) INSERTED = "DataImageAttached";
        /// Event: the virtual drive of the host does not hold the image any more.
        pub(crate) EJECTED = "DataImageDetached";
        /// Event: the image was not inserted or ejected.
        pub(crate) FAILED = "DataImageFailed";
        /// Event: the virtual drive may hold the image of a deleted object.
        pub(crate) LEFT = "DataImageLeft";
        /// The virtual drive holds the image of a deleted object.
        pub(crate) STILL_IN_DRIVE = "DataImageInDrive";
        pub(crate) MOVING = "Moving";
        pub(crate) GO_MANAGER_RUNS = "GoManagerRuns";
        pub(crate) HOST_ABSENT = "HostAbsent";
        pub(crate) HOST_PAUSED = "HostPaused";
        pub(crate) HOST_DELETED = "HostDeleted";
        pub(crate) NODE_LOCKED = "NodeLocked";
        pub(crate) STATE_UNKNOWN = "StateUnknown";
        pub(crate) USED_BY_IRONIC = "UsedByIronic";
    }
}

/// Reasons of waits and Events of BMCEventSubscriptions. The kind has no conditions.
pub mod subscription_reason {
    use metal3_domain::reasons;

    reasons! {
        /// Event: the BMC has the subscription.
        pub(crate) CREATED = "SubscriptionCreated";
        /// Event: the BMC of the host's new node does not have the subscription.
        pub(crate) LOST = "SubscriptionLost";
        /// Event: the BMC keeps a subscription with the identifier of a deleted object, which is another one.
        pub(crate) LEFT = "SubscriptionLeft";
        /// The spec cannot be served.
        pub(crate) INVALID = "SubscriptionInvalid";
        pub(crate) PAUSED = "Paused";
        pub(crate) MOVING = "Moving";
        pub(crate) GO_MANAGER_RUNS = "GoManagerRuns";
        pub(crate) HOST_ABSENT = "HostAbsent";
        pub(crate) HOST_PAUSED = "HostPaused";
        pub(crate) HOST_DELETED = "HostDeleted";
        pub(crate) HOST_DETACHED = "HostDetached";
        pub(crate) HOST_NOT_REGISTERED = "HostNotRegistered";
        pub(crate) HEADERS_UNUSABLE = "HeadersUnusable";
        pub(crate) NODE_ABSENT = "NodeAbsent";
        pub(crate) NODE_LOCKED = "NodeLocked";
        pub(crate) STATE_UNKNOWN = "StateUnknown";
        /// The driver or the BMC has no event subscriptions.
        pub(crate) UNSUPPORTED = "SubscriptionsUnsupported";
        pub(crate) CREATION_FAILED = "SubscriptionFailed";
        /// The response to the creation is lost.
        pub(crate) CREATION_UNCONFIRMED = "SubscriptionUnconfirmed";
        /// The BMC has the subscription of a deleted object.
        pub(crate) STILL_IN_BMC = "SubscriptionInBMC";
    }
}

/// Reasons of the conditions of PreprovisioningImages. Equal to those of the Go manager where it has one.
pub mod image_reason {
    use metal3_domain::reasons;

    reasons! {
        /// Condition: the image can be booted.
        pub(crate) SUCCESS = "ImageSuccess";
        /// Condition: no image is configured for what is requested.
        pub(crate) CONFIGURATION_ERROR = "ConfigurationError";
        /// Condition: the Secret with the network data does not exist.
        pub(crate) MISSING_NETWORK_DATA = "MissingNetworkData";
        /// Wait: the object cannot be decoded.
        pub(crate) OBJECT_UNREADABLE = "ObjectUnreadable";
    }
}

/// Reasons of the condition of BareMetalSwitches. Equal to those of the Go manager where it has one.
pub mod switch_reason {
    use metal3_domain::reasons;

    reasons! {
        /// Condition: the Secrets for Ironic have the switch.
        pub(crate) RECONCILED = "Reconciled";
        /// Condition: the switch has no usable login.
        pub(crate) CREDENTIAL_ERROR = "CredentialError";
        /// Condition: a value of the spec cannot be in the file.
        pub(crate) INVALID = "SwitchInvalid";
        /// Condition: the Secrets for Ironic are full.
        pub(crate) TOO_LARGE = "TooManySwitches";
        /// Condition: a Secret for Ironic does not exist.
        pub(crate) OUTPUT_MISSING = "SwitchSecretMissing";
        /// Condition: the API server refuses to change a Secret for Ironic.
        pub(crate) OUTPUT_REFUSED = "SwitchSecretRefused";
        /// Log: the API server refuses the status of a switch.
        pub(crate) STATUS_REFUSED = "SwitchStatusRefused";
        /// Condition, log: the login, a Secret for Ironic or a switch cannot be read.
        pub(crate) STATE_UNKNOWN = "StateUnknown";
    }
}

/// Reasons of the conditions of HostClaims. Equal to those of the Go manager where it has one.
pub mod claim_reason {
    use metal3_domain::reasons;

    reasons! {
        /// Condition: a host is bound to the claim.
        pub(crate) ASSOCIATED = "BareMetalHostAssociated";
        /// Condition: the host that was bound does not exist any more, or is not bound any more.
        pub(crate) MISSING_HOST = "MissingBareMetalHost";
        /// Condition: no host can be bound.
        pub(crate) NO_HOST = "NoBareMetalHost";
        /// Condition: a host names the claim, and this program did not bind it.
        pub(crate) NOT_BOUND = "BareMetalHostNotBound";
        /// Condition: the claim or its host is paused, or moves to another cluster.
        pub(crate) PAUSED = "HostPaused";
        /// Condition: the claim is deleted, and its host is released.
        pub(crate) DELETING = "HostClaimDeleting";
        /// Condition: the claim is deleted, and its host cannot be released.
        pub(crate) DELETION_FAILED = "HostClaimDeletionFailed";
        /// Condition: no policy permits the claim any more.
        pub(crate) POLICY_MISSING = "HostDeployPolicyMissing";
        /// Condition: whether a policy permits the claim is not known.
        pub(crate) POLICY_UNKNOWN = "HostDeployPolicyUnknown";
        /// Condition: the host has the spec of the claim.
        pub(crate) SYNCED = "ConfigurationSynced";
        /// Condition: the host does not have the spec of the claim.
        pub(crate) NOT_SYNCED = "BareMetalHostNotSynchronized";
        /// Condition: the user data are not copied.
        pub(crate) USER_DATA_NOT_SYNCED = "UserDataSecretSyncFailure";
        /// Condition: the metadata are not copied.
        pub(crate) META_DATA_NOT_SYNCED = "MetaDataSecretSyncFailure";
        /// Condition: the network data are not copied.
        pub(crate) NETWORK_DATA_NOT_SYNCED = "NetworkDataSecretSyncFailure";
        /// Condition: the login to the registry of the image is not copied.
        pub(crate) REGISTRY_LOGIN_NOT_SYNCED = "RegistryLoginSecretSyncFailure";
        /// Condition: the image of the claim is deployed.
        pub(crate) PROVISIONED = "Provisioned";
        /// Condition: nothing is deployed.
        pub(crate) NOT_PROVISIONED = "NotProvisioned";
        /// Condition: an image is deployed.
        pub(crate) PROVISIONING = "Provisioning";
        /// Condition: an image is removed.
        pub(crate) DEPROVISIONING = "Deprovisioning";
        /// Condition: the host has an error.
        pub(crate) HOST_FAILED = "BareMetalHostFailed";
        /// Condition: the host may be given an image.
        pub(crate) AVAILABLE = "Available";
        /// Condition: the host may not be given an image.
        pub(crate) NOT_AVAILABLE = "NotAvailable";
        /// Condition: all that the claim asks for is done.
        pub(crate) READY = "Ready";
        /// Wait: the claim that a host names does not exist.
        pub(crate) CLAIM_ABSENT = "HostClaimAbsent";
        /// Wait: the object cannot be decoded.
        pub(crate) OBJECT_UNREADABLE = "ObjectUnreadable";
    }
}

/// Reasons about kinds without a controller, and why a finalizer of the Go manager stays on their objects.
pub mod unserved_reason {
    use metal3_domain::reasons;

    reasons! {
        /// Event: no controller of this program serves the kind.
        pub(crate) KIND_UNSERVED = "KindUnserved";
        pub(crate) GO_MANAGER_RUNS = "GoManagerRuns";
        pub(crate) MOVING = "Moving";
        pub(crate) HOST_PAUSED = "HostPaused";
        pub(crate) NODE_LOCKED = "NodeLocked";
        pub(crate) OTHER_FINALIZERS = "OtherFinalizers";
        pub(crate) IMAGE_BUILDER = "WaitingForImageBuilder";
        pub(crate) STATE_UNKNOWN = "StateUnknown";
        pub(crate) STILL_IN_USE = "StillInUse";
    }
}

#[cfg(test)]
mod tests {
    use metal3_api::metal3::names::held;

    /// Programs that read a status use the name of the API.
    #[test]
    fn reasons_of_what_is_held_are_those_of_the_api() {
        assert_eq!(super::reason::BUDGET_SPENT.as_str(), held::BUDGET_SPENT);
        assert_eq!(super::reason::DELETION_DELAYED.as_str(), held::DELETION_DELAYED);
    }
}
