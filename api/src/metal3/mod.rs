//! `metal3.io`: physical hosts, their hardware and firmware, and requests to them.

mod definitions;
pub mod names;
mod rules;
#[cfg(test)]
mod samples;
pub mod v1alpha1;

pub use definitions::definitions;
pub use rules::reviewers;
