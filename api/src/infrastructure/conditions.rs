//! Types and reasons of the conditions of the group. Scripts and dashboards match them, so they keep the Go manager's
//! spelling, errors included.

/// Conditions of Metal3Cluster, in the standard form.
pub mod cluster {
    use metal3_domain::reasons;

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
    /// Whether the data templates of the deployment zones exist.
    pub const ZONES_READY: &str = "DeploymentZonesReady";
    /// Whether workers can join the control plane of another provider.
    pub const JOIN_PREFLIGHT: &str = "WorkerJoinPreflight";

    reasons! {
        /// The endpoint is not valid.
        pub REASON_ENDPOINT_FAILED = "ControlPlaneEndpointFailed";
        /// The object is not valid.
        pub REASON_INVALID_CONFIGURATION = "InvalidConfiguration";
        /// The owning Cluster cannot be read.
        pub REASON_NO_OWNER_CLUSTER = "FailedToGetOwnerCluster";
        /// Owner, `clusterName` and label name different Clusters.
        pub REASON_CLUSTER_REF_CONFLICT = "ClusterRefConflict";
        /// There is no such Cluster.
        pub REASON_CLUSTER_NOT_FOUND = "ClusterNotFound";
        /// Another Cluster owns the object.
        pub REASON_OWNED_BY_OTHER = "OwnedByOtherCluster";
        /// A Cluster of the same name uses the object, which did not join it.
        pub REASON_NOT_ADOPTED = "NotAdopted";
        /// The source of the endpoint does not exist.
        pub REASON_SOURCE_NOT_FOUND = "SourceNotFound";
        /// The source of the endpoint cannot be read.
        pub REASON_SOURCE_FORBIDDEN = "SourceForbidden";
        /// The endpoint found is not valid.
        pub REASON_ENDPOINT_INVALID = "EndpointInvalid";
        /// The endpoint differs from that of the Cluster.
        pub REASON_ENDPOINT_CONFLICT = "EndpointConflict";
        /// The template for the endpoint does not exist.
        pub REASON_TEMPLATE_NOT_FOUND = "TemplateNotFound";
        /// The template for the endpoint cannot be read.
        pub REASON_TEMPLATE_FORBIDDEN = "TemplateForbidden";
        /// The reference to the template for the endpoint is invalid.
        pub REASON_TEMPLATE_INVALID = "TemplateInvalid";
        /// The template for the endpoint cannot be read for now.
        pub REASON_WAITING_FOR_TEMPLATE = "WaitingForTemplate";
        /// The Secret for the endpoint is being deleted.
        pub REASON_WAITING_FOR_SECRET = "WaitingForSecret";
        /// The Secret for the endpoint was created by another party.
        pub REASON_SECRET_NOT_OURS = "SecretNotOurs";
        /// The API server rejects the Secret for the endpoint.
        pub REASON_SECRET_REFUSED = "SecretRefused";
        /// The source changed after the endpoint was fixed.
        pub REASON_SOURCE_CHANGED = "SourceChanged";
        /// The object belongs to its Cluster.
        pub REASON_ATTACHED = "Attached";
        /// The object leaves its Cluster.
        pub REASON_DETACHING = "Detaching";
        /// The object left its Cluster.
        pub REASON_DETACHED = "Detached";
        /// The endpoint is the one in the spec.
        pub REASON_ENDPOINT_FROM_SPEC = "EndpointFromSpec";
        /// The endpoint is that of the Cluster.
        pub REASON_ENDPOINT_FROM_CLUSTER = "EndpointFromCluster";
        /// The endpoint is that of another infrastructure object.
        pub REASON_ENDPOINT_FROM_INFRA_CLUSTER = "EndpointFromInfraCluster";
        /// The endpoint is that of the control plane object.
        pub REASON_ENDPOINT_FROM_CONTROL_PLANE = "EndpointFromControlPlane";
        /// The endpoint is that of a Service.
        pub REASON_ENDPOINT_FROM_SERVICE = "EndpointFromService";
        /// The endpoint is an address of a pool.
        pub REASON_ENDPOINT_FROM_IP_POOL = "EndpointFromIPPool";
        /// The spec has no endpoint.
        pub REASON_WAITING_FOR_SPEC = "WaitingForSpec";
        /// The Cluster has no endpoint.
        pub REASON_WAITING_FOR_CLUSTER = "WaitingForCluster";
        /// The other infrastructure object has no endpoint.
        pub REASON_WAITING_FOR_INFRA_CLUSTER = "WaitingForInfraCluster";
        /// The control plane object has no endpoint.
        pub REASON_WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlane";
        /// The Service has no address.
        pub REASON_WAITING_FOR_SERVICE = "WaitingForService";
        /// The pool has granted no address.
        pub REASON_WAITING_FOR_IP_ADDRESS = "WaitingForIPAddress";
        /// The endpoint is rendered.
        pub REASON_RENDERED = "Rendered";
        /// The endpoint that is to be rendered is not known.
        pub REASON_WAITING_FOR_ENDPOINT = "WaitingForEndpoint";
        /// The source has the endpoint of the Cluster.
        pub REASON_NOT_DRIFTED = "NotDrifted";
        /// The data templates of the zones exist.
        pub REASON_DATA_TEMPLATES_FOUND = "DataTemplatesFound";
        /// The data template of a zone does not exist.
        pub REASON_DATA_TEMPLATE_NOT_FOUND = "DataTemplateNotFound";
        /// The data template of a zone cannot be read.
        pub REASON_DATA_TEMPLATE_UNREADABLE = "DataTemplateUnreadable";
        /// What workers need to join is in the workload cluster.
        pub REASON_REQUISITES_FOUND = "JoinRequisitesFound";
        /// Something that workers need to join is not there.
        pub REASON_REQUISITES_MISSING = "JoinRequisitesMissing";
        /// There is no kubeconfig of the workload cluster, or it cannot be used.
        pub REASON_KUBECONFIG_UNUSABLE = "KubeconfigUnusable";
        /// The credentials of the kubeconfig may not read what workers need.
        pub REASON_WORKLOAD_FORBIDDEN = "WorkloadClusterForbidden";
        /// The workload cluster does not answer, or answers with an error.
        pub REASON_WORKLOAD_UNREACHABLE = "WorkloadClusterUnreachable";
    }
}

