//! The phase in which the host is powered on and the Node is restored.

use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationalStatus};
use metal3_capi::workload::{LiveNode, NodeChange, NodeState};
use metal3_runtime::plan::Observed;
use serde_json::json;

use super::case::{Case, check, live, present, read, tainted, unreachable_cluster};
use crate::remediation::action::Action;
use crate::remediation::facts::Node;

const LABELS: &str = "remediation.metal3.io/node-labels-backup";
const ANNOTATIONS: &str = "remediation.metal3.io/node-annotations-backup";

/// A Node without a provider ID, labelled with its host.
fn without_id(host: &str) -> LiveNode {
    let labels = [("metal3.io/uuid".to_owned(), host.to_owned())];
    LiveNode {
        provider_id: String::new(),
        labels: labels.into(),
        ..live("")
    }
}

fn is_off(host: &mut BareMetalHost) {
    host.status.powered_on = false;
}

/// Without the finalizer the Node is restored.
fn restored() -> Case {
    Case::waiting().remediation(|one| one.metadata.finalizers = None)
}

#[test]
fn host_is_powered_on_without_the_workload_cluster() {
    let failed = |host: &mut BareMetalHost| {
        is_off(host);
        host.status.operational_status = OperationalStatus::Error;
    };
    check(vec![
        (
            "kept off",
            Case::waiting().held().host(is_off).unconfirmed(),
            "power on h0, Remediated=False WaitingForPowerOn, waits 590 s",
        ),
        ("on again", Case::waiting().held(), "power on h0, again"),
        (
            "not on yet",
            Case::waiting().host(is_off),
            "Remediated=False WaitingForPowerOn, waits 590 s",
        ),
        (
            "silent",
            Case::waiting().host(is_off).after(700),
            "Remediated=False WaitingForPowerOn, waits",
        ),
        (
            "an error",
            Case::waiting().host(failed).after(600),
            "phase Running, retry 1, new time, again",
        ),
    ]);
}

