//! Labels, annotations and finalizers of the IPAM group, spelled as the Go manager spells them.

/// API group.
pub const GROUP: &str = "ipam.metal3.io";
/// Keeps a pool while an address of it is granted.
pub const POOL_FINALIZER: &str = "ippool.ipam.metal3.io";
/// Keeps a claim until its address is released.
pub const CLAIM_FINALIZER: &str = "ipclaim.ipam.metal3.io";
/// Keeps an address while its claim exists.
pub const ADDRESS_FINALIZER: &str = "ipaddress.ipam.metal3.io";
/// Keeps a Cluster API claim until its address is released.
pub const CAPI_CLAIM_FINALIZER: &str = "ipam.metal3.io/ipaddressclaim";
/// Keeps a Cluster API address while its claim exists.
pub const CAPI_ADDRESS_FINALIZER: &str = "ipam.metal3.io/ipaddress";
/// Annotation on a claim that requests a specific address.
pub const REQUESTED_ADDRESS_ANNOTATION: &str = "ipAddress";
