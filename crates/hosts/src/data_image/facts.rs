//! What a decision about one DataImage knows.

use std::time::Duration;

use metal3_api::cluster::names::DELETE_FOR_MOVE_ANNOTATION;
use metal3_api::metal3::names::DATA_IMAGE_FINALIZER;
use metal3_api::metal3::v1alpha1::DataImage;

use crate::live::{GoManager, Reading};
use crate::node::drive::Drive;

/// How each message of this controller begins, and none of the controller of hosts.
pub(super) const OWN: &str = "it is deleted, and stays: ";

/// The object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) has_finalizer: bool,
    pub(super) is_deleted: bool,
    /// Whether clusterctl deletes it, because it exists in another cluster now.
    pub(super) is_moving: bool,
    /// Whether the status records that the image was inserted, or is about to be.
    pub(super) is_recorded: bool,
    /// Whether the status has an error of the controller of hosts. A Go manager leaves an empty one.
    pub(super) has_error_of_host: bool,
    /// Whether it was read from the server in this reconcile.
    pub(super) is_live: bool,
}

impl Object {
    pub(super) fn of(object: &DataImage, is_live: bool) -> Self {
        let meta = &object.metadata;
        let mut finalizers = meta.finalizers.iter().flatten();
        let annotations = meta.annotations.as_ref();
        let attached = object.status.attached_image.as_ref();
        let error = object.status.error.as_ref().map(|error| error.message.as_str());
        Self {
            has_finalizer: finalizers.any(|name| name == DATA_IMAGE_FINALIZER),
            is_deleted: meta.deletion_timestamp.is_some(),
            is_moving: annotations.is_some_and(|all| all.contains_key(DELETE_FOR_MOVE_ANNOTATION)),
            is_recorded: attached.is_some_and(|attached| !attached.url.is_empty()),
            has_error_of_host: error.is_some_and(|error| !error.is_empty() && !error.starts_with(OWN)),
            is_live,
        }
    }
}

/// What of a host forbids to go on; the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bar {
    Paused,
    /// clusterctl deletes it, because it exists in another cluster now.
    Moving,
    Deleted,
    Detached,
    /// The annotation that detached it is gone, and its node is not back.
    Attaching,
}

/// When the controller of hosts ejects the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The machine runs: at its next start.
    AfterRestart,
    /// The machine runs, and must not be powered off.
    NeverOff,
    /// It is off, and is to stay off.
    WhenOnline,
    /// It is off until a client removes its annotation.
    HeldOff,
    /// It is off, and is switched on.
    Soon,
    /// It runs no image of a user.
    Never,
}

/// The host of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostView {
    Absent,
    Present {
        bar: Option<Bar>,
        /// Whether the object names it as its owner.
        is_owner: bool,
        start: Start,
    },
}

/// The node of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeView {
    Absent,
    Present {
        /// Whether a running task has locked it.
        is_locked: bool,
        drive: DriveUse,
    },
}

/// For what Ironic may have inserted a disc itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriveUse {
    /// The node is at rest.
    None,
    /// The node is being inspected, cleaned, deployed, serviced or rescued.
    Agent,
    /// The system of the node runs from a disc.
    LiveImage,
}

/// The virtual drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriveState {
    Known(Drive),
    /// The driver has no virtual drive that Ironic can read or insert an image in.
    Unsupported,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) object: Object,
    /// Since when this process sees it deleted.
    pub(super) deleted_for: Duration,
    /// The cached host.
    pub(super) cached_host: Reading<HostView>,
    pub(super) go_manager: Reading<GoManager>,
    pub(super) host: Reading<HostView>,
    /// Since when this process finds no host; zero while there is one.
    pub(super) absent_for: Duration,
    /// Since when this process finds the host about to start; zero while it is not.
    pub(super) starting_for: Duration,
    pub(super) node: Reading<NodeView>,
    pub(super) drive: Reading<DriveState>,
}

/// A read that a decision needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    Object,
    GoManager,
    Host,
    Node,
    Drive,
}
