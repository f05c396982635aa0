//! Cluster API without Cluster API: small stand-ins for its core, its bootstrap, its control planes, and the kubelet.
//!
//! They do to the objects of an infrastructure provider what the contract says that is done: own, label, clone, copy,
//! gate and delete in the same order, and write the same fields. One pure function for each kind says which writes are
//! due in a [`view::World`]; [`program::run`] follows the API server, performs them, and does so again until none is due.
//!
//! A machine joins its cluster by what it was really given: [`kubelet::run`] looks at the disk of the simulated machine,
//! [`node`] reads user data and metadata as the programs of a first boot do, and a Node appears in the simulated API
//! server of the workload cluster ([`site`]) or does not.
//!
//! Beside it stand providers that Metal3 is combined with: hosts that are brought along ([`byoh`]), a cloud that gives
//! its cluster an address late, and control planes in Pods ([`kamaji`]).
//!
//! All of it runs beside an API server that is simulated, with workload clusters that are ([`site::Sites`]). The other
//! providers alone also run beside the real Cluster API ([`program::Cast`]), with workload clusters of the caller's
//! ([`site::Ground`]).
//!
//! What is not here: classes of clusters, machine pools, health checks, hooks of the runtime, certificates that anybody
//! verifies, and old versions of kinds but those that published manifests speak of ([`kinds::converted`]). Names of machines
//! follow from the history instead of chance.
//!
//! Invariants: nothing here knows a product; the same events give the same writes; what is paused is not written, but
//! for what says so.
#![warn(missing_docs)]

mod bootstrap;
pub mod byoh;
mod control_plane;
mod core;
pub mod kamaji;
pub mod kinds;
pub mod kubelet;
pub mod node;
mod openstack;
pub mod program;
pub mod site;
pub mod view;
pub mod watch;
pub mod write;

#[cfg(test)]
mod tests;
