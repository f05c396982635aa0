//! `ipam.metal3.io`: pools of addresses, claims on them, and the addresses granted.

mod definitions;
pub mod names;
pub mod v1alpha1;

pub use definitions::definitions;