#[test]
fn node_is_restored_before_the_finalizer_is_removed() {
    let backup = || {
        Case::waiting()
            .annotated(LABELS, r#"{"rack":"old","zone":"1"}"#)
            .annotated(ANNOTATIONS, "")
    };
    let restored_node = LiveNode {
        labels: [("zone".to_owned(), "2".to_owned()), ("rack".to_owned(), "a".to_owned())].into(),
        ..live("")
    };
    check(vec![
        ("not read", Case::waiting(), "read Node"),
        ("tainted", Case::waiting().node(present(tainted())), "0 taints, in 1 s"),
        ("not tainted", Case::waiting().node(present(live(""))), "release, again"),
        (
            "registered again, before live reads",
            backup().node(present(live(""))).unconfirmed(),
            "read everything",
        ),
        (
            "registered without a provider ID",
            Case::waiting().node(present(without_id(""))),
            "add 0 annotations and 0 labels and the ID, release, again",
        ),
        (
            "on another host",
            Case::waiting().node(present(without_id("other"))),
            "Remediated=False WaitingForNode, waits 590 s",
        ),
        (
            "registered again",
            backup().node(present(live(""))),
            "add 0 annotations and 1 labels, release with backup, again",
        ),
        (
            "has its own labels",
            backup().node(present(restored_node)),
            "release with backup, again",
        ),
        (
            "an unreadable backup",
            Case::waiting().annotated(LABELS, "{").node(present(live(""))),
            "release with backup, again",
        ),
    ]);
}

#[test]
fn node_that_is_not_back_or_cannot_be_read_is_awaited() {
    let backup = || Case::waiting().annotated(LABELS, r#"{"zone":"1"}"#);
    let other = LiveNode {
        provider_id: "metal3://metal/h9/w-9".to_owned(),
        ..tainted()
    };
    check(vec![
        (
            "another machine's Node",
            Case::waiting().node(present(other)),
            "Remediated=False WaitingForNode, waits 590 s",
        ),
        (
            "not registered again",
            backup().node(NodeState::Absent),
            "Remediated=False WaitingForNode, waits 590 s",
        ),
        (
            "never registered",
            Case::waiting().facts(|facts| facts.node = Node::NeverRegistered),
            "Remediated=False WaitingForNode, waits 590 s",
        ),
        (
            "forbidden",
            backup().node(NodeState::Forbidden),
            "release with backup, again",
        ),
        (
            "unreachable",
            backup().node(unreachable_cluster()),
            "Remediated=Unknown WorkloadClusterUnreachable, waits 30 s",
        ),
        ("restored", restored(), "Remediated=True NodeRestored, waits 590 s"),
    ]);
}

#[test]
fn restored_labels_are_only_those_that_the_node_lacks() {
    let case = Case::waiting().annotated(LABELS, r#"{"rack":"old","zone":"1"}"#);
    let plan = case.node(present(live(""))).plan();
    let expected = NodeChange::Add {
        annotations: [].into(),
        labels: [("zone".to_owned(), "1".to_owned())].into(),
        provider_id: None,
    };
    assert_eq!(plan.actions[0], Action::ChangeNode(expected));
}

#[test]
fn attempt_fails_at_its_time_unless_the_workload_cluster_is_silent() {
    let over = || Case::waiting().node(NodeState::Absent).after(600);
    let retried = "phase Running, retry 1, new time, again";
    check(vec![
        ("the Node did not return", over(), retried),
        (
            "in time",
            over().after(599),
            "Remediated=False WaitingForNode, waits 1 s",
        ),
        (
            "silent",
            Case::waiting().node(unreachable_cluster()).after(9999),
            "Remediated=Unknown WorkloadClusterUnreachable, waits 30 s",
        ),
        ("restored and still unhealthy", restored().after(600), "read Node"),
        (
            "the same, and the Node is there",
            restored().after(600).node(present(live(""))),
            retried,
        ),
        (
            "the same, and silent",
            restored().after(600).node(unreachable_cluster()),
            "Remediated=Unknown WorkloadClusterUnreachable, waits 30 s",
        ),
        (
            "never registered",
            Case::waiting()
                .facts(|facts| facts.node = Node::NeverRegistered)
                .after(600),
            retried,
        ),
    ]);
}

#[test]
fn attempts_are_repeated_to_the_limit_and_last_as_the_strategy_states() {
    let limit = |limit: i32, tried: i32, case: Case| {
        case.strategy(json!({ "retryLimit": limit }))
            .remediation(|one| one.status.retry_count = (tried > 0).then_some(tried))
    };
    let over = || Case::waiting().node(NodeState::Absent).after(600);
    let retried = "phase Running, retry 1, new time, again";
    let given_up = "exclude h0, give the Machine up, phase Deleting machine, again";
    check(vec![
        (
            "second retry",
            limit(2, 1, over()),
            "phase Running, retry 2, new time, again",
        ),
        ("limit reached", limit(1, 1, over()), given_up),
        ("limit lowered", limit(1, 3, over()), given_up),
        ("no retries", limit(0, 0, over()), given_up),
        ("not confirmed", limit(1, 1, over()).unconfirmed(), "read everything"),
        (
            "the default limit",
            over().strategy(json!({ "retryLimit": null })),
            retried,
        ),
        (
            "the default time",
            over().strategy(json!({ "timeoutSeconds": null })).after(599),
            "Remediated=False WaitingForNode, waits 1 s",
        ),
        (
            "its own time",
            over().strategy(json!({ "timeoutSeconds": 100 })).after(100),
            retried,
        ),
        (
            "without a host",
            over().facts(|facts| facts.host = Observed::Absent).after(10),
            "Remediated=False HostNotFound, waits 590 s",
        ),
        (
            "without a host at the end",
            limit(1, 1, over()).facts(|facts| facts.host = Observed::Absent),
            "give the Machine up, phase Deleting machine, again",
        ),
        (
            "without a Metal3Machine",
            Case::waiting().facts(|facts| facts.metal3_machine = Observed::Absent),
            "Remediated=False HostNotFound, waits 590 s",
        ),
        (
            "a Metal3Machine that never had a host",
            Case::waiting().metal3_machine(|one| one.metadata.annotations = None),
            "Remediated=False HostNotFound, waits 590 s",
        ),
    ]);
}

#[test]
fn machine_is_given_up_in_both_generations_and_its_host_is_excluded_first() {
    let case = Case::waiting()
        .held()
        .node(NodeState::Absent)
        .after(600)
        .remediation(|one| one.status.retry_count = Some(1));
    // Of the phase Running: the host never went off.
    let case = case
        .remediation(|one| one.status.phase = Some(Default::default()))
        .host(|host| {
            host.status.operational_status = OperationalStatus::Error;
        });
    let plan = case.plan();
    let [
        Action::PatchRemediation(_),
        Action::PatchHost { patch: host, .. },
        Action::PatchMachineStatus(machine),
    ] = plan.actions.as_slice()
    else {
        panic!("{plan:?}");
    };
    let expected = json!({ "metadata": { "resourceVersion": "7", "annotations": {
        "capm3.metal3.io/unhealthy": "capm3/UnhealthyNode", "reboot.metal3.io/metal3-remediation-r-uid": null,
    } } });
    assert_eq!(host.clone().into_document(), expected);
    let document = machine.clone().into_document();
    assert_eq!(document["metadata"]["resourceVersion"], "7");
    let (newer, older) = (
        &document["status"]["conditions"][0],
        &document["status"]["deprecated"]["v1beta1"]["conditions"][0],
    );
    for condition in [newer, older] {
        let stated = ["type", "status", "reason"].map(|member| condition[member].as_str().unwrap());
        assert_eq!(stated, ["OwnerRemediated", "False", "WaitingForRemediation"]);
    }
    assert_eq!(older["severity"], "Warning");
}

#[test]
fn paused_machine_is_neither_excluded_nor_given_up() {
    let paused = || read(json!({ "cluster.x-k8s.io/paused": "", "metal3.io/BareMetalHost": "metal/h0" }));
    let over = |tried: i32| {
        let case = Case::waiting().node(NodeState::Absent).after(600);
        case.remediation(|one| one.status.retry_count = Some(tried))
    };
    let host =
        |host: &mut BareMetalHost| host.metadata.annotations = read(json!({ "baremetalhost.metal3.io/paused": "" }));
    let held = "Remediated=False HostPaused, waits";
    check(vec![
        ("host", over(1).host(host), held),
        ("host, in the cache", over(1).host(host).unconfirmed(), held),
        ("host, with a retry left", over(0).host(host), held),
        (
            "Machine",
            over(1).machine(|one| one.metadata.annotations = paused()),
            held,
        ),
        (
            "Metal3Machine",
            over(1).metal3_machine(|one| one.metadata.annotations = paused()),
            held,
        ),
        (
            "Machine without a host",
            over(1)
                .machine(|one| one.metadata.annotations = paused())
                .facts(|facts| facts.host = Observed::Absent),
            held,
        ),
        (
            "Machine whose host reports an error",
            Case::running()
                .held()
                .host(|host| host.status.operational_status = OperationalStatus::Error)
                .after(600)
                .machine(|one| one.metadata.annotations = paused()),
            held,
        ),
    ]);
}

/// A pause, a host that went on late and a short time leave it no less.
#[test]
fn attempt_fails_only_after_the_host_was_on_for_half_of_its_time() {
    let over = |on: u64| Case::waiting().node(NodeState::Absent).after(600).on_for(on);
    let tried = |case: Case| case.remediation(|one| one.status.retry_count = Some(1));
    check(vec![
        (
            "on for a moment",
            over(0),
            "Remediated=False WaitingForNode, waits 300 s",
        ),
        (
            "on for a moment, without a retry",
            tried(over(0)),
            "Remediated=False WaitingForNode, waits 300 s",
        ),
        (
            "shortly before",
            over(299),
            "Remediated=False WaitingForNode, waits 1 s",
        ),
        ("half", over(300), "phase Running, retry 1, new time, again"),
        (
            "half, without a retry",
            tried(over(300)),
            "exclude h0, give the Machine up, phase Deleting machine, again",
        ),
        (
            "restored",
            restored().after(600).on_for(0),
            "Remediated=True NodeRestored, waits 300 s",
        ),
        (
            "on late",
            over(0).after(500),
            "Remediated=False WaitingForNode, waits 300 s",
        ),
    ]);
}
