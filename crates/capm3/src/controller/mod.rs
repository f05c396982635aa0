//! The controllers of clusters, machines and data, with their shared caches.
//!
//! | Step | Module |
//! |---|---|
//! | watches, and which keys a change enqueues | [`caches`], `watches` |
//! | Metal3Machines: observe and act | [`machines`] |
//! | Metal3Clusters | [`clusters`] |
//! | Events from condition changes | `events` |
//! | endpoints from objects of other providers | [`sources`] |
//! | Metal3DataTemplates and Metal3Data | [`data`] |
//!
//! Correctness does not depend on leader election. The decisions are made outside this module.

pub mod caches;
pub mod clusters;
pub mod data;
mod events;
pub mod machines;
pub mod sources;
pub mod standalone;
mod watches;

#[cfg(test)]
mod tests;
