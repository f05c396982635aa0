//! `ipam.metal3.io/v1alpha1`, the only version.

mod address;
mod claim;
mod pool;

pub use address::{IPAddress, IPAddressSpec};
pub use claim::{IPClaim, IPClaimSpec, IPClaimStatus};
pub use pool::{AllocationStrategy, Allocator, IPPool, IPPoolSpec, IPPoolStatus, PendingAddress, PoolRange};
