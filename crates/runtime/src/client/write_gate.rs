//! Whether a write may leave.

use http::Method;

use crate::guard::{Guard, GuardStatus};
use crate::lease::{Leadership, NotLeading};

/// A write did not leave: it was not ours to make.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteBlocked {
    /// Another replica may lead.
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    /// Another implementation serves the group, or nobody knows.
    #[error("write only while nobody else serves the group: {0}")]
    Idle(GuardStatus),
}

/// Whether whoever leads here, and stands under this guard, may change something now. To be asked at the last moment.
///
/// # Errors
/// When somebody else may lead or serve the group.
pub fn check_write_allowed(leadership: &Leadership, guard: &Guard) -> Result<(), WriteBlocked> {
    let status = guard.status();
    if !status.is_clear() {
        return Err(WriteBlocked::Idle(status));
    }
    leadership.check().map_err(WriteBlocked::from)
}

/// Asked at the last moment: what held when a pass began, or when a request began to wait for its place, may not hold
/// any more.
#[derive(Debug, Clone)]
pub(super) struct WriteGate {
    pub(super) leadership: Leadership,
    pub(super) guard: Guard,
}

impl WriteGate {
    pub(super) fn check(&self, method: &Method) -> Result<(), WriteBlocked> {
        if *method == Method::GET {
            return Ok(());
        }
        check_write_allowed(&self.leadership, &self.guard)
    }
}
