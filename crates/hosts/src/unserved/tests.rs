//! The decisions as a table.

use std::time::Duration;

use metal3_runtime::reason::Reason;

use super::facts::{Facts, HostView, NodeView, Read, Server};
use super::plan::{HOST_OF_IMAGE, IMAGE, IMAGE_BUILDER_GRACE, PATIENCE, Step, plan};
use crate::live::{GoManager, Reading};
use crate::names::unserved_reason::{
    GO_MANAGER_RUNS, HOST_PAUSED, IMAGE_BUILDER, MOVING, NODE_LOCKED, OTHER_FINALIZERS, STATE_UNKNOWN, STILL_IN_USE,
};

fn facts(finalizers: &[&str]) -> Facts {
    Facts {
        server: Server::None,
        finalizers: finalizers.iter().map(|name| (*name).to_owned()).collect(),
        deleted_for: Some(Duration::from_hours(1)),
        is_moving: false,
        go_manager: Reading::Known(GoManager::Absent),
        host: Reading::Known(HostView::Present),
        node: node(false, false),
    }
}

const fn node(is_locked: bool, names_image: bool) -> Reading<NodeView> {
    Reading::Known(NodeView::Present {
        is_locked,
        names_image,
        runs_agent: false,
    })
}

fn failed<T>() -> Reading<T> {
    Reading::Failed("unreachable".to_owned())
}

fn agent_image() -> Facts {
    facts(&[HOST_OF_IMAGE, IMAGE])
}

/// The reason of a wait, and whether the status reports it.
fn wait(facts: &Facts) -> Option<(Reason, bool)> {
    match plan(facts) {
        Step::Wait(wait) => Some((wait.reason, wait.is_reported)),
        _ => None,
    }
}

#[test]
fn object_that_is_not_deleted_or_has_no_finalizer_of_the_go_manager_is_left_alone() {
    for facts in [agent_image(), facts(&[IMAGE])] {
        let kept = Facts {
            deleted_for: None,
            ..facts.clone()
        };
        assert_eq!(plan(&kept), Step::Done);
        let foreign = Facts {
            finalizers: vec!["example.org/other".to_owned()],
            ..facts
        };
        assert_eq!(plan(&foreign), Step::Done);
    }
}

#[test]
fn finalizer_goes_when_nothing_is_left() {
    assert_eq!(plan(&agent_image()), Step::Remove(HOST_OF_IMAGE));
    for host in [HostView::Absent, HostView::Present] {
        let without_node = Facts {
            host: Reading::Known(host),
            node: Reading::Known(NodeView::Absent),
            ..agent_image()
        };
        assert_eq!(plan(&without_node), Step::Remove(HOST_OF_IMAGE));
    }
}

#[test]
fn each_decision_reads_what_it_needs_in_order_and_nothing_else() {
    let wanted = agent_image();
    let mut known = Facts {
        go_manager: Reading::NotRead,
        host: Reading::NotRead,
        node: Reading::NotRead,
        ..wanted.clone()
    };
    let mut reads = Vec::new();
    while let Step::Read(read) = plan(&known) {
        reads.push(read);
        match read {
            Read::GoManager => known.go_manager = wanted.go_manager.clone(),
            Read::Host => known.host = wanted.host.clone(),
            Read::Node => known.node = wanted.node.clone(),
        }
    }
    assert_eq!(reads, [Read::GoManager, Read::Host, Read::Node]);
}

#[test]
fn unknown_is_never_absent() {
    for unknown in [
        Facts {
            go_manager: failed(),
            ..agent_image()
        },
        Facts {
            host: failed(),
            ..agent_image()
        },
        Facts {
            node: failed(),
            ..agent_image()
        },
    ] {
        assert_eq!(wait(&unknown), Some((STATE_UNKNOWN, true)), "{unknown:?}");
    }
}

#[test]
fn object_stays_while_another_serves_it_or_its_host_is_paused_or_its_node_locked() {
    for facts in [agent_image()] {
        let running = Reading::Known(GoManager::Running("it runs".to_owned()));
        let served = Facts {
            go_manager: running,
            ..facts.clone()
        };
        assert_eq!(wait(&served), Some((GO_MANAGER_RUNS, false)));
        for (host, node, reason) in [
            (HostView::Paused, node(false, false), HOST_PAUSED),
            (HostView::Moving, node(false, false), MOVING),
            (HostView::Present, node(true, false), NODE_LOCKED),
        ] {
            let held = Facts {
                host: Reading::Known(host),
                node,
                ..facts.clone()
            };
            assert_reported_when_it_lasts(&held, reason);
        }
        let moving = Facts {
            is_moving: true,
            host: Reading::NotRead,
            ..facts
        };
        assert_reported_when_it_lasts(&moving, MOVING);
    }
}

