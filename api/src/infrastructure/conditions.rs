//! Types and reasons of the conditions of the group. Scripts and dashboards match them, so they keep the Go manager's
//! spelling, errors included.

/// Conditions of Metal3Cluster, in the standard form.
pub mod cluster {
    /// The summary.
    pub const READY: &str = "Ready";
    /// Whether the object is paused.
    pub const PAUSED: &str = "Paused";
    /// Whether the endpoint is valid.
    pub const INFRASTRUCTURE_READY: &str = "BaremetalInfrastructureReady";
    /// Whether the object found its Cluster.
    pub const ATTACHED: &str = "ClusterAttached";
    /// Whether the endpoint is known.
    pub const ENDPOINT_READY: &str = "ControlPlaneEndpointReady";
    /// Whether the source of the endpoint has changed since the endpoint was fixed. True is the bad case.
    pub const ENDPOINT_DRIFTED: &str = "ControlPlaneEndpointDrifted";
    /// Whether the endpoint is rendered into its template.
    pub const ENDPOINT_RENDERED: &str = "ControlPlaneEndpointRendered";

    /// The endpoint is not valid.
    pub const REASON_ENDPOINT_FAILED: &str = "ControlPlaneEndpointFailed";
    /// The object is not valid.
    pub const REASON_INVALID_CONFIGURATION: &str = "InvalidConfiguration";
    /// The owning Cluster cannot be read.
    pub const REASON_NO_OWNER_CLUSTER: &str = "FailedToGetOwnerCluster";
    /// Owner, `clusterName` and label name different Clusters.
    pub const REASON_CLUSTER_REF_CONFLICT: &str = "ClusterRefConflict";
    /// There is no such Cluster.
    pub const REASON_CLUSTER_NOT_FOUND: &str = "ClusterNotFound";
    /// Another Cluster owns the object.
    pub const REASON_OWNED_BY_OTHER: &str = "OwnedByOtherCluster";
    /// A Cluster of the same name uses the object, which did not join it.
    pub const REASON_NOT_ADOPTED: &str = "NotAdopted";
    /// The source of the endpoint does not exist.
    pub const REASON_SOURCE_NOT_FOUND: &str = "SourceNotFound";
    /// The source of the endpoint cannot be read.
    pub const REASON_SOURCE_FORBIDDEN: &str = "SourceForbidden";
    /// The endpoint found is not valid.
    pub const REASON_ENDPOINT_INVALID: &str = "EndpointInvalid";
    /// The endpoint differs from that of the Cluster.
    pub const REASON_ENDPOINT_CONFLICT: &str = "EndpointConflict";
    /// The template for the endpoint does not exist.
    pub const REASON_TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
    /// The template for the endpoint cannot be read.
    pub const REASON_TEMPLATE_FORBIDDEN: &str = "TemplateForbidden";
    /// The reference to the template for the endpoint is invalid.
    pub const REASON_TEMPLATE_INVALID: &str = "TemplateInvalid";
    /// The template for the endpoint cannot be read for now.
    pub const REASON_WAITING_FOR_TEMPLATE: &str = "WaitingForTemplate";
    /// The Secret for the endpoint is being deleted.
    pub const REASON_WAITING_FOR_SECRET: &str = "WaitingForSecret";
    /// The Secret for the endpoint was created by another party.
    pub const REASON_SECRET_NOT_OURS: &str = "SecretNotOurs";
    /// The API server rejects the Secret for the endpoint.
    pub const REASON_SECRET_REFUSED: &str = "SecretRefused";
    /// The source changed after the endpoint was fixed.
    pub const REASON_SOURCE_CHANGED: &str = "SourceChanged";
}

/// Conditions of Metal3Machine, in the standard form.
pub mod machine {
    /// The summary.
    pub const READY: &str = "Ready";
    /// Whether the object is paused.
    pub const PAUSED: &str = "Paused";
    /// Whether the machine has a host.
    pub const ASSOCIATE_HOST: &str = "AssociateBareMetalHost";
    /// Whether the machine has its data claim.
    pub const ASSOCIATE_META_DATA: &str = "AssociateMetal3MachineMetaData";
    /// Whether the Secrets of the machine exist.
    pub const DATA_READY: &str = "Metal3DataReady";
    /// Whether the Node has the labels of the host that the Metal3Cluster selects.
    pub const LABELS_SYNCED: &str = "NodeLabelsSynced";

