//! What a decision about one object knows.

use std::time::Duration;

use crate::live::{GoManager, Reading};

/// What is specific to the kind of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// A disc in the virtual drive of the host.
    DataImage {
        /// Whether the status records that it was inserted.
        is_recorded: bool,
    },
    /// An image for the agent of the host.
    AgentImage,
}

/// The host of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostView {
    Absent,
    Present,
    Paused,
    /// clusterctl deletes it, because it exists in another cluster now.
    Moving,
}

/// The node of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeView {
    Absent,
    Present {
        /// Whether a running task has locked it.
        is_locked: bool,
        /// Whether its record names the image of the object.
        names_image: bool,
        /// For what Ironic needs a disc in its virtual drive.
        drive: DriveUse,
    },
}

/// For what Ironic may have inserted a disc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriveUse {
    /// The node is at rest.
    None,
    /// The node is being inspected, cleaned, deployed, serviced or rescued.
    Agent,
    /// The system of the node runs from a disc.
    LiveImage,
}

/// The virtual drives of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    Empty,
    Inserted,
    /// A drive reports neither whether it holds an image nor which one.
    Silent,
    /// The driver has no virtual drive that Ironic can list or insert an image in.
    Unsupported,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) subject: Subject,
    /// The finalizers of the live object.
    pub(super) finalizers: Vec<String>,
    /// Since when this process sees it deleted; `None` when it is not.
    pub(super) deleted_for: Option<Duration>,
    /// Whether clusterctl deletes it, because it exists in another cluster now.
    pub(super) is_moving: bool,
    pub(super) go_manager: Reading<GoManager>,
    pub(super) host: Reading<HostView>,
    /// Since when this process finds no host; zero while there is one.
    pub(super) absent_for: Duration,
    pub(super) node: Reading<NodeView>,
    pub(super) media: Reading<Media>,
}

/// A read that a decision needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    GoManager,
    Host,
    Node,
    Media,
}
