//! Reasons about kinds without a controller: why the finalizer of the Go manager stays on a deleted object.

use super::row::{Row, Severity, passes, user};

pub(super) const ROWS: &[Row] = &[
    user(
        Severity::Warning,
        [
            "KindUnserved",
            "No controller serves the kind",
            "Objects of the kind exist, and their content has no effect.",
            "Keep the Go manager (baremetal-operator) for them, set the variable that the message names, or delete them.",
        ],
    ),
    passes(
        "GoManagerRuns",
        "A Go manager serves the object",
        "While the Go manager runs, its finalizer is its own matter.",
        "See the log of the Go manager.",
    ),
    passes(
        "Moving",
        "clusterctl moves the object",
        "clusterctl removes the finalizers itself at the end of the move.",
        "If the move was interrupted, repeat it.",
    ),
    user(
        Severity::Info,
        [
            "HostPaused",
            "Its host is paused",
            "The node may be served from another cluster, so nothing is removed.",
            "Let a `clusterctl move` complete, or repeat it if it was interrupted. Otherwise remove `baremetalhost.metal3.io/paused` \
             from the host when the work on it is over.",
        ],
    ),
    passes(
        "NodeLocked",
        "A task of Ironic has locked the node",
        "The node of the host is in use by Ironic for the moment.",
        "Wait. A lock that stays goes with a restart of the conductor that holds it.",
    ),
    user(
        Severity::Warning,
        [
            "OtherFinalizers",
            "Other finalizers come first",
            "Another program holds the object.",
            "Start the programs that serve the other finalizers: only they know what is left.",
        ],
    ),
    passes(
        "WaitingForImageBuilder",
        "A builder of images has time to finish",
        "Another program that builds images may remove its own finalizer for ten minutes.",
        "Wait.",
    ),
    user(
        Severity::Warning,
        [
            "StateUnknown",
            "What is left is not known",
            "Ironic or an object cannot be read, so it is not known whether the object still has an effect.",
            "See the message. It is read again every minute.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "StillInUse",
            "The machine still uses it",
            "The node of the host boots from the image.",
            "Do what the message says.",
        ],
    ),
];
