//! Reasons of the conditions of HostClaims.

use super::row::{Row, Severity, done, passes, user};

const fn notice(row: [&'static str; 4]) -> Row {
    user(Severity::Info, row)
}

const fn warning(row: [&'static str; 4]) -> Row {
    user(Severity::Warning, row)
}

pub(super) const ROWS: &[Row] = &[
    done(
        "BareMetalHostAssociated",
        "A host is bound to the claim",
        "The host names the claim as its consumer, and a HostDeployPolicy permitted it.",
    ),
    done(
        "ConfigurationSynced",
        "The host has the spec of the claim",
        "Image, power, Secrets and reboots were passed on.",
    ),
    done("Provisioned", "The image of the claim is deployed", "The host runs it."),
    done(
        "Ready",
        "The claim is served",
        "A host is bound, has the spec, and runs it.",
    ),
    done(
        "Available",
        "The host may be given an image",
        "It is free of any deployment.",
    ),
    notice([
        "NotAvailable",
        "The host may not be given an image",
        "No host is bound, or it is in use or prepared.",
        "See the other conditions.",
    ]),
    notice([
        "NoBareMetalHost",
        "No host can be bound",
        "No HostDeployPolicy permits the namespace of the claim, no permitted host is free, or none has what the claim asks for. The claim is \
         served as soon as one is.",
        "Ask the administrators of the hosts for a HostDeployPolicy or hosts; compare `spec.hostSelector`.",
    ]),
    warning([
        "MissingBareMetalHost",
        "The host of the claim is gone",
        "It does not exist, or it names another consumer now, or it cannot be read. It is not replaced: what runs on it may still run. A claim \
         that was moved or restored waits for its host.",
        "Restore the host, or delete the claim and create another one.",
    ]),
    warning([
        "BareMetalHostNotBound",
        "A host names the claim and was not bound by this program",
        "A user wrote its consumer while it was in use, or its record was removed or cannot be read, or two hosts are bound to the claim, so that none is changed for it.",
        "As administrator of the hosts: restore the annotation `hostclaim.metal3.io/bond`, or remove the image of the host and wait until it is \
         available, or remove `spec.consumerRef`.",
    ]),
    warning([
        "HostDeployPolicyMissing",
        "No policy permits the claim any more",
        "The host stays as it is: nothing of the claim is applied, and nothing is erased.",
        "As administrator of the hosts: permit the namespace again, or remove `spec.consumerRef` of the host.",
    ]),
    warning([
        "HostDeployPolicyUnknown",
        "Whether a policy permits the claim is not known",
        "The HostDeployPolicies cannot be read, so that nothing is bound, changed or erased.",
        "As administrator of the program: bind the ClusterRole `PREFIX-hostclaims-role` of this release.",
    ]),
    notice([
        "HostPaused",
        "The claim or its host is paused",
        "Nothing is changed while the claim, or its host, is paused or moves to another cluster.",
        "Let a `clusterctl move` complete, or repeat it if it was interrupted. Otherwise remove the annotation `cluster.x-k8s.io/paused` of the claim, or \
         `baremetalhost.metal3.io/paused` of the host; administrators who work on the host annotate it with `hostclaim.metal3.io/no-pause`.",
    ]),
    passes(
        "HostClaimDeleting",
        "The host of a deleted claim is released",
        "What was deployed is removed and the disks are cleaned as was decided when the host was bound. Then it is free.",
        "It takes minutes. If it lasts, see the conditions of the host.",
    ),
    warning([
        "HostClaimDeletionFailed",
        "The host of a deleted claim cannot be released",
        "The host has an error, is detached, waits for a confirmation, cannot be read or lost its record, or no HostDeployPolicy permits the claim \
         any more, so that nothing is erased for it.",
        "Do what the message says. As administrator of the hosts: see the host; permit the namespace again, or remove `spec.consumerRef` of the \
         host.",
    ]),
    warning([
        "BareMetalHostNotSynchronized",
        "The host does not have the spec of the claim",
        "The host is deleted or may not be powered off, the API server refuses a change of it, or a part of the claim is ignored.",
        "Do what the message says; see the webhooks and policies of the cluster of the hosts.",
    ]),
    warning([
        "UserDataSecretSyncFailure",
        "The user data are not copied",
        "The Secret is missing or may not be used, or another Secret has the name of the copy. Nothing is deployed until it is copied.",
        "Do what the message says.",
    ]),
    warning([
        "NetworkDataSecretSyncFailure",
        "The network data are not copied",
        "The Secret is missing or may not be used, or another Secret has the name of the copy. Nothing is deployed until it is copied.",
        "Do what the message says.",
    ]),
    warning([
        "MetaDataSecretSyncFailure",
        "The metadata are not copied",
        "The Secret is missing or may not be used, or another Secret has the name of the copy. Nothing is deployed until it is copied.",
        "Do what the message says.",
    ]),
    warning([
        "RegistryLoginSecretSyncFailure",
        "The login to the registry of the image is not copied",
        "The Secret of `spec.image.ociAuthSecretName` is missing in the namespace of the claim or of another type than \
         `kubernetes.io/dockerconfigjson`, or another Secret has the name of the copy.",
        "Do what the message says.",
    ]),
    notice([
        "NotProvisioned",
        "Nothing is deployed",
        "The claim asks for no deployment, or has no host.",
        "Set `spec.image` or `spec.customDeploy`.",
    ]),
    passes(
        "Provisioning",
        "The host is provisioned",
        "The image is deployed, or is about to be.",
        "It takes minutes. If it lasts, see the conditions of the host.",
    ),
    passes(
        "Deprovisioning",
        "What was deployed is removed",
        "The host is deprovisioned and cleaned.",
        "It takes minutes. If it lasts, see the conditions of the host.",
    ),
    warning([
        "BareMetalHostFailed",
        "The host has an error",
        "The operation is tried again. The claim does not contain the error, which names the BMC.",
        "As administrator of the hosts: see the error of the host.",
    ]),
    warning([
        "HostClaimAbsent",
        "A host names a claim that does not exist",
        "The host stays as it is: the claim may be moved or restored. An Event on the host says so each hour.",
        "Restore the claim with its annotations, or remove `spec.consumerRef` of the host, and its image, which has it deprovisioned.",
    ]),
    warning([
        "ObjectUnreadable",
        "The claim cannot be decoded",
        "Nothing is changed for it.",
        "Correct the member that the message names.",
    ]),
];
