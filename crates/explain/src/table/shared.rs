//! Reasons that more than one kind has.

use super::row::{Row, Severity, done, passes, user};

pub(super) const ROWS: &[Row] = &[
    done(
        "Ready",
        "Ready",
        "The object is ready: all that it needs exists and is valid.",
    ),
    passes(
        "NotReady",
        "Not ready",
        "Another condition of the object is not true. This one sums them up; its message lists them.",
        "Follow the condition that the message names: `kubectl metal3 why` does.",
    ),
    passes(
        "ReadyUnknown",
        "Readiness is not known",
        "A condition is not known yet, or an object that it needs cannot be decoded. Until then nothing is changed.",
        "If the message names an object that cannot be read, correct that object; otherwise wait.",
    ),
    passes(
        "NotYetReported",
        "Not reported yet",
        "A condition that readiness needs was not written yet.",
        "Wait. If it lasts, check that the controller of the kind runs: `kubectl get deploy -A | grep metal3`.",
    ),
    user(
        Severity::Warning,
        [
            "NotYet",
            "A field has no effect",
            "A field of the spec is stored, and this version does nothing with it. The message names it.",
            "Remove the field, or wait for a later version.",
        ],
    ),
    passes(
        "Deleting",
        "The object is being deleted",
        "The object has a deletion time and waits for what it still holds; the message names it.",
        "See the object that the message names. Do not remove finalizers by hand: something may still run or be allocated.",
    ),
    user(
        Severity::Info,
        [
            "Paused",
            "The object is paused",
            "The annotation `cluster.x-k8s.io/paused` on the object, or `spec.paused` of its Cluster, stops all work on it. \
             `clusterctl move` pauses too.",
            "Let a `clusterctl move` complete, or repeat it if it was interrupted: without the pause two clusters would manage one \
             machine. Otherwise remove the pause when it is not needed: `kubectl annotate KIND NAME cluster.x-k8s.io/paused-`, or \
             set `spec.paused` of the Cluster to false.",
        ],
    ),
    done("NotPaused", "Not paused", "Nothing pauses the object."),
    user(
        Severity::Error,
        [
            "ObjectUnreadable",
            "An object cannot be decoded",
            "The API server returned an object that this program cannot decode. It counts as unknown, never as absent, so \
             what depends on it stops.",
            "Correct the member that the message names with `kubectl edit`, or delete the object if it is not needed.",
        ],
    ),
];
