//! The decisions as a table.

use std::time::Duration;

use metal3_runtime::reason::Reason;

use super::facts::{DriveUse, Facts, HostView, Media, NodeView, Read, Subject};
use super::plan::{DATA_IMAGE, HOST_GRACE, HOST_OF_IMAGE, IMAGE, IMAGE_BUILDER_GRACE, PATIENCE, Step, plan};
use crate::live::{GoManager, Reading};
use crate::names::unserved_reason::{
    GO_MANAGER_RUNS, HOST_ABSENT, HOST_PAUSED, IMAGE_BUILDER, MOVING, NODE_LOCKED, OTHER_FINALIZERS, STATE_UNKNOWN,
    STILL_IN_USE, USED_BY_IRONIC,
};

fn facts(subject: Subject, finalizers: &[&str]) -> Facts {
    Facts {
        subject,
        finalizers: finalizers.iter().map(|name| (*name).to_owned()).collect(),
        deleted_for: Some(Duration::from_hours(1)),
        is_moving: false,
        go_manager: Reading::Known(GoManager::Absent),
        host: Reading::Known(HostView::Present),
        absent_for: Duration::ZERO,
        node: node(false, false),
        media: Reading::Known(Media::Empty),
    }
}

const fn node(is_locked: bool, names_image: bool) -> Reading<NodeView> {
    Reading::Known(NodeView::Present {
        is_locked,
        names_image,
        drive: DriveUse::None,
    })
}

const fn node_with_drive(drive: DriveUse) -> Reading<NodeView> {
    Reading::Known(NodeView::Present {
        is_locked: false,
        names_image: false,
        drive,
    })
}

fn failed<T>() -> Reading<T> {
    Reading::Failed("unreachable".to_owned())
}

fn image() -> Facts {
    facts(Subject::DataImage { is_recorded: true }, &[DATA_IMAGE])
}

fn agent_image() -> Facts {
    facts(Subject::AgentImage, &[HOST_OF_IMAGE, IMAGE])
}

