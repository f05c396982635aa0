//! The decision about one DataImage. Pure.
//!
//! One that is not deleted gets its host as owner and a finalizer. One that is deleted stays until live reads show that the virtual
//! drive does not hold the image, or that nothing is left that could eject it. differs (`data-image-release`): the Go manager also
//! removes the finalizer of one whose host is absent while its node exists, and of one whose host is absent and that is not deleted.

use std::time::Duration;

use metal3_runtime::reason::Reason;

use super::facts::{Bar, DriveState, DriveUse, Facts, HostView, NodeView, OWN, Read, Start};
use crate::live::{GoManager, Reading};
use crate::names::disc_reason::{
    GO_MANAGER_RUNS, HOST_ABSENT, HOST_DELETED, HOST_PAUSED, MOVING, NODE_LOCKED, STATE_UNKNOWN, STILL_IN_DRIVE,
    USED_BY_IRONIC,
};
use crate::node::drive::Drive;

/// How long a host must be absent before it counts as gone: a move or the restoration of a backup creates it after its
/// objects. Either takes minutes.
pub(super) const HOST_GRACE: Duration = Duration::from_mins(10);
/// A wait that usually ends by itself is reported after this time: a task of Ironic takes seconds, a move minutes.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);
/// Nothing reports that Ironic has ended a task, or that a Go manager has ended.
pub(super) const RECHECK: Duration = Duration::from_mins(1);
/// Neither Ironic nor a BMC reports that a person has ejected a disc. A start of the host ends the wait at once.
pub(super) const DRIVE_RECHECK: Duration = Duration::from_mins(10);
/// An insertion that was recorded before the deletion is sent within seconds, and Ironic begins with it within a minute.
pub(super) const INSERTION_LIMIT: Duration = Duration::from_secs(75);

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// There is nothing to do until something changes.
    Done,
    Read(Read),
    /// Make the host the owner, and add the finalizer.
    Adopt,
    /// Remove the finalizer. `is_left`: the image may be in the drive.
    Release {
        is_left: bool,
    },
    Wait(Wait),
}

/// Why a deleted object stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) recheck: Option<Duration>,
    /// Whether the status says so. Not while the wait is expected to end by itself.
    pub(super) is_reported: bool,
}

pub(super) fn plan(facts: &Facts) -> Step {
    match facts.object.is_deleted {
        true => release(facts),
        false => adopt(facts),
    }
    .unwrap_or_else(|step| step)
}

/// A step, or the step that must come first.
type Decision<T = Step> = Result<T, Step>;

fn adopt(facts: &Facts) -> Decision {
    let is_adopted = |host: &HostView| match host {
        HostView::Absent => true,
        HostView::Present { bar, is_owner, .. } => {
            let is_barred = matches!(bar, Some(Bar::Paused | Bar::Moving | Bar::Deleted));
            is_barred || (*is_owner && facts.object.has_finalizer)
        }
    };
    match (&facts.cached_host, &facts.host) {
        (Reading::Known(host), _) if is_adopted(host) => Ok(Step::Done),
        // The owner of another host of this name would have the object collected.
        (Reading::Known(_), Reading::NotRead) => Ok(Step::Read(Read::Host)),
        (Reading::Known(_), Reading::Known(host)) if !is_adopted(host) => Ok(Step::Adopt),
        (Reading::Known(_), Reading::Failed(why)) => Ok(Step::Wait(Wait {
            reason: STATE_UNKNOWN,
            message: format!("its host cannot be read ({why})"),
            recheck: Some(RECHECK),
            is_reported: false,
        })),
        (Reading::Known(_), Reading::Known(_)) | (Reading::NotRead | Reading::Failed(_), _) => Ok(Step::Done),
    }
}

fn release(facts: &Facts) -> Decision {
    let object = &facts.object;
    if !object.has_finalizer {
        return Ok(Step::Done);
    }
    if !object.is_live {
        return Err(Step::Read(Read::Object));
    }
    require_no_other_manager(facts)?;
    let start = match require_host(facts)? {
        Some(start) => start,
        None => return release_without_host(facts),
    };
    // The controller of hosts reads the drive at each attempt to start, and reports about it: two would answer each other.
    if start == Start::Soon && object.is_recorded {
        return Err(before_start(facts));
    }
    let used = match require_node(facts)? {
        Some(used) => used,
        // It is detached, or Ironic has lost its database: the node comes back.
        None if object.is_recorded => {
            return Err(unknown(
                "Ironic has no node of its host, and the virtual drive may still hold the image",
                "let the host be registered again, or eject the image at the BMC and then remove the finalizer",
            ));
        }
        None => return Ok(Step::Release { is_left: false }),
    };
    let drive = match (require_drive(facts), start) {
        (Err(Step::Wait(_)), Start::Soon) => return Err(before_start(facts)),
        (drive, _) => drive?,
    };
    if !may_hold(drive, object.is_recorded) {
        return require_no_insertion(facts).map(|()| Step::Release { is_left: false });
    }
    require_unused(facts, used)?;
    Err(in_drive(facts, drive, start))
}

