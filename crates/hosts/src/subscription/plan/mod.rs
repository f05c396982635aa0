//! The decision about one subscription. Pure.
//!
//! The creation of a subscription is not idempotent, and a BMC gives no name to it. So the object records the node, and which
//! equal subscriptions the BMC had, before the first request; until the status has the identifier, each further decision
//! first searches the BMC for one that appeared since. differs (`subscription-created-once`): the Go manager records nothing,
//! and creates another.

mod create;
mod found;
mod remove;
mod wait;

use std::time::Duration;

use metal3_runtime::reason::Reason;

use super::facts::{Facts, Read, Record};

#[cfg(test)]
pub(super) use wait::PATIENCE;

/// How long a host must be absent before it counts as gone: a move or the restoration of a backup creates it after its
/// objects. Either takes minutes.
pub(super) const HOST_GRACE: Duration = Duration::from_mins(10);

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// There is nothing to do until something changes.
    Done,
    Read(Read),
    /// Add the finalizer, and record where the subscription is created.
    Record(Record),
    /// Create it in the BMC.
    Create,
    /// Write the identifier of the one that the BMC has.
    Adopt(String),
    /// Remove the identifier from the status: the BMC of the present node does not have it.
    Forget(String),
    /// Delete it from the BMC.
    Delete(String),
    /// Remove the finalizer.
    Release {
        /// Whether the BMC keeps a subscription with the recorded identifier, which is another one.
        is_left: bool,
    },
    /// Remove the error of a wait that is over.
    ClearError,
    Wait(Wait),
}

/// Why nothing can be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) reason: Reason,
    /// As `status.error` has it.
    pub(super) message: String,
    /// Set where no event reports that the wait is over.
    pub(super) recheck: Option<Duration>,
    /// Whether the status says so. Not while the wait is expected to end by itself, and not where a Go manager writes the
    /// status.
    pub(super) is_reported: bool,
    /// Whether it counts as a failure, whose delay grows.
    pub(super) is_failure: bool,
}

pub(super) fn plan(facts: &Facts) -> Step {
    match facts.object.is_deleted {
        true => remove::plan(facts),
        false => create::plan(facts),
    }
    .unwrap_or_else(|step| step)
}

/// A step, or the step that must come first.
type Decision<T = Step> = Result<T, Step>;
