//! Reasons of Events and waits.

use std::time::Duration;

use metal3_runtime::cache::Key;
use metal3_runtime::plan::UnknownReason;
use metal3_runtime::work::Next;

metal3_domain::reasons! {
    /// A required object cannot be read.
    pub OBJECT_UNREADABLE = "ObjectUnreadable";
    /// The first list of a required kind is not complete.
    pub OBJECT_NOT_LISTED = "ObjectNotListed";
    /// The Cluster does not exist.
    pub CLUSTER_NOT_FOUND = "ClusterNotFound";
    /// The claim does not name the Metal3Data, or is in deletion.
    pub NOT_NAMED = "NotNamedByClaim";
    /// An input of the rendering is missing.
    pub WAITING = "WaitingForInput";
    /// Rendering failed; only a change of an object resolves it.
    pub RENDERING_FAILED = "RenderingFailed";
    /// The Secrets exist.
    pub RENDERED = "Rendered";
    /// The addresses are kept until the claim is deleted.
    pub CLAIM_EXISTS = "ClaimLives";
    /// A template has more indexes in use than its status can contain.
    pub INDEXES_TRUNCATED = "IndexesTruncated";
}

/// A kind without objects whose first list is complete wakes nothing.
const PERMISSION_RECHECK: Duration = Duration::from_mins(1);

/// The wait for an object that is not listed yet, or that cannot be read until a user corrects it.
pub(crate) fn unreadable(kind: &str, key: &Key, why: &UnknownReason) -> Next {
    match why {
        UnknownReason::NotListed | UnknownReason::NotRead => {
            Next::waiting(OBJECT_NOT_LISTED, format!("{kind} {key}: {why}"))
        }
        UnknownReason::NotPermitted => {
            let message = format!("{kind} {key} cannot be read: {why}; apply the roles of this release");
            Next::waiting_with_recheck(OBJECT_UNREADABLE, message, PERMISSION_RECHECK)
        }
        UnknownReason::Unreadable(why) => Next::waiting(
            OBJECT_UNREADABLE,
            format!("{kind} {key} cannot be read: {why}; correct it"),
        ),
    }
}

/// The message of a wait for an object that a user must correct.
pub(crate) fn to_correct(wait: &Next) -> Option<&str> {
    match wait {
        Next::Waiting(on) if on.reason == OBJECT_UNREADABLE => Some(&on.message),
        _ => None,
    }
}