fn assert_reported_when_it_lasts(facts: &Facts, reason: Reason) {
    let second = Duration::from_secs(1);
    for (deleted_for, is_reported) in [(PATIENCE - second, false), (PATIENCE, true)] {
        let facts = Facts {
            deleted_for: Some(deleted_for),
            ..facts.clone()
        };
        assert_eq!(wait(&facts), Some((reason, is_reported)), "{facts:?}");
    }
}

#[test]
fn agent_image_stays_while_the_node_boots_it_and_its_builder_has_time() {
    let booted = Facts {
        node: node(false, true),
        ..agent_image()
    };
    assert_eq!(wait(&booted), Some((STILL_IN_USE, true)));
    let built = |finalizers: &[&str], deleted_for| Facts {
        deleted_for: Some(deleted_for),
        ..facts(finalizers)
    };
    let second = Duration::from_secs(1);
    let other = built(&[IMAGE, "example.org/other"], IMAGE_BUILDER_GRACE);
    assert_reported_when_it_lasts(&other, OTHER_FINALIZERS);
    assert_eq!(
        wait(&built(&[IMAGE], IMAGE_BUILDER_GRACE - second)),
        Some((IMAGE_BUILDER, false))
    );
    assert_eq!(plan(&built(&[IMAGE], IMAGE_BUILDER_GRACE)), Step::Remove(IMAGE));
}

/// With `--build-preprov-image` the controllers of hosts and of images remove their own finalizers.
#[test]
fn served_agent_image_is_let_go_by_what_serves_it_and_by_this_once_its_host_is_gone() {
    let served = |server, finalizers: &[&str]| Facts {
        server,
        ..facts(finalizers)
    };
    for server in [Server::This, Server::OtherBuilder] {
        let held = served(server, &[HOST_OF_IMAGE, IMAGE]);
        assert_eq!(wait(&held), Some((STILL_IN_USE, false)));
        let orphan = Facts {
            host: Reading::Known(HostView::Absent),
            node: Reading::Known(NodeView::Absent),
            ..held.clone()
        };
        assert_eq!(plan(&orphan), Step::Remove(HOST_OF_IMAGE));
        let booted = Facts {
            node: node(false, true),
            ..orphan
        };
        // One writer of a status.
        assert_eq!(wait(&booted), Some((STILL_IN_USE, server == Server::This)));
        let Step::Wait(shown) = plan(&booted) else {
            panic!("no wait")
        };
        assert!(!shown.message.contains("no controller"), "{}", shown.message);
    }
    // The host waits until an image that it has let go is gone. Its machine may still boot it.
    let released = |runs_agent| Facts {
        node: Reading::Known(NodeView::Present {
            is_locked: false,
            names_image: true,
            runs_agent,
        }),
        ..served(Server::OtherBuilder, &[IMAGE])
    };
    assert_eq!(plan(&released(false)), Step::Remove(IMAGE));
    assert_eq!(wait(&released(true)), Some((STILL_IN_USE, false)));
    let elsewhere = Facts {
        host: Reading::Known(HostView::Absent),
        ..released(false)
    };
    assert_eq!(wait(&elsewhere), Some((STILL_IN_USE, false)));
    let of_former = |finalizers: &[&str], drive| Facts {
        host: Reading::Known(HostView::Successor),
        finalizers: finalizers.iter().map(|name| (*name).to_owned()).collect(),
        ..released(drive)
    };
    let both = [HOST_OF_IMAGE, IMAGE];
    assert_eq!(plan(&of_former(&both, false)), Step::Remove(HOST_OF_IMAGE));
    assert_eq!(plan(&of_former(&[IMAGE], false)), Step::Remove(IMAGE));
    assert_eq!(wait(&of_former(&both, true)), Some((STILL_IN_USE, false)));
    assert_eq!(plan(&served(Server::This, &[IMAGE])), Step::Done);
    assert_eq!(plan(&served(Server::OtherBuilder, &[IMAGE])), Step::Remove(IMAGE));
}
