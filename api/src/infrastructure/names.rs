//! Labels, annotations, finalizers and other fixed strings of the group, spelled as the Go manager spells them.

/// API group.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// Keeps a Metal3Cluster until its machines are deleted.
pub const CLUSTER_FINALIZER: &str = "metal3cluster.infrastructure.cluster.x-k8s.io";
/// Keeps a Metal3Machine until its host is released; also set on its Metal3DataClaim.
pub const MACHINE_FINALIZER: &str = "metal3machine.infrastructure.cluster.x-k8s.io";
/// Keeps a Metal3DataClaim, and its Metal3Data, until the index is free again.
pub const DATA_CLAIM_FINALIZER: &str = "metal3dataclaim.infrastructure.cluster.x-k8s.io";
/// Keeps a Metal3Data, and its claims on addresses, until the addresses are released.
pub const DATA_FINALIZER: &str = "metal3data.infrastructure.cluster.x-k8s.io";
/// Keeps a Metal3DataTemplate while data of it exists.
pub const DATA_TEMPLATE_FINALIZER: &str = "metal3datatemplate.infrastructure.cluster.x-k8s.io";
/// Keeps a Metal3Remediation until its host may be powered on and its Node is restored.
pub const REMEDIATION_FINALIZER: &str = "metal3remediation.infrastructure.cluster.x-k8s.io";

/// Annotation on a host, followed by the UID of a Metal3Remediation: the host is kept powered off for it.
pub const REMEDIATION_POWER_OFF_PREFIX: &str = "reboot.metal3.io/metal3-remediation-";
/// Annotation on a Metal3Remediation: the annotations of the Node that it deletes, as a JSON object.
pub const NODE_ANNOTATIONS_BACKUP: &str = "remediation.metal3.io/node-annotations-backup";
/// Annotation on a Metal3Remediation: the labels of the Node that it deletes, as a JSON object.
pub const NODE_LABELS_BACKUP: &str = "remediation.metal3.io/node-labels-backup";
/// Annotation on a Metal3Remediation: phase and retries of its status, as a JSON object. A move drops the status.
pub const REMEDIATION_PROGRESS_ANNOTATION: &str = "remediation.metal3.io/progress";

/// Annotation on a Metal3Machine: namespace and name of its host. It is the association.
pub const HOST_ANNOTATION: &str = "metal3.io/BareMetalHost";
/// Annotation on a Metal3Machine: name of the host chosen for it. Removed when [`HOST_ANNOTATION`] is set.
pub const CHOSEN_HOST_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/chosen-host";
/// Annotation that stops the host's controller.
pub const HOST_PAUSED_ANNOTATION: &str = "baremetalhost.metal3.io/paused";
/// Value of [`HOST_PAUSED_ANNOTATION`] when this provider set it.
pub const HOST_PAUSED_BY_CAPM3: &str = "metal3.io/capm3";
/// Annotation with the status of a host, from which it is restored after a move.
pub const HOST_STATUS_ANNOTATION: &str = "baremetalhost.metal3.io/status";
/// Annotation on a host that blocks a move until the host is paused.
pub const BLOCK_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Annotation that excludes a host from selection.
pub const UNHEALTHY_ANNOTATION: &str = "capm3.metal3.io/unhealthy";
/// Value of [`UNHEALTHY_ANNOTATION`] that a remediation sets.
pub const UNHEALTHY_NODE: &str = "capm3/UnhealthyNode";
/// Older form of [`UNHEALTHY_ANNOTATION`], still honoured.
pub const LEGACY_UNHEALTHY_ANNOTATION: &str = "capi.metal3.io/unhealthy";
/// Label on a released host: the control plane or MachineDeployment it is kept for.
pub const NODE_REUSE_LABEL: &str = "infrastructure.cluster.x-k8s.io/node-reuse";
/// Annotation on a Metal3MachineTemplate with `nodeReuse`, whatever its value: the disks of a host may be cleaned before it
/// is kept.
pub const REUSE_AFTER_CLEANING_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/node-reuse-after-cleaning";
/// Annotation on a claimed host: the value of [`NODE_REUSE_LABEL`] before the claim. Removed when an image is written.
pub const KEPT_BEFORE_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/kept-before-claim";
/// Annotation on a Metal3Cluster: prefixes of the labels that are copied from hosts to their Nodes.
pub const LABEL_PREFIXES_ANNOTATION: &str = "metal3.io/metal3-label-sync-prefixes";
/// Label on a host: its failure domain.
pub const FAILURE_DOMAIN_LABEL: &str = "infrastructure.cluster.x-k8s.io/failure-domain";
/// Label on Metal3Data and address claims: the Metal3Data, where pools pre-allocate by name.
pub const DATA_NAME_LABEL: &str = "infrastructure.cluster.x-k8s.io/data-name";
/// Label on address claims: the pool, where pools pre-allocate by name.
pub const POOL_NAME_LABEL: &str = "infrastructure.cluster.x-k8s.io/pool-name";

/// Annotation on an object served in an older version: the stored object.
pub const CONVERSION_DATA_ANNOTATION: &str = "cluster.x-k8s.io/conversion-data";
/// Annotation on a Metal3Cluster with a derived endpoint: source, host and port.
pub const DERIVED_ENDPOINT_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/derived-endpoint";
/// Annotation that detaches a Metal3Cluster from its Cluster.
pub const DETACH_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/detach";

/// Type of the Secrets with rendered data.
pub const SECRET_TYPE: &str = "infrastructure.cluster.x-k8s.io/secret";
/// Field manager of the endpoint that is written back.
pub const ENDPOINT_FIELD_MANAGER: &str = "capm3-endpoint";