    /// A host is associated.
    pub const REASON_HOST_ASSOCIATED: &str = "AssociateBareMetalHostSuccess";
    /// A host reserved for this control plane or MachineDeployment is associated.
    pub const REASON_HOST_REUSED: &str = "AssociateBareMetalHostViaNodeReuseSuccess";
    /// No host could be associated.
    pub const REASON_HOST_FAILED: &str = "AssociateBareMetalHostFailed";
    /// The Machine does not own the object yet.
    pub const REASON_WAITING_FOR_OWNER: &str = "WaitingForMetal3MachineOwnerRef";
    /// The cluster's infrastructure is not ready.
    pub const REASON_WAITING_FOR_INFRASTRUCTURE: &str = "WaitingForClusterInfrastructureReady";
    /// The Metal3Cluster does not exist.
    pub const REASON_WAITING_FOR_CLUSTER: &str = "WaitingforMetal3Cluster";
    /// The bootstrap data does not exist.
    pub const REASON_WAITING_FOR_BOOTSTRAP: &str = "WaitingForBootstrapData";
    /// The host could not be paused.
    pub const REASON_PAUSE_SET_FAILED: &str = "BareMetalHostPauseAnnotationSetFailed";
    /// The host could not be resumed.
    pub const REASON_PAUSE_REMOVE_FAILED: &str = "BareMetalHostPauseAnnotationRemoveFailed";
    /// More than one Metal3Cluster matches.
    pub const REASON_AMBIGUOUS_CLUSTER: &str = "AmbiguousMetal3Cluster";
    /// The data claim exists.
    pub const REASON_META_DATA_ASSOCIATED: &str = "AssociateMetal3MachineMetaDataSuccess";
    /// The data claim could not be made.
    pub const REASON_META_DATA_FAILED: &str = "AssociateMetal3MachineMetaDataFailed";
    /// Something could not be created.
    pub const REASON_CREATE_ERROR: &str = "CreateError";
    /// Something could not be updated.
    pub const REASON_UPDATE_ERROR: &str = "UpdateError";
    /// The object is not valid. Declared by the Go manager, never used for machines.
    pub const REASON_INVALID_CONFIGURATION: &str = "InvalidConfiguration";
    /// The data claim could not be released.
    pub const REASON_META_DATA_RELEASE_FAILED: &str = "DisassociateM3MetaDataFailed";
    /// The machine could not be deleted.
    pub const REASON_DELETION_FAILED: &str = "DeletionFailed";
    /// Whether the host is to be kept with its disks is not decided.
    pub const REASON_REUSE_UNDECIDED: &str = "NodeReuseUndecided";
    /// The Secrets were rendered.
    pub const REASON_SECRETS_READY: &str = "Metal3DataSecretsReady";
    /// The user supplied the Secrets.
    pub const REASON_SECRETS_EXTERNAL: &str = "SecretsSetExternally";
    /// The Secrets are being rendered.
    pub const REASON_WAITING_FOR_DATA: &str = "WaitingForMetal3Data";
    /// The labels are equal.
    pub const REASON_LABELS_SYNCED: &str = "NodeLabelsSynced";
    /// The Node or its cluster is not there yet.
    pub const REASON_WAITING_FOR_NODE: &str = "WaitingForNode";
    /// The labels cannot be copied until something is corrected.
    pub const REASON_LABELS_FAILED: &str = "NodeLabelsFailed";
}

/// Conditions of Metal3DataTemplate.
pub mod data_template {
    /// Whether the status shows only some of the indexes in use.
    pub const INDEXES_TRUNCATED: &str = "IndexesTruncated";
}

/// Conditions of Metal3Remediation. The Go manager writes none.
pub mod remediation {
    /// Whether the machine is back.
    pub const REMEDIATED: &str = "Remediated";
    /// Whether the object is paused.
    pub const PAUSED: &str = "Paused";

    /// The host was powered off and on, and the Node is restored.
    pub const REASON_NODE_RESTORED: &str = "NodeRestored";
    /// The host is still on.
    pub const REASON_WAITING_FOR_POWER_OFF: &str = "WaitingForPowerOff";
    /// The host is still off.
    pub const REASON_WAITING_FOR_POWER_ON: &str = "WaitingForPowerOn";
    /// Pods or volumes are still on the Node.
    pub const REASON_WAITING_FOR_DRAIN: &str = "WaitingForDrain";
    /// The Node still exists.
    pub const REASON_WAITING_FOR_NODE_DELETION: &str = "WaitingForNodeDeletion";
    /// The Node has not registered again.
    pub const REASON_WAITING_FOR_NODE: &str = "WaitingForNode";
    /// The workload cluster does not answer.
    pub const REASON_WORKLOAD_CLUSTER_UNREACHABLE: &str = "WorkloadClusterUnreachable";
    /// The machine has no host that could be powered off.
    pub const REASON_HOST_NOT_FOUND: &str = "HostNotFound";
    /// The host is in use by another consumer.
    pub const REASON_HOST_IN_USE: &str = "HostInUse";
    /// The host or the machine is paused.
    pub const REASON_HOST_PAUSED: &str = "HostPaused";
    /// The host must not be powered off.
    pub const REASON_POWER_OFF_DISABLED: &str = "PowerOffDisabled";
    /// The user keeps the host off.
    pub const REASON_HOST_OFFLINE: &str = "HostOffline";
    /// Every attempt failed.
    pub const REASON_GIVEN_UP: &str = "GivenUp";
    /// No Machine owns the object.
    pub const REASON_OWNER_NOT_FOUND: &str = "OwnerNotFound";
    /// The Machine is being deleted.
    pub const REASON_MACHINE_DELETING: &str = "MachineDeleting";
    /// The strategy does nothing.
    pub const REASON_NO_STRATEGY: &str = "StrategyNotSupported";
    /// The phase is none of those that a controller writes.
    pub const REASON_UNKNOWN_PHASE: &str = "PhaseUnknown";
    /// A relevant object cannot be decoded.
    pub const REASON_UNREADABLE: &str = "ObjectUnreadable";
    /// The next step was taken.
    pub const REASON_IN_PROGRESS: &str = "InProgress";
}

