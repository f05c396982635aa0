//! Upper limits of requests per phase, for simulated and real servers.

/// Per host. Events, leases and the requests of the change feed are not counted.
pub(crate) struct Goal {
    pub(crate) writes: u64,
    /// API reads that bypass the watches.
    pub(crate) reads: u64,
    pub(crate) ironic: u64,
    /// The theoretical minimum of each.
    pub(crate) least: [&'static str; 3],
}

/// From a BMC address to an inspected machine that is on.
pub(crate) const ENROL: Goal = Goal {
    writes: 16,
    reads: 1,
    ironic: 10,
    least: [
        "5: finalizer, Secret, HardwareData, status twice",
        "1: the Secret",
        "8: two in search, POST twice, PUT twice, inventory, power",
    ],
};

/// Until the image runs: four requests, and two for the cleaning before the first deployment.
pub(crate) const PROVISION: Goal = Goal {
    writes: 4,
    reads: 3,
    ironic: 6,
    least: [
        "2: before and after",
        "1: the host, before it is written",
        "4: PATCH, PUT, two reads",
    ],
};

/// Until the image is removed.
pub(crate) const DEPROVISION: Goal = Goal {
    writes: 4,
    reads: 3,
    ironic: 3,
    least: [
        "2: before and after",
        "1: the host, before it is erased",
        "2: a read, PUT",
    ],
};

/// Until host and node are deleted. The node is read before its machine is powered off, and before its record is deleted.
pub(crate) const DELETE: Goal = Goal {
    writes: 6,
    reads: 1,
    ironic: 4,
    least: ["2: finalizers of Secret and host", "0", "1: DELETE"],
};
