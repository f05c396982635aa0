//! The decision about one object. Pure.
//!
//! A finalizer of the Go manager is removed only from an object that is deleted, while no Go manager runs, and after
//! live reads that show that nothing is left of it in Ironic or in the BMC. differs (`unserved-finalizers`): the Go
//! manager also removes that of a DataImage whose host is detached or absent, without a look at the node.

use std::time::Duration;

use metal3_runtime::reason::Reason;

use super::facts::{Facts, GoManager, HostView, Listed, Media, NodeView, Read, Reading, Subject};

/// Finalizers of the Go manager.
pub(super) const DATA_IMAGE: &str = "dataimage.metal3.io";
pub(super) const SUBSCRIPTION: &str = "bmceventsubscription.metal3.io";
/// Of the controller of hosts, on the image that its node may boot.
pub(super) const HOST_OF_IMAGE: &str = "baremetalhost.metal3.io/preprovisioningImage";
/// Of the controller that builds the image: part of the Go manager, or another program.
pub(super) const IMAGE: &str = "preprovisioningimage.metal3.io";

/// The time for another program that builds images to remove its own finalizer: no Deployment of a well-known name shows
/// whether it runs. It needs seconds. The time begins with each start.
pub(super) const IMAGE_BUILDER_GRACE: Duration = Duration::from_mins(10);
/// Neither Ironic nor a BMC reports when a drive or a subscription changes.
pub(super) const RECHECK: Duration = Duration::from_mins(1);

pub(super) const GO_MANAGER_RUNS: Reason = Reason::new("GoManagerRuns");
pub(super) const HOST_PAUSED: Reason = Reason::new("HostPaused");
pub(super) const NODE_LOCKED: Reason = Reason::new("NodeLocked");
pub(super) const OTHER_FINALIZERS: Reason = Reason::new("OtherFinalizers");
pub(super) const IMAGE_BUILDER: Reason = Reason::new("WaitingForImageBuilder");
pub(super) const STATE_UNKNOWN: Reason = Reason::new("StateUnknown");
pub(super) const STILL_IN_USE: Reason = Reason::new("StillInUse");

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// There is nothing to do until the object changes.
    Done,
    Read(Read),
    /// Remove this finalizer.
    Remove(&'static str),
    /// Delete the subscription from the BMC.
    DeleteSubscription,
    Wait(Wait),
}

/// Why the finalizer stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) reason: Reason,
    pub(super) message: String,
    /// `None` where a watch tells when it ends.
    pub(super) recheck: Option<Duration>,
    /// Whether the status says so. Not where the wait ends by itself, or where a Go manager writes the status.
    pub(super) is_reported: bool,
}

pub(super) fn plan(facts: &Facts) -> Step {
    let Some(deleted_for) = facts.deleted_for else {
        return Step::Done;
    };
    let Some(finalizer) = own_finalizer(facts) else {
        return Step::Done;
    };
    match &facts.go_manager {
        Reading::NotRead => return Step::Read(Read::GoManager),
        Reading::Failed(why) => return unknown(format!("whether a Go manager serves it is not known ({why})"), ACCESS),
        Reading::Known(GoManager::Running(who)) => return quiet(GO_MANAGER_RUNS, who.clone(), RECHECK),
        Reading::Known(GoManager::Absent) => {}
    }
    if finalizer == IMAGE {
        if facts.finalizers.iter().any(|name| name != IMAGE) {
            return quiet(
                OTHER_FINALIZERS,
                "its other finalizers are removed first".to_owned(),
                None,
            );
        }
        let left = IMAGE_BUILDER_GRACE.saturating_sub(deleted_for);
        if !left.is_zero() {
            let message = "another program that builds images has time to remove its finalizer".to_owned();
            return quiet(IMAGE_BUILDER, message, left);
        }
    }
    // Nothing was created: neither the host nor Ironic matters.
    if matches!(&facts.subject, Subject::Subscription { id: None }) {
        return Step::Remove(finalizer);
    }
    match &facts.host {
        Reading::NotRead => return Step::Read(Read::Host),
        Reading::Failed(why) => return unknown(format!("its host cannot be read ({why})"), RETRIED),
        // As during a move: the node may be served from another cluster.
        Reading::Known(HostView::Present { is_paused: true }) => {
            return quiet(HOST_PAUSED, "its host is paused".to_owned(), RECHECK);
        }
        Reading::Known(HostView::Absent | HostView::Present { is_paused: false }) => {}
    }
    let names_image = match &facts.node {
        Reading::NotRead => return Step::Read(Read::Node),
        Reading::Failed(why) => {
            return unknown(
                format!("whether Ironic has a node of its host is not known ({why})"),
                RETRIED,
            );
        }
        Reading::Known(NodeView::Absent) if is_left_in_bmc(facts) => {
            return unknown(
                "Ironic has no node of its host, and the BMC may still hold what was created".to_owned(),
                "let the host be registered again, or remove it from the BMC and then the finalizer",
            );
        }
        Reading::Known(NodeView::Absent) => return Step::Remove(finalizer),
        Reading::Known(NodeView::Present { is_locked: true, .. }) => {
            return quiet(NODE_LOCKED, "a task of Ironic has locked the node".to_owned(), RECHECK);
        }
        Reading::Known(NodeView::Present { names_image, .. }) => *names_image,
    };
    match &facts.subject {
        Subject::DataImage { is_recorded } => drive(facts, finalizer, *is_recorded),
        Subject::Subscription { .. } => subscription(facts, finalizer),
        Subject::AgentImage if names_image => in_use(
            "the node of its host boots from this image",
            "wait until the host is registered again without it, or start the Go manager of hosts again",
        ),
        Subject::AgentImage => Step::Remove(finalizer),
    }
}

