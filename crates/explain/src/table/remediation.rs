//! Reasons of Metal3Remediations.

use super::row::{Row, Severity, done, hardware, passes, user};

pub(super) const ROWS: &[Row] = &[
    done(
        "NodeRestored",
        "The Node is restored",
        "The host was powered off and on, and the Node is as it was. The MachineHealthCheck decides what follows.",
    ),
    passes(
        "WaitingForPowerOff",
        "The host is still on",
        "The host is to be powered off, and Ironic has not done so yet.",
        "If it lasts, see the BareMetalHost: its BMC may not respond.",
    ),
    passes(
        "WaitingForPowerOn",
        "The host is still off",
        "The host is to be powered on, and Ironic has not done so yet.",
        "If it lasts, see the BareMetalHost and its annotations `reboot.metal3.io`.",
    ),
    passes(
        "WaitingForDrain",
        "Pods or volumes are still on the Node",
        "The Node is out of service. The host stays off until no Pod terminates on it and no volume is attached.",
        "If it lasts, see the Pods of the Node and its VolumeAttachments in the workload cluster.",
    ),
    passes(
        "WaitingForNodeDeletion",
        "The Node is being deleted",
        "The kubelet of the Node is older than 1.28, so its Node is deleted instead of tainted.",
        "If it lasts, see the finalizers of the Node.",
    ),
    hardware(
        Severity::Warning,
        [
            "WaitingForNode",
            "The Node has not registered again",
            "The host is on. Its system or kubelet has not started yet, or does not start.",
            "See the console of the machine. When the time of the attempt is over, the next one begins.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "NodeChangeUndone",
            "Another program undoes a change of the Node",
            "Its taint `node.kubernetes.io/out-of-service` is set again after it was removed, or removed or its Node created again.",
            "Find that program in the audit log of the workload cluster, and stop it.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "WorkloadClusterUnreachable",
            "The workload cluster does not respond",
            "The Node cannot be read or changed.",
            "See the API server of the workload cluster, and the Secret `CLUSTER-kubeconfig`.",
        ],
    ),
    passes(
        "WaitingForRequests",
        "Other requests to workload clusters are under way",
        "A namespace has a limited number of requests at a time, so that servers without an answer keep no others waiting.",
        "If it lasts, see the API servers of the workload clusters of the namespace.",
    ),
    user(
        Severity::Error,
        [
            "HostNotFound",
            "The machine has no host",
            "There is no BareMetalHost that could be powered off: the machine has none, or it does not exist.",
            "Delete the Machine, so that its owner creates another; or restore the host.",
        ],
    ),
    user(
        Severity::Error,
        [
            "HostInUse",
            "The host belongs to another consumer",
            "The BareMetalHost that the machine had is not its own any more, so it is not powered off.",
            "Delete the Machine, so that its owner creates another.",
        ],
    ),
    user(
        Severity::Info,
        [
            "HostPaused",
            "The host or its machine is paused",
            "Nothing is powered off or on while one of them is paused.",
            "Let a `clusterctl move` complete, or repeat it if it was interrupted. Otherwise remove the pause that the message names.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "PowerOffDisabled",
            "The host must not be powered off",
            "`spec.disablePowerOff` of the BareMetalHost forbids what the remediation does.",
            "Reboot the machine by hand, or delete the Machine: its host is then deprovisioned, and its disks are erased as \
             `spec.automatedCleaningMode` says.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "HostOffline",
            "The user keeps the host off",
            "`spec.online` of the BareMetalHost is false, so nothing is tried.",
            "Set `spec.online: true`. When the Node is back, delete the Metal3Remediation.",
        ],
    ),
    hardware(
        Severity::Error,
        [
            "GivenUp",
            "Every attempt failed",
            "The owner of the Machine replaces it. The host has the annotation `capm3.metal3.io/unhealthy`, so that no \
             machine takes it.",
            "Repair the host, then run `kubectl annotate bmh NAME capm3.metal3.io/unhealthy-`.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "OwnerNotFound",
            "No Machine owns it",
            "There is nothing to repair.",
            "Delete the Metal3Remediation, or set its owner reference to an existing Machine.",
        ],
    ),
    done(
        "MachineDeleting",
        "The Machine is being deleted",
        "There is nothing to repair; a host that is kept off is powered on.",
    ),
    user(
        Severity::Error,
        [
            "StrategyNotSupported",
            "The strategy does nothing",
            "`spec.strategy.type` is not `Reboot`.",
            "Set it in the Metal3RemediationTemplate.",
        ],
    ),
    user(
        Severity::Error,
        [
            "PhaseUnknown",
            "The phase is not known",
            "`status.phase`, or the annotation `remediation.metal3.io/progress` of an object without status, has a text that no controller writes.",
            "Remove what the message names, or delete the Metal3Remediation.",
        ],
    ),
    passes(
        "InProgress",
        "The next step was taken",
        "The remediation continues.",
        "Wait.",
    ),
    done(
        "RemediationStarted",
        "The remediation begins",
        "The host is powered off and on.",
    ),
    passes(
        "RemediationRetried",
        "Another attempt begins",
        "The machine did not come back in the time of the last attempt.",
        "See the console of the machine if the attempts continue to fail.",
    ),
    hardware(
        Severity::Error,
        [
            "RemediationGivenUp",
            "Every attempt failed",
            "The Machine is marked, so that its owner replaces it, and its host is left out.",
            "Repair the host, then run `kubectl annotate bmh NAME capm3.metal3.io/unhealthy-`.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "NodeNotFenced",
            "The host was powered on before its Node was fenced",
            "The workload cluster did not permit the fence in half of the time of an attempt, so this was a plain reboot.",
            "Check that no Pod with a volume runs twice; see the message for what was missing.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "NodeNotRestored",
            "The Node was not restored",
            "The remediation ended while the workload cluster refused or did not respond.",
            "Remove the taint `node.kubernetes.io/out-of-service` from the Node, and add its former labels by hand.",
        ],
    ),
    passes(
        "WaitingForRemediation",
        "The owner of the Machine replaces it",
        "The condition `OwnerRemediated` of the Machine is false after a failed remediation.",
        "Wait for the MachineSet or the control plane. A Machine without owner is deleted by hand.",
    ),
];