/// Conditions of Metal3Machine, in the standard form.
pub mod machine {
    use metal3_domain::reasons;

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

    /// In the message of [`REASON_CREATE_ERROR`]: a user has to delete a Node that has the place of the machine's own.
    pub const DELETE_NODE: &str = "delete the Node";
    /// In the message of [`REASON_HOST_FAILED`]: the host was deleted.
    pub const HOST_GONE: &str = "which the machine had, does not exist";

    reasons! {
        /// A host is associated.
        pub REASON_HOST_ASSOCIATED = "AssociateBareMetalHostSuccess";
        /// A host reserved for this control plane or MachineDeployment is associated.
        pub REASON_HOST_REUSED = "AssociateBareMetalHostViaNodeReuseSuccess";
        /// No host could be associated.
        pub REASON_HOST_FAILED = "AssociateBareMetalHostFailed";
        /// The Machine does not own the object yet.
        pub REASON_WAITING_FOR_OWNER = "WaitingForMetal3MachineOwnerRef";
        /// The cluster's infrastructure is not ready.
        pub REASON_WAITING_FOR_INFRASTRUCTURE = "WaitingForClusterInfrastructureReady";
        /// The Metal3Cluster does not exist.
        pub REASON_WAITING_FOR_CLUSTER = "WaitingforMetal3Cluster";
        /// The bootstrap data does not exist.
        pub REASON_WAITING_FOR_BOOTSTRAP = "WaitingForBootstrapData";
        /// The host could not be paused.
        pub REASON_PAUSE_SET_FAILED = "BareMetalHostPauseAnnotationSetFailed";
        /// The host could not be resumed.
        pub REASON_PAUSE_REMOVE_FAILED = "BareMetalHostPauseAnnotationRemoveFailed";
        /// More than one Metal3Cluster matches.
        pub REASON_AMBIGUOUS_CLUSTER = "AmbiguousMetal3Cluster";
        /// The referenced Metal3Cluster does not belong to the Cluster.
        pub REASON_NOT_OF_CLUSTER = "Metal3ClusterNotOfCluster";
        /// The data claim exists.
        pub REASON_META_DATA_ASSOCIATED = "AssociateMetal3MachineMetaDataSuccess";
        /// The data claim could not be made.
        pub REASON_META_DATA_FAILED = "AssociateMetal3MachineMetaDataFailed";
        /// Something could not be created.
        pub REASON_CREATE_ERROR = "CreateError";
        /// Something could not be updated.
        pub REASON_UPDATE_ERROR = "UpdateError";
        /// The object is not valid. Declared by the Go manager, never used for machines.
        pub REASON_INVALID_CONFIGURATION = "InvalidConfiguration";
        /// The data claim could not be released.
        pub REASON_META_DATA_RELEASE_FAILED = "DisassociateM3MetaDataFailed";
        /// The machine could not be deleted.
        pub REASON_DELETION_FAILED = "DeletionFailed";
        /// Whether the host is to be kept with its disks is not decided.
        pub REASON_REUSE_UNDECIDED = "NodeReuseUndecided";
        /// The Secrets were rendered.
        pub REASON_SECRETS_READY = "Metal3DataSecretsReady";
        /// The user supplied the Secrets.
        pub REASON_SECRETS_EXTERNAL = "SecretsSetExternally";
        /// The Secrets are being rendered.
        pub REASON_WAITING_FOR_DATA = "WaitingForMetal3Data";
        /// The labels are equal.
        pub REASON_LABELS_SYNCED = "NodeLabelsSynced";
        /// The Node or its cluster is not there yet.
        pub REASON_WAITING_FOR_NODE = "WaitingForNode";
        /// The labels cannot be copied until something is corrected.
        pub REASON_LABELS_FAILED = "NodeLabelsFailed";
    }
}