fn each() -> [Facts; 2] {
    [image(), agent_image()]
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
    for facts in each() {
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
    assert_eq!(plan(&image()), Step::Remove(DATA_IMAGE));
    assert_eq!(plan(&agent_image()), Step::Remove(HOST_OF_IMAGE));
    for facts in each() {
        let finalizer = plan(&facts);
        let without_node = Facts {
            host: Reading::Known(HostView::Absent),
            absent_for: HOST_GRACE,
            node: Reading::Known(NodeView::Absent),
            media: failed(),
            ..facts
        };
        assert_eq!(plan(&without_node), finalizer);
    }
}

#[test]
fn node_that_is_absent_while_its_host_stays_does_not_show_that_the_bmc_has_nothing() {
    let absent = |facts: Facts| Facts {
        node: Reading::Known(NodeView::Absent),
        ..facts
    };
    assert_eq!(wait(&absent(image())), Some((STATE_UNKNOWN, true)));
    let unrecorded = facts(Subject::DataImage { is_recorded: false }, &[DATA_IMAGE]);
    assert_eq!(plan(&absent(unrecorded)), Step::Remove(DATA_IMAGE));
    assert_eq!(plan(&absent(agent_image())), Step::Remove(HOST_OF_IMAGE));
}

#[test]
fn each_decision_reads_what_it_needs_in_order_and_nothing_else() {
    let unread = |facts: Facts| Facts {
        go_manager: Reading::NotRead,
        host: Reading::NotRead,
        node: Reading::NotRead,
        media: Reading::NotRead,
        ..facts
    };
    let reads = |wanted: Facts| {
        let mut known = unread(wanted.clone());
        let mut reads = Vec::new();
        while let Step::Read(read) = plan(&known) {
            reads.push(read);
            match read {
                Read::GoManager => known.go_manager = wanted.go_manager.clone(),
                Read::Host => known.host = wanted.host.clone(),
                Read::Node => known.node = wanted.node.clone(),
                Read::Media => known.media = wanted.media.clone(),
            }
        }
        reads
    };
    let base = [Read::GoManager, Read::Host, Read::Node];
    assert_eq!(reads(image()), [&base[..], &[Read::Media]].concat());
    assert_eq!(reads(agent_image()), base);
}

#[test]
fn unknown_is_never_absent() {
    for facts in each() {
        for unknown in [
            Facts {
                go_manager: failed(),
                ..facts.clone()
            },
            Facts {
                host: failed(),
                ..facts.clone()
            },
            Facts {
                node: failed(),
                ..facts.clone()
            },
        ] {
            assert_eq!(wait(&unknown), Some((STATE_UNKNOWN, true)), "{unknown:?}");
        }
    }
    let image = Facts {
        media: failed(),
        ..image()
    };
    assert_eq!(wait(&image), Some((STATE_UNKNOWN, true)));
}

#[test]
fn object_stays_while_another_serves_it_or_its_host_is_paused_or_its_node_locked() {
    for facts in each() {
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

/// Another cluster may serve the node.
#[test]
fn disc_of_a_host_that_is_absent_while_its_node_exists_is_kept() {
    let absent = |facts: Facts, absent_for| Facts {
        host: Reading::Known(HostView::Absent),
        absent_for,
        ..facts
    };
    let inserted = Facts {
        media: Reading::Known(Media::Inserted),
        ..image()
    };
    let moment = HOST_GRACE - Duration::from_secs(1);
    assert_eq!(wait(&absent(inserted.clone(), moment)), Some((HOST_ABSENT, false)));
    let Step::Wait(wait) = plan(&absent(inserted, HOST_GRACE)) else {
        panic!("the finalizer goes");
    };
    assert!(wait.is_reported && wait.message.contains("in the cluster that has the host"));
    let agent_image = absent(agent_image(), Duration::ZERO);
    assert_eq!(plan(&agent_image), Step::Remove(HOST_OF_IMAGE));
    let never_made = facts(Subject::DataImage { is_recorded: false }, &[DATA_IMAGE]);
    assert_eq!(plan(&absent(never_made, Duration::ZERO)), Step::Remove(DATA_IMAGE));
}

#[test]
fn disc_stays_while_the_drive_may_hold_it() {
    for (is_recorded, media, step) in [
        (false, Media::Inserted, None),
        (true, Media::Inserted, None),
        (true, Media::Unsupported, None),
        (true, Media::Silent, None),
        (false, Media::Unsupported, Some(Step::Remove(DATA_IMAGE))),
        (false, Media::Silent, Some(Step::Remove(DATA_IMAGE))),
        (true, Media::Empty, Some(Step::Remove(DATA_IMAGE))),
    ] {
        let subject = Subject::DataImage { is_recorded };
        let facts = Facts {
            media: Reading::Known(media),
            ..facts(subject, &[DATA_IMAGE])
        };
        match step {
            Some(step) => assert_eq!(plan(&facts), step, "{media:?}"),
            None => assert_eq!(wait(&facts), Some((STILL_IN_USE, true)), "{media:?}"),
        }
    }
}

#[test]
fn disc_that_ironic_needs_is_not_to_be_ejected() {
    for media in [Media::Inserted, Media::Silent, Media::Unsupported] {
        let used = |drive| Facts {
            media: Reading::Known(media),
            node: node_with_drive(drive),
            ..image()
        };
        assert_reported_when_it_lasts(&used(DriveUse::Agent), USED_BY_IRONIC);
        for drive in [DriveUse::Agent, DriveUse::LiveImage] {
            let Step::Wait(wait) = plan(&used(drive)) else {
                panic!("{drive:?}")
            };
            assert!(wait.message.contains("; wait until"), "{}", wait.message);
        }
        assert_eq!(wait(&used(DriveUse::LiveImage)), Some((STILL_IN_USE, true)));
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
        ..facts(Subject::AgentImage, finalizers)
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
