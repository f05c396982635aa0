//! One reconcile of one key, from start to outcome.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;

use crate::metrics::ReconcileResult;
use crate::queue::{Outcome, Taken};

use super::fault::Fault;
use super::next::Next;

/// The fifth failure in a row is logged as a warning.
const WARN_FROM: u32 = 4;

/// How a reconcile ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// Without an error.
    Ok(Next),
    /// With a fault.
    Failed(Fault),
    /// With a panic of this message.
    Panicked(String),
}

impl Ended {
    /// The outcome for the queue.
    pub(super) const fn outcome(&self) -> Outcome {
        match self {
            Self::Ok(next) => next.outcome(),
            Self::Failed(fault) => fault.outcome(),
            Self::Panicked(_) => Outcome::Failed,
        }
    }

    /// In dry-run mode nothing is written: a requeue would repeat the same result for ever, with an observer too.
    pub(super) fn observed(self) -> Self {
        match self {
            Self::Ok(Next::Requeue) => Self::Ok(Next::Done),
            other => other,
        }
    }

    /// The report of the failure, if it failed.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Ok(_) => None,
            Self::Failed(fault) => Some(fault.report()),
            Self::Panicked(message) => Some(message.clone()),
        }
    }

    /// The error category, if it failed.
    pub(super) const fn category(&self) -> Option<&'static str> {
        match self {
            Self::Ok(_) => None,
            Self::Failed(fault) => Some(fault.category()),
            Self::Panicked(_) => Some("panic"),
        }
    }

    /// The result for the metrics.
    pub(super) const fn result(&self) -> ReconcileResult {
        match (self, self.outcome()) {
            (Self::Failed(Fault::Terminal { .. }), _) => ReconcileResult::Terminal,
            (Self::Failed(_), _) | (Self::Ok(_), Outcome::Failed | Outcome::Throttled(_)) => ReconcileResult::Failed,
            (Self::Panicked(_), _) => ReconcileResult::Panicked,
            (Self::Ok(_), Outcome::Done) => ReconcileResult::Done,
            (Self::Ok(_), Outcome::RequeueAfter(_)) => ReconcileResult::RequeueAfter,
        }
    }
}

/// Runs a reconcile and catches its panic, so that one key cannot stop the others.
pub(super) async fn run(reconcile: impl Future<Output = Result<Next, Fault>>) -> Ended {
    // State that outlives a reconcile is behind locks and is consistent after a panic.
    match AssertUnwindSafe(reconcile).catch_unwind().await {
        Ok(Ok(next)) => Ended::Ok(next),
        Ok(Err(fault)) => Ended::Failed(fault),
        Err(panic) => Ended::Panicked(panic_message(&*panic)),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}

/// Logs how a reconcile ended, at a level that matches it. `is_new_reason` is whether it waits for a new reason.
pub(super) fn log<K: fmt::Display>(
    controller: &'static str,
    taken: &Taken<K>,
    ended: &Ended,
    is_new_reason: bool,
    took: Duration,
) {
    let (key, failures) = (&taken.key, taken.failures);
    let (took_ms, waited_ms) = (took.as_millis(), taken.waited.as_millis());
    match ended {
        Ended::Ok(Next::Waiting(on)) if is_new_reason && !on.is_quiet => {
            tracing::info!(controller, %key, reason = %on.reason, took_ms, waited_ms, "waiting: {}", on.message);
        }
        Ended::Ok(Next::Waiting(on)) => {
            tracing::debug!(controller, %key, reason = %on.reason, took_ms, waited_ms, "waiting: {}", on.message);
        }
        Ended::Ok(next) => tracing::debug!(controller, %key, ?next, took_ms, waited_ms, "reconciled"),
        Ended::Failed(fault) => {
            let (category, report) = (fault.category(), fault.report());
            match fault {
                Fault::Transient { .. } if failures < WARN_FROM => {
                    tracing::debug!(controller, %key, category, failures, took_ms, "will be retried: {report}");
                }
                Fault::Transient { .. } => {
                    tracing::warn!(controller, %key, category, failures, took_ms, "still failing: {report}");
                }
                Fault::Terminal { reason, .. } => {
                    tracing::warn!(controller, %key, %reason, took_ms, "needs a change of the spec: {report}");
                }
                Fault::Bug { .. } => tracing::error!(controller, %key, failures, took_ms, "{report}"),
            }
        }
        Ended::Panicked(message) => tracing::error!(controller, %key, failures, took_ms, "panicked: {message}"),
    }
}