fn release_without_host(facts: &Facts) -> Decision {
    let is_recorded = facts.object.is_recorded;
    let used = match require_node(facts)? {
        Some(used) => used,
        // Nothing of this program reaches the BMC any more.
        None => return Ok(Step::Release { is_left: is_recorded }),
    };
    let drive = require_drive(facts)?;
    if !may_hold(drive, is_recorded) {
        return Ok(Step::Release { is_left: false });
    }
    require_unused(facts, used)?;
    Err(reported(
        STILL_IN_DRIVE,
        "its host does not exist in this cluster, Ironic has its node, and the image may be in the virtual drive",
        "delete it in the cluster that has the host, or eject it at the BMC, or remove the finalizer by hand to keep it",
        DRIVE_RECHECK,
    ))
}

/// Why others must be done with the object first.
fn require_no_other_manager(facts: &Facts) -> Decision<()> {
    match &facts.go_manager {
        Reading::NotRead => return Err(Step::Read(Read::GoManager)),
        Reading::Failed(why) => {
            let message = format!("whether a Go manager serves it is not known ({why})");
            return Err(unknown(&message, "let this program list its Deployment"));
        }
        Reading::Known(GoManager::Running(who)) => return Err(quiet(GO_MANAGER_RUNS, who.clone(), Some(RECHECK))),
        Reading::Known(GoManager::Absent) => {}
    }
    match facts.object.is_moving {
        false => Ok(()),
        true => Err(passing_on_host(
            facts.deleted_for,
            MOVING,
            "clusterctl moves it to another cluster and then removes its finalizers",
            "if that move was interrupted, repeat it, or remove the finalizer by hand",
        )),
    }
}

/// When the controller of hosts ejects the image; `None`: there is no host.
fn require_host(facts: &Facts) -> Decision<Option<Start>> {
    let (bar, start) = match &facts.host {
        Reading::NotRead => return Err(Step::Read(Read::Host)),
        Reading::Failed(why) => return Err(unknown(&format!("its host cannot be read ({why})"), RETRIED)),
        Reading::Known(HostView::Absent) if facts.object.is_recorded && facts.absent_for < HOST_GRACE => {
            let message = "its host does not exist in this cluster, and may be created again".to_owned();
            let left = HOST_GRACE.saturating_sub(facts.absent_for);
            return Err(quiet(HOST_ABSENT, message, Some(left)));
        }
        Reading::Known(HostView::Absent) => return Ok(None),
        Reading::Known(HostView::Present { bar, start, .. }) => (*bar, *start),
    };
    Err(match bar {
        None => return Ok(Some(start)),
        // As during a move: the node may be served from another cluster.
        Some(Bar::Paused) => passing_on_host(
            facts.deleted_for,
            HOST_PAUSED,
            "its host is paused",
            "when the move or the work on the host is over, remove the annotation baremetalhost.metal3.io/paused of the host",
        ),
        Some(Bar::Moving) => passing_on_host(
            facts.deleted_for,
            MOVING,
            "clusterctl moves its host to another cluster",
            "if that move was interrupted, repeat it",
        ),
        // As the Go manager: the machine is left as it is, and Ironic has no node to eject it with.
        Some(Bar::Detached) => Step::Release {
            is_left: facts.object.is_recorded,
        },
        Some(Bar::Attaching) => passing_on_host(
            facts.deleted_for,
            STATE_UNKNOWN,
            "its host is being attached again, after which the virtual drive can be read",
            "see the status of the host",
        ),
        Some(Bar::Deleted) => passing_on_host(
            facts.deleted_for,
            HOST_DELETED,
            "its host is being deleted, which ejects the image first",
            "see the conditions of the host",
        ),
    })
}

/// For what Ironic uses the drive of the node; `None`: there is no node.
fn require_node(facts: &Facts) -> Decision<Option<DriveUse>> {
    match &facts.node {
        Reading::NotRead => Err(Step::Read(Read::Node)),
        Reading::Failed(why) => {
            let message = format!("whether Ironic has a node of its host is not known ({why})");
            Err(unknown(&message, RETRIED))
        }
        Reading::Known(NodeView::Absent) => Ok(None),
        Reading::Known(NodeView::Present { is_locked: true, .. }) => Err(passing(
            facts.deleted_for,
            NODE_LOCKED,
            "a task of Ironic has locked the node of its host",
            "wait until the task ends; a lock that stays goes with a restart of the conductor that holds it",
        )),
        Reading::Known(NodeView::Present { drive, .. }) => Ok(Some(*drive)),
    }
}

fn require_drive(facts: &Facts) -> Decision<DriveState> {
    match &facts.drive {
        Reading::NotRead => Err(Step::Read(Read::Drive)),
        Reading::Failed(why) => {
            let message = format!("whether the image is in the virtual drive of its host is not known ({why})");
            Err(unknown(&message, RETRIED))
        }
        Reading::Known(drive) => Ok(*drive),
    }
}

