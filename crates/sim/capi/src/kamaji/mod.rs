//! Kamaji's control plane and its provider, as recorded: a control plane without machines that publishes its endpoint
//! and continues only after the infrastructure of the Cluster has the same endpoint.
//!
//! Unlike [the hosted one](crate::program), it is not triggered by changes of other objects. Only its own object and
//! its tenant trigger its provider; each failure doubles its backoff, up to 1000 s, and only a success resets that.
//! While a tenant starts, each of its steps causes one more failure. A pause of the Cluster does not trigger it either:
//! it sets `Paused` at its next reconcile, and resuming a Cluster does not trigger one.
//!
//! Not simulated: addons, certificates, and versions.

mod load_balancer;
mod program;
mod provider;
mod tenant;
#[cfg(test)]
mod tests;

pub use load_balancer::run as balance;
pub use program::run;
