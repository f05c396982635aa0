//! The disc of a host, as a table.

use std::collections::BTreeSet;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::{DataImage, DataImageError};
use metal3_runtime::patch::apply;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use super::fixture::{Fixture, requests};
use super::rows::given::provisioned;
use crate::action::Action;
use crate::facts::{DiscAttempts, DiscOrder, DiscRefusal, DriveView, HostFreshness, NodeFreshness, Read};
use crate::names::reason::DATA_IMAGE_UNKNOWN;
use crate::node::drive::Drive;
use crate::plan::disc::{Step, step};

const A: &str = "http://images.example/a.iso";
const B: &str = "http://images.example/b.iso";

fn object(change: Value) -> DataImage {
    let mut object = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "DataImage",
        "metadata": { "name": "h", "namespace": "metal", "uid": "1", "resourceVersion": "7",
            "finalizers": ["dataimage.metal3.io"] },
        "spec": { "url": A },
    });
    apply(&change, &mut object);
    serde_json::from_value(object).unwrap()
}

fn recorded(url: &str) -> Value {
    json!({ "status": { "attachedImage": { "url": url } } })
}

fn gone() -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-11-22T09:44:19Z" } })
}

/// A host that is off and is switched on, with views of this reconcile.
fn off(change: Value, drive: Drive) -> Fixture {
    let off = json!({ "power_state": "power off", "deploy_interface": "direct" });
    provisioned()
        .status(json!({ "poweredOn": false }))
        .node_with("active", off)
        .live()
        .with(|fixture| {
            fixture.disc.object = Observed::Present(object(change));
            fixture.disc.freshness = HostFreshness::Live;
            fixture.disc.drive = Observed::Present(DriveView::Known(drive));
        })
}

/// A deleted host, whose node is deleted next.
fn removed(drive: Drive, attempts: DiscAttempts) -> Fixture {
    Fixture::new("deleting")
        .deleted()
        .node("available")
        .live()
        .with(|fixture| {
            fixture.disc.object = Observed::Present(object(recorded(A)));
            fixture.disc.freshness = HostFreshness::Live;
            fixture.disc.drive = Observed::Present(DriveView::Known(drive));
            fixture.disc.attempts = attempts;
        })
}

fn sent(fixture: &Fixture) -> Vec<&'static str> {
    requests(&fixture.plan()).map(|request| request.verb()).collect()
}

fn reported(fixture: &Fixture) -> Vec<String> {
    let report = |action: &Action| match action {
        Action::ReportDisc { event, .. } => Some(event.as_ref().map_or(String::new(), |event| event.message.clone())),
        _ => None,
    };
    fixture.plan().actions.iter().filter_map(report).collect()
}

/// The next plan, for which the object has what was reported.
fn after_report(fixture: &Fixture) -> Fixture {
    assert_eq!(fixture.summary(), "gives up, reports the image, replan");
    let message = reported(fixture).concat();
    fixture.clone().with(|fixture| {
        let Observed::Present(object) = &mut fixture.disc.object else {
            panic!("there is an object");
        };
        object.status.error = Some(DataImageError { count: 1, message });
    })
}

#[test]
fn drive_record_and_wish_decide() {
    use DiscOrder::{Eject as Ejected, Insert as Inserted};
    use Drive::{Attached, Empty, Other, Silent, Unnamed};
    use Step::{Done, Eject, Failed, Insert};
    for (wanted, recorded, ordered, expected) in [
        // Empty, Attached, Unnamed, Other, Silent
        (Some(A), None, None, [Insert, Eject, Eject, Eject, Insert]),
        (Some(A), Some(A), None, [Insert, Done, Done, Eject, Insert]),
        (Some(A), Some(B), None, [Insert, Eject, Eject, Eject, Eject]),
        (
            Some(A),
            Some(A),
            Some(Inserted),
            [Failed(Inserted), Done, Done, Done, Done],
        ),
        (
            Some(A),
            Some(B),
            Some(Ejected),
            [Insert, Failed(Ejected), Failed(Ejected), Failed(Ejected), Insert],
        ),
        (None, None, None, [Done, Eject, Eject, Done, Done]),
        (None, Some(A), None, [Done, Eject, Eject, Eject, Eject]),
        (
            None,
            Some(A),
            Some(Ejected),
            [Done, Failed(Ejected), Failed(Ejected), Failed(Ejected), Done],
        ),
    ] {
        let attempts = DiscAttempts {
            ordered,
            ..DiscAttempts::default()
        };
        let drives = [Empty, Attached, Unnamed, Other, Silent];
        let steps = drives.map(|drive| step(wanted, recorded, drive, &attempts));
        assert_eq!(steps, expected, "{wanted:?} {recorded:?} {ordered:?}");
    }
}

