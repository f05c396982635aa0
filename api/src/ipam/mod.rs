//! `ipam.metal3.io`: pools of addresses, claims on them, and the addresses granted.

mod definitions;
pub mod names;
mod rules;
pub mod v1alpha1;

pub use definitions::definitions;
pub use rules::reviewers;
