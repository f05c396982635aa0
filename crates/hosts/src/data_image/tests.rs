//! The decisions as a table.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::DataImage;
use metal3_runtime::reason::Reason;
use serde_json::json;

use super::facts::{Bar, DriveState, DriveUse, Facts, HostView, NodeView, Object, Read, Start};
use super::observe::host_view;
use super::plan::{HOST_GRACE, INSERTION_LIMIT, PATIENCE, Step, plan};
use crate::live::{GoManager, Reading};
use crate::names::disc_reason::{
    GO_MANAGER_RUNS, HOST_ABSENT, HOST_DELETED, HOST_PAUSED, MOVING, NODE_LOCKED, STATE_UNKNOWN, STILL_IN_DRIVE,
    USED_BY_IRONIC,
};
use crate::node::drive::Drive;
use crate::tests::fixture::Fixture;

const SECOND: Duration = Duration::from_secs(1);

const fn host(bar: Option<Bar>, is_owner: bool, start: Start) -> Reading<HostView> {
    Reading::Known(HostView::Present { bar, is_owner, start })
}

const fn node(is_locked: bool, drive: DriveUse) -> Reading<NodeView> {
    Reading::Known(NodeView::Present { is_locked, drive })
}

/// A deleted object, an hour later: its image was recorded, and the drive is empty.
fn deleted() -> Facts {
    Facts {
        object: Object {
            has_finalizer: true,
            is_deleted: true,
            is_moving: false,
            is_recorded: true,
            has_error_of_host: false,
            is_live: true,
        },
        deleted_for: Duration::from_hours(1),
        cached_host: host(None, true, Start::AfterRestart),
        go_manager: Reading::Known(GoManager::Absent),
        host: host(None, true, Start::AfterRestart),
        absent_for: Duration::ZERO,
        starting_for: Duration::ZERO,
        node: node(false, DriveUse::None),
        drive: Reading::Known(DriveState::Known(Drive::Empty)),
    }
}

fn holding(drive: DriveState) -> Facts {
    Facts {
        drive: Reading::Known(drive),
        ..deleted()
    }
}

fn unrecorded(facts: Facts) -> Facts {
    Facts {
        object: Object {
            is_recorded: false,
            ..facts.object
        },
        ..facts
    }
}

const RELEASED: Step = Step::Release { is_left: false };
const RELEASED_AND_LEFT: Step = Step::Release { is_left: true };

/// The reason of a wait, and whether the status reports it.
fn wait(facts: &Facts) -> Option<(Reason, bool)> {
    match plan(facts) {
        Step::Wait(wait) => {
            assert!(!wait.is_reported || wait.message.contains("; "), "{}", wait.message);
            Some((wait.reason, wait.is_reported))
        }
        _ => None,
    }
}

fn assert_reported_when_it_lasts(facts: &Facts, reason: Reason) {
    for (deleted_for, is_reported) in [(PATIENCE - SECOND, false), (PATIENCE, true)] {
        let facts = Facts {
            deleted_for,
            ..facts.clone()
        };
        assert_eq!(wait(&facts), Some((reason, is_reported)), "{facts:?}");
    }
}

#[test]
fn object_gets_its_owner_and_finalizer_after_a_live_read_of_a_host_that_may_be_served() {
    let new = |has_finalizer, view: Reading<HostView>| Facts {
        object: Object {
            has_finalizer,
            is_deleted: false,
            is_live: false,
            ..deleted().object
        },
        cached_host: view.clone(),
        host: view,
        ..deleted()
    };
    for (has_finalizer, view, expected) in [
        (false, host(None, false, Start::Never), Step::Adopt),
        (true, host(None, false, Start::Never), Step::Adopt),
        (false, host(None, true, Start::Never), Step::Adopt),
        (false, host(Some(Bar::Detached), false, Start::Never), Step::Adopt),
        (true, host(None, true, Start::Never), Step::Done),
        (false, host(Some(Bar::Paused), false, Start::Never), Step::Done),
        (false, host(Some(Bar::Moving), false, Start::Never), Step::Done),
        (false, host(Some(Bar::Deleted), false, Start::Never), Step::Done),
        (true, Reading::Known(HostView::Absent), Step::Done),
        (false, Reading::Failed("unreadable".to_owned()), Step::Done),
        (false, Reading::NotRead, Step::Done),
    ] {
        let facts = new(has_finalizer, view);
        assert_eq!(plan(&facts), expected, "{facts:?}");
        if expected == Step::Adopt {
            let unread = Facts {
                host: Reading::NotRead,
                ..facts
            };
            assert_eq!(plan(&unread), Step::Read(Read::Host));
        }
    }
}