/// It would replace the disc that is inserted next, or come after the object is gone.
#[test]
fn insertion_that_another_process_began_is_waited_for() {
    let left = Duration::from_secs(9);
    let attempts = |ordered| DiscAttempts {
        ordered,
        earlier_left: Some(left),
        ..DiscAttempts::default()
    };
    for (wanted, recorded, ordered, expected) in [
        (Some(A), Some(B), None, Step::Wait(left)),
        (None, Some(B), None, Step::Wait(left)),
        (Some(A), Some(A), None, Step::Insert),
        (Some(A), None, None, Step::Insert),
        (None, None, None, Step::Done),
        (Some(A), Some(B), Some(DiscOrder::Eject), Step::Insert),
    ] {
        assert_eq!(step(wanted, recorded, Drive::Empty, &attempts(ordered)), expected);
    }
}

#[test]
fn host_starts_only_with_the_drive_as_it_is_asked_for() {
    for (change, drive, expected, summary) in [
        (
            json!({}),
            Drive::Empty,
            &["insert disc"][..],
            "records the image, requests insert disc, waits for the node",
        ),
        (
            json!({ "metadata": { "finalizers": null } }),
            Drive::Empty,
            &[],
            "protects the image, replan",
        ),
        (
            json!({}),
            Drive::Attached,
            &["eject discs"],
            "requests eject discs, waits for the node",
        ),
        (
            recorded(B),
            Drive::Attached,
            &["eject discs"],
            "requests eject discs, waits for the node",
        ),
        (
            recorded(A),
            Drive::Attached,
            &["power on"],
            "reports the image, requests power on, waits for the node",
        ),
        (
            gone(),
            Drive::Empty,
            &["power on"],
            "reports the image, requests power on, waits for the node",
        ),
        (
            gone(),
            Drive::Attached,
            &["eject discs"],
            "requests eject discs, waits for the node",
        ),
    ] {
        let fixture = off(change.clone(), drive);
        assert_eq!(sent(&fixture), expected, "{change} {drive:?}");
        assert_eq!(fixture.summary(), summary, "{change} {drive:?}");
    }
}

/// The power is tried again, or the node is deleted again.
#[test]
fn result_is_announced_once() {
    let announced = |is_announced| {
        off(recorded(A), Drive::Attached).with(|fixture| {
            fixture.disc.attempts.ordered = Some(DiscOrder::Insert);
            fixture.disc.attempts.is_announced = is_announced;
        })
    };
    for (is_announced, expected) in [(false, "the virtual drive of the host holds the image"), (true, "")] {
        let fixture = announced(is_announced);
        assert_eq!(sent(&fixture), ["power on"]);
        let said = reported(&fixture).concat();
        assert!(said.starts_with(expected) && said.is_empty() == is_announced, "{said}");
    }
    let emptied = |change| {
        removed(Drive::Empty, DiscAttempts::default()).with(|fixture| {
            fixture.disc.object = Observed::Present(object(change));
            fixture.disc.attempts.ordered = Some(DiscOrder::Eject);
        })
    };
    for (change, is_written) in [
        (recorded(A), true),
        (json!({ "status": { "error": { "count": 1, "message": "no" } } }), true),
        (json!({}), false),
    ] {
        let actions = emptied(change.clone()).plan().actions;
        let is_record = |action: &Action| matches!(action, Action::RecordDisc { .. });
        assert_eq!(actions.iter().any(is_record), is_written, "{change}");
        assert!(actions.iter().any(Action::removes_record), "{change}");
    }
}

/// A view that is older than this reconcile decides nothing.
#[test]
fn each_order_follows_live_views_of_the_object_the_node_and_the_drive() {
    let fresh = || off(json!({}), Drive::Empty);
    let neighbours = BTreeSet::from([Read::Node, Read::DataImage]);
    for (old, reads) in [
        (fresh().freshness(NodeFreshness::InState), neighbours.clone()),
        (
            fresh().with(|fixture| fixture.disc.freshness = HostFreshness::Cached),
            neighbours,
        ),
        (
            fresh().with(|fixture| fixture.disc.drive = Observed::Unknown(UnknownReason::NotRead)),
            BTreeSet::from([Read::Node, Read::DataImage, Read::Drive]),
        ),
    ] {
        let plan = old.plan();
        assert_eq!(plan.reads, reads);
        assert_eq!(plan.actions, []);
    }
}

