//! The decision about one object. Pure.
//!
//! A finalizer of the Go manager is removed only from an object that is deleted, while no Go manager runs, and after
//! live reads that show that nothing is left of it in Ironic. differs (`unserved-finalizers`): the Go manager serves the kind.

use std::time::Duration;

use metal3_runtime::reason::Reason;

use super::facts::{Facts, HostView, NodeView, Read, Server};
use crate::live::{GoManager, Reading};
use crate::names::unserved_reason::{
    GO_MANAGER_RUNS, HOST_PAUSED, IMAGE_BUILDER, MOVING, NODE_LOCKED, OTHER_FINALIZERS, STATE_UNKNOWN, STILL_IN_USE,
};

// The first is of the controller of hosts, on the image that its node may boot; the second of what builds the image: part of the Go
// manager, or another program.
pub(super) use metal3_api::metal3::names::{
    AGENT_IMAGE_FINALIZER as IMAGE, AGENT_IMAGE_HOST_FINALIZER as HOST_OF_IMAGE,
};

/// The time for another program that builds images to remove its own finalizer: no Deployment of a well-known name shows
/// whether it runs. It needs seconds. The time begins with each start.
pub(super) const IMAGE_BUILDER_GRACE: Duration = Duration::from_mins(10);
/// The time after which a host that is gone is noticed: nothing reports it.
pub(super) const HOST_GRACE: Duration = Duration::from_mins(10);
/// A wait that usually ends by itself is reported after this time: a task of Ironic takes seconds, a move minutes.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);
/// Nothing reports that another program has removed its finalizer, or that a Go manager ends.
pub(super) const RECHECK: Duration = Duration::from_mins(1);

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// There is nothing to do until the object changes.
    Done,
    Read(Read),
    /// Remove this finalizer.
    Remove(&'static str),
    Wait(Wait),
}

/// Why the finalizer stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) recheck: Duration,
    /// Whether the status says so. Not while the wait is expected to end by itself, and not where a Go manager writes the
    /// status.
    pub(super) is_reported: bool,
}

pub(super) fn plan(facts: &Facts) -> Step {
    match (facts.server, of_finalizers(facts)) {
        (Server::None, Step::Wait(wait)) if wait.is_reported => Step::Wait(Wait {
            message: format!("no controller of this program serves this kind, and {}", wait.message),
            ..wait
        }),
        // One writer of a status.
        (Server::OtherBuilder, Step::Wait(wait)) => Step::Wait(Wait {
            is_reported: false,
            ..wait
        }),
        (_, step) => step,
    }
}

fn of_finalizers(facts: &Facts) -> Step {
    let Some(deleted_for) = facts.deleted_for else {
        return Step::Done;
    };
    let Some(finalizer) = own_finalizer(facts) else {
        return Step::Done;
    };
    // The builder of this program removes it after all others.
    if facts.server == Server::This && finalizer == IMAGE {
        return Step::Done;
    }
    if let Some(step) = of_object(facts, finalizer, deleted_for) {
        return step;
    }
    if let Some(step) = host(facts, deleted_for) {
        return step;
    }
    let is_of_host = facts.server != Server::None && finalizer == HOST_OF_IMAGE && !is_host_absent(facts);
    if is_of_host {
        // The controller of hosts removes it. Nothing reports when that host is gone.
        return quiet(STILL_IN_USE, "its host uses it".to_owned(), HOST_GRACE);
    }
    let (names_image, runs_agent) = match &facts.node {
        Reading::NotRead => return Step::Read(Read::Node),
        Reading::Failed(why) => {
            return unknown(
                format!("whether Ironic has a node of its host is not known ({why})"),
                RETRIED,
            );
        }
        Reading::Known(NodeView::Absent) => return Step::Remove(finalizer),
        Reading::Known(NodeView::Present { is_locked: true, .. }) => {
            return passing(
                NODE_LOCKED,
                "a task of Ironic has locked the node of its host",
                "wait until the task ends; a lock that stays goes with a restart of the conductor that holds it",
                deleted_for,
            );
        }
        Reading::Known(NodeView::Present {
            names_image,
            runs_agent,
            ..
        }) => (*names_image, *runs_agent),
    };
    if names_image && !is_let_go(facts, finalizer, runs_agent) {
        let remedy = match facts.server {
            Server::None => {
                "wait until the host is registered again without it, or start the Go manager of hosts again"
            }
            Server::This | Server::OtherBuilder => "wait until the host is registered again without it",
        };
        return in_use("the node of its host boots from this image", remedy);
    }
    Step::Remove(finalizer)
}

