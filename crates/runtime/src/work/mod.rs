//! Running reconciles, and how they end.
//!
//! A reconcile ends with a [`Next`] or a [`Fault`]; only this module derives the queue's outcome from them.
//! [`Controller`] combines caches, a queue and a [`Reconciler`]. It bounds concurrency, catches and counts panics, and
//! drains when it is stopped. [`classify`] sorts the errors of the Kubernetes client without reading their texts.

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
