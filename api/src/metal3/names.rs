//! Annotations, labels and finalizers of the host group, spelled as the Go manager spells them. Condition types and
//! reasons are included: they are part of the API.

/// API group.
pub const GROUP: &str = "metal3.io";

// Annotations.

/// Pauses a host, whatever its value. The value names the component that set it.
pub const PAUSED_ANNOTATION: &str = "baremetalhost.metal3.io/paused";
/// Detaches the host from Ironic and keeps the object. Any text, or JSON with the action for a later deletion.
pub const DETACHED_ANNOTATION: &str = "baremetalhost.metal3.io/detached";
/// The status as JSON, restored once into a host without status.
pub const STATUS_ANNOTATION: &str = "baremetalhost.metal3.io/status";
/// The instance that the node of a moved host still serves: the UID of the host in the former cluster. A node that serves it
/// may be erased for the host.
pub const FORMER_INSTANCE_ANNOTATION: &str = "baremetalhost.metal3.io/former-instance";
/// The configured Ironic in which this program registers the node of the host, or did. Requests about the host go there, whatever
/// [`IRONIC_LABEL`] says.
pub const REGISTERED_IN_ANNOTATION: &str = "baremetalhost.metal3.io/registered-in";
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
/// Where this program creates, or has created, an event subscription, as JSON: the node, and the equal subscriptions that the
/// BMC had before.
pub const SUBSCRIPTION_RECORD_ANNOTATION: &str = "bmceventsubscription.metal3.io/record";
/// Names the program that builds a PreprovisioningImage, if it is this one.
pub const AGENT_IMAGE_BUILDER_ANNOTATION: &str = "preprovisioningimage.metal3.io/builder";
/// On a host: what a HostClaim was promised when it was bound, as JSON. It is removed when the host is released.
pub const CLAIM_RECORD_ANNOTATION: &str = "hostclaim.metal3.io/bond";
/// On a HostClaim: the host that is bound to it, as JSON. It is written before the host is.
pub const CLAIM_TRACE_ANNOTATION: &str = "hostclaim.metal3.io/host";
/// On a host that was released: until when it is kept for claims of its label `node-reuse`.
pub const CLAIM_KEPT_ANNOTATION: &str = "hostclaim.metal3.io/kept-until";
/// On a copy of a Secret in the namespace of a host: UID and version of what was copied.
pub const CLAIM_COPY_ANNOTATION: &str = "hostclaim.metal3.io/copy-of";
/// On a HostClaim: a reboot that is passed on to its host, as JSON.
pub const CLAIM_REBOOT_ANNOTATION: &str = "hostclaim.metal3.io/reboot";
/// On HardwareData: the labels and annotations that were copied from the host, as JSON.
pub const CLAIM_COPIED_ANNOTATION: &str = "hostclaim.metal3.io/copied-metadata";
/// On a host: its administrators do not let a HostClaim pause it.
pub const CLAIM_NO_PAUSE_ANNOTATION: &str = "hostclaim.metal3.io/no-pause";
/// Value of [`PAUSED_ANNOTATION`] on a host whose HostClaim is paused.
pub const PAUSED_BY_CLAIM: &str = "metal3.io/hostclaim";

// Labels.

/// On a HostClaim: it is served by another program, which knows this class.
pub const CLAIM_CLASS_LABEL: &str = "infrastructure.cluster.x-k8s.io/hostclaim-class";
/// Marks the Secrets that the host controllers may read.
pub const ENVIRONMENT_LABEL: &str = "environment.metal3.io";
/// Value of [`ENVIRONMENT_LABEL`].
pub const ENVIRONMENT_BAREMETAL: &str = "baremetal";
/// Names the configured Ironic that a host is registered in, while it has no node in another one. Without it: the first one.
pub const IRONIC_LABEL: &str = "baremetalhost.metal3.io/ironic";
/// Failure domain of a host; a claim prefers hosts of its own failure domain.
pub const FAILURE_DOMAIN_LABEL: &str = "infrastructure.cluster.x-k8s.io/failure-domain";
/// Keeps a released host for the next machine of the same owner.
pub const NODE_REUSE_LABEL: &str = "infrastructure.cluster.x-k8s.io/node-reuse";