#[test]
fn each_decision_reads_what_it_needs_in_order_and_nothing_else() {
    let unread = |facts: &Facts| Facts {
        object: Object {
            is_live: false,
            ..facts.object
        },
        go_manager: Reading::NotRead,
        host: Reading::NotRead,
        node: Reading::NotRead,
        drive: Reading::NotRead,
        ..facts.clone()
    };
    let reads = |wanted: Facts| {
        let mut known = unread(&wanted);
        let mut reads = Vec::new();
        while let Step::Read(read) = plan(&known) {
            reads.push(read);
            match read {
                Read::Object => known.object = wanted.object,
                Read::GoManager => known.go_manager = wanted.go_manager.clone(),
                Read::Host => known.host = wanted.host.clone(),
                Read::Node => known.node = wanted.node.clone(),
                Read::Drive => known.drive = wanted.drive.clone(),
            }
        }
        reads
    };
    let base = [Read::Object, Read::GoManager, Read::Host];
    assert_eq!(reads(deleted()), [&base[..], &[Read::Node, Read::Drive]].concat());
    let detached = Facts {
        host: host(Some(Bar::Detached), true, Start::Never),
        ..deleted()
    };
    assert_eq!(reads(detached), base);
    let without_finalizer = Facts {
        object: Object {
            has_finalizer: false,
            ..deleted().object
        },
        ..deleted()
    };
    assert_eq!(reads(without_finalizer), []);
}

#[test]
fn object_goes_when_the_drive_does_not_hold_its_image() {
    use Drive::{Attached, Empty, Other, Silent, Unnamed};
    for (drive, if_recorded, if_not) in [
        (DriveState::Known(Empty), true, true),
        (DriveState::Known(Attached), false, false),
        (DriveState::Known(Unnamed), false, false),
        (DriveState::Known(Other), false, true),
        (DriveState::Known(Silent), false, true),
        (DriveState::Unsupported, false, true),
    ] {
        for (facts, goes) in [(holding(drive), if_recorded), (unrecorded(holding(drive)), if_not)] {
            match goes {
                true => assert_eq!(plan(&facts), RELEASED, "{facts:?}"),
                false => assert_eq!(wait(&facts), Some((STILL_IN_DRIVE, true)), "{facts:?}"),
            }
        }
    }
}

#[test]
fn image_in_the_drive_says_when_it_is_ejected() {
    for (start, text) in [
        (Start::AfterRestart, "switch the host off and on"),
        (Start::WhenOnline, "set spec.online"),
        (Start::NeverOff, "remove spec.disablePowerOff"),
        (Start::Never, "DELETE /v1/nodes/NODE/vmedia"),
        (Start::HeldOff, "remove it"),
        (Start::Soon, "before its host starts"),
    ] {
        let facts = Facts {
            host: host(None, true, start),
            starting_for: PATIENCE,
            ..holding(DriveState::Known(Drive::Attached))
        };
        let Step::Wait(wait) = plan(&facts) else {
            panic!("{start:?}")
        };
        assert!(wait.message.contains(text), "{}", wait.message);
        assert!(wait.is_reported);
    }
}

