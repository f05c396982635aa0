//! Kamaji's control plane and its provider, as recorded: a control plane without machines that publishes its endpoint,
//! and goes on only when the infrastructure of the Cluster has taken it.
//!
//! What makes it another stand-in than [the hosted one](crate::program): it does not look when something happens
//! elsewhere. Its provider is woken by its own object and its tenant alone; each failure doubles its pause, up to 1000 s,
//! and only a success resets that. While a tenant starts, each of its steps is one more failure. Nor does it hear of
//! pauses: it says `Paused` when something else wakes it, and a Cluster that goes on wakes nobody.
//!
//! What is not here: addons, certificates, and versions.

mod balancer;
mod program;
mod provider;
mod tenant;
#[cfg(test)]
mod tests;

pub use balancer::run as balance;
pub use program::run;
