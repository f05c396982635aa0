//! `metal3.io`: physical hosts, what is known about them, and what is asked of them.

mod definitions;
pub mod names;
mod rules;
#[cfg(test)]
mod samples;
pub mod v1alpha1;

pub use definitions::definitions;
pub use rules::reviewers;