/// It was recorded before the object was deleted, and Ironic may begin with it later.
#[test]
fn insertion_that_may_still_come_keeps_the_object() {
    for (deleted_for, facts, goes) in [
        (INSERTION_LIMIT - SECOND, deleted(), false),
        (INSERTION_LIMIT, deleted(), true),
        (Duration::ZERO, unrecorded(deleted()), true),
    ] {
        let facts = Facts { deleted_for, ..facts };
        match goes {
            true => assert_eq!(plan(&facts), RELEASED),
            false => assert_eq!(wait(&facts), Some((STILL_IN_DRIVE, false))),
        }
    }
}

#[test]
fn unknown_is_never_absent() {
    let why = || "unreachable".to_owned();
    for unknown in [
        Facts {
            go_manager: Reading::Failed(why()),
            ..deleted()
        },
        Facts {
            host: Reading::Failed(why()),
            ..deleted()
        },
        Facts {
            node: Reading::Failed(why()),
            ..deleted()
        },
        Facts {
            drive: Reading::Failed(why()),
            ..deleted()
        },
        Facts {
            node: Reading::Known(NodeView::Absent),
            ..deleted()
        },
    ] {
        assert_eq!(wait(&unknown), Some((STATE_UNKNOWN, true)), "{unknown:?}");
    }
    let without_node = Facts {
        node: Reading::Known(NodeView::Absent),
        ..unrecorded(deleted())
    };
    assert_eq!(plan(&without_node), RELEASED);
}

#[test]
fn object_stays_while_others_work_with_it_or_its_host() {
    let running = Reading::Known(GoManager::Running("it runs".to_owned()));
    let served = Facts {
        go_manager: running,
        ..deleted()
    };
    assert_eq!(wait(&served), Some((GO_MANAGER_RUNS, false)));
    for (bar, reason) in [
        (Bar::Paused, HOST_PAUSED),
        (Bar::Moving, MOVING),
        (Bar::Deleted, HOST_DELETED),
        (Bar::Attaching, STATE_UNKNOWN),
    ] {
        let held = Facts {
            host: host(Some(bar), true, Start::Never),
            ..deleted()
        };
        assert_reported_when_it_lasts(&held, reason);
    }
    let locked = Facts {
        node: node(true, DriveUse::None),
        ..deleted()
    };
    assert_reported_when_it_lasts(&locked, NODE_LOCKED);
    let moving = Facts {
        object: Object {
            is_moving: true,
            ..deleted().object
        },
        ..deleted()
    };
    assert_reported_when_it_lasts(&moving, MOVING);
    let used = |drive| Facts {
        node: node(false, drive),
        ..holding(DriveState::Known(Drive::Other))
    };
    assert_reported_when_it_lasts(&used(DriveUse::Agent), USED_BY_IRONIC);
    assert_eq!(wait(&used(DriveUse::LiveImage)), Some((USED_BY_IRONIC, true)));
}

