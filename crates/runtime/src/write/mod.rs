//! Writes: how a pass changes objects, and what it learns of the outcome.
//!
//! A [`Writer`] creates, patches and deletes in the name of one key. It never replaces an object, and it refuses to
//! create one without a name: a create whose answer was lost would make a second one. What the server answers enters
//! the cache of the kind before the caller sees it, so the next pass sees its own writes.
//!
//! The invariant: a write is reported as done or as refused only where the server said so. Everything else is
//! [`WriteErrorKind::OutcomeUnknown`], and the next pass has to look.
//!
//! In [`Mode::ObserveOnly`] nothing is sent: each effect is printed as one line and counts as not done.

mod apply;
mod difference;
mod effect;
mod error;
mod read;
mod target;
mod writer;

pub use effect::Effect;
pub use error::{WriteError, WriteErrorKind};
pub use target::{MetadataOf, NoCache, PendingWrite, WriteTarget};
pub use writer::{Mode, Writable, Writer, Written};

#[cfg(test)]
mod tests;
