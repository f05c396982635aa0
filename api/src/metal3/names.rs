//! Annotations, labels and finalizers of the host group, spelled as the Go manager spells them. Condition types and
//! reasons are included: they are part of the API.

/// API group.
pub const GROUP: &str = "metal3.io";

// Annotations.

/// Pauses a host, whatever its value. The value names the component that set it.
pub const PAUSED_ANNOTATION: &str = "baremetalhost.metal3.io/paused";
/// Value of [`PAUSED_ANNOTATION`] when the Cluster API provider paused the host.
pub const PAUSED_BY_CAPM3: &str = "metal3.io/capm3";
/// Value of [`PAUSED_ANNOTATION`] when the controller of a claim paused the host.
pub const PAUSED_BY_HOST_CLAIM: &str = "metal3.io/hostclaim";
/// Detaches the host from Ironic and keeps the object. Any text, or JSON with the action for a later deletion.
pub const DETACHED_ANNOTATION: &str = "baremetalhost.metal3.io/detached";
/// The status as JSON, restored once into a host without status.
pub const STATUS_ANNOTATION: &str = "baremetalhost.metal3.io/status";
/// One reboot or, followed by `/` and a key, the host stays off until the client removes the annotation.
pub const REBOOT_ANNOTATION: &str = "reboot.metal3.io";
/// Prefix of the annotations that keep a host powered off.
pub const REBOOT_ANNOTATION_PREFIX: &str = "reboot.metal3.io/";
/// Empty: inspect the host again. [`INSPECTION_DISABLED`]: do not inspect it.
pub const INSPECT_ANNOTATION: &str = "inspect.metal3.io";
/// Value of [`INSPECT_ANNOTATION`] that forbids inspection.
pub const INSPECTION_DISABLED: &str = "disabled";
/// Hardware details as JSON, supplied by the user when inspection is disabled.
pub const HARDWARE_DETAILS_ANNOTATION: &str = "inspect.metal3.io/hardwaredetails";
/// Older form of the annotation on a host that remediation gave up.
pub const OLD_UNHEALTHY_ANNOTATION: &str = "capi.metal3.io/unhealthy";

// Labels.

/// Marks the Secrets that the host controllers may read.
pub const ENVIRONMENT_LABEL: &str = "environment.metal3.io";
/// Value of [`ENVIRONMENT_LABEL`].
pub const ENVIRONMENT_BAREMETAL: &str = "baremetal";
/// Failure domain of a host; a claim prefers hosts of its own failure domain.
pub const FAILURE_DOMAIN_LABEL: &str = "infrastructure.cluster.x-k8s.io/failure-domain";
/// Keeps a released host for the next machine of the same owner.
pub const NODE_REUSE_LABEL: &str = "infrastructure.cluster.x-k8s.io/node-reuse";
/// Selects the implementation that serves a claim.
pub const HOST_CLAIM_CLASS_LABEL: &str = "infrastructure.cluster.x-k8s.io/hostclaim-class";

// Finalizers.

/// Keeps a host until it is removed from Ironic.
pub const HOST_FINALIZER: &str = "baremetalhost.metal3.io";
/// Keeps the hardware data while its host exists.
pub const HARDWARE_DATA_FINALIZER: &str = "baremetalhost.metal3.io/hardwareData";
/// Keeps a Secret while a host needs it.
pub const SECRET_FINALIZER: &str = "baremetalhost.metal3.io/secret";
/// Keeps a pre-provisioning image while its host needs it.
pub const HOST_IMAGE_FINALIZER: &str = "baremetalhost.metal3.io/preprovisioningImage";
/// Keeps a pre-provisioning image until the built image is deleted.
pub const PREPROVISIONING_IMAGE_FINALIZER: &str = "preprovisioningimage.metal3.io";
/// Keeps a data image until it is detached.
pub const DATA_IMAGE_FINALIZER: &str = "dataimage.metal3.io";
/// Keeps an event subscription until it is removed from the BMC.
pub const BMC_EVENT_SUBSCRIPTION_FINALIZER: &str = "bmceventsubscription.metal3.io";
/// Keeps a claim until its host is released.
pub const HOST_CLAIM_FINALIZER: &str = "metal3.io/hostclaim";

