//! What a Node made from a template has: the cluster autoscaler scales a MachineDeployment from zero by `status.capacity` and
//! `status.nodeInfo` of its template.
//!
//! differs: `template-capacity`. Only a template that an autoscaled MachineDeployment uses has a status, so that others cost no request. The figures are
//! those that each selected host has at least, so a Pod that fits them fits whichever host is chosen. Hosts in use count,
//! too: else the figures would change with each machine.
//!
//! Hosts change often, and each of them concerns every template of its namespace: changes are collected for a second.

mod figures;
mod gauge;
mod index;
pub mod reconciler;
mod report;
mod root_disk;
mod serving;
mod unserved_status;
mod watches;

pub use figures::{is_counted, status_of};
pub use index::{DeploymentIndexes, NodeGroup};
pub use watches::Work;

#[cfg(test)]
mod tests;
