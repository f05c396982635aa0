//! The safety rules of hosts, by name.

metal3_runtime::safety_rules! {
    /// The machine has the finalizer and records its choice before a host is claimed.
    choose_first,
    /// A choice of an earlier reconcile is claimed only after a live read of the machine. This avoids claims that would
    /// be released at once; a remaining one is released as surplus, or by the cleanup.
    confirm_claim,
    /// A patch of a host contains the version that the plan is based on.
    at_version,
    /// An unreadable host is not treated as absent.
    respect_unreadable,
    /// A host is provisioned only when the machine's data are ready.
    data_first,
    /// Claim and data of an earlier machine of the same name are ignored.
    own_data,
    /// A host is provisioned only after a live read of the machine.
    confirm_provision,
    /// A host is provisioned only when the machine records it.
    associate_first,
    /// Of two hosts claimed at once, the one that the machine does not record is released.
    drop_surplus,
    /// A provisioned host gets no other image or data.
    provision_once,
    /// Only hosts whose consumer is the machine are released.
    release_own,
    /// A host is released only after a live read of the machine.
    confirm_release,
    /// The finalizer is removed only after a live read of the recorded host, so that no claimed host remains.
    confirm_freed,
    /// An image is removed only after a live read of the machine's template, which may forbid that the disks are cleaned.
    confirm_cleaning,
    /// A host loses its consumer only after it is deprovisioned.
    wait_for_host,
    /// The machine's data are released only after its host.
    host_before_data,
    /// The finalizer is removed only after host and data are released.
    machine_last,
    /// Nothing is changed while the machine is paused.
    respect_pause,
    /// Nothing is changed for a machine that was moved to another management cluster.
    respect_move,
}
