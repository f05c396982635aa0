//! Reasons, for events and for what a key waits for.

use metal3_runtime::reason::Reason;

/// An object that matters cannot be read.
pub const OBJECT_UNREADABLE: Reason = Reason::new("ObjectUnreadable");
/// The Cluster that an object names is not there.
pub const CLUSTER_NOT_FOUND: Reason = Reason::new("ClusterNotFound");
/// The claim does not name the Metal3Data, or is going.
pub const NOT_NAMED: Reason = Reason::new("NotNamedByClaim");
/// Something that the rendering needs is not there yet.
pub const WAITING: Reason = Reason::new("WaitingForInput");
/// Rendering failed; only a change of an object helps.
pub const RENDERING_FAILED: Reason = Reason::new("RenderingFailed");
/// The Secrets are there.
pub const RENDERED: Reason = Reason::new("Rendered");
/// The addresses stay until the claim is gone.
pub const CLAIM_LIVES: Reason = Reason::new("ClaimLives");
/// A template has more numbers in use than its status has room for.
pub const INDEXES_TRUNCATED: Reason = Reason::new("IndexesTruncated");
