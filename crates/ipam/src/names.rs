//! Condition types, reasons, failure messages, and the annotation of this controller.
//!
//! The messages are those of the Go manager, because consumers compare their beginnings; additions follow after a
//! colon.

/// Conditions of a pool and of a claim.
pub mod condition {
    /// The pool allocates; the claim has its address.
    pub const READY: &str = "Ready";
    /// No address of the pool is free.
    pub const EXHAUSTED: &str = "Exhausted";
    /// Another pool of the namespace contains addresses of this pool.
    pub const OVERLAPPING: &str = "Overlapping";
    /// The pool is paused.
    pub const PAUSED: &str = "Paused";
    /// The map of allocations in the status is truncated.
    pub const INDEXES_TRUNCATED: &str = "IndexesTruncated";
    /// Addresses without a claim are kept until a user confirms their release.
    pub const ORPHANS_HELD: &str = "OrphansHeld";

    /// The pool conditions that this controller owns.
    pub const OF_POOL: [&str; 6] = [READY, EXHAUSTED, OVERLAPPING, PAUSED, INDEXES_TRUNCATED, ORPHANS_HELD];
}

/// Reasons.
pub mod reason {
    use metal3_domain::reasons;

    reasons! {
        /// Ready.
        pub READY = "Ready";
        /// The claim cannot be served without a change.
        pub ALLOCATION_FAILED = "AllocationFailed";
        /// No address is free for the claim.
        pub POOL_EXHAUSTED = "PoolExhausted";
        /// No pool of that name in the claim's namespace.
        pub POOL_NOT_FOUND = "PoolNotFound";
        /// The group is that of this controller, the kind is unknown.
        pub POOL_KIND_UNKNOWN = "PoolKindUnknown";
        /// An address object of another pool has the required name.
        pub NAME_COLLISION = "NameCollision";
        /// The named Cluster does not exist.
        pub CLUSTER_NOT_FOUND = "ClusterNotFound";
        /// Deletion waits for the claims.
        pub DELETING = "Deleting";
        /// No entry of the pool contains an address.
        pub NO_USABLE_RANGE = "NoUsableRange";
        /// A relevant object cannot be parsed.
        pub OBJECT_UNREADABLE = "ObjectUnreadable";
        /// Every address is allocated or reserved.
        pub NO_FREE_ADDRESS = "NoFreeAddress";
        /// Addresses are free.
        pub ADDRESSES_FREE = "AddressesFree";
        /// Another pool contains some of the addresses.
        pub OVERLAPS_POOL = "OverlapsPool";
        /// No other pool contains any of the addresses.
        pub NO_OVERLAP = "NoOverlap";
        /// Paused by the annotation or the Cluster.
        pub PAUSED = "Paused";
        /// Not paused.
        pub NOT_PAUSED = "NotPaused";
        /// More allocations than the map may contain.
        pub TOO_MANY_GRANTS = "TooManyGrants";
        /// More orphans than concurrent creates can cause.
        pub MANY_ORPHANS = "ManyOrphans";

        /// Event: an address is allocated.
        pub GRANTED = "AddressGranted";
        /// Event: an address is released.
        pub RELEASED = "AddressReleased";
    }
}

/// Failure messages, as the Go manager writes them.
pub mod message {
    /// No address is free, or the requested address is outside.
    pub const EXHAUSTED: &str = "Exhausted IP Pools";
    /// Annotation and pre-allocation differ.
    pub const CONFLICTING: &str = "PreAllocation and requested ip address are conflicting";
    /// The requested address is in use.
    pub const NOT_AVAILABLE: &str = "Requested IP not available";
    /// The pre-allocated address is outside.
    pub const OUT_OF_BOUNDS: &str = "Pre-allocated IP out of bounds";
    /// The object cannot be created.
    pub const NOT_CREATED: &str = "Failed to create associated IPAddress object";
    /// The pre-allocated address is in use. Own text: the Go manager reports nothing and retries for ever.
    pub const PRE_ALLOCATION_IN_USE: &str = "Pre-allocated IP not available";
    /// The pool is being deleted. Own text: the Go manager continues to allocate.
    pub const POOL_DELETING: &str = "The pool is being deleted";
}

/// On a pool: release this number of addresses whose claims do not exist.
pub const RELEASE_ORPHANS_ANNOTATION: &str = "ipam.metal3.io/release-orphans";
/// Label on a pool with a Cluster, and its value.
pub const PROVIDER_LABEL: (&str, &str) = ("cluster.x-k8s.io/provider", "ipam-metal3");
