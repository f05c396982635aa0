//! The rules that make concurrent replicas safe, by name.

metal3_runtime::safety_rules! {
    /// The finalizer is added to a claim before an address is allocated to it.
    finalizer_first,
    /// An allocation is recorded in the pool before its object is created.
    record_first,
    /// A process that did not write the record last lists the addresses before it allocates.
    list_on_takeover,
    /// A record stays until its object is observed.
    keep_until_seen,
    /// A record is dropped only when a live read reports that the claim does not exist or has another address.
    void_by_read,
    /// The record of a live claim is completed, even if the pool has changed.
    complete_live_claims,
    /// An address object is an orphan only when a live read of its claim confirms it.
    orphan_by_read,
    /// Orphans are deleted.
    delete_orphans,
    /// An address object belongs to the claim with the UID of its owner, not to any claim of that name.
    match_by_uid,
    /// Many simultaneous orphans are kept until a user confirms their release.
    keep_many_orphans,
    /// The finalizer of a pool is removed only after a list without addresses of it.
    list_before_release,
    /// The finalizer of a pool is removed only when nothing is recorded.
    empty_before_release,
}
