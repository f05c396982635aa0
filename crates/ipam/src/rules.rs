//! The rules that make concurrent replicas safe, by name.
//!
//! The program always uses all of them. Tests disable one at a time and expect a failing history, which shows that the
//! rule is necessary and tested.

/// Enabled rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one rule, and all are independent")]
pub(crate) struct Rules {
    /// The finalizer is added to a claim before an address is allocated to it.
    pub(crate) finalizer_first: bool,
    /// An allocation is recorded in the pool before its object is created.
    pub(crate) record_first: bool,
    /// A process that did not write the record last lists the addresses before it allocates.
    pub(crate) list_on_takeover: bool,
    /// A record stays until its object is observed.
    pub(crate) keep_until_seen: bool,
    /// A record is dropped only when a live read reports that the claim does not exist or has another address.
    pub(crate) void_by_read: bool,
    /// The record of a live claim is completed, even if the pool has changed.
    pub(crate) complete_live_claims: bool,
    /// An address object is an orphan only when a live read of its claim confirms it.
    pub(crate) orphan_by_read: bool,
    /// Orphans are deleted.
    pub(crate) delete_orphans: bool,
    /// An address object belongs to the claim with the UID of its owner, not to any claim of that name.
    pub(crate) match_by_uid: bool,
    /// Many simultaneous orphans are kept until a user confirms their release.
    pub(crate) keep_many_orphans: bool,
    /// The finalizer of a pool is removed only after a list without addresses of it.
    pub(crate) list_before_release: bool,
    /// The finalizer of a pool is removed only when nothing is recorded.
    pub(crate) empty_before_release: bool,
}

impl Rules {
    /// All rules.
    pub(crate) const ALL: Self = Self {
        finalizer_first: true,
        record_first: true,
        list_on_takeover: true,
        keep_until_seen: true,
        void_by_read: true,
        complete_live_claims: true,
        orphan_by_read: true,
        delete_orphans: true,
        match_by_uid: true,
        keep_many_orphans: true,
        list_before_release: true,
        empty_before_release: true,
    };
}