/// Conditions of Metal3DataTemplate.
pub mod data_template {
    /// Whether the status shows only some of the indexes in use.
    pub const INDEXES_TRUNCATED: &str = "IndexesTruncated";
}

/// Conditions of Metal3Remediation. The Go manager writes none.
pub mod remediation {
    use metal3_domain::reasons;

    /// Whether the machine is back.
    pub const REMEDIATED: &str = "Remediated";
    /// Whether the object is paused.
    pub const PAUSED: &str = "Paused";

    reasons! {
        /// The host was powered off and on, and the Node is restored.
        pub REASON_NODE_RESTORED = "NodeRestored";
        /// The host is still on.
        pub REASON_WAITING_FOR_POWER_OFF = "WaitingForPowerOff";
        /// The host is still off.
        pub REASON_WAITING_FOR_POWER_ON = "WaitingForPowerOn";
        /// Pods or volumes are still on the Node.
        pub REASON_WAITING_FOR_DRAIN = "WaitingForDrain";
        /// The Node still exists.
        pub REASON_WAITING_FOR_NODE_DELETION = "WaitingForNodeDeletion";
        /// The Node has not registered again.
        pub REASON_WAITING_FOR_NODE = "WaitingForNode";
        /// Another program undoes a change of the Node.
        pub REASON_NODE_CHANGE_UNDONE = "NodeChangeUndone";
        /// The workload cluster does not answer.
        pub REASON_WORKLOAD_CLUSTER_UNREACHABLE = "WorkloadClusterUnreachable";
        /// The Node is not read, because other requests are under way.
        pub REASON_WAITING_FOR_REQUESTS = "WaitingForRequests";
        /// The machine has no host that could be powered off.
        pub REASON_HOST_NOT_FOUND = "HostNotFound";
        /// The host is in use by another consumer.
        pub REASON_HOST_IN_USE = "HostInUse";
        /// The host or the machine is paused.
        pub REASON_HOST_PAUSED = "HostPaused";
        /// The host must not be powered off.
        pub REASON_POWER_OFF_DISABLED = "PowerOffDisabled";
        /// The user keeps the host off.
        pub REASON_HOST_OFFLINE = "HostOffline";
        /// Every attempt failed.
        pub REASON_GIVEN_UP = "GivenUp";
        /// No Machine owns the object.
        pub REASON_OWNER_NOT_FOUND = "OwnerNotFound";
        /// The Machine is being deleted.
        pub REASON_MACHINE_DELETING = "MachineDeleting";
        /// The strategy does nothing.
        pub REASON_NO_STRATEGY = "StrategyNotSupported";
        /// The phase is none of those that a controller writes.
        pub REASON_UNKNOWN_PHASE = "PhaseUnknown";
        /// A relevant object cannot be decoded.
        pub REASON_UNREADABLE = "ObjectUnreadable";
        /// The next step was taken.
        pub REASON_IN_PROGRESS = "InProgress";
    }
}

