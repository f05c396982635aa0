//! A server with CustomResourceDefinitions that have no status of templates: those of the Go manager, and of older releases.
//!
//! It answers as if the template did not exist. Each host event would repeat the request, so the answer is remembered for all
//! templates.

use std::sync::Arc;
use std::time::Duration;

use metal3_api::infrastructure::v1beta2::Metal3MachineTemplate;
use metal3_api::kind::Kind as _;
use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::Key;
use metal3_runtime::work::Next;
use parking_lot::Mutex;

use crate::reasons::template::STATUS_NOT_SERVED;

/// No event reports new CustomResourceDefinitions, which are installed once in a while.
const RECHECK: Duration = Duration::from_mins(10);

/// Since when the status of templates is not served.
#[derive(Debug)]
pub(super) struct UnservedStatus {
    clock: Arc<dyn Clock>,
    until: Mutex<Option<Monotonic>>,
}

impl UnservedStatus {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            until: Mutex::default(),
        }
    }

    /// The server does not serve the status.
    pub(super) fn begin(&self, key: &Key) -> Next {
        *self.until.lock() = Some(self.clock.monotonic().after(RECHECK));
        wait(key, RECHECK)
    }

    /// The wait for the next attempt; `None` when it is due.
    pub(super) fn wait(&self, key: &Key) -> Option<Next> {
        let until = (*self.until.lock())?;
        let left = until.since(self.clock.monotonic());
        (!left.is_zero()).then(|| wait(key, left))
    }
}

fn wait(key: &Key, left: Duration) -> Next {
    let kind = Metal3MachineTemplate::KIND;
    let message = format!(
        "{kind} {key}: the API server does not serve the status of {kind}s, so the cluster autoscaler does not scale from zero; \
         install the CustomResourceDefinitions of this release (infrastructure-components.yaml)"
    );
    Next::waiting_with_recheck(STATUS_NOT_SERVED, message, left)
}
