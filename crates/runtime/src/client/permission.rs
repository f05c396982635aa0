//! Whether a write may leave.

use http::Method;

use crate::guard::{Guard, Standing};
use crate::lease::{Leadership, NotLeading};

/// A write did not leave: it was not ours to make.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    /// Another replica may lead.
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    /// Another implementation serves the group, or nobody knows.
    #[error("write only while nobody else serves the group: {0}")]
    Idle(Standing),
}

/// Whether whoever leads here, and stands under this guard, may change something now. To be asked at the last moment.
///
/// # Errors
/// When somebody else may lead or serve the group.
pub fn may_change(leadership: &Leadership, guard: &Guard) -> Result<(), NotOurs> {
    let standing = guard.standing();
    if !standing.is_clear() {
        return Err(NotOurs::Idle(standing));
    }
    leadership.check().map_err(NotOurs::from)
}

/// Asked at the last moment: what held when a pass began, or when a request began to wait for its place, may not hold
/// any more.
#[derive(Debug, Clone)]
pub(super) struct Permission {
    pub(super) leadership: Leadership,
    pub(super) guard: Guard,
}

impl Permission {
    pub(super) fn check(&self, method: &Method) -> Result<(), NotOurs> {
        if *method == Method::GET {
            return Ok(());
        }
        may_change(&self.leadership, &self.guard)
    }
}