/// The read of a drive that failed may have taken minutes.
#[test]
fn failure_to_read_the_drive_needs_no_live_view_of_its_neighbours() {
    let failed = off(json!({}), Drive::Empty)
        .freshness(NodeFreshness::InState)
        .with(|fixture| {
            fixture.disc.freshness = HostFreshness::Cached;
            fixture.disc.drive = Observed::Present(DriveView::Failed("no response".to_owned()));
        });
    assert_eq!(
        failed.summary(),
        "counts a failure, reports the image, waits for a time"
    );
}

/// The start that follows fails for the same reason, and is tried again when the BMC is back.
#[test]
fn unreadable_drive_ends_no_attempts() {
    let unread = |failures| {
        off(json!({}), Drive::Empty).with(|fixture| {
            fixture.disc.attempts.failures = failures;
            fixture.disc.drive = Observed::Present(DriveView::Failed("no response".to_owned()));
        })
    };
    for (failures, summary) in [
        (1, "counts a failure, reports the image, waits for a time"),
        (2, "reports the image, requests power on, waits for the node"),
        (3, "reports the image, requests power on, waits for the node"),
    ] {
        assert_eq!(unread(failures).summary(), summary, "{failures}");
    }
    let message = reported(&unread(2)).concat();
    assert!(message.contains("; the host starts all the same"), "{message}");
    let again = unread(2).with(|fixture| {
        let error = json!({ "status": { "error": { "count": 3, "message": message } } });
        fixture.disc.object = Observed::Present(object(error));
    });
    assert_eq!(again.summary(), "requests power on, waits for the node");
}

/// It is observed on before its status says so.
#[test]
fn attempts_end_when_the_machine_is_seen_on() {
    let on = |attempts: DiscAttempts| {
        off(recorded(A), Drive::Attached).with(|fixture| {
            let node = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
            node["power_state"] = json!("power on");
            fixture.disc.attempts = attempts;
        })
    };
    let ends = |attempts| {
        let actions = on(attempts).plan().actions;
        actions.contains(&Action::EndDiscAttempts)
    };
    let begun = DiscAttempts {
        ordered: Some(DiscOrder::Insert),
        ..DiscAttempts::default()
    };
    assert!(ends(begun) && !ends(DiscAttempts::default()));
}

#[test]
fn host_without_an_image_or_whose_image_is_not_known_starts_without_a_read() {
    for (object, is_known) in [
        (Observed::Absent, true),
        (Observed::Unknown(UnknownReason::NotPermitted), false),
        (Observed::Unknown(UnknownReason::Unreadable("no".to_owned())), false),
    ] {
        let fixture = off(json!({}), Drive::Empty)
            .freshness(NodeFreshness::InState)
            .with(|fixture| fixture.disc.object = object);
        assert_eq!(sent(&fixture), ["power on"]);
        assert_eq!(warns(&fixture), !is_known);
    }
}

/// Whether an Event of the host says that its image is not known.
fn warns(fixture: &Fixture) -> bool {
    let events = fixture.plan().events;
    events.iter().any(|event| event.reason == DATA_IMAGE_UNKNOWN)
}

#[test]
fn failure_about_the_disc_is_counted_until_the_host_starts_without_it() {
    let failed = |failures| {
        off(recorded(A), Drive::Empty).with(|fixture| {
            fixture.disc.attempts = DiscAttempts {
                failures,
                ordered: Some(DiscOrder::Insert),
                ..DiscAttempts::default()
            };
        })
    };
    for (failures, summary) in [
        (0, "counts a failure, reports the image, waits for a time"),
        (1, "counts a failure, reports the image, waits for a time"),
        (2, "gives up, reports the image, replan"),
    ] {
        let fixture = failed(failures);
        assert_eq!(fixture.summary(), summary);
        let report = reported(&fixture).remove(0);
        assert!(report.starts_with("the image was not inserted: "), "{report}");
        assert_eq!(
            report.contains("; the host starts all the same"),
            failures == 2,
            "{report}"
        );
    }
    let over = failed(3).with(|fixture| fixture.disc.attempts.is_over = true);
    assert_eq!(sent(&over), ["power on"]);
}

