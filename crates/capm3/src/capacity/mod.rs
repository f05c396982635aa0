//! What a Node made from a template has: the cluster autoscaler scales a MachineDeployment from zero by `status.capacity` and
//! `status.nodeInfo` of its template.
//!
//! differs: `template-capacity`. Only a template that an autoscaled MachineDeployment uses has a status, so that others cost no request. The figures are
//! those that each selected host has at least, so a Pod that fits them fits whichever host is chosen. Hosts in use count,
//! too: else the figures would change with each machine.

mod figures;
mod gauge;
mod index;
pub mod reconciler;
mod root_disk;

pub use figures::{is_counted, status_of};
pub use index::DeploymentIndexes;

#[cfg(test)]
mod tests;
