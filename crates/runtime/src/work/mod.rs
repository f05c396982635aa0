//! How passes over keys end, and who runs them.
//!
//! A pass ends with a [`Next`] or a [`Fault`]; what the queue makes of either is decided here and nowhere else.
//! [`classify`] sorts what the Kubernetes client reports, without looking at wording.

mod classify;
mod fault;
mod next;

pub(crate) use classify::without_content;
pub use classify::{Class, classify, read_fault};
pub use fault::{Category, Fault};
pub use next::{Next, WaitingOn};

#[cfg(test)]
mod tests;
