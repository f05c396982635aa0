//! A remediation that was moved to another cluster: it has no status there, and its host another UID.

use metal3_api::cluster::Machine;
use metal3_capi::workload::LiveNode;
use metal3_runtime::patch::apply;

use super::case::{Case, PROGRESS, check, live, present, read, tainted};
use crate::remediation::action::Action;

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
            "its host was off by a user's wish",
            stripped(r#"{"phase":"Failed"}"#),
            "phase Failed, new time, again",
        ),
        (
            "new",
            Case::new("").annotated("other", "x"),
            "hold, phase Running, new time, again",
        ),
    ]);
}

/// The schema has no count below 1.
#[test]
fn count_that_the_schema_refuses_is_none() {
    let plan = stripped(r#"{"phase":"Running","retryCount":0}"#).plan();
    assert_eq!(plan.actions.len(), 0, "{plan:?}");
    assert_eq!(plan.status.map(|status| status.retry_count), Some(None));
}

#[test]
fn machine_that_was_given_up_is_given_up_again_after_a_move() {
    let given_up = || stripped(r#"{"phase":"Deleting machine","retryCount":1}"#);
    let marked = |machine: &mut Machine| {
        let plan = given_up().plan();
        let patch = plan.actions.into_iter().find_map(|action| match action {
            Action::PatchMachineStatus(patch) => Some(patch.into_document()),
            _ => None,
        });
        let mut document = serde_json::to_value(&*machine).unwrap();
        apply(&patch.unwrap(), &mut document);
        *machine = read(document);
    };
    check(vec![
        ("from caches", given_up().unconfirmed(), "read everything"),
        (
            "its condition is lost",
            given_up(),
            "give the Machine up, phase Deleting machine, retry 1, new time, again",
        ),
        (
            "its condition is there",
            given_up().machine(marked),
            "phase Deleting machine, retry 1, new time, again",
        ),
        (
            "a paused host",
            given_up().host(|host| {
                let annotations = host.metadata.annotations.get_or_insert_default();
                annotations.insert("baremetalhost.metal3.io/paused".to_owned(), String::new());
            }),
            "Remediated=False HostPaused, waits",
        ),
    ]);
}

#[test]
fn progress_that_is_not_understood_begins_nothing() {
    for text in [r#"{"phase":"Resting"}"#, "Running", "", "{}"] {
        check(vec![
            (text, stripped(text), "Remediated=False PhaseUnknown, waits"),
            (text, stripped(text).held(), "power on h0, again"),
        ]);
    }
    let plan = stripped(&"x".repeat(200_000)).plan();
    let said = plan.status.unwrap().conditions;
    assert!(said.iter().any(|one| one.message.contains(PROGRESS)), "{said:?}");
    assert!(said.iter().all(|one| one.message.len() < 400), "{said:?}");
}

/// The program is updated, or comes back after another one.
#[test]
fn progress_that_another_program_made_is_recorded_first() {
    let unrecorded = |case: Case| case.remediation(|one| one.metadata.annotations = None);
    check(vec![
        ("no annotation", unrecorded(Case::waiting()), "backup, again"),
        (
            "an older one",
            Case::waiting().annotated(PROGRESS, r#"{"phase":"Running"}"#),
            "backup, again",
        ),
        (
            "one that is not understood",
            Case::waiting().annotated(PROGRESS, "Waiting"),
            "backup, again",
        ),
        (
            "in a pause",
            unrecorded(Case::waiting()).annotated("cluster.x-k8s.io/paused", ""),
            "Paused=True Paused, waits",
        ),
        ("in deletion", unrecorded(Case::waiting()).deleted(), "read Node"),
    ]);
}