#[test]
fn rejected_order_and_unreadable_drive_are_failures_about_the_disc() {
    let refused = |is_final| {
        off(recorded(A), Drive::Empty).with(|fixture| {
            let message = "no http://u:canary@a/".to_owned();
            fixture.disc.attempts.refused = Some(DiscRefusal { message, is_final });
        })
    };
    let seen = |view| off(json!({}), Drive::Empty).with(|fixture| fixture.disc.drive = Observed::Present(view));
    for (fixture, summary) in [
        (refused(false), "counts a failure, reports the image, waits for a time"),
        (refused(true), "gives up, reports the image, replan"),
        (
            seen(DriveView::Failed("status 500".to_owned())),
            "counts a failure, reports the image, waits for a time",
        ),
        (
            seen(DriveView::Unsupported("no drive".to_owned())),
            "gives up, reports the image, replan",
        ),
    ] {
        assert_eq!(fixture.summary(), summary);
        assert!(!reported(&fixture).concat().contains("canary"));
    }
}

#[test]
fn delay_and_lock_are_waited_for() {
    let delayed = off(json!({}), Drive::Empty).with(|fixture| {
        fixture.disc.attempts.delay_left = Some(Duration::from_secs(3));
    });
    assert_eq!(delayed.summary(), "waits for a time");
    let locked = off(json!({}), Drive::Empty).with(|fixture| {
        let node = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
        node["reservation"] = json!("conductor");
    });
    assert!(matches!(locked.plan().next, Next::Waiting(_)));
    assert_eq!(sent(&locked), Vec::<&str>::new());
}

/// It would be ejected together with the disc that the system runs from.
#[test]
fn host_that_runs_from_a_disc_keeps_it() {
    let live = |fixture: &mut Fixture| {
        let node = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
        node["deploy_interface"] = json!("ramdisk");
    };
    let mut deleted = gone();
    apply(&recorded(A), &mut deleted);
    for (change, expected) in [
        (json!({}), "which this image would replace"),
        (recorded(A), "which this image would replace"),
        (deleted, "which would be ejected too"),
    ] {
        let fixture = off(change, Drive::Other).with(live);
        let next = after_report(&fixture);
        assert_eq!(next.summary(), "requests power on, waits for the node");
        let said = reported(&fixture).concat();
        assert!(
            said.contains("runs from a disc itself") && said.contains(expected),
            "{said}"
        );
    }
    let removed = removed(Drive::Other, DiscAttempts::default()).node("active").live();
    assert_eq!(sent(&removed), ["eject discs"]);
    let removed = after_report(&removed.with(live));
    assert!(!sent(&removed).is_empty() && !sent(&removed).contains(&"eject discs"));
    // A live image that is loaded from the network needs no drive.
    for boot in ["ipxe", "redfish-https"] {
        let fixture = off(json!({}), Drive::Empty).with(|fixture| {
            let node = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
            (node["deploy_interface"], node["boot_interface"]) = (json!("ramdisk"), json!(boot));
        });
        assert_eq!(sent(&fixture), ["insert disc"], "{boot}");
    }
}

#[test]
fn node_of_a_deleted_host_is_deleted_after_its_disc_is_ejected() {
    let over = DiscAttempts {
        is_over: true,
        ..DiscAttempts::default()
    };
    for (fixture, expected) in [
        (removed(Drive::Attached, DiscAttempts::default()), &["eject discs"][..]),
        (removed(Drive::Empty, DiscAttempts::default()), &["delete node"]),
        (removed(Drive::Attached, over), &["delete node"]),
    ] {
        assert_eq!(sent(&fixture), expected, "{}", fixture.summary());
    }
    // Ironic rejects the request as busy, which is no failure about a disc.
    let faulty = removed(Drive::Attached, DiscAttempts::default()).with(|fixture| {
        let node = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
        (node["maintenance"], node["fault"]) = (json!(true), json!("power failure"));
    });
    assert_eq!(
        faulty.summary(),
        "counts a failure, reports the image, waits for a time"
    );
    // The node keeps the deploy interface of a live image that was removed.
    let deprovisioned = removed(Drive::Attached, DiscAttempts::default()).with(|fixture| {
        let node = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
        node["deploy_interface"] = json!("ramdisk");
    });
    assert_eq!(sent(&deprovisioned), ["eject discs"]);
    // A crash in between leaves no record of an image in an empty drive, which nothing could read any more.
    let actions = removed(Drive::Empty, DiscAttempts::default()).plan().actions;
    let at = |is: fn(&Action) -> bool| actions.iter().position(is);
    let recorded = at(|action| matches!(action, Action::RecordDisc { .. }));
    assert!(
        recorded.is_some() && recorded < at(Action::removes_record),
        "{actions:?}"
    );
    // Unknown is not absent: a disc may be left, and nothing could say so later.
    for why in [UnknownReason::NotPermitted, UnknownReason::Unreadable("no".to_owned())] {
        let unknown = removed(Drive::Attached, DiscAttempts::default());
        let unknown = unknown.with(|fixture| fixture.disc.object = Observed::Unknown(why));
        assert_eq!((sent(&unknown), warns(&unknown)), (vec!["delete node"], true));
    }
    let detached = removed(Drive::Attached, DiscAttempts::default()).annotated("baremetalhost.metal3.io/detached", "");
    assert!(
        !sent(&detached).contains(&"eject discs"),
        "the machine is left as it is"
    );
}

