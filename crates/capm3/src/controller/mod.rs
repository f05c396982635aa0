//! The controllers of clusters, machines and data, with their shared caches.
//!
//! | Content | Module |
//! |---|---|
//! | caches with their indexes and watches | [`caches`] |
//! | Metal3Machines: observe and act | [`machine::reconciler`](crate::machine::reconciler) |
//! | Metal3Clusters | [`cluster::reconciler`](crate::cluster::reconciler) |
//! | Events from condition changes | `events` |
//! | endpoints from objects of other providers | [`cluster::sources`](crate::cluster::sources) |
//! | Metal3DataTemplates and Metal3Data | [`data::reconciler`](crate::data::reconciler) |
//!
//! Correctness does not depend on leader election. The decisions are made outside this module.

pub mod caches;
pub(crate) mod events;
pub mod standalone;

#[cfg(test)]
mod tests;
