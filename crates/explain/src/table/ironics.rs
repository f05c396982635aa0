//! Reasons of BareMetalHosts about the Ironic that serves them.

use super::row::{Row, failure, warning};

pub(super) const UNREACHABLE: Row = failure([
    "IronicUnreachable",
    "Ironic does not respond",
    "The next step of the host, or its deletion, needs Ironic. The machine itself may run on.",
    "Restore Ironic: see its Pods and log, `IRONIC_ENDPOINT`, and the network to it; then the host continues without help. If Ironic is lost for ever, switch the machine of a deleted host off by hand first: its disk keeps its data, and its addresses are given to others. Then remove the finalizer `baremetalhost.metal3.io` from the host.",
]);

pub(super) const UNKNOWN: Row = failure([
    "IronicUnknown",
    "The host names an Ironic that is not configured",
    "The label `baremetalhost.metal3.io/ironic` has a name that the controller does not know. Nothing is sent to any Ironic for the host.",
    "Correct the label; the log of the controller has the configured names at its start. Or configure that Ironic by `IRONIC_NAME` or `IRONIC_ENDPOINTS` of the controller.",
]);

pub(super) const NOT_CONFIGURED: Row = failure([
    "IronicNotConfigured",
    "The Ironic of the host is not configured any more",
    "The annotation `baremetalhost.metal3.io/registered-in` records the Ironic that has the node of the host, and the controller is not configured with it. Nothing is sent for the host, nor is it deleted: its machine would be left in that Ironic.",
    "Configure that Ironic again under the same name. If it is lost for ever, set the annotation to the one that takes the machine over, which adopts a provisioned machine without a reboot; for a deleted host switch the machine off by hand and remove the finalizer `baremetalhost.metal3.io`.",
]);

pub(super) const CHANGE_REFUSED: Row = warning([
    "IronicChangeRefused",
    "The host stays in its Ironic",
    "The label `baremetalhost.metal3.io/ironic` names another Ironic than the one that has the node of the host. That one continues to serve it: two Ironics would both switch the machine.",
    "Set the label back to the name in the annotation `baremetalhost.metal3.io/registered-in`. To move the machine, set the annotation `baremetalhost.metal3.io/detached`, wait until the host is detached, and remove it again.",
]);

pub(super) const MISPLACED: Row = failure([
    "IronicMisplaced",
    "Another Ironic has the node of the host",
    "The annotation `baremetalhost.metal3.io/registered-in` names an Ironic that has no node of the host, and another one lists it, as after names or URLs of Ironics were exchanged. Nothing is sent for the host, nor is it deleted: the machine would be registered a second time, or left.",
    "Put the names and URLs in `IRONIC_ENDPOINTS`, or the endpoints of the `Ironic` resources, right; then the host continues without help. Or set the annotation to the Ironic that has the node.",
]);

pub(super) const AMBIGUOUS: Row = failure([
    "IronicAmbiguous",
    "Two names lead to one Ironic",
    "The Ironic of the host is configured under a second name, too: both have the same endpoint, or list the same nodes. The Ironic with the node of the host may be missing, so that no node is created and none is given up.",
    "Give each Ironic one name and one URL; then the host continues without help.",
]);

pub(super) const NODE_NOT_LOCATED: Row = failure([
    "NodeNotLocated",
    "Which Ironic has the node is not known",
    "Nothing records the Ironic of the host, as before there were several; or the label of a detached host has changed; or the recorded one has lost its node. All of them are searched for it, and one cannot be.",
    "Restore the Ironic that does not respond, which the metrics and the log of the controller name; then the host continues without help.",
]);

pub(super) const LOGIN_REFUSED: Row = failure([
    "IronicLoginRefused",
    "Ironic refuses the login of the controller",
    "The next step of the host needs Ironic, which responds and does not accept user name and password.",
    "Correct the Secret with the login of Ironic that the Deployment of the controller mounts, or the users of Ironic; then the host continues without help.",
]);

pub(super) const NOT_TRUSTED: Row = failure([
    "IronicNotTrusted",
    "Ironic and the controller do not trust each other",
    "The next step of the host needs Ironic, and one side rejects the TLS certificate of the other. The message has the error of TLS.",
    "Renew the certificate of Ironic, or correct the CA bundle or the client certificate of the controller; then the host continues without help.",
]);
