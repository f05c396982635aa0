//! The safety rules of hosts, by name.
//!
//! The controller runs with all of them. Tests disable one at a time and check that the failure it prevents occurs,
//! which proves that the rule is needed and tested.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one rule, and all are independent")]
pub(crate) struct Rules {
    /// The machine has the finalizer and records its choice before a host is claimed.
    pub(crate) choose_first: bool,
    /// A choice of an earlier reconcile is claimed only after a live read of the machine. This avoids claims that would
    /// be released at once; a remaining one is released as surplus, or by the cleanup.
    pub(crate) confirm_claim: bool,
    /// A patch of a host contains the version that the plan is based on.
    pub(crate) at_version: bool,
    /// An unreadable host is not treated as absent.
    pub(crate) respect_unreadable: bool,
    /// A host is provisioned only when the machine's data are ready.
    pub(crate) data_first: bool,
    /// Claim and data of an earlier machine of the same name are ignored.
    pub(crate) own_data: bool,
    /// A host is provisioned only after a live read of the machine.
    pub(crate) confirm_provision: bool,
    /// A host is provisioned only when the machine records it.
    pub(crate) associate_first: bool,
    /// Of two hosts claimed at once, the one that the machine does not record is released.
    pub(crate) drop_surplus: bool,
    /// A provisioned host gets no other image or data.
    pub(crate) provision_once: bool,
    /// Only hosts whose consumer is the machine are released.
    pub(crate) release_own: bool,
    /// A host is released only after a live read of the machine.
    pub(crate) confirm_release: bool,
    /// The finalizer is removed only after a live read of the recorded host, so that no claimed host remains.
    pub(crate) confirm_freed: bool,
    /// A host loses its consumer only after it is deprovisioned.
    pub(crate) wait_for_host: bool,
    /// The machine's data are released only after its host.
    pub(crate) host_before_data: bool,
    /// The finalizer is removed only after host and data are released.
    pub(crate) machine_last: bool,
    /// Nothing is changed while the machine is paused.
    pub(crate) respect_pause: bool,
    /// Nothing is changed for a machine that was moved to another management cluster.
    pub(crate) respect_move: bool,
}

impl Rules {
    pub(crate) const ALL: Self = Self {
        choose_first: true,
        confirm_claim: true,
        at_version: true,
        respect_unreadable: true,
        data_first: true,
        own_data: true,
        confirm_provision: true,
        associate_first: true,
        drop_surplus: true,
        provision_once: true,
        release_own: true,
        confirm_release: true,
        confirm_freed: true,
        wait_for_host: true,
        host_before_data: true,
        machine_last: true,
        respect_pause: true,
        respect_move: true,
    };
}
