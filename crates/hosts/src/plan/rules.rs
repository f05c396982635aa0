//! The safety rules, by name.
//!
//! The program always runs with all of them. They are values so that a test can switch one off and show the failure
//! that it prevents: a rule without such a test is either not needed or not tested.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one rule, and all are independent")]
pub(crate) struct Rules {
    /// A paused host is skipped.
    pub(crate) skip_paused: bool,
    /// A host that is deleted as part of a move is skipped.
    pub(crate) skip_moving: bool,
    /// A deleted host that was paused in its previous version is skipped for a grace period.
    pub(crate) grace_after_pause: bool,
    /// An unreadable saved status is not treated as missing.
    pub(crate) keep_saved_status: bool,
    /// A disruptive action is recorded in the status before it is requested.
    pub(crate) record_first: bool,
    /// The host is read live before a disruptive request.
    pub(crate) read_host_first: bool,
    /// The node is read live before a disruptive request.
    pub(crate) read_node_first: bool,
    /// Nothing is decided on a stale observation of the node.
    pub(crate) wait_when_stale: bool,
    /// A node that was not searched is not treated as absent.
    pub(crate) absent_by_search: bool,
    /// A node with another instance is not changed.
    pub(crate) own_instance: bool,
    /// The node of a provisioned host that Ironic lost is adopted, not cleaned.
    pub(crate) adopt_the_provisioned: bool,
    /// An externally provisioned host is not erased.
    pub(crate) keep_external: bool,
    /// A deployment is complete only when the node shows the requested image.
    pub(crate) match_image: bool,
    /// Deprovisioning that has not begun is cancelled when the image is requested again.
    pub(crate) cancel_deprovisioning: bool,
    /// The deprovision budget is kept.
    pub(crate) keep_budget: bool,
    /// A failed attempt is retried only after its backoff.
    pub(crate) back_off: bool,
    /// The finalizer is removed only after a search shows that Ironic has no node of the host.
    pub(crate) search_before_release: bool,
}

impl Rules {
    pub(crate) const ALL: Self = Self {
        skip_paused: true,
        skip_moving: true,
        grace_after_pause: true,
        keep_saved_status: true,
        record_first: true,
        read_host_first: true,
        read_node_first: true,
        wait_when_stale: true,
        absent_by_search: true,
        own_instance: true,
        adopt_the_provisioned: true,
        keep_external: true,
        match_image: true,
        cancel_deprovisioning: true,
        keep_budget: true,
        back_off: true,
        search_before_release: true,
    };
}
