//! The work queue: which key is next, and when.
//!
//! [`WorkQueue`] is a pure state machine; [`Queue`] puts a lock, a clock and a timer around it. The queue carries keys
//! only: why a key is here never reaches the one who works on it.
//!
//! The invariant: a key that was added is in exactly one place (ready, held, delayed or being worked on) until a pass over
//! it settles with nothing new in between. So no key is lost, and none is worked on twice at once.
//!
//! It does not run anything, and it does not persist: after a start, the first list fills it.

mod backoff;
mod handle;
mod request_source;
mod stats;
mod waker;
mod work_queue;

pub use backoff::{FIRST_DELAY, LONGEST_DELAY};
pub use handle::{Queue, WorkItem};
pub use request_source::{Hold, RequestSource};
pub use stats::{Latency, QueueStats};
pub use waker::Waker;
pub use work_queue::{HIGH_IN_A_ROW, Lane, Outcome, Taken, WorkQueue};

#[cfg(test)]
mod tests;
