//! Stand-ins for Cluster API: its core, its bootstrap provider, its control planes, and the kubelet.
//!
//! They treat the objects of an infrastructure provider as the contract defines it: they own, label, clone, copy, gate
//! and delete in the same order, and write the same fields. One pure function for each kind returns the writes that are
//! due for a [`view::Snapshot`]; [`program::run`] follows the API server and performs them until none is due.
//!
//! A machine joins its cluster by its actual boot data: [`kubelet::run`] reads the disk of the simulated machine,
//! [`node`] interprets user data and metadata as cloud-init and kubeadm do, and a Node appears in the simulated API
//! server of the workload cluster ([`workload`]), or an error is logged.
//!
//! Further stand-ins are the providers that Metal3 is combined with: bring-your-own hosts ([`byoh`]), a cloud whose
//! cluster gets its address late, and control planes in Pods ([`kamaji`]).
//!
//! All of them run against a simulated API server with simulated workload clusters ([`workload::WorkloadClusters`]).
//! The other providers alone also run next to the real Cluster API ([`program::Providers`]), with workload clusters of
//! the caller ([`workload::WorkloadServers`]).
//!
//! Not simulated: ClusterClasses, machine pools, health checks, runtime hooks, verified certificates, and old API
//! versions except those that published manifests use ([`kinds::converted`]). Machine names are derived from the
//! history, not random.
//!
//! Invariants: nothing here depends on a product; the same events give the same writes; of a paused object only the
//! `Paused` condition is written.
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
pub mod view;
pub mod watch;
pub mod workload;
pub mod write;

#[cfg(test)]
mod tests;