/// Types of the conditions of a host.
pub mod host_condition {
    /// The host is provisioned and nothing is wrong with it.
    pub const READY: &str = "Ready";
    /// The host may be chosen for a workload.
    pub const AVAILABLE_FOR_PROVISIONING: &str = "AvailableForProvisioning";
    /// The hardware reports no fault.
    pub const HEALTHY: &str = "Healthy";
    /// The BMC is reachable and accepts commands.
    pub const MANAGEABLE: &str = "Manageable";
    /// An operation is under way.
    pub const PROGRESSING: &str = "Progressing";
    /// An image is deployed.
    pub const PROVISIONED: &str = "Provisioned";
}

/// Types of the conditions of firmware settings and firmware components.
pub mod firmware_condition {
    /// The requested values differ from those that the host reports.
    pub const CHANGE_DETECTED: &str = "ChangeDetected";
    /// The requested values are valid.
    pub const VALID: &str = "Valid";
    /// Reason on settings: no problem.
    pub const SUCCESS: &str = "Success";
    /// Reason on settings: a requested value violates the schema of the host.
    pub const CONFIGURATION_ERROR: &str = "ConfigurationError";
    /// Reason on components: no problem.
    pub const OK: &str = "OK";
    /// Reason on components: the host has no such component.
    pub const INVALID_COMPONENT: &str = "InvalidComponent";
}

/// Types of the conditions of a pre-provisioning image, and their reasons.
pub mod image_condition {
    /// The image can be booted.
    pub const READY: &str = "Ready";
    /// The image cannot be made.
    pub const ERROR: &str = "Error";
    /// Reason: the image exists.
    pub const IMAGE_SUCCESS: &str = "ImageSuccess";
    /// Reason: the manager is not configured for the request.
    pub const CONFIGURATION_ERROR: &str = "ConfigurationError";
    /// Reason: the Secret with network data is missing.
    pub const MISSING_NETWORK_DATA: &str = "MissingNetworkData";
    /// Reason: the builder rejected the request.
    pub const IMAGE_BUILD_INVALID: &str = "ImageBuildInvalid";
}

/// Types of the conditions of a claim, and their reasons.
pub mod claim_condition {
    /// The claim has a host in the requested state.
    pub const READY: &str = "Ready";
    /// A host is bound.
    pub const ASSOCIATED: &str = "Associated";
    /// The host's spec matches the claim's spec.
    pub const SYNCHRONIZED: &str = "Synchronized";
    /// The image of the claim is deployed.
    pub const PROVISIONED: &str = "Provisioned";
    /// The bound host may be provisioned.
    pub const AVAILABLE_FOR_PROVISIONING: &str = "AvailableForProvisioning";
    /// Reason: bound.
    pub const BARE_METAL_HOST_ASSOCIATED: &str = "BareMetalHostAssociated";
    /// Reason: no host matches and is free.
    pub const NO_BARE_METAL_HOST: &str = "NoBareMetalHost";
    /// Reason: the host could not be written.
    pub const BARE_METAL_HOST_NOT_SYNCHRONIZED: &str = "BareMetalHostNotSynchronized";
    /// Reason: the bound host does not exist.
    pub const MISSING_BARE_METAL_HOST: &str = "MissingBareMetalHost";
    /// Reason: the claim is being released.
    pub const HOST_CLAIM_DELETING: &str = "HostClaimDeleting";
    /// Reason: the claim could not be released.
    pub const HOST_CLAIM_DELETION_FAILED: &str = "HostClaimDeletionFailed";
    /// Reason: everything was written to the host.
    pub const CONFIGURATION_SYNCED: &str = "ConfigurationSynced";
    /// Reason: the user data Secret could not be copied.
    pub const USER_DATA_SECRET_SYNC_FAILURE: &str = "UserDataSecretSyncFailure";
    /// Reason: the meta data Secret could not be copied.
    pub const META_DATA_SECRET_SYNC_FAILURE: &str = "MetaDataSecretSyncFailure";
    /// Reason: the network data Secret could not be copied.
    pub const NETWORK_DATA_SECRET_SYNC_FAILURE: &str = "NetworkDataSecretSyncFailure";
    /// Reason: the host could not be paused together with the claim.
    pub const PAUSE_ANNOTATION_SET_FAILED: &str = "PauseAnnotationSetFailed";
    /// Reason: the host could not be resumed together with the claim.
    pub const PAUSE_ANNOTATION_REMOVE_FAILED: &str = "PauseAnnotationRemoveFailed";
    /// Reason: the bound host is paused.
    pub const HOST_PAUSED: &str = "HostPaused";
}
