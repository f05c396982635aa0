//! The Cluster API contract, as an infrastructure provider reads it.
//!
//! Pure functions over the objects of Cluster API: pause, readiness of infrastructure and bootstrap data, ownership,
//! and moves. They read the newer fields, or the older ones where the newer are absent. The products decide what
//! follows.
//!
//! Invariant: an object that could not be read is [unknown](metal3_runtime::plan::Observed::Unknown), never absent.
#![warn(missing_docs)]

pub mod owner;
pub mod pause;
pub mod progress;
pub mod workload;
