//! Reasons of Events and waits.

use metal3_runtime::cache::Key;
use metal3_runtime::plan::UnknownReason;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

/// A required object cannot be read.
pub const OBJECT_UNREADABLE: Reason = Reason::new("ObjectUnreadable");
/// The first list of a required kind is not complete.
pub const OBJECT_NOT_LISTED: Reason = Reason::new("ObjectNotListed");
/// The Cluster does not exist.
pub const CLUSTER_NOT_FOUND: Reason = Reason::new("ClusterNotFound");
/// The claim does not name the Metal3Data, or is in deletion.
pub const NOT_NAMED: Reason = Reason::new("NotNamedByClaim");
/// An input of the rendering is missing.
pub const WAITING: Reason = Reason::new("WaitingForInput");
/// Rendering failed; only a change of an object resolves it.
pub const RENDERING_FAILED: Reason = Reason::new("RenderingFailed");
/// The Secrets exist.
pub const RENDERED: Reason = Reason::new("Rendered");
/// The addresses are kept until the claim is deleted.
pub const CLAIM_EXISTS: Reason = Reason::new("ClaimLives");
/// A template has more indexes in use than its status can contain.
pub const INDEXES_TRUNCATED: Reason = Reason::new("IndexesTruncated");

/// The wait for an object that is not listed yet, or that cannot be read until a user corrects it.
pub(crate) fn unreadable(kind: &str, key: &Key, why: &UnknownReason) -> Next {
    match why {
        UnknownReason::NotListed | UnknownReason::NotRead => {
            Next::waiting(OBJECT_NOT_LISTED, format!("{kind} {key}: {why}"))
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