/// Whether the drive may hold the image. A disc of another name is not this one, unless the status says that one was inserted: some
/// BMCs name it in their own way.
const fn may_hold(drive: DriveState, is_recorded: bool) -> bool {
    match drive {
        DriveState::Known(Drive::Empty) => false,
        DriveState::Known(Drive::Attached | Drive::Unnamed) => true,
        DriveState::Known(Drive::Other | Drive::Silent) | DriveState::Unsupported => is_recorded,
    }
}

/// Ironic begins with no insertion later.
fn require_no_insertion(facts: &Facts) -> Decision<()> {
    let left = INSERTION_LIMIT.saturating_sub(facts.deleted_for);
    if !facts.object.is_recorded || left.is_zero() {
        return Ok(());
    }
    let message = "Ironic may still insert the image".to_owned();
    Err(quiet(STILL_IN_DRIVE, message, Some(left)))
}

fn require_unused(facts: &Facts, used: DriveUse) -> Decision<()> {
    Err(match used {
        DriveUse::None => return Ok(()),
        DriveUse::Agent => passing(
            facts.deleted_for,
            USED_BY_IRONIC,
            "Ironic inspects, cleans, deploys or services the node of its host, and uses the virtual drive",
            "wait until that is over; then the drive is read again",
        ),
        DriveUse::LiveImage => reported(
            USED_BY_IRONIC,
            "the system of its host runs from a disc in the virtual drive",
            "wait until the host is deprovisioned; then the drive is read again",
            DRIVE_RECHECK,
        ),
    })
}

/// The image is in the drive of a host that exists.
fn in_drive(facts: &Facts, drive: DriveState, start: Start) -> Step {
    if drive == DriveState::Unsupported {
        return reported(
            STILL_IN_DRIVE,
            "the status records that the image was inserted, and Ironic cannot read the virtual drive of its host",
            "eject the image at the BMC, then remove the finalizer by hand",
            DRIVE_RECHECK,
        );
    }
    let (what, remedy) = match start {
        Start::AfterRestart => (
            "the image is in the virtual drive of its host, which runs; it is ejected when the host starts next",
            "switch the host off and on, for example with the annotation reboot.metal3.io",
        ),
        Start::NeverOff => (
            "the image is in the virtual drive of its host, which spec.disablePowerOff keeps on; it is ejected when the host starts",
            "remove spec.disablePowerOff and then switch the host off and on, or eject the image with DELETE /v1/nodes/NODE/vmedia \
             of Ironic",
        ),
        Start::WhenOnline => (
            "the image is in the virtual drive of its host, which is off; it is ejected when the host starts",
            "set spec.online of the host to true",
        ),
        Start::HeldOff => (
            "the image is in the virtual drive of its host, which an annotation reboot.metal3.io/... keeps off; it is ejected when the \
             host starts",
            "let the client that set the annotation remove it",
        ),
        Start::Soon => return before_start(facts),
        Start::Never => (
            "the image is in the virtual drive of its host, which is not provisioned",
            "provision and start the host, or eject the image with DELETE /v1/nodes/NODE/vmedia of Ironic",
        ),
    };
    reported(STILL_IN_DRIVE, what, remedy, DRIVE_RECHECK)
}

/// The host is switched on, which ejects the image first.
fn before_start(facts: &Facts) -> Step {
    let message = "the image is ejected before its host starts";
    match facts.object.has_error_of_host {
        // It says why the image stays.
        true => quiet(STILL_IN_DRIVE, message.to_owned(), Some(DRIVE_RECHECK)),
        false => passing_on_host(
            facts.starting_for,
            STILL_IN_DRIVE,
            message,
            "if it does not start, see the status of the host",
        ),
    }
}

const RETRIED: &str = "this is read again every minute";

fn unknown(message: &str, remedy: &str) -> Step {
    reported(STATE_UNKNOWN, message, remedy, RECHECK)
}

fn reported(reason: Reason, message: &str, remedy: &str, recheck: Duration) -> Step {
    Step::Wait(Wait {
        reason,
        message: format!("{OWN}{message}; {remedy}"),
        recheck: Some(recheck),
        is_reported: true,
    })
}

/// A wait that usually ends by itself. `lasts`: so far.
fn passing(lasts: Duration, reason: Reason, message: &str, remedy: &str) -> Step {
    match lasts < PATIENCE {
        true => quiet(reason, message.to_owned(), Some(RECHECK)),
        false => reported(reason, message, remedy, RECHECK),
    }
}

/// The same, and the end of it changes the object or its host, which are watched.
fn passing_on_host(lasts: Duration, reason: Reason, message: &str, remedy: &str) -> Step {
    let left = PATIENCE.saturating_sub(lasts);
    let mut step = passing(lasts, reason, message, remedy);
    if let Step::Wait(wait) = &mut step {
        wait.recheck = (!left.is_zero()).then_some(left);
    }
    step
}

fn quiet(reason: Reason, message: String, recheck: Option<Duration>) -> Step {
    Step::Wait(Wait {
        reason,
        message,
        recheck,
        is_reported: false,
    })
}
