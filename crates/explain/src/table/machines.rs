//! Reasons of Metal3Machines, of both generations of conditions.

use super::row::{Row, Severity, done, passes, user};

const OWNER: [&str; 3] = [
    "No Machine owns the object",
    "Cluster API sets the owner when the Machine exists. Without it nothing is done.",
    "Wait. If it lasts, check that the Cluster API core controller runs, and that a Machine names this object in \
     `spec.infrastructureRef`.",
];
const INFRASTRUCTURE: [&str; 3] = [
    "The infrastructure of the Cluster is not ready",
    "The Machine has no label with its Cluster, the Cluster does not exist, or its infrastructure is not ready.",
    "See the Cluster: `kubectl metal3 why cluster/NAME`. Set the label `cluster.x-k8s.io/cluster-name` if it is missing.",
];
const CLUSTER: [&str; 3] = [
    "The Metal3Cluster does not exist",
    "No Metal3Cluster of the namespace belongs to the Cluster: neither the one that it names, nor one that names it.",
    "Create the Metal3Cluster that `spec.infrastructureRef` of the Cluster names. Where that is the object of another provider, \
     create one with `spec.clusterName`.",
];
const BOOTSTRAP: [&str; 3] = [
    "The bootstrap data do not exist",
    "The bootstrap provider writes them into a Secret and names it in the Machine. All machines but the first wait until \
     the control plane is initialized.",
    "See the bootstrap object of the Machine: `kubectl describe machine NAME`. For the first control plane, see the log of \
     the bootstrap provider.",
];
const PAUSE_SET: [&str; 3] = [
    "The host could not be paused",
    "The machine is paused and its BareMetalHost is not yet. It is retried.",
    "See the message; check that this program may patch BareMetalHosts.",
];
const PAUSE_REMOVED: [&str; 3] = [
    "The host could not be resumed",
    "The machine is not paused any more and its BareMetalHost still is. It is retried.",
    "See the message; check that this program may patch BareMetalHosts.",
];
const NO_HOST: [&str; 3] = [
    "No host can be claimed",
    "No BareMetalHost of the namespace is available, matches `spec.hostSelector` and is free. The message counts the hosts \
     by what excludes them.",
    "`capm3 select --machine=NAME --namespace=NAMESPACE` names each host and what excludes it. Register hosts, repair \
     those with an error, or widen the selector.",
];
const DATA: [&str; 3] = [
    "Metadata and network data are not rendered",
    "The Metal3Data of the machine waits for an address, a host or a template.",
    "Follow its Metal3DataClaim and Metal3Data: `kubectl metal3 why metal3machine/NAME` does.",
];
const REQUEST: [&str; 3] = [
    "The data cannot be requested",
    "The spec of the machine is refused, or its Metal3DataClaim cannot be created. The message says which.",
    "Correct the member that the message names, in the template of the machine, and replace the Machine.",
];
const RELEASE: [&str; 3] = [
    "The data cannot be released",
    "The machine is being deleted, and its Metal3DataClaim cannot be deleted. It is retried.",
    "See the message, and the finalizers of the Metal3DataClaim.",
];
const DELETION: [&str; 3] = [
    "The host cannot be released",
    "The machine is being deleted, and its BareMetalHost cannot be released. It is retried.",
    "See the message, and the BareMetalHost.",
];

/// A wait that has one word in each generation.
const fn waiting(reason: &'static str, [title, meaning, cure]: [&'static str; 3]) -> Row {
    passes(reason, title, meaning, cure)
}

/// A failure that has one word in each generation.
const fn failed(reason: &'static str, [title, meaning, cure]: [&'static str; 3]) -> Row {
    user(Severity::Error, [reason, title, meaning, cure])
}

/// A problem that has one word in each generation.
const fn problem(reason: &'static str, [title, meaning, cure]: [&'static str; 3]) -> Row {
    user(Severity::Warning, [reason, title, meaning, cure])
}

