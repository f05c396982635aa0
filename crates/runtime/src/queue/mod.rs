//! The work queue: which key is reconciled next, and when.
//!
//! [`WorkQueue`] is a pure state machine; [`Queue`] adds a lock, a clock and a timer. The queue contains keys only: a
//! reconcile does not receive the reason why its key was enqueued.
//!
//! The invariant: an enqueued key is in exactly one place (ready, held, delayed or in work) until a reconcile of it
//! ends without another enqueue in between. So no key is lost, and none is reconciled twice at once.
//!
//! It runs nothing and persists nothing: after a start the first list fills it.

mod backoff;
mod handle;
mod request_source;
mod stats;
mod work_queue;

pub use backoff::{FIRST_DELAY, LONGEST_DELAY};
pub use handle::{Queue, Waker, WorkItem};
pub use request_source::{Hold, RequestSource};
pub use stats::{Latency, QueueStats};
pub use work_queue::{HIGH_IN_A_ROW, Lane, Outcome, Taken, WorkQueue};

#[cfg(test)]
mod tests;