/// Whether the BMC of a host that exists may hold a disc or a subscription that the status records. A host without a node
/// is detached, or Ironic has lost its database: the node comes back. Without the host nobody can tell.
fn is_left_in_bmc(facts: &Facts) -> bool {
    let is_recorded = match &facts.subject {
        Subject::DataImage { is_recorded } => *is_recorded,
        Subject::Subscription { id } => id.is_some(),
        Subject::AgentImage => false,
    };
    is_recorded && matches!(facts.host, Reading::Known(HostView::Present { .. }))
}

/// The finalizer that is removed next.
fn own_finalizer(facts: &Facts) -> Option<&'static str> {
    let candidates: &[&'static str] = match &facts.subject {
        Subject::DataImage { .. } => &[DATA_IMAGE],
        Subject::Subscription { .. } => &[SUBSCRIPTION],
        Subject::AgentImage => &[HOST_OF_IMAGE, IMAGE],
    };
    let is_present = |name: &&&str| facts.finalizers.iter().any(|present| present == **name);
    candidates.iter().find(is_present).copied()
}

fn drive(facts: &Facts, finalizer: &'static str, is_recorded: bool) -> Step {
    match &facts.media {
        Reading::NotRead => Step::Read(Read::Media),
        Reading::Failed(why) => unknown(
            format!("whether an image is in the virtual drive of its host is not known ({why})"),
            RETRIED,
        ),
        Reading::Known(Media::Empty) => Step::Remove(finalizer),
        Reading::Known(Media::Unsupported) if !is_recorded => Step::Remove(finalizer),
        Reading::Known(Media::Unsupported) => in_use(
            "the status records an inserted image, and the driver of the node cannot list its virtual drive",
            "eject the image at the BMC, then remove the finalizer by hand",
        ),
        Reading::Known(Media::Inserted) => in_use(
            "an image is in the virtual drive of its host",
            "eject it with DELETE /v1/nodes/NODE/vmedia of Ironic, or start the Go manager of hosts again",
        ),
    }
}

fn subscription(facts: &Facts, finalizer: &'static str) -> Step {
    match &facts.listed {
        Reading::NotRead => Step::Read(Read::Subscriptions),
        Reading::Failed(why) => unknown(
            format!("whether the BMC of its host has the subscription is not known ({why})"),
            RETRIED,
        ),
        Reading::Known(Listed::No) => Step::Remove(finalizer),
        Reading::Known(Listed::Incomplete) => in_use(
            "the BMC of its host lists a part of its subscriptions",
            "delete the subscription at the BMC, then remove the finalizer by hand",
        ),
        Reading::Known(Listed::Yes) if facts.was_sent => in_use(
            "the BMC of its host lists the subscription after Ironic deleted it",
            "delete the subscription at the BMC; this is read again every minute",
        ),
        Reading::Known(Listed::Yes) => Step::DeleteSubscription,
    }
}

const RETRIED: &str = "this is read again every minute";
const ACCESS: &str = "let this program list its Deployment";

fn unknown(message: String, remedy: &str) -> Step {
    reported(STATE_UNKNOWN, &message, remedy)
}

fn in_use(message: &str, remedy: &str) -> Step {
    reported(STILL_IN_USE, message, remedy)
}

fn reported(reason: Reason, message: &str, remedy: &str) -> Step {
    Step::Wait(Wait {
        reason,
        message: format!(
            "no controller of this program serves this kind, and its finalizer stays: {message}; {remedy}"
        ),
        recheck: Some(RECHECK),
        is_reported: true,
    })
}

fn quiet(reason: Reason, message: String, recheck: impl Into<Option<Duration>>) -> Step {
    Step::Wait(Wait {
        reason,
        message,
        recheck: recheck.into(),
        is_reported: false,
    })
}
