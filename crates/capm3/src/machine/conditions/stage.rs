//! The stages of a machine that its conditions report.

use std::time::Duration;

/// The progress of a machine. Messages are for users and contain the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// A prerequisite of the host choice is missing.
    Before(Prerequisite),
    /// The bootstrap data do not exist, and something else is known to be missing.
    WithoutBootstrap {
        /// Where to read what.
        note: String,
    },
    /// The machine is paused.
    Paused {
        /// The cause.
        message: String,
    },
    /// The machine's host could not be paused or resumed with it.
    HostPauseFailed {
        /// Whether it failed to pause rather than to resume.
        pausing: bool,
        /// The error.
        message: String,
    },
    /// No Metal3Cluster matches.
    WithoutCluster {
        /// The name that is meant, and how to correct it.
        message: String,
    },
    /// More than one Metal3Cluster matches.
    Ambiguous {
        /// The candidates, and how to select one.
        message: String,
    },
    /// The machine references a Metal3Cluster that does not belong to its Cluster.
    NotOfCluster {
        /// Both, and how to correct it.
        message: String,
    },
    /// A relevant object cannot be read, so nothing is changed.
    Unreadable {
        /// The object and the error.
        message: String,
    },
    /// No host can be claimed.
    WithoutHost {
        /// The reasons, by kind of host.
        message: String,
        /// Whether the change that ends the wait may enqueue nothing.
        is_rechecked: bool,
    },
    /// The machine has a host.
    Hosted {
        /// Whether the host is reused for the same owner.
        is_reused: bool,
        /// Its claim on data, and the writes to its host.
        request: Request,
        /// Its data.
        data: Data,
        /// Its Node.
        node: Node,
        /// The labels of its Node.
        labels: Labels,
    },
    /// The machine is being deleted.
    Deleting(Deletion),
}

/// A prerequisite of the host choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prerequisite {
    /// The Machine that owns the object.
    Owner,
    /// The Cluster of the Machine.
    Cluster,
    /// The Cluster's infrastructure.
    Infrastructure,
    /// The bootstrap data.
    Bootstrap,
}

/// The state of the claim on data and of the writes to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The claim exists, or none is needed.
    Made,
    /// The claim could not be created.
    Failed(String),
    /// Image and data could not be written to the host.
    HostNotWritten(String),
    /// The provisioned host could not be updated.
    HostNotUpdated(String),
}

/// The state of a machine's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Rendering is in progress.
    Waiting(String),
    /// The data are rendered.
    Rendered,
    /// The user supplies them, or there are none.
    External,
}

/// The state of a machine's Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// The host is not provisioned.
    NotExpected,
    /// It has not registered yet.
    Waiting(String),
    /// No Node matches, or the match belongs to another machine.
    Failed(String),
    /// The Node has the machine's provider ID.
    Known,
}

/// The state of the labels that a Node gets from its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// None are asked for.
    NotAsked,
    /// Nothing is known that changes the last report.
    Unchanged,
    /// The same, and the Node is read after this time.
    Later(Duration),
    /// The Node has them.
    Copied,
    /// The Node or its cluster is not there yet.
    Waiting(Box<str>),
    /// The Node is not read, because other requests are under way.
    Busy,
    /// Something has to be corrected.
    Failed(Box<str>),
}

/// The progress of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// In progress.
    UnderWay(String),
    /// The claim on data could not be released.
    DataNotReleased(String),
    /// The host could not be released.
    HostNotReleased(String),
    /// The machine may not be removed from the owners of its host, which would be deleted with it.
    HostOwned(String),
    /// Whether the host is to be kept with its disks is for the user to decide, or is not known.
    ReuseUndecided(String),
}
