//! Writes of a reconcile, and their outcome.
//!
//! A [`Writer`] creates, patches and deletes for one key. It never replaces an object, and it does not create an object
//! without a name: after a lost response a retry would create a second one. The response enters the cache of the kind
//! before the caller receives it, so the next reconcile observes its own writes.
//!
//! The invariant: a write is reported as done or as rejected only where the server states it. Everything else is
//! [`WriteErrorKind::OutcomeUnknown`], and the next reconcile has to observe.
//!
//! In [`Mode::ObserveOnly`] nothing is sent: each effect is logged as one line, given to a [`DryRunObserver`] if there is one, and
//! counts as not done.

mod apply;
mod difference;
mod dry_run;
mod effect;
mod error;
mod label;
mod read;
mod target;
mod writer;

pub use dry_run::{DryRunObserver, Work, WriteMode};
pub use effect::Effect;
pub use error::{WriteError, WriteErrorKind};
pub use label::LabelChange;
pub(crate) use read::get_object;
pub use target::{MetadataOf, NoCache, PendingWrite, Writable, WriteTarget};
pub use writer::{Mode, Writer, Written};

#[cfg(test)]
mod tests;
