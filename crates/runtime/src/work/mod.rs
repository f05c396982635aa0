//! How passes over keys end, and who runs them.
//!
//! A pass ends with a [`Next`] or a [`Fault`]; what the queue makes of either is decided here and nowhere else.
//! [`Controller`] puts caches, a queue and a [`Reconciler`] together and runs passes: so many at once, panics caught and
//! counted, drained when told to stop. [`classify`] sorts what the Kubernetes client reports, without looking at wording.

mod classify;
mod controller;
mod fault;
mod next;
mod reconcile;
mod status_debounce;

pub(crate) use classify::without_content;
pub use classify::{Class, classify, read_fault};
pub use controller::{Controller, Reconciler, Stopped};
pub use fault::{Category, Fault};
pub use next::{Next, WaitingOn};
pub use status_debounce::{DEBOUNCE, StatusDebounce};

#[cfg(test)]
mod tests;