pub(super) const ROWS: &[Row] = &[
    done(
        "AssociateBareMetalHostSuccess",
        "The machine has a host",
        "The machine is the consumer of a BareMetalHost.",
    ),
    done(
        "AssociateBareMetalHostViaNodeReuseSuccess",
        "The machine has the host kept for it",
        "The host was kept for the control plane or MachineDeployment of the machine.",
    ),
    failed("AssociateBareMetalHostFailed", NO_HOST),
    failed("AssociateBMHFailed", NO_HOST),
    waiting("WaitingForMetal3MachineOwnerRef", OWNER),
    waiting("WaitingForM3MachineOwnerRef", OWNER),
    waiting("WaitingForClusterInfrastructureReady", INFRASTRUCTURE),
    waiting("WaitingForClusterInfrastructure", INFRASTRUCTURE),
    problem("WaitingforMetal3Cluster", CLUSTER),
    waiting("WaitingForBootstrapData", BOOTSTRAP),
    waiting("WaitingForBootstrapReady", BOOTSTRAP),
    user(
        Severity::Info,
        [
            "Metal3MachinePaused",
            "The machine is paused",
            "The annotation `cluster.x-k8s.io/paused`, or `spec.paused` of the Cluster, stops all work on it.",
            "Let a `clusterctl move` complete, or repeat it if it was interrupted. Otherwise remove the annotation, or unpause the \
             Cluster.",
        ],
    ),
    problem("BareMetalHostPauseAnnotationSetFailed", PAUSE_SET),
    problem("PauseAnnotationSetFailedReason", PAUSE_SET),
    problem("BareMetalHostPauseAnnotationRemoveFailed", PAUSE_REMOVED),
    problem("PauseAnnotationRemoveFailed", PAUSE_REMOVED),
    user(
        Severity::Error,
        [
            "AmbiguousMetal3Cluster",
            "Two Metal3Clusters belong to the Cluster",
            "Which of them the machine uses is not determined.",
            "Name one in `spec.metal3ClusterRef`, or a zone of one in `spec.failureDomain` of the Machine.",
        ],
    ),
    user(
        Severity::Error,
        [
            "Metal3ClusterNotOfCluster",
            "The Metal3Cluster does not belong to the Cluster",
            "Another Cluster's Metal3Cluster would be deleted without waiting for the machine, so the machine gets no host.",
            "Correct what the message names: in `spec.metal3ClusterRef` of the Metal3Machine and of its template, name one of the \
             Cluster, or set its `spec.clusterName`.",
        ],
    ),
    done(
        "AssociateMetal3MachineMetaDataSuccess",
        "The data are requested",
        "The Metal3DataClaim exists, and existing data are written to the host.",
    ),
    failed("AssociateMetal3MachineMetaDataFailed", REQUEST),
    failed("AssociateM3MetaDataFailed", REQUEST),
    passes(
        "CreateError",
        "The host is being provisioned, or its Node is awaited",
        "The word is that of the Go manager: it stands for a host that could not be written, and for a Node that has not \
         registered. The message says which.",
        "See the BareMetalHost. If it is provisioned and the Node does not register, see the console of the machine.",
    ),
    problem(
        "UpdateError",
        [
            "The host could not be updated",
            "The API server rejected a change of the BareMetalHost. It is retried.",
            "See the message.",
        ],
    ),
    user(
        Severity::Error,
        [
            "InvalidConfiguration",
            "The object is not valid",
            "Only an older Go manager writes this reason.",
            "See the message, and correct the spec.",
        ],
    ),
    failed("DisassociateM3MetaDataFailed", RELEASE),
    failed("DeletionFailed", DELETION),
    user(
        Severity::Error,
        [
            "NodeReuseUndecided",
            "Whether the disks are kept is not decided",
            "The host would be cleaned although node reuse is wanted, or the set or its template cannot be read. Nothing is \
             erased until it is decided.",
            "Set `automatedCleaningMode: disabled` to keep the disks, or annotate the template of the set with \
             `infrastructure.cluster.x-k8s.io/node-reuse-after-cleaning` to clean them.",
        ],
    ),
    done(
        "Metal3DataSecretsReady",
        "The data are rendered",
        "The Secrets with metadata and network data exist.",
    ),
    done(
        "SecretsSetExternally",
        "The user supplies the Secrets",
        "There is no data template.",
    ),
    waiting("WaitingForMetal3Data", DATA),
    done(
        "NodeLabelsSynced",
        "The Node has the labels of the host",
        "The selected labels are equal.",
    ),
    passes(
        "WaitingForNode",
        "The Node is not there yet",
        "The labels of the host are copied once the Node exists and its cluster responds.",
        "Wait. If it lasts, see the message: the workload cluster may be unreachable, or the host or the Metal3Cluster paused.",
    ),
    user(
        Severity::Warning,
        [
            "NodeLabelsFailed",
            "The labels cannot be copied",
            "The prefixes in the annotation of the Metal3Cluster cannot be read, or the workload cluster refuses the change.",
            "Correct `metal3.io/metal3-label-sync-prefixes`, or permit the kubeconfig of the cluster to get and patch Nodes.",
        ],
    ),
    passes(
        "SettingProviderIDOnNodeFailed",
        "The Node has no provider ID yet",
        "The Node has not registered, or the workload cluster does not accept the provider ID. The message says which.",
        "See the message; if the Node never registers, see the console of the machine.",
    ),
    user(
        Severity::Warning,
        [
            "HostOwnerKept",
            "The machine is still an owner of its host",
            "A Go manager up to 1.13 wrote the machine as an owner of the BareMetalHost, and the API server, which runs \
             `OwnerReferencesPermissionEnforcement`, does not let this program remove it. The machine works; its deletion waits, \
             because the host would be deleted with it.",
            "Permit this program to delete BareMetalHosts, as its released role does, or run the command of the message.",
        ],
    ),
    done(
        "Provisioned",
        "The machine is provisioned",
        "The host runs the image, and its Node is known.",
    ),
];
