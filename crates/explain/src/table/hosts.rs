//! Reasons of BareMetalHosts: conditions, errors, Events and waits.

use super::row::{Row, Severity, done, hardware, passes, user};
use super::{cleaning, ironics};

/// What a user corrects, and what breaks nothing.
pub(super) const fn warning(row: [&'static str; 4]) -> Row {
    user(Severity::Warning, row)
}

/// What a user may do.
const fn notice(row: [&'static str; 4]) -> Row {
    user(Severity::Info, row)
}

/// What stops a host until a user acts.
pub(super) const fn failure(row: [&'static str; 4]) -> Row {
    user(Severity::Error, row)
}

/// What stops a host until a person repairs its machine.
const fn machine(row: [&'static str; 4]) -> Row {
    hardware(Severity::Error, row)
}

pub(super) const ROWS: &[Row] = &[
    done(
        "Manageable",
        "The BMC accepts commands",
        "Ironic verified address and credentials.",
    ),
    notice([
        "NotManaged",
        "The host has no BMC",
        "`spec.bmc` has neither address nor credentials, so nothing is done with the machine.",
        "Set `spec.bmc.address` and `spec.bmc.credentialsName`.",
    ]),
    passes(
        "Registering",
        "Ironic verifies the BMC",
        "The node is created in Ironic, which tries address and credentials of the BMC.",
        "It takes seconds. If it lasts, the BMC is slow or Ironic does not respond: see the log of Ironic.",
    ),
    machine([
        "RegistrationFailed",
        "The verification of the BMC failed",
        "Ironic could not log in to the BMC. The message has the answer of the BMC or of the network.",
        "Check `spec.bmc.address`, the Secret `spec.bmc.credentialsName`, and the network from Ironic to the BMC.",
    ]),
    machine([
        "PowerFailure",
        "The BMC stopped responding",
        "Ironic cannot read the power state. The machine itself may still run.",
        "Check power, network and credentials of the BMC. Ironic continues once it responds.",
    ]),
    machine([
        "BMCLoginRefused",
        "The BMC refuses the login that its Secret gained",
        "The message names the version that was tried, and the last one that the BMC accepted. Nothing is done with the machine; a system \
         on it runs on.",
        "Correct the Secret `spec.bmc.credentialsName`, or the account of the BMC.",
    ]),
    done(
        "Available",
        "The host may be given an image",
        "The host is inspected, prepared and free.",
    ),
    passes(
        "NotAvailable",
        "The host may not be given an image now",
        "It is in another state than `available`. `status.provisioning.state` names it.",
        "See the condition `Progressing`, or the error of the host.",
    ),
    done(
        "Provisioned",
        "The machine runs an image",
        "The deployment is complete.",
    ),
    passes(
        "NotProvisioned",
        "No image is deployed",
        "The host has no image, or its deployment is not complete.",
        "See the condition `Progressing`, or the error of the host. A free host waits for a machine.",
    ),
    done(
        "NotProgressing",
        "Nothing is in progress",
        "The host stays in its state until a user or a machine changes it.",
    ),
    passes(
        "Inspecting",
        "The hardware is inspected",
        "The machine boots the agent of Ironic, or the BMC is read, to find disks, NICs and memory.",
        "If it lasts longer than a boot, see whether Ironic responds, and the console: the agent must boot from the network or the virtual drive.",
    ),
    passes(
        "Preparing",
        "The host is prepared",
        "RAID, firmware and BIOS are set, and disks are cleaned as `spec.automatedCleaningMode` says.",
        "If it lasts, see whether Ironic responds, its log, and the console of the machine.",
    ),
    passes(
        "Provisioning",
        "The image is deployed",
        "The agent writes the image to the disk; then the machine boots from it.",
        "If it lasts, see whether Ironic responds, the console of the machine, and whether the image server is reached from it.",
    ),
    passes(
        "Deprovisioning",
        "The image is removed",
        "The machine is cleaned as `spec.automatedCleaningMode` says.",
        "If it lasts, see whether Ironic responds, its log, and the console of the machine.",
    ),
    passes(
        "PoweringOffBeforeDelete",
        "The machine is powered off before its deletion",
        "A deleted host is powered off, so that no machine runs unmanaged. After three failures it is deleted anyway.",
        "If it lasts, see whether the BMC responds.",
    ),
    failure([
        "Error",
        "An operation failed",
        "`status.errorType` names the operation, `status.errorMessage` cause and remedy. Retries follow after a delay that doubles.",
        "Do what the message says. See the reason of the error type below.",
    ]),
    notice([
        "Detached",
        "The host is detached from Ironic",
        "The annotation `baremetalhost.metal3.io/detached` is set: Ironic has no node of it, and the machine runs on.",
        "Remove the annotation to manage the host again.",
    ]),
    passes(
        "Servicing",
        "The machine is serviced",
        "Firmware or BIOS of a machine in use are changed.",
        "Wait. If it lasts, see the log of Ironic.",
    ),
    done("Healthy", "The hardware is healthy", "The BMC reports no problem."),
    hardware(
        Severity::Warning,
        [
            "Warning",
            "The BMC reports a hardware warning",
            "Some part of the machine is degraded. The host works.",
            "See the log of the BMC.",
        ],
    ),
    machine([
        "CriticalError",
        "The BMC reports a hardware failure",
        "Some part of the machine failed.",
        "See the log of the BMC, and repair the machine.",
    ]),
    passes(
        "Unknown",
        "The health of the hardware is not known",
        "The BMC does not report it, or Ironic is too old to read it.",
        "Nothing, unless the BMC should report it.",
    ),
    failure([
        "DeprovisionBudgetSpent",
        "Too many hosts were deprovisioned",
        "The limit for the namespace is reached, so this host is not erased and still runs. It protects from a mistake that would erase a fleet.",
        "If it is intended, annotate the host with `baremetalhost.metal3.io/confirm-deprovision`; otherwise revert the change.",
    ]),
    warning([
        "RequestRefused",
        "A request contradicts `spec.disablePowerOff`",
        "The machine is to be off, and must not be powered off. Nothing is done.",
        "Remove one of them, or use the annotation `reboot.metal3.io` for one reboot.",
    ]),
    warning([
        "BootPortRefused",
        "Ironic does not accept the boot MAC address",
        "Another node in Ironic has the address. The running machine does not need it; it is requested again each hour.",
        "Remove the address from the other node. Do not delete the host for it: that deprovisions its machine.",
    ]),
    warning([
        "FirmwarePending",
        "Updates of the firmware cannot be read or recorded",
        "The message names the right or the kind without which this program cannot read HostFirmwareComponents, or record an order in them. Nothing is cleaned meanwhile.",
        "Grant the right or install the kind that the message names, as the roles and definitions of the release do.",
    ]),
    passes(
        "FirmwareUpdatesLeft",
        "Updates of the firmware that began before have to end",
        "Ironic has updates of an earlier cleaning and would go on with them, or it lost the node while the BMC may have made them. The message names them. The machine is not touched meanwhile.",
        "Wait: they end about two hours after they began, and then the host continues. If it lasts longer, see the log of Ironic's conductor.",
    ),
    notice([
        "DeletionDelayed",
        "An annotation delays the deletion",
        "The host is deleted while `baremetalhost.metal3.io/detached` asks for a delay.",
        "Set its `deleteAction` to `delete` to delete the object and leave the machine as it is. Without the annotation the host is deprovisioned first: its machine is switched off, and its disk erased unless cleaning is disabled.",
    ]),
    warning([
        "PreprovisioningImagePending",
        "The agent of the host is not built yet",
        "With `--build-preprov-image` a host boots the agent that its PreprovisioningImage names, and the image is not ready. Nothing is inspected, cleaned or deployed meanwhile; a deleted host does not wait.",
        "See the conditions of the PreprovisioningImage with the name of the host, and whether its builder runs. The configured images (`DEPLOY_*`) need none: delete the PreprovisioningImage after setting them.",
    ]),
    warning([
        "PreprovisioningImageRefused",
        "The PreprovisioningImage of the host is refused",
        "The API server does not let this program create, change or read it: a right, a quota, a webhook, or the definition of the kind. The message has its words.",
        "Correct what the message names. It is tried again every few minutes.",
    ]),
    ironics::UNREACHABLE,
    ironics::UNKNOWN,
    ironics::NOT_CONFIGURED,
    ironics::CHANGE_REFUSED,
    ironics::MISPLACED,
    ironics::AMBIGUOUS,
    ironics::NODE_NOT_LOCATED,
    ironics::LOGIN_REFUSED,
    ironics::NOT_TRUSTED,
    cleaning::ALL_ERASED,
    cleaning::KEPT,
    cleaning::NONE_ERASED,
    cleaning::NOT_PROTECTED,
    done(
        "Discovered",
        "The host has no BMC",
        "Event of a new host without `spec.bmc`.",
    ),
    done(
        "Registered",
        "The host is registered",
        "Ironic has a node of the host, or adopts the running machine.",
    ),
    done(
        "BMCAccessValidated",
        "The BMC is verified",
        "Ironic logged in to the BMC.",
    ),
    done(
        "ProfileSet",
        "The hardware profile is set",
        "The profile is chosen from the hardware.",
    ),
    done("InspectionStarted", "Inspection begins", "The hardware is inspected."),
    done(
        "InspectionSkipped",
        "Inspection is disabled",
        "The host continues without an inventory.",
    ),
    done(
        "InspectionComplete",
        "Inspection is complete",
        "`status.hardware` has the inventory.",
    ),
    done("ProvisioningStarted", "Deployment begins", "The image is deployed."),
    done(
        "ProvisioningComplete",
        "Deployment is complete",
        "The machine boots its image.",
    ),
    done(
        "DeprovisioningStarted",
        "Deprovisioning begins",
        "The image is removed.",
    ),
    done(
        "DeprovisioningComplete",
        "Deprovisioning is complete",
        "The host is free.",
    ),
    done(
        "PowerOn",
        "The machine is powered on",
        "As `spec.online` or a reboot requests.",
    ),
    done(
        "PowerOff",
        "The machine is powered off",
        "As `spec.online`, a reboot or a deletion requests.",
    ),
    super::services::BEGUN,
    super::services::SKIPPED,
    warning([
        "InvalidAnnotationValue",
        "An annotation cannot be read",
        "Its value is not what the annotation expects, so it counts as its plain form. The message names it.",
        "Correct or remove the annotation.",
    ]),
    failure([
        "BMCCredentialError",
        "The credentials of the BMC cannot be used",
        "The Secret does not exist, may not be read, or lacks `username` or `password`; or the BMC rejects them.",
        "Create or correct the Secret `spec.bmc.credentialsName` in the namespace of the host.",
    ]),
    failure([
        "ImageAuthFormatUnsupported",
        "The Secret for the registry is of another type",
        "The Secret that `spec.image.ociAuthSecretName` names holds no logins as `docker` stores them.",
        "Create it with `kubectl create secret docker-registry`, or remove the field if the registry needs no login.",
    ]),
    failure([
        "ImageAuthParseError",
        "The Secret for the registry has no login to it",
        "Its logins cannot be read, or are to other registries than that of `spec.image.url`.",
        "Add the login to that registry; then the image is deployed without further help.",
    ]),
    done(
        "UpdateHardwareDetails",
        "Hardware details are imported",
        "They come from the annotation of the user.",
    ),
    super::data_images::UNKNOWN,
    warning([
        "NodeLeftInIronic",
        "A node stays in Ironic",
        "The node has another name, or serves another instance, so it was not deleted with the host.",
        "If nothing uses it, an administrator of Ironic deletes it. If the host moved, set the annotation `baremetalhost.metal3.io/former-instance` that the message explains.",
    ]),
    done(
        "RemoveAnnotation",
        "An annotation is removed",
        "The hardware is known already, so the annotation has no effect.",
    ),
    machine([
        "RegistrationError",
        "Registration failed",
        "Ironic cannot use the BMC, or rejects the node. `status.errorMessage` has the answer.",
        "Check address, credentials and network of the BMC; then it is retried without help.",
    ]),
    machine([
        "ProvisionedRegistrationError",
        "A running machine cannot be registered again",
        "Ironic lost the node or cannot reach its BMC. The machine runs on and nothing is erased.",
        "Check the BMC and Ironic. `status.errorMessage` has the answer.",
    ]),
    machine([
        "InspectionError",
        "Inspection failed",
        "The agent did not boot or could not collect the inventory, or the machine could not be powered on.",
        "See the console: network boot or virtual media, and `spec.bootMACAddress`. It is retried.",
    ]),
    machine([
        "PreparationError",
        "Preparation failed",
        "RAID, firmware, BIOS or cleaning failed, or the root device hints match no disk.",
        "See `status.errorMessage`; correct the spec, or repair the machine. It is retried.",
    ]),
    machine([
        "ProvisioningError",
        "Deployment or cleaning failed",
        "The image could not be fetched, verified or written, or the agent or the BMC stopped responding.",
        "See `status.errorMessage`: correct the image or its checksum, or repair the machine. It is retried.",
    ]),
    machine([
        "PowerManagementError",
        "A power change failed",
        "The machine did not go on or off.",
        "Check the BMC, and power the machine by hand once. It is retried.",
    ]),
    machine([
        "ServicingError",
        "Servicing failed",
        "A change of firmware or BIOS of a machine in use failed.",
        "See `status.errorMessage`; take the change back, or repair the machine and reboot the host: the next reboot repeats it.",
    ]),
    passes(
        "WaitingForIronic",
        "Ironic works on the node, or does not respond",
        "The next step follows the end of a task of Ironic.",
        "If it lasts, see whether Ironic responds and what its log says about the node.",
    ),
    failure([
        "WaitingForSecret",
        "A Secret is missing or cannot be used",
        "The credentials of the BMC, or user data of the image, are in a Secret that must be created or changed.",
        "Create or correct the Secret that the message names, in the namespace of the host.",
    ]),
    warning([
        "WaitingForPreprovisioningImage",
        "The image of the agent must be built",
        "The condition `Held`, or the error of the host, says what its PreprovisioningImage lacks.",
        "See the conditions of the PreprovisioningImage with the name of the host.",
    ]),
    passes(
        "WaitingForSlot",
        "Other hosts use all slots for busy hosts",
        "The number of hosts that Ironic inspects or deploys at once is limited (`PROVISIONING_LIMIT`). `operationalStatus` is `delayed`.",
        "Wait, or raise the limit if Ironic can bear it.",
    ),
    warning([
        "WaitingForUser",
        "The host must be changed",
        "Nothing is retried until a user or an administrator changes the host, or confirms.",
        "See `status.errorMessage` and the condition `Held`.",
    ]),
    passes(
        "BackingOff",
        "A failed operation is retried later",
        "The delay doubles with each failure.",
        "Remove the cause in `status.errorMessage`. A change of the spec, or of the Secret, retries at once.",
    ),
    passes(
        "WaitingForTime",
        "A delay ends soon",
        "The program waits a moment, as after a power request.",
        "Wait.",
    ),
];