/// Reasons shared by all kinds.
pub mod shared {
    /// The object is ready.
    pub const REASON_READY: &str = "Ready";
    /// Something is wrong.
    pub const REASON_NOT_READY: &str = "NotReady";
    /// Something is not known.
    pub const REASON_READY_UNKNOWN: &str = "ReadyUnknown";
    /// The object is being deleted.
    pub const REASON_DELETING: &str = "Deleting";
    /// The object is paused.
    pub const REASON_PAUSED: &str = "Paused";
    /// The object is not paused.
    pub const REASON_NOT_PAUSED: &str = "NotPaused";
    /// A required condition is absent.
    pub const REASON_NOT_YET_REPORTED: &str = "NotYetReported";
}

/// Conditions in the older form, and their reasons.
pub mod legacy {
    /// The summary.
    pub const READY: &str = "Ready";
    /// Metal3Cluster: whether the endpoint is valid.
    pub const INFRASTRUCTURE_READY: &str = "BaremetalInfrastructureReady";
    /// Metal3Machine: whether it has a host.
    pub const ASSOCIATE_HOST: &str = "AssociateBMH";
    /// Metal3Machine: whether its Secrets exist.
    pub const DATA_READY: &str = "Metal3DataReady";
    /// Metal3Machine: whether its Node was found.
    pub const NODE_READY: &str = "KubernetesNodeReady";

    /// The endpoint is not valid.
    pub const REASON_ENDPOINT_FAILED: &str = "ControlPlaneEndpointFailed";
    /// The Machine does not own the object yet.
    pub const REASON_WAITING_FOR_OWNER: &str = "WaitingForM3MachineOwnerRef";
    /// The cluster's infrastructure is not ready.
    pub const REASON_WAITING_FOR_INFRASTRUCTURE: &str = "WaitingForClusterInfrastructure";
    /// The Metal3Cluster does not exist.
    pub const REASON_WAITING_FOR_CLUSTER: &str = "WaitingforMetal3Cluster";
    /// The bootstrap data does not exist.
    pub const REASON_WAITING_FOR_BOOTSTRAP: &str = "WaitingForBootstrapReady";
    /// The machine is paused.
    pub const REASON_PAUSED: &str = "Metal3MachinePaused";
    /// The host could not be paused.
    pub const REASON_PAUSE_SET_FAILED: &str = "PauseAnnotationSetFailedReason";
    /// The host could not be resumed.
    pub const REASON_PAUSE_REMOVE_FAILED: &str = "PauseAnnotationRemoveFailed";
    /// No host could be associated.
    pub const REASON_HOST_FAILED: &str = "AssociateBMHFailed";
    /// The Secrets are being rendered.
    pub const REASON_WAITING_FOR_DATA: &str = "WaitingForMetal3Data";
    /// The data claim could not be made.
    pub const REASON_META_DATA_FAILED: &str = "AssociateM3MetaDataFailed";
    /// The machine is being deleted.
    pub const REASON_DELETING: &str = "Deleting";
    /// The data claim could not be released.
    pub const REASON_META_DATA_RELEASE_FAILED: &str = "DisassociateM3MetaDataFailed";
    /// The machine could not be deleted.
    pub const REASON_DELETION_FAILED: &str = "DeletionFailed";
    /// The Node could not be given its provider ID. Declared by the Go manager, never used.
    pub const REASON_PROVIDER_ID_FAILED: &str = "SettingProviderIDOnNodeFailed";

    /// Requires a change by the user.
    pub const SEVERITY_ERROR: &str = "Error";
    /// Trying again may help.
    pub const SEVERITY_WARNING: &str = "Warning";
}