// Finalizers.

/// Keeps a host until it is removed from Ironic.
pub const HOST_FINALIZER: &str = "baremetalhost.metal3.io";
/// Keeps the hardware data while its host exists.
pub const HARDWARE_DATA_FINALIZER: &str = "baremetalhost.metal3.io/hardwareData";
/// Keeps a Secret while a host needs it.
pub const SECRET_FINALIZER: &str = "baremetalhost.metal3.io/secret";
/// Keeps an event subscription until it is deleted from the BMC.
pub const SUBSCRIPTION_FINALIZER: &str = "bmceventsubscription.metal3.io";
/// Keeps a HostClaim until its host is released.
pub const HOST_CLAIM_FINALIZER: &str = "metal3.io/hostclaim";
/// Finalizer of a DataImage.
pub const DATA_IMAGE_FINALIZER: &str = "dataimage.metal3.io";
/// Finalizer of the host controller on the PreprovisioningImage of a host.
pub const AGENT_IMAGE_HOST_FINALIZER: &str = "baremetalhost.metal3.io/preprovisioningImage";
/// Finalizer of the controller that builds a PreprovisioningImage.
pub const AGENT_IMAGE_FINALIZER: &str = "preprovisioningimage.metal3.io";

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

/// Texts in the errors of a host with which this program leaves a machine as it is. Programs that read a status recognize them, as
/// no member of it has the reason.
pub mod host_error {
    /// Begins the error of a host whose node in Ironic serves another instance.
    pub const SERVES_ANOTHER: &str = "in Ironic the node serves instance ";
    /// Begins the error of a host whose machine is that of another host.
    pub const MACHINE_OF_ANOTHER: &str = "spec.bmc.address is that of the machine of ";
    /// Is in each error that the limits of an administrator cause on a BMC.
    pub const NOT_IN_BMC_NETWORKS: &str = "is not an IP address in the networks of --allowed-bmc-networks";
    /// Is in each error that they cause on an image, or on a file with firmware.
    pub const NOT_IN_IMAGE_HOSTS: &str = "is not in --allowed-image-hosts";
    /// Is in the error of a host whose status names a node that has the name of another host.
    pub const NODE_OF_ANOTHER_NAME: &str = "in status.provisioning.ID has not the name of this host in Ironic";
    /// Begins the error of a host whose node is in maintenance without a fault: an operator set it.
    pub const IN_MAINTENANCE: &str = "the node is in maintenance (";
    /// Is in the error of a host that names a Secret which may not be used for it.
    pub const SECRET_UNLABELLED: &str = "is not labelled for use by hosts, so it is not read";
    /// Begins the error of a host whose RAID volumes may be as requested, or not.
    pub const VOLUMES_UNKNOWN: &str =
        "it is not known whether the cleaning that failed or was lost in Ironic was for the RAID volumes";
}

/// The condition of a host that waits for a person.
pub mod held {
    /// Its type.
    pub const TYPE: &str = "Held";
    /// Its reason when the deprovision budget is spent.
    pub const BUDGET_SPENT: &str = "DeprovisionBudgetSpent";
    /// Its reason when an annotation delays the deletion of the host.
    pub const DELETION_DELAYED: &str = "DeletionDelayed";
}

/// Types of the conditions of a HostClaim.
pub mod claim_condition {
    /// The host runs what the claim asks for.
    pub const READY: &str = "Ready";
    /// A host is bound to the claim.
    pub const ASSOCIATED: &str = "Associated";
    /// The host has the spec of the claim.
    pub const SYNCHRONIZED: &str = "Synchronized";
    /// The image of the claim is deployed.
    pub const PROVISIONED: &str = "Provisioned";
    /// The host may be given an image.
    pub const AVAILABLE_FOR_PROVISIONING: &str = "AvailableForProvisioning";
}
