//! Whether a write may be sent.

use http::Method;

use crate::guard::{Guard, GuardStatus};
use crate::lease::{Leadership, NotLeading};

/// A write was not sent: this process may not write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteBlocked {
    /// Another replica may lead.
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    /// Another implementation serves the group, or that is unknown.
    #[error("write not sent: another implementation may serve the group: {0}")]
    Idle(GuardStatus),
}

/// Whether this process leads and may write under this guard. Call it immediately before a write.
///
/// # Errors
/// When another process may lead, or another implementation may serve the group.
pub fn check_write_allowed(leadership: &Leadership, guard: &Guard) -> Result<(), WriteBlocked> {
    let status = guard.status();
    if !status.is_clear() {
        return Err(WriteBlocked::Idle(status));
    }
    leadership.check().map_err(WriteBlocked::from)
}

/// Checked immediately before each write: the result may have changed since the reconcile began or the request was
/// queued.
///
/// When the other manager's Deployment returns, no reconcile begins any more, and those that run record what they ordered: that manager
/// does not lead before it has the Lease, which is in its namespace and is given up after them. Nothing else is sent then:
/// [`check_write_allowed`] is what comes before an order.
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
        match self.guard.status() {
            GuardStatus::Present { foreign, .. } if self.leadership.is_in(&foreign.namespace) => {
                self.leadership.check().map_err(WriteBlocked::from)
            }
            _ => check_write_allowed(&self.leadership, &self.guard),
        }
    }
}
