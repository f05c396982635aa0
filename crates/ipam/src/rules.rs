//! The rules that make two replicas safe, by name.
//!
//! The program always runs with all of them. They are values so that tests can take one away and see the histories go
//! wrong that it prevents: a rule that nobody misses is not needed, or not tested.

/// Which rules are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one rule, and all are independent")]
pub(crate) struct Rules {
    /// A claim has our finalizer before anything is promised to it.
    pub(crate) protect_first: bool,
    /// A grant is recorded in the pool before its object is created.
    pub(crate) record_first: bool,
    /// Whoever was not the last to write the record lists the addresses before granting.
    pub(crate) list_on_takeover: bool,
    /// A record stays until its object has been seen.
    pub(crate) keep_until_seen: bool,
    /// A record is void only when a live read says that its claim is gone or has another address.
    pub(crate) void_by_read: bool,
    /// The record of a living claim is carried out, whatever the pool says by now.
    pub(crate) finish_the_living: bool,
    /// An address object is an orphan only when a live read of its claim says so.
    pub(crate) orphan_by_read: bool,
    /// Orphans are deleted.
    pub(crate) sweep_orphans: bool,
    /// An address object belongs to the claim with its owner's UID, not to any claim of that name.
    pub(crate) match_by_uid: bool,
    /// Many orphans at once are kept until somebody confirms.
    pub(crate) hold_many_orphans: bool,
    /// A pool goes only after a list shows no address of it.
    pub(crate) list_before_release: bool,
    /// A pool goes only when nothing is recorded.
    pub(crate) empty_before_release: bool,
}

impl Rules {
    /// All of them.
    pub(crate) const ALL: Self = Self {
        protect_first: true,
        record_first: true,
        list_on_takeover: true,
        keep_until_seen: true,
        void_by_read: true,
        finish_the_living: true,
        orphan_by_read: true,
        sweep_orphans: true,
        match_by_uid: true,
        hold_many_orphans: true,
        list_before_release: true,
        empty_before_release: true,
    };
}
