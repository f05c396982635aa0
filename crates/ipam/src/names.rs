//! Every word that users see: condition types, reasons, messages of failure, and the annotation of our own.
//!
//! The messages are the Go manager's to the letter, because consumers compare their beginnings; what we add follows
//! behind a colon.

/// Conditions of a pool and of a claim.
pub mod condition {
    /// The pool grants; the claim has its address.
    pub const READY: &str = "Ready";
    /// No address of the pool is free.
    pub const EXHAUSTED: &str = "Exhausted";
    /// Another pool of the namespace has addresses of this one.
    pub const OVERLAPPING: &str = "Overlapping";
    /// Nothing is done for the pool.
    pub const PAUSED: &str = "Paused";
    /// The map of grants in the status is cut short.
    pub const INDEXES_TRUNCATED: &str = "IndexesTruncated";
    /// Addresses without a claim are kept until someone confirms their release.
    pub const ORPHANS_HELD: &str = "OrphansHeld";

    /// The conditions of a pool that are ours alone.
    pub const OF_POOL: [&str; 6] = [READY, EXHAUSTED, OVERLAPPING, PAUSED, INDEXES_TRUNCATED, ORPHANS_HELD];
}

/// Reasons, each a word for programs.
pub mod reason {
    /// It is as it should be.
    pub const READY: &str = "Ready";
    /// The claim cannot be served as it stands.
    pub const ALLOCATION_FAILED: &str = "AllocationFailed";
    /// No address is free for the claim.
    pub const POOL_EXHAUSTED: &str = "PoolExhausted";
    /// No pool of that name in the claim's namespace.
    pub const POOL_NOT_FOUND: &str = "PoolNotFound";
    /// The group is ours, the kind is not.
    pub const POOL_KIND_UNKNOWN: &str = "PoolKindUnknown";
    /// An object of another pool has the name the address needs.
    pub const NAME_COLLISION: &str = "NameCollision";
    /// The Cluster named does not exist.
    pub const CLUSTER_NOT_FOUND: &str = "ClusterNotFound";
    /// Deletion waits for the claims.
    pub const DELETING: &str = "Deleting";
    /// No entry of the pool yields an address.
    pub const NO_USABLE_RANGE: &str = "NoUsableRange";
    /// An object that counts cannot be read.
    pub const OBJECT_UNREADABLE: &str = "ObjectUnreadable";
    /// Every address is granted or reserved.
    pub const NO_FREE_ADDRESS: &str = "NoFreeAddress";
    /// Addresses are free.
    pub const ADDRESSES_FREE: &str = "AddressesFree";
    /// Another pool has some of the addresses.
    pub const OVERLAPS_POOL: &str = "OverlapsPool";
    /// No other pool has any of the addresses.
    pub const NO_OVERLAP: &str = "NoOverlap";
    /// The annotation or the Cluster pauses.
    pub const PAUSED: &str = "Paused";
    /// Nothing pauses.
    pub const NOT_PAUSED: &str = "NotPaused";
    /// More grants than the map may hold.
    pub const TOO_MANY_GRANTS: &str = "TooManyGrants";
    /// Too many at once for an accident.
    pub const MANY_ORPHANS: &str = "ManyOrphans";

    /// Event: an address was granted.
    pub const GRANTED: &str = "AddressGranted";
    /// Event: an address was released.
    pub const RELEASED: &str = "AddressReleased";
    /// Event: an address object without a claim was deleted.
    pub const ORPHAN_RELEASED: &str = "OrphanReleased";
    /// Event: the address object of a claim had vanished.
    pub const ADDRESS_LOST: &str = "AddressLost";
}

/// Messages of failure, as the Go manager writes them.
pub mod message {
    /// Nothing is free, or the requested address lies outside.
    pub const EXHAUSTED: &str = "Exhausted IP Pools";
    /// Annotation and pre-allocation differ.
    pub const CONFLICTING: &str = "PreAllocation and requested ip address are conflicting";
    /// The requested address has a holder.
    pub const NOT_AVAILABLE: &str = "Requested IP not available";
    /// The pre-allocated address lies outside.
    pub const OUT_OF_BOUNDS: &str = "Pre-allocated IP out of bounds";
    /// The object could not be made.
    pub const NOT_CREATED: &str = "Failed to create associated IPAddress object";
    /// The pre-allocated address has another holder. Ours: the Go manager says nothing and tries for ever.
    pub const PRE_ALLOCATION_HELD: &str = "Pre-allocated IP not available";
    /// The pool goes away. Ours: the Go manager goes on granting.
    pub const POOL_DELETING: &str = "The pool is being deleted";
}

/// On a pool: release that many addresses whose claims are gone, although they are many at once.
pub const RELEASE_ORPHANS_ANNOTATION: &str = "ipam.metal3.io/release-orphans";
/// Label on a pool with a Cluster, and its value.
pub const PROVIDER_LABEL: (&str, &str) = ("cluster.x-k8s.io/provider", "ipam-metal3");
