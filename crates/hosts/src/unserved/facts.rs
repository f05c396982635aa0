//! What a decision about one object knows.

use std::time::Duration;

use crate::live::{GoManager, Reading};

/// Who serves the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// No controller of this program.
    None,
    /// This program (`--build-preprov-image`).
    This,
    /// The host controller of this program, and another builder, which writes the status.
    OtherBuilder,
}

/// The host of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostView {
    Absent,
    Present,
    /// The host of the object is gone, and another one has its name.
    Successor,
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
        /// Whether Ironic boots its agent on the machine, or may be about to.
        runs_agent: bool,
    },
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) server: Server,
    /// The finalizers of the live object.
    pub(super) finalizers: Vec<String>,
    /// Since when this process sees it deleted; `None` when it is not.
    pub(super) deleted_for: Option<Duration>,
    /// Whether clusterctl deletes it, because it exists in another cluster now.
    pub(super) is_moving: bool,
    pub(super) go_manager: Reading<GoManager>,
    pub(super) host: Reading<HostView>,
    pub(super) node: Reading<NodeView>,
}

/// A read that a decision needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    GoManager,
    Host,
    Node,
}
