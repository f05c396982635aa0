//! Deletion in each phase, a Machine that is gone, and the phases in which nothing is tried any more.

use metal3_capi::workload::NodeState;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::json;

use super::case::{Case, check, live, present, read, tainted, unreachable_cluster};
use crate::remediation::facts::Node;

const BACKUP: (&str, &str) = ("remediation.metal3.io/node-labels-backup", r#"{"zone":"1"}"#);

fn deleted(case: Case) -> Case {
    case.deleted()
}

/// A move strips the status, and keeps the finalizer and the annotations.
fn moved() -> Case {
    Case::running().remediation(|one| one.status = Default::default())
}

/// The cached host may lack a request of another process.
#[test]
fn finalizer_is_removed_only_after_live_reads() {
    let given_up = || Case::new("Deleting machine").node(NodeState::Absent);
    check(vec![
        (
            "deleted",
            deleted(Case::running()).node(present(live(""))).unconfirmed(),
            "read everything",
        ),
        (
            "deleted, with the finalizer only",
            deleted(moved()).node(NodeState::Absent).unconfirmed(),
            "read everything",
        ),
        (
            "deleted, and kept off",
            deleted(Case::off()).unconfirmed(),
            "power on h0, again",
        ),
        ("given up", given_up().unconfirmed(), "read everything"),
        (
            "given up, and kept off",
            given_up().held().unconfirmed(),
            "read everything",
        ),
        (
            "restored",
            Case::waiting().node(present(live(""))).unconfirmed(),
            "read everything",
        ),
        (
            "forbidden",
            Case::waiting().node(NodeState::Forbidden).unconfirmed(),
            "read everything",
        ),
    ]);
}

#[test]
fn deleted_remediation_powers_its_host_on_and_restores_the_node() {
    check(vec![
        (
            "before the first step",
            deleted(Case::new("")),
            "Remediated=False Deleting, waits",
        ),
        (
            "with the finalizer only, as after a move",
            deleted(moved()),
            "read Node",
        ),
        (
            "moved, with a taint",
            deleted(moved()).node(present(tainted())),
            "0 taints, in 1 s",
        ),
        (
            "moved, with labels of a Node that was deleted",
            deleted(moved())
                .annotated("remediation.metal3.io/node-labels-backup", r#"{"zone":"1"}"#)
                .node(NodeState::Absent),
            "Remediated=False WaitingForNode, waits 1200 s",
        ),
        (
            "before the host is off",
            deleted(Case::running().held()),
            "power on h0, again",
        ),
        ("off", deleted(Case::off()), "power on h0, again"),
        ("waiting", deleted(Case::waiting().held()), "power on h0, again"),
        ("powered on", deleted(Case::running()), "read Node"),
        (
            "tainted",
            deleted(Case::running()).node(present(tainted())),
            "0 taints, in 1 s",
        ),
        (
            "untouched",
            deleted(Case::running()).node(present(live(""))),
            "release, again",
        ),
    ]);
}

#[test]
fn deleted_remediation_waits_for_its_node_for_twice_the_time_of_an_attempt() {
    let saved = || deleted(Case::running().annotated(BACKUP.0, BACKUP.1)).after(9999);
    check(vec![
        (
            "deleted Node that is back",
            saved().node(present(live(""))),
            "add 0 annotations and 1 labels, release with backup, again",
        ),
        (
            "deleted Node that is not back",
            saved().node(NodeState::Absent),
            "Remediated=False WaitingForNode, waits 1200 s",
        ),
        (
            "deleted Node whose host is not on yet",
            saved()
                .host(|host| host.status.powered_on = false)
                .node(NodeState::Absent)
                .awaited(100),
            "Remediated=False WaitingForPowerOn, waits 1100 s",
        ),
        (
            "deleted Node that does not return in time",
            saved().node(NodeState::Absent).awaited(1200),
            "release with backup, again",
        ),
        (
            "unreachable",
            saved().node(unreachable_cluster()),
            "Remediated=Unknown WorkloadClusterUnreachable, waits 30 s",
        ),
        (
            "unreachable shortly before the time is over",
            saved().node(unreachable_cluster()).awaited(1199),
            "Remediated=Unknown WorkloadClusterUnreachable, waits 1 s",
        ),
        (
            "unreachable until the time is over",
            saved().node(unreachable_cluster()).awaited(1200),
            "release with backup, again",
        ),
    ]);
    for lost in [unreachable_cluster(), NodeState::Absent, NodeState::Forbidden] {
        assert_eq!(saved().node(lost).awaited(1200).plan().events.len(), 1);
    }
}

#[test]
fn deleted_remediation_awaits_no_node_when_nothing_is_saved_or_it_is_paused() {
    check(vec![
        (
            "no Node, and nothing to restore",
            deleted(Case::running()).node(NodeState::Absent),
            "release, again",
        ),
        (
            "never registered",
            deleted(Case::running()).facts(|facts| facts.node = Node::NeverRegistered),
            "release, again",
        ),
        (
            "paused",
            deleted(Case::off().annotated("cluster.x-k8s.io/paused", "")),
            "Paused=True Paused, waits",
        ),
        (
            "kept by the finalizer of another controller",
            deleted(Case::waiting().remediation(|one| one.metadata.finalizers = Some(vec!["other".to_owned()]))),
            "Remediated=False Deleting, waits",
        ),
    ]);
}

#[test]
fn remediation_of_a_machine_that_is_gone_powers_its_host_on_and_is_released() {
    let gone = |case: Case| case.facts(|facts| facts.machine = Observed::Absent);
    let deleting = |case: Case| {
        case.machine(|machine| machine.metadata.deletion_timestamp = Some(read(json!("1970-01-01T00:00:05Z"))))
    };
    check(vec![
        ("gone in the cache", gone(Case::off()).unconfirmed(), "read everything"),
        ("gone", gone(Case::off()), "power on h0, release, again"),
        (
            "gone, and deleted",
            gone(Case::off()).deleted(),
            "power on h0, release, again",
        ),
        (
            "released",
            gone(Case::running().remediation(|one| one.metadata.finalizers = None)).unconfirmed(),
            "Remediated=False OwnerNotFound, waits",
        ),
        ("in deletion", deleting(Case::off()), "power on h0, release, again"),
        (
            "in deletion, with an unreachable workload cluster",
            deleting(Case::waiting().annotated(BACKUP.0, BACKUP.1)).node(unreachable_cluster()),
            "release with backup, again",
        ),
        (
            "in deletion, and released",
            deleting(Case::waiting().remediation(|one| one.metadata.finalizers = None)),
            "Remediated=False MachineDeleting, waits",
        ),
        (
            "the Metal3Machine in deletion",
            Case::off()
                .metal3_machine(|one| one.metadata.deletion_timestamp = Some(read(json!("1970-01-01T00:00:05Z")))),
            "power on h0, release, again",
        ),
    ]);
}

#[test]
fn nothing_stays_off_or_fenced_after_the_last_attempt() {
    let given_up = || Case::new("Deleting machine");
    let failed = || Case::new("Failed");
    let without_finalizer = |case: Case| case.remediation(|one| one.metadata.finalizers = None);
    check(vec![
        ("given up, and kept off", given_up().held(), "power on h0, again"),
        ("given up", given_up(), "read Node"),
        ("tainted", given_up().node(present(tainted())), "0 taints, in 1 s"),
        ("not tainted", given_up().node(present(live(""))), "release, again"),
        ("without a Node", given_up().node(NodeState::Absent), "release, again"),
        ("forbidden", given_up().node(NodeState::Forbidden), "release, again"),
        (
            "unreachable",
            given_up().node(unreachable_cluster()),
            "Remediated=Unknown WorkloadClusterUnreachable, waits 30 s",
        ),
        (
            "released",
            without_finalizer(given_up()),
            "Remediated=False GivenUp, waits",
        ),
        ("failed, and kept off", failed().held(), "power on h0, again"),
        (
            "failed",
            without_finalizer(failed()),
            "Remediated=False HostOffline, waits",
        ),
        (
            "the user turned the host off",
            Case::off().host(|host| host.spec.online = false),
            "phase Failed, again",
        ),
    ]);
}

#[test]
fn plan_of_a_finished_remediation_repeats_no_write() {
    let finished = Case::new("Deleting machine").remediation(|one| one.metadata.finalizers = None);
    let status = finished.plan().status.unwrap();
    let again = finished.remediation(|one| one.status = status);
    assert_eq!(again.outline(), "waits");
}

#[test]
fn nothing_stays_off_or_fenced_without_a_strategy_or_with_an_unknown_phase() {
    let without_strategy = |case: Case| case.remediation(|one| one.spec.strategy = None);
    let without_finalizer = |case: Case| case.remediation(|one| one.metadata.finalizers = None);
    let frozen = || Case::new("Frozen");
    check(vec![
        ("unknown phase, and kept off", frozen().held(), "power on h0, again"),
        ("unknown phase", frozen(), "read Node"),
        (
            "unknown phase, and fenced",
            frozen().node(present(tainted())),
            "0 taints, in 1 s",
        ),
        (
            "unknown phase, and restored",
            frozen().node(present(live(""))),
            "release, again",
        ),
        (
            "unknown phase, and released",
            without_finalizer(frozen()),
            "Remediated=False PhaseUnknown, waits",
        ),
        (
            "no strategy, and off",
            without_strategy(Case::off()),
            "power on h0, again",
        ),
        (
            "no strategy, and fenced",
            without_strategy(Case::running()).node(present(tainted())),
            "0 taints, in 1 s",
        ),
        (
            "no strategy, and restored",
            without_strategy(Case::waiting()).node(present(live(""))),
            "release, again",
        ),
        (
            "no strategy, and released",
            without_finalizer(without_strategy(Case::waiting())),
            "Remediated=False StrategyNotSupported, waits",
        ),
    ]);
}

#[test]
fn node_that_was_deleted_is_restored_when_its_host_is_turned_on_again() {
    let failed = || Case::new("Failed").annotated(BACKUP.0, BACKUP.1);
    let given_up = || Case::new("Deleting machine").annotated(BACKUP.0, BACKUP.1);
    check(vec![
        (
            "off",
            failed().node(NodeState::Absent),
            "Remediated=False HostOffline, waits",
        ),
        (
            "back",
            failed().node(present(live(""))),
            "add 0 annotations and 1 labels, release with backup, again",
        ),
        (
            "forbidden",
            failed().node(NodeState::Forbidden),
            "release with backup, again",
        ),
        (
            "nothing to restore",
            Case::new("Failed").node(NodeState::Absent),
            "release, again",
        ),
        (
            "given up",
            given_up().node(NodeState::Absent),
            "release with backup, again",
        ),
    ]);
}

#[test]
fn remediation_that_may_not_restore_its_node_has_an_event() {
    let forbidden = |case: Case| case.node(NodeState::Forbidden);
    for case in [
        forbidden(deleted(Case::running())),
        forbidden(Case::waiting()),
        forbidden(Case::new("Failed")),
    ] {
        let plan = case.plan();
        assert_eq!(case.outline(), "release, again");
        let reasons: Vec<&str> = plan.events.iter().map(|event| event.reason.as_str()).collect();
        assert_eq!(reasons, ["NodeNotRestored"]);
    }
}

#[test]
fn remediation_whose_machine_or_host_is_unreadable_is_kept_and_says_so() {
    let unknown = || UnknownReason::Unreadable("no".to_owned());
    let machine = |case: Case| case.facts(|facts| facts.metal3_machine = Observed::Unknown(unknown()));
    let host = |case: Case| case.facts(|facts| facts.host = Observed::Unknown(unknown()));
    let deleted = || Case::running().deleted().node(present(live("")));
    let given_up = || Case::new("Deleting machine").node(NodeState::Absent);
    let unreadable = "Remediated=Unknown ObjectUnreadable, waits";
    check(vec![
        ("deleted, and its Metal3Machine", machine(deleted()), unreadable),
        ("deleted, and its host", host(deleted()), unreadable),
        ("in the cache", machine(deleted()).unconfirmed(), unreadable),
        ("given up, and its Metal3Machine", machine(given_up()), unreadable),
        ("kept off", machine(Case::off()).deleted(), "power on h0, again"),
        (
            "its Machine in deletion",
            machine(Case::off())
                .machine(|one| one.metadata.deletion_timestamp = Some(read(json!("1970-01-01T00:00:05Z")))),
            "power on h0, Remediated=Unknown ObjectUnreadable, waits",
        ),
    ]);
}
