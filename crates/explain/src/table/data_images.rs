//! Reasons of DataImages, in their Events, logs and metrics. `status.error` has the message.

use super::row::{Row, Severity, done, hardware, passes, user};

const fn warning(row: [&'static str; 4]) -> Row {
    user(Severity::Warning, row)
}

/// An Event of the host.
pub(super) const UNKNOWN: Row = warning([
    "DataImageUnknown",
    "Whether the host has a DataImage is not known",
    "The DataImage cannot be read, so the host started, or was deleted, with its virtual drive as it is.",
    "Look at the roles of this program and at the DataImage. If an image is in the drive of a deleted host, eject it at the BMC.",
]);

pub(super) const ROWS: &[Row] = &[
    done(
        "DataImageAttached",
        "The virtual drive holds the image",
        "It was inserted before the host started. `status.attachedImage` names it.",
    ),
    done(
        "DataImageDetached",
        "The virtual drive does not hold the image any more",
        "It was ejected before the host started, or before the node of the deleted host was deleted.",
    ),
    hardware(
        Severity::Warning,
        [
            "DataImageFailed",
            "The image was not inserted or ejected",
            "Ironic or the BMC rejected it, the BMC cannot load it, or the host has no virtual drive. After three failures, or one that \
         does not change, the host starts without it.",
            "Do what the message says. It is tried again at the next start of the host.",
        ],
    ),
    warning([
        "DataImageInDrive",
        "The virtual drive holds the image of a deleted object",
        "An image is ejected only before the host starts, never while it runs. The object stays until then.",
        "Do what the message says: switch the host off and on, or eject the image at the BMC.",
    ]),
    warning([
        "DataImageLeft",
        "The virtual drive may hold an image that nothing ejects",
        "The host is detached, or neither it nor its node exists. Nothing of this program reaches its BMC.",
        "Eject the image at the BMC.",
    ]),
    passes(
        "Moving",
        "clusterctl moves the object or its host",
        "Nothing is changed meanwhile. clusterctl removes the finalizers itself at the end of the move.",
        "If the move was interrupted, repeat it.",
    ),
    passes(
        "GoManagerRuns",
        "A Go manager serves the object",
        "While the Go manager of hosts runs, its finalizer is its own matter.",
        "See the log of the Go manager.",
    ),
    passes(
        "HostAbsent",
        "Its host does not exist in this cluster",
        "A move or a restored backup may create the host after its objects. After ten minutes it counts as gone.",
        "Wait.",
    ),
    user(
        Severity::Info,
        [
            "HostPaused",
            "Its host is paused",
            "The node may be served from another cluster, so nothing is changed in its BMC.",
            "Let a `clusterctl move` complete, or repeat it if it was interrupted. Otherwise remove `baremetalhost.metal3.io/paused` \
             from the host when the work on it is over.",
        ],
    ),
    passes(
        "HostDeleted",
        "Its host is being deleted",
        "The image is ejected before the node of the host is deleted.",
        "Wait. If that lasts, see the conditions of the host.",
    ),
    passes(
        "NodeLocked",
        "A task of Ironic has locked the node",
        "The node of the host is in use by Ironic for the moment.",
        "Wait. A lock that stays goes with a restart of the conductor that holds it.",
    ),
    warning([
        "StateUnknown",
        "What the virtual drive holds is not known",
        "Ironic, the BMC or an object cannot be read.",
        "See the message. It is read again every minute.",
    ]),
    passes(
        "UsedByIronic",
        "Ironic uses the virtual drive",
        "Ironic inspects, cleans, deploys or services the node, or its system runs from a disc.",
        "Wait until that is over.",
    ),
];
