//! The safety rules, by name.

metal3_runtime::safety_rules! {
    /// A paused host is skipped.
    skip_paused,
    /// A host that is deleted as part of a move is skipped.
    skip_moving,
    /// A deleted host that was paused in its previous version is skipped for a grace period.
    grace_after_pause,
    /// An unreadable saved status is not treated as missing.
    keep_saved_status,
    /// A disruptive action is recorded in the status before it is requested.
    record_first,
    /// The host is read live before a disruptive request.
    read_host_first,
    /// The node is read live before a disruptive request.
    read_node_first,
    /// Nothing is decided on a stale observation of the node.
    wait_when_stale,
    /// A node that was not searched is not treated as absent.
    absent_by_search,
    /// A node with another instance is not changed.
    own_instance,
    /// The node of a provisioned host that Ironic lost is adopted, not cleaned.
    adopt_the_provisioned,
    /// An externally provisioned host is not erased.
    keep_external,
    /// A deployment is complete only when the node shows the requested image.
    match_image,
    /// Deprovisioning that has not begun is cancelled when the image is requested again.
    cancel_deprovisioning,
    /// The deprovision budget is kept.
    keep_budget,
    /// A failed attempt is retried only after its backoff.
    back_off,
    /// The finalizer is removed only after a search shows that Ironic has no node of the host.
    search_before_release,
}