/// Reasons shared by all kinds.
pub mod shared {
    use metal3_domain::reasons;

    reasons! {
        /// The object is ready.
        pub REASON_READY = "Ready";
        /// Something is wrong.
        pub REASON_NOT_READY = "NotReady";
        /// Something is not known.
        pub REASON_READY_UNKNOWN = "ReadyUnknown";
        /// The object is being deleted.
        pub REASON_DELETING = "Deleting";
        /// The object is paused.
        pub REASON_PAUSED = "Paused";
        /// The object is not paused.
        pub REASON_NOT_PAUSED = "NotPaused";
        /// A required condition is absent.
        pub REASON_NOT_YET_REPORTED = "NotYetReported";
        /// A field has no effect.
        pub REASON_NOT_YET = "NotYet";
    }
}

/// Conditions in the older form, and their reasons.
pub mod legacy {
    use metal3_domain::reasons;

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

    reasons! {
        /// The endpoint is not valid.
        pub REASON_ENDPOINT_FAILED = "ControlPlaneEndpointFailed";
        /// The Machine does not own the object yet.
        pub REASON_WAITING_FOR_OWNER = "WaitingForM3MachineOwnerRef";
        /// The cluster's infrastructure is not ready.
        pub REASON_WAITING_FOR_INFRASTRUCTURE = "WaitingForClusterInfrastructure";
        /// The Metal3Cluster does not exist.
        pub REASON_WAITING_FOR_CLUSTER = "WaitingforMetal3Cluster";
        /// The bootstrap data does not exist.
        pub REASON_WAITING_FOR_BOOTSTRAP = "WaitingForBootstrapReady";
        /// The machine is paused.
        pub REASON_PAUSED = "Metal3MachinePaused";
        /// The host could not be paused.
        pub REASON_PAUSE_SET_FAILED = "PauseAnnotationSetFailedReason";
        /// The host could not be resumed.
        pub REASON_PAUSE_REMOVE_FAILED = "PauseAnnotationRemoveFailed";
        /// No host could be associated.
        pub REASON_HOST_FAILED = "AssociateBMHFailed";
        /// The Secrets are being rendered.
        pub REASON_WAITING_FOR_DATA = "WaitingForMetal3Data";
        /// The data claim could not be made.
        pub REASON_META_DATA_FAILED = "AssociateM3MetaDataFailed";
        /// The machine is being deleted.
        pub REASON_DELETING = "Deleting";
        /// The data claim could not be released.
        pub REASON_META_DATA_RELEASE_FAILED = "DisassociateM3MetaDataFailed";
        /// The machine could not be deleted.
        pub REASON_DELETION_FAILED = "DeletionFailed";
        /// The Node could not be given its provider ID. Declared by the Go manager, never used.
        pub REASON_PROVIDER_ID_FAILED = "SettingProviderIDOnNodeFailed";
    }

    /// Requires a change by the user.
    pub const SEVERITY_ERROR: &str = "Error";
    /// Trying again may help.
    pub const SEVERITY_WARNING: &str = "Warning";
}
