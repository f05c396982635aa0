//! Reasons of Metal3Clusters.

use super::row::{Row, Severity, done, passes, user};

pub(super) const ROWS: &[Row] = &[
    passes(
        "ControlPlaneEndpointFailed",
        "The endpoint of the control plane is not known",
        "Without host and port of the API server no machine is created. The message names what is missing.",
        "Set `spec.controlPlaneEndpoint` of the Metal3Cluster, or see its condition `ControlPlaneEndpointReady`.",
    ),
    user(
        Severity::Error,
        [
            "InvalidConfiguration",
            "The object is not valid",
            "A member of the spec cannot be used; nothing continues until it is changed. The message names it.",
            "Correct the member: `kubectl edit metal3cluster NAME`.",
        ],
    ),
    user(
        Severity::Error,
        [
            "FailedToGetOwnerCluster",
            "The owning Cluster does not exist",
            "The Metal3Cluster belongs to a Cluster that is not in this namespace.",
            "Create the Cluster, or delete the Metal3Cluster.",
        ],
    ),
    user(
        Severity::Error,
        [
            "ClusterRefConflict",
            "It names two Clusters",
            "Owner reference, `spec.clusterName` and the label `cluster.x-k8s.io/cluster-name` do not name the same Cluster.",
            "Make them equal, or remove `spec.clusterName` or the label.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "ClusterNotFound",
            "The named Cluster does not exist",
            "`spec.clusterName` or the label names a Cluster that is not in this namespace.",
            "Create the Cluster, or correct the name.",
        ],
    ),
    user(
        Severity::Error,
        [
            "OwnedByOtherCluster",
            "Another Cluster owns it",
            "The object is to join a Cluster while another one owns it. It serves the owner only.",
            "Remove the name of the second Cluster, or create another Metal3Cluster for it.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "NotAdopted",
            "A Cluster uses it and does not own it",
            "A Cluster of the same name uses the object, which did not join it: it is not moved, paused or deleted with the \
             Cluster.",
            "Set `spec.clusterName` of the Metal3Cluster to the name of the Cluster.",
        ],
    ),
    done(
        "Attached",
        "It belongs to its Cluster",
        "The object joined the Cluster that it names.",
    ),
    done(
        "Detaching",
        "It leaves its Cluster",
        "A detach is requested. The object leaves after its last machine is deleted.",
    ),
    user(
        Severity::Info,
        [
            "Detached",
            "It left its Cluster",
            "The annotation `infrastructure.cluster.x-k8s.io/detach` took the object from its Cluster.",
            "Remove the annotation to attach it again, or delete the object.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "SourceNotFound",
            "The source of the endpoint does not exist",
            "`spec.controlPlaneEndpointSource` names an object that does not exist. A known endpoint is kept.",
            "Create the object, or name another source.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "SourceForbidden",
            "The source of the endpoint may not be read",
            "The service account of this program lacks a permission on the source. A known endpoint is kept.",
            "Grant the permission that the message names, list and watch included. It is retried each minute.",
        ],
    ),
    user(
        Severity::Error,
        [
            "EndpointInvalid",
            "The endpoint of the source is not valid",
            "The source has a host or port that cannot be an endpoint.",
            "Correct the source, or name another one.",
        ],
    ),
    user(
        Severity::Error,
        [
            "EndpointConflict",
            "Two endpoints contradict each other",
            "The Cluster has another endpoint than this object. That of the Cluster counts; Cluster API never changes it.",
            "Set `spec.controlPlaneEndpoint` of the Metal3Cluster to that of the Cluster.",
        ],
    ),
    done(
        "EndpointFromSpec",
        "The endpoint is the one in the spec",
        "`spec.controlPlaneEndpoint` has host and port.",
    ),
    done(
        "EndpointFromCluster",
        "The endpoint is that of the Cluster",
        "The Cluster has an endpoint, which is used.",
    ),
    done(
        "EndpointFromInfraCluster",
        "The endpoint is that of another infrastructure object",
        "The infrastructure object of the Cluster, of another provider, has it.",
    ),
    done(
        "EndpointFromControlPlane",
        "The endpoint is that of the control plane object",
        "The control plane object of the Cluster has it.",
    ),
    done(
        "EndpointFromService",
        "The endpoint is that of a Service",
        "The load balancer of the Service has it.",
    ),
    done(
        "EndpointFromIPPool",
        "The endpoint is an address of a pool",
        "The claim on the pool was granted.",
    ),
    user(
        Severity::Warning,
        [
            "WaitingForSpec",
            "The spec has no endpoint",
            "`spec.controlPlaneEndpoint` lacks host or port, and no other source is named.",
            "Set both to where the API server of the workload cluster is reached.",
        ],
    ),
    passes(
        "WaitingForCluster",
        "The Cluster has no endpoint",
        "The endpoint is to come from `spec.controlPlaneEndpoint` of the Cluster, which is empty.",
        "See what provides the endpoint of the Cluster: `kubectl describe cluster NAME`.",
    ),
    passes(
        "WaitingForInfraCluster",
        "The other infrastructure object has no endpoint",
        "The endpoint is to come from the infrastructure object of another provider, which does not report it.",
        "See the conditions of the object that the message names.",
    ),
    passes(
        "WaitingForControlPlane",
        "The control plane object has no endpoint",
        "The endpoint is to come from the control plane object, which does not report it.",
        "See the conditions of the object that the message names.",
    ),
    passes(
        "WaitingForService",
        "The Service has no address",
        "The endpoint is to come from a Service whose load balancer has no address.",
        "See the Events of the Service, and whether something provides load balancers in this cluster.",
    ),
    passes(
        "WaitingForIPAddress",
        "The pool has granted no address",
        "The endpoint is to come from a pool, and its claim is not granted.",
        "See the claim: `kubectl metal3 why ipclaim/NAME`. Extend the pool if it has no free address.",
    ),
    done(
        "Rendered",
        "The endpoint is rendered",
        "The Secret of `controlPlaneEndpointSource.render` has the endpoint.",
    ),
    passes(
        "WaitingForEndpoint",
        "The endpoint that is to be rendered is not known",
        "The template is filled in once the endpoint is known.",
        "See the condition `ControlPlaneEndpointReady`.",
    ),
    passes(
        "WaitingForTemplate",
        "The template cannot be read at the moment",
        "The ConfigMap with the template was not read yet, or a request failed.",
        "Wait. If it lasts, see the message.",
    ),
    done(
        "DataTemplatesFound",
        "The data templates of the zones exist",
        "Each Metal3DataTemplate in `spec.deploymentZones` is there.",
    ),
    user(
        Severity::Warning,
        [
            "DataTemplateNotFound",
            "The data template of a zone does not exist",
            "Until it exists, no machine that takes its data from a zone takes a host. The message names zone and template.",
            "Create the Metal3DataTemplate, or correct `spec.deploymentZones[].dataTemplate` of the Metal3Cluster.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "DataTemplateUnreadable",
            "The data template of a zone cannot be read",
            "Whether machines of the zone get their data is not known. The message names zone and template.",
            "Correct the Metal3DataTemplate.",
        ],
    ),
    done(
        "JoinRequisitesFound",
        "Workers can join",
        "What is looked for in the workload cluster is there.",
    ),
    user(
        Severity::Warning,
        [
            "JoinRequisitesMissing",
            "The control plane lacks what workers need",
            "Machines may never become Nodes. The message names the objects.",
            "Create them as the message says, or use the bootstrap provider of the control plane.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "KubeconfigUnusable",
            "The kubeconfig cannot be used",
            "The message names the Secret.",
            "Correct it.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "WorkloadClusterForbidden",
            "The kubeconfig may not read it",
            "Whether workers can join is not known.",
            "Permit what the message names.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "WorkloadClusterUnreachable",
            "The workload cluster does not answer",
            "Whether workers can join is not known.",
            "Check address and network.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "TemplateNotFound",
            "The template does not exist",
            "The ConfigMap of `render.configMapName`, or the key `render.key` in it, does not exist.",
            "Create it, or correct the name.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "TemplateForbidden",
            "The template may not be read",
            "The service account of this program may not read the ConfigMap.",
            "Grant the permission that the message names. It is retried each minute.",
        ],
    ),
    user(
        Severity::Error,
        [
            "TemplateInvalid",
            "The reference to the template is not valid",
            "A name in `controlPlaneEndpointSource.render` is not valid.",
            "Correct the name that the message has.",
        ],
    ),
    passes(
        "WaitingForSecret",
        "The Secret is being deleted",
        "The Secret with the rendered endpoint is created again after its deletion.",
        "If it lasts, see its `metadata.finalizers`.",
    ),
    user(
        Severity::Error,
        [
            "SecretNotOurs",
            "The Secret has another owner",
            "A Secret of the requested name was not created for this object, and stays as it is.",
            "Set another `render.secretName`. Delete the Secret only if nothing uses it.",
        ],
    ),
    user(
        Severity::Error,
        [
            "SecretRefused",
            "The API server rejects the Secret",
            "A quota, an admission policy or a missing permission forbids the Secret. The message has the answer.",
            "Change what forbids it. The write is retried each minute.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "SourceChanged",
            "The source changed after the endpoint was fixed",
            "The Cluster keeps its endpoint, and the source now has another. Machines still use that of the Cluster.",
            "Revert the source, or create a new Cluster for the new endpoint.",
        ],
    ),
    done(
        "NotDrifted",
        "The source has the endpoint of the Cluster",
        "Source and Cluster have the same endpoint.",
    ),
    passes(
        "EndpointSourcePending",
        "The source of the endpoint is being listed",
        "The first list of the source is not complete.",
        "Wait. If it lasts, see the log of this program.",
    ),
];
