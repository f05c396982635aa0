//! A remediation that was moved to another cluster: it has no status there, and its host another UID.

use metal3_capi::workload::LiveNode;

use super::case::{Case, PROGRESS, check, live, present, tainted};

/// The Node with the UID that its host had before the move.
fn moved(node: LiveNode) -> LiveNode {
    LiveNode {
        labels: [("metal3.io/uuid".to_owned(), "uid-before-the-move".to_owned())].into(),
        ..node
    }
}

#[test]
fn node_of_a_host_that_was_moved_is_fenced_and_restored() {
    check(vec![
        (
            "fenced",
            Case::off().node(present(moved(live("v1.31.0")))),
            "1 taints, Remediated=False WaitingForDrain, waits 1 s",
        ),
        (
            "restored",
            Case::waiting().node(present(moved(tainted()))),
            "0 taints, in 1 s",
        ),
        (
            "restored by the deletion",
            Case::running().deleted().node(present(moved(tainted()))),
            "0 taints, in 1 s",
        ),
    ]);
}

/// A remediation without status whose annotation has this text.
fn stripped(progress: &str) -> Case {
    Case::new("").annotated(PROGRESS, progress)
}

#[test]
fn remediation_that_lost_its_status_continues_and_powers_nothing_off() {
    check(vec![
        (
            "its machine is back",
            stripped(r#"{"phase":"Waiting","retryCount":1}"#).node(present(live("v1.31.0"))),
            "phase Waiting, retry 1, new time, again",
        ),
        (
            "a first attempt",
            stripped(r#"{"phase":"Running"}"#),
            "phase Running, new time, again",
        ),
        (
            "given up",
            stripped(r#"{"phase":"Deleting machine","retryCount":1}"#),
            "phase Deleting machine, retry 1, new time, again",
        ),
        (
            "its host was off by a user's wish",
            stripped(r#"{"phase":"Failed"}"#),
            "phase Failed, new time, again",
        ),
        (
            "new",
            Case::new("").annotated("other", "x"),
            "hold, phase Running, new time, again",
        ),
        (
            "with a text that says nothing",
            stripped(r#"{"phase":"Resting"}"#),
            "hold, phase Running, new time, again",
        ),
        (
            "with a status",
            Case::waiting()
                .annotated(PROGRESS, r#"{"phase":"Failed"}"#)
                .remediation(|one| one.metadata.finalizers = None),
            "Remediated=True NodeRestored, waits 590 s",
        ),
    ]);
}