/// It could not be sent, or would be rejected at each start.
#[test]
fn url_that_ironic_does_not_take_is_not_recorded() {
    for (url, expected) in [
        ("http://images.example/a.iso\u{1}", "control character"),
        ("ftp://images.example/a.iso", "use http or https"),
        ("oci://images.example/a", "use http or https"),
        ("nfs://images.example/a.iso", "use http or https"),
        ("cifs://images.example/a.iso", "use http or https"),
        ("smb://images.example/a.iso", "use http or https"),
        ("a.iso", "use http or https"),
    ] {
        let fixture = off(json!({ "spec": { "url": url } }), Drive::Empty);
        assert_eq!(sent(&after_report(&fixture)), ["power on"], "{url:?}");
        let report = reported(&fixture).concat();
        assert!(
            report.contains(expected) && report.contains("; the host starts"),
            "{report}"
        );
    }
}

/// Such a machine is never off, so a message is all that a user gets.
#[test]
fn reboot_in_place_says_that_the_disc_stays_as_it_is() {
    for (change, is_said) in [(json!({}), true), (recorded(B), true), (recorded(A), false)] {
        let fixture = off(change.clone(), Drive::Empty)
            .spec(json!({ "disablePowerOff": true }))
            .status(json!({ "poweredOn": true }))
            .annotated("reboot.metal3.io", "")
            .with(|fixture| {
                let node = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
                (node["power_state"], node["disable_power_off"]) = (json!("power on"), json!(true));
                fixture.host_freshness = HostFreshness::Live;
            });
        assert_eq!(sent(&fixture), ["soft rebooting"], "{}", fixture.summary());
        let said = reported(&fixture).concat();
        assert_eq!(
            said.contains("spec.disablePowerOff forbids"),
            is_said,
            "{change}: {said}"
        );
    }
}

/// Other orders no longer wait for its end.
fn locked_for_long(fixture: &mut Fixture) {
    let node = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
    node["reservation"] = json!("conductor");
    fixture.reserved_for = Some(Duration::from_hours(1));
}

/// Ironic says that it is done.
#[test]
fn drive_that_a_bmc_shows_late_is_read_again_and_is_no_failure() {
    let settling = |left, error: Value| {
        off(recorded(A), Drive::Empty).with(|fixture| {
            fixture.disc.attempts.ordered = Some(DiscOrder::Insert);
            fixture.disc.attempts.settling_left = left;
            let node = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
            node["last_error"] = error;
        })
    };
    let left = Some(Duration::from_secs(9));
    let failure = "counts a failure, reports the image, waits for a time";
    for (fixture, summary) in [
        (settling(left, Value::Null), "waits for a time"),
        (settling(left, json!("Could not attach")), failure),
        (settling(None, Value::Null), failure),
    ] {
        assert_eq!(fixture.summary(), summary);
    }
    let attempts = DiscAttempts {
        ordered: Some(DiscOrder::Eject),
        ..DiscAttempts::default()
    };
    let deleted = removed(Drive::Attached, attempts).with(locked_for_long);
    assert!(
        deleted.summary().contains("restart of that conductor"),
        "{}",
        deleted.summary()
    );
    assert_eq!(sent(&deleted), Vec::<&str>::new());
    // Nothing has failed, and nothing else says why the host stays off.
    for fixture in [settling(left, Value::Null), settling(None, json!("Could not attach"))] {
        let locked = fixture.with(locked_for_long);
        let summary = locked.summary();
        assert!(
            summary.contains("restart of that conductor") && summary.contains("waits for the node"),
            "{summary}"
        );
        assert_eq!(sent(&locked), Vec::<&str>::new());
    }
}
