//! The rules that keep hosts safe, by name.
//!
//! The program always runs with all of them. They are values so that tests can take one away and see the histories go
//! wrong that it prevents: a rule that nobody misses is not needed, or not tested.

/// Which rules are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one rule, and all are independent")]
pub(crate) struct Rules {
    /// The machine has our finalizer and names its choice before a host is claimed.
    pub(crate) choose_first: bool,
    /// A choice of an earlier pass is carried out only after a live read of the machine. It spares hosts that would be
    /// given back at once; what slips through all the same is undone as surplus, or with a machine that is gone.
    pub(crate) confirm_claim: bool,
    /// A change of a host names the version it was decided on.
    pub(crate) at_version: bool,
    /// A host that cannot be read is not absent.
    pub(crate) heed_unknown: bool,
    /// A host is told what to run only when the machine's data are there.
    pub(crate) data_first: bool,
    /// The claim and the data of an earlier machine of the same name do not count.
    pub(crate) own_data: bool,
    /// A host is told what to run only after a live read of the machine.
    pub(crate) confirm_provision: bool,
    /// A host is told what to run only when the machine says that it has it.
    pub(crate) associate_first: bool,
    /// Of two hosts that were taken at once, the one that the machine does not name is given back.
    pub(crate) drop_surplus: bool,
    /// A host that runs something is told nothing else.
    pub(crate) provision_once: bool,
    /// Only hosts whose consumer is the machine are given back.
    pub(crate) release_own: bool,
    /// A host is given back only after a live read of the machine.
    pub(crate) confirm_release: bool,
    /// The machine goes only after a live read of the host that it names, so that it leaves none that it has taken.
    pub(crate) confirm_freed: bool,
    /// A host loses its consumer only when what it ran is removed.
    pub(crate) wait_for_host: bool,
    /// The machine's data are given back only after its host.
    pub(crate) host_before_data: bool,
    /// The machine goes only after its host and its data.
    pub(crate) machine_last: bool,
    /// Nothing is done while the machine is paused.
    pub(crate) heed_pause: bool,
    /// Nothing is done for a machine that lives on elsewhere.
    pub(crate) heed_move: bool,
}

impl Rules {
    /// All of them.
    pub(crate) const ALL: Self = Self {
        choose_first: true,
        confirm_claim: true,
        at_version: true,
        heed_unknown: true,
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
        heed_pause: true,
        heed_move: true,
    };
}