#[test]
fn object_goes_with_an_event_when_nothing_can_eject_its_image() {
    let detached = Facts {
        host: host(Some(Bar::Detached), true, Start::Never),
        ..holding(DriveState::Known(Drive::Attached))
    };
    let gone = Facts {
        host: Reading::Known(HostView::Absent),
        absent_for: HOST_GRACE,
        node: Reading::Known(NodeView::Absent),
        ..holding(DriveState::Known(Drive::Attached))
    };
    for facts in [detached, gone] {
        assert_eq!(plan(&facts), RELEASED_AND_LEFT);
        assert_eq!(plan(&unrecorded(facts)), RELEASED);
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
    let inserted = holding(DriveState::Known(Drive::Attached));
    assert_eq!(
        wait(&absent(inserted.clone(), HOST_GRACE - SECOND)),
        Some((HOST_ABSENT, false))
    );
    assert_eq!(wait(&absent(inserted, HOST_GRACE)), Some((STILL_IN_DRIVE, true)));
    assert_eq!(plan(&absent(deleted(), HOST_GRACE)), RELEASED);
    assert_eq!(plan(&absent(unrecorded(deleted()), Duration::ZERO)), RELEASED);
}

/// The controller of hosts reads the drive then, and says what it finds: two would answer each other for ever.
#[test]
fn nothing_is_read_or_said_over_the_message_of_a_start() {
    let starting = |has_error_of_host, starting_for| Facts {
        object: Object {
            has_error_of_host,
            ..deleted().object
        },
        starting_for,
        host: host(None, true, Start::Soon),
        node: Reading::NotRead,
        drive: Reading::NotRead,
        ..deleted()
    };
    for (has_error_of_host, starting_for, is_reported) in [
        (true, PATIENCE, false),
        (false, PATIENCE, true),
        (false, Duration::ZERO, false),
    ] {
        let facts = starting(has_error_of_host, starting_for);
        assert_eq!(wait(&facts), Some((STILL_IN_DRIVE, is_reported)));
    }
}

/// The host is not started yet, so this controller reads the drive of an image that was perhaps never inserted. The other one says
/// why it cannot be read.
#[test]
fn unreadable_drive_of_a_host_that_starts_is_no_message_of_its_own() {
    for (start, starting_for, expected) in [
        (Start::Soon, Duration::ZERO, (STILL_IN_DRIVE, false)),
        (Start::Soon, PATIENCE, (STILL_IN_DRIVE, true)),
        (Start::WhenOnline, Duration::ZERO, (STATE_UNKNOWN, true)),
    ] {
        let unread = Facts {
            starting_for,
            host: host(None, true, start),
            drive: Reading::Failed("unreachable".to_owned()),
            ..unrecorded(deleted())
        };
        assert_eq!(wait(&unread), Some(expected), "{start:?} {starting_for:?}");
    }
}

/// Its own message would keep its remedy after the user followed it, and the Go manager leaves an empty one.
#[test]
fn only_a_message_of_the_controller_of_hosts_is_left_to_it() {
    let Step::Wait(own) = plan(&holding(DriveState::Known(Drive::Attached))) else {
        panic!("an image in the drive is waited for")
    };
    for (error, expected) in [
        (json!(null), false),
        (json!({ "count": 0, "message": "" }), false),
        (json!({ "count": 1, "message": own.message }), false),
        (
            json!({ "count": 1, "message": "the image was not ejected: no response" }),
            true,
        ),
    ] {
        let object = json!({ "metadata": { "name": "h" }, "spec": { "url": "http://a/" },
            "status": { "error": error } });
        let object = Object::of(&serde_json::from_value(object).unwrap(), true);
        assert_eq!(object.has_error_of_host, expected, "{error}");
    }
}

/// The host and the object are watched.
#[test]
fn wait_for_a_host_needs_no_timer_after_its_report() {
    for bar in [Bar::Paused, Bar::Moving, Bar::Deleted] {
        for (deleted_for, expected) in [
            (Duration::ZERO, Some(PATIENCE)),
            (PATIENCE - SECOND, Some(SECOND)),
            (PATIENCE, None),
        ] {
            let facts = Facts {
                deleted_for,
                host: host(Some(bar), true, Start::Never),
                ..deleted()
            };
            let Step::Wait(wait) = plan(&facts) else {
                panic!("{bar:?}")
            };
            assert_eq!(wait.recheck, expected, "{bar:?}");
        }
    }
}

/// The status shows for a moment what the annotation no longer asks for.
#[test]
fn annotation_and_not_the_status_detaches_a_host() {
    let object: DataImage =
        serde_json::from_value(json!({ "metadata": { "name": "h" }, "spec": { "url": "http://a/" } })).unwrap();
    let detached = || Fixture::new("provisioned").status(json!({ "operationalStatus": "detached" }));
    for (fixture, expected) in [
        (
            detached().annotated("baremetalhost.metal3.io/detached", ""),
            Bar::Detached,
        ),
        (detached(), Bar::Attaching),
        (detached().deleted(), Bar::Deleted),
    ] {
        let host = serde_json::from_value(fixture.host).unwrap();
        let HostView::Present { bar, .. } = host_view(&host, &object) else {
            panic!("{expected:?}")
        };
        assert_eq!(bar, Some(expected));
    }
}
