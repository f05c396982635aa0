//! The rules that keep machines safe, by name.
//!
//! The program always runs with all of them. They are values so that tests can take one away and see the histories go
//! wrong that it prevents: a rule that nobody misses is not needed, or not tested.

/// Which rules are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one rule, and all are independent")]
pub(crate) struct Rules {
    /// A paused host is left alone.
    pub(crate) rest_when_paused: bool,
    /// A host that is deleted as a part of a move is left alone.
    pub(crate) rest_when_moved: bool,
    /// A host that was paused in the view before and is deleted now is left alone for a while.
    pub(crate) grace_after_pause: bool,
    /// A saved status that cannot be read is not taken for none.
    pub(crate) keep_saved_status: bool,
    /// What is about to be done stands in the status before it is asked for.
    pub(crate) record_first: bool,
    /// The host is read live before anything harmful is asked for.
    pub(crate) read_host_first: bool,
    /// The node is read live before anything harmful is asked for.
    pub(crate) read_node_first: bool,
    /// From a stale view of the node nothing is decided.
    pub(crate) wait_when_stale: bool,
    /// A node that was not found by a search is not taken for absent.
    pub(crate) absent_by_search: bool,
    /// A node that serves another instance is nothing to us.
    pub(crate) own_instance: bool,
    /// The node of a provisioned host is adopted, not cleaned and offered, when Ironic has forgotten what it ran.
    pub(crate) adopt_the_provisioned: bool,
    /// Nothing of a host that something else deployed is erased.
    pub(crate) keep_external: bool,
    /// A deployment is done only when the node shows the image that was asked for.
    pub(crate) match_image: bool,
    /// Tear-down that has not begun is called off when the image is wanted again.
    pub(crate) take_back: bool,
    /// No more provisioned hosts are torn down in a period than the budget has.
    pub(crate) keep_budget: bool,
    /// A failed attempt is not made again before its time.
    pub(crate) back_off: bool,
    /// The host goes only when a search shows that Ironic has no node of it.
    pub(crate) search_before_release: bool,
}

impl Rules {
    /// All of them.
    pub(crate) const ALL: Self = Self {
        rest_when_paused: true,
        rest_when_moved: true,
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
        take_back: true,
        keep_budget: true,
        back_off: true,
        search_before_release: true,
    };
}