/// Whether nothing boots this image of an agent any more, though the record of the node names it: the host has removed its
/// finalizer, or has never used it, and waits until the image is gone to get another one.
fn is_let_go(facts: &Facts, finalizer: &str, runs_agent: bool) -> bool {
    let is_unused = match facts.host {
        Reading::Known(HostView::Successor) => true,
        Reading::Known(HostView::Present) => finalizer == IMAGE,
        _ => false,
    };
    facts.server != Server::None && !runs_agent && is_unused
}

/// Why others must be done with the object first.
fn of_object(facts: &Facts, finalizer: &'static str, deleted_for: Duration) -> Option<Step> {
    match &facts.go_manager {
        Reading::NotRead => return Some(Step::Read(Read::GoManager)),
        Reading::Failed(why) => {
            return Some(unknown(
                format!("whether a Go manager serves it is not known ({why})"),
                ACCESS,
            ));
        }
        Reading::Known(GoManager::Running(who)) => return Some(quiet(GO_MANAGER_RUNS, who.clone(), RECHECK)),
        Reading::Known(GoManager::Absent) => {}
    }
    if facts.is_moving {
        return Some(passing(
            MOVING,
            "clusterctl moves it to another cluster and then removes its finalizers",
            "if that move was interrupted, repeat it, or remove the finalizer by hand",
            deleted_for,
        ));
    }
    if finalizer != IMAGE {
        return None;
    }
    if facts.finalizers.iter().any(|name| name != IMAGE) {
        return Some(passing(
            OTHER_FINALIZERS,
            "its other finalizers are removed first",
            "start what serves them, or remove them by hand",
            deleted_for,
        ));
    }
    let left = IMAGE_BUILDER_GRACE.saturating_sub(deleted_for);
    let message = "another program that builds images has time to remove its finalizer".to_owned();
    (!left.is_zero()).then(|| quiet(IMAGE_BUILDER, message, left))
}

/// Why the host forbids to go on, or that it is read.
fn host(facts: &Facts, deleted_for: Duration) -> Option<Step> {
    Some(match &facts.host {
        Reading::NotRead => Step::Read(Read::Host),
        Reading::Failed(why) => unknown(format!("its host cannot be read ({why})"), RETRIED),
        // As during a move: the node may be served from another cluster.
        Reading::Known(HostView::Paused) => passing(
            HOST_PAUSED,
            "its host is paused",
            "when the move or the work on the host is over, remove the annotation baremetalhost.metal3.io/paused of the host",
            deleted_for,
        ),
        Reading::Known(HostView::Moving) => passing(
            MOVING,
            "clusterctl moves its host to another cluster",
            "if that move was interrupted, repeat it",
            deleted_for,
        ),
        Reading::Known(HostView::Absent | HostView::Present | HostView::Successor) => return None,
    })
}

/// The finalizer that is removed next.
fn own_finalizer(facts: &Facts) -> Option<&'static str> {
    let candidates: [&'static str; 2] = [HOST_OF_IMAGE, IMAGE];
    let is_present = |name: &&str| facts.finalizers.iter().any(|present| present == *name);
    candidates.into_iter().find(is_present)
}

const fn is_host_absent(facts: &Facts) -> bool {
    matches!(facts.host, Reading::Known(HostView::Absent | HostView::Successor))
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
        message: format!("its finalizer stays: {message}; {remedy}"),
        recheck: RECHECK,
        is_reported: true,
    })
}

/// A wait that usually ends by itself.
fn passing(reason: Reason, message: &str, remedy: &str, waited: Duration) -> Step {
    match waited < PATIENCE {
        true => quiet(reason, message.to_owned(), RECHECK),
        false => reported(reason, message, remedy),
    }
}

fn quiet(reason: Reason, message: String, recheck: Duration) -> Step {
    Step::Wait(Wait {
        reason,
        message,
        recheck,
        is_reported: false,
    })
}
