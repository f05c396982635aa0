//! The contract of Cluster API: what its objects say to an infrastructure provider.
//!
//! Pure readings of foreign objects, each made once: whether something is paused, whether the infrastructure and the
//! bootstrap data are there, who owns what, what is being moved away. They are read in the newer form, and in the older
//! one where the newer is absent. What follows from an answer is for the products to say.
//!
//! Invariant: what could not be read is [unknown](metal3_runtime::plan::Observed::Unknown), never absent.
#![warn(missing_docs)]

pub mod owner;
pub mod pause;
pub mod progress;
pub mod workload;
