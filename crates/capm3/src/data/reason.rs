//! Reasons of Events and waits.

use metal3_runtime::cache::Key;
use metal3_runtime::plan::UnknownReason;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

/// A required object cannot be read.
pub const OBJECT_UNREADABLE: Reason = Reason::new("ObjectUnreadable");
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

/// The wait for an object that cannot be read.
pub(crate) fn unreadable(kind: &str, key: &Key, why: &UnknownReason) -> Next {
    Next::waiting(OBJECT_UNREADABLE, format!("{kind} {key}: {why}"))
}
