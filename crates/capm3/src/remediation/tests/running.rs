//! The first step, and the phase in which the host is powered off and the Node is fenced.

use metal3_api::metal3::v1alpha1::OperationalStatus;
use metal3_capi::workload::{Drained, LiveNode, NodeChange, NodeState};
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::json;

use super::case::{Case, POWER_OFF, check, live, present, read, tainted, unreachable_cluster};
use crate::remediation::action::Action;
use crate::remediation::facts::Node;

#[test]
fn remediation_begins_with_finalizer_phase_and_time() {
    check(vec![
        ("new", Case::new(""), "hold, phase Running, new time, again"),
        (
            "the finalizer of a process that stopped",
            Case::new("").remediation(|one| one.metadata.finalizers = Some(vec![super::case::FINALIZER.to_owned()])),
            "phase Running, new time, again",
        ),
        (
            "the user keeps the host off",
            Case::new("").host(|host| host.spec.online = false),
            "phase Failed, again",
        ),
        (
            "without a strategy",
            Case::new("").remediation(|one| one.spec.strategy = None),
            "Remediated=False StrategyNotSupported, waits",
        ),
        (
            "another strategy",
            Case::new("").remediation(|one| one.spec.strategy = read(json!({ "type": "Replace" }))),
            "Remediated=False StrategyNotSupported, waits",
        ),
        (
            "without a host",
            Case::new("").facts(|facts| facts.host = Observed::Absent),
            "hold, phase Running, new time, again",
        ),
    ]);
}

#[test]
fn host_is_powered_off_once_and_only_after_live_reads() {
    let failed = |host: &mut metal3_api::metal3::v1alpha1::BareMetalHost| {
        host.status.operational_status = OperationalStatus::Error;
    };
    check(vec![
        ("not confirmed", Case::running().unconfirmed(), "read everything"),
        (
            "confirmed",
            Case::running(),
            "power off h0, Remediated=False WaitingForPowerOff, waits 590 s",
        ),
        (
            "a Go manager's start without the finalizer",
            Case::running().remediation(|one| one.metadata.finalizers = None),
            "hold, again",
        ),
        (
            "requested",
            Case::running().held(),
            "Remediated=False WaitingForPowerOff, waits 590 s",
        ),
        (
            "off already",
            Case::running().host(|host| host.status.powered_on = false),
            "power off h0, again",
        ),
        (
            "never off, and the host says nothing",
            Case::running().held().after(601),
            "Remediated=False WaitingForPowerOff, waits",
        ),
        (
            "never off, and the host reports an error",
            Case::running().held().host(failed).after(600),
            "retry 1, new time, again",
        ),
        (
            "the error before the time is over",
            Case::running().held().host(failed).after(599),
            "Remediated=False WaitingForPowerOff, waits 1 s",
        ),
    ]);
}

#[test]
fn request_to_power_off_is_that_of_the_go_manager() {
    let plan = Case::running().plan();
    let [Action::PatchHost { host, patch, .. }] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    let expected = json!({ "metadata": {
        "annotations": { POWER_OFF: "{\"mode\":\"hard\",\"force\":false}" }, "resourceVersion": "7",
    } });
    assert_eq!((host.as_str(), patch.clone().into_document()), ("h0", expected));
}

#[test]
fn host_of_another_consumer_or_a_pause_is_never_powered_off() {
    let other = || Case::running().host(|host| host.spec.consumer_ref.as_mut().unwrap().name = Some("w-1".to_owned()));
    check(vec![
        ("another consumer", other(), "Remediated=False HostInUse, waits 590 s"),
        (
            "another consumer of a host that is kept off",
            other().held(),
            "power on h0, again",
        ),
        (
            "no consumer",
            Case::running().host(|host| host.spec.consumer_ref = None),
            "Remediated=False HostInUse, waits 590 s",
        ),
        (
            "host paused",
            Case::running().host(|host| {
                host.metadata.annotations = read(json!({ "baremetalhost.metal3.io/paused": "" }));
            }),
            "Remediated=False HostPaused, waits",
        ),
        (
            "Metal3Machine paused",
            Case::running().metal3_machine(|one| {
                let annotations = one.metadata.annotations.get_or_insert_default();
                annotations.insert("cluster.x-k8s.io/paused".to_owned(), String::new());
            }),
            "Remediated=False HostPaused, waits",
        ),
    ]);
}

#[test]
fn nothing_is_done_while_paused_or_while_an_object_is_unreadable() {
    let unknown = || Observed::Unknown(UnknownReason::Unreadable("no".to_owned()));
    check(vec![
        (
            "remediation paused",
            Case::running().annotated("cluster.x-k8s.io/paused", ""),
            "Paused=True Paused, waits",
        ),
        (
            "Cluster paused",
            Case::running().facts(|facts| {
                let cluster = json!({ "metadata": {}, "spec": { "paused": true } });
                facts.cluster = Observed::Present(std::sync::Arc::new(read(cluster)));
            }),
            "Paused=True Paused, waits",
        ),
        (
            "must stay on",
            Case::running().host(|host| host.spec.disable_power_off = Some(true)),
            "Remediated=False PowerOffDisabled, waits 590 s",
        ),
        (
            "must stay on, is off, and the time is over",
            Case::running()
                .host(|host| {
                    host.spec.disable_power_off = Some(true);
                    host.status.powered_on = false;
                })
                .after(600),
            "retry 1, new time, again",
        ),
        (
            "unreadable host",
            Case::running().facts(|facts| facts.host = unknown()),
            "Remediated=Unknown ObjectUnreadable, waits",
        ),
        (
            "unreadable Cluster",
            Case::running().facts(|facts| facts.cluster = Observed::Unknown(UnknownReason::NotRead)),
            "Remediated=Unknown ObjectUnreadable, waits",
        ),
        (
            "unreadable Machine",
            Case::running().facts(|facts| facts.machine = Observed::Unknown(UnknownReason::NotRead)),
            "Remediated=Unknown ObjectUnreadable, waits",
        ),
        (
            "moved away",
            Case::running().annotated("clusterctl.cluster.x-k8s.io/delete-for-move", ""),
            "done",
        ),
    ]);
}

#[test]
fn node_of_a_host_that_is_off_is_fenced_by_the_taint() {
    let recent = || present(live("v1.28.0"));
    check(vec![
        ("not read", Case::off(), "read Node"),
        (
            "not confirmed",
            Case::off().node(recent()).unconfirmed(),
            "read everything",
        ),
        (
            "taint",
            Case::off().node(recent()),
            "1 taints, Remediated=False WaitingForDrain, waits 1 s",
        ),
        ("tainted", Case::off().node(present(tainted())), "read Pods"),
        (
            "Pods are left",
            Case::off().node(present(tainted())).drained(Drained::Pods),
            "Remediated=False WaitingForDrain, waits 5 s",
        ),
        (
            "unknown",
            Case::off().node(present(tainted())).drained(Drained::Unknown),
            "Remediated=False WaitingForDrain, waits 5 s",
        ),
        (
            "volumes for half of the time",
            Case::off()
                .node(present(tainted()))
                .drained(Drained::Volumes)
                .off_for(300),
            "phase Waiting, again",
        ),
        (
            "for half of the time, and not read",
            Case::off().node(present(tainted())).off_for(300),
            "phase Waiting, again",
        ),
        (
            "drained",
            Case::off().node(present(tainted())).drained(Drained::Yes),
            "phase Waiting, again",
        ),
    ]);
}

#[test]
fn node_with_an_older_kubelet_is_deleted_and_one_that_is_gone_is_fenced() {
    let recent = || present(live("v1.28.0"));
    let deleting = LiveNode {
        is_deleting: true,
        ..live("v1.27.9")
    };
    let other = LiveNode {
        provider_id: "metal3://metal/h9/w-9".to_owned(),
        ..live("v1.31.0")
    };
    check(vec![
        (
            "an older kubelet",
            Case::off().node(present(live("v1.27.9"))),
            "backup, delete Node, in 1 s",
        ),
        (
            "no version, and not confirmed",
            Case::off().node(present(live(""))).unconfirmed(),
            "read everything",
        ),
        (
            "a deletion that a Go manager began",
            Case::off()
                .node(recent())
                .annotated("remediation.metal3.io/node-labels-backup", "{\"a\":\"b\"}"),
            "backup, delete Node, in 1 s",
        ),
        (
            "in deletion",
            Case::off().node(present(deleting.clone())),
            "Remediated=False WaitingForNodeDeletion, waits 300 s",
        ),
        (
            "in deletion for half of the time",
            Case::off().node(present(deleting)).off_for(300),
            "phase Waiting, again",
        ),
        (
            "the Node of another machine",
            Case::off().node(present(other)),
            "phase Waiting, again",
        ),
        ("deleted", Case::off().node(NodeState::Absent), "phase Waiting, again"),
        (
            "forbidden",
            Case::off().node(NodeState::Forbidden),
            "phase Waiting, again",
        ),
        (
            "never registered",
            Case::off().facts(|facts| facts.node = Node::NeverRegistered),
            "phase Waiting, again",
        ),
    ]);
}

#[test]
fn unreachable_workload_cluster_delays_the_power_on_for_half_of_the_time() {
    let unreachable = || Case::off().node(unreachable_cluster());
    check(vec![
        (
            "at first",
            unreachable(),
            "Remediated=Unknown WorkloadClusterUnreachable, waits 30 s",
        ),
        (
            "shortly before",
            unreachable().off_for(299),
            "Remediated=Unknown WorkloadClusterUnreachable, waits 1 s",
        ),
        ("half", unreachable().off_for(300), "phase Waiting, again"),
        (
            "a host that was on for longer than an attempt",
            unreachable().after(9999),
            "Remediated=Unknown WorkloadClusterUnreachable, waits 30 s",
        ),
    ]);
    assert_eq!(unreachable().off_for(300).plan().events.len(), 1);
}

#[test]
fn backup_is_json_in_the_annotations_of_the_go_manager_and_keeps_what_was_not_restored() {
    let case = Case::off().node(present(live(""))).annotated(
        "remediation.metal3.io/node-labels-backup",
        r#"{"rack":"old","zone":"1"}"#,
    );
    let plan = case.plan();
    let Action::PatchRemediation(patch) = &plan.actions[0] else {
        panic!("{plan:?}");
    };
    let annotations = &patch.clone().into_document()["metadata"]["annotations"];
    let expected = json!({
        "remediation.metal3.io/node-annotations-backup": "{\"note\":\"x\"}",
        "remediation.metal3.io/node-labels-backup": "{\"rack\":\"a\",\"zone\":\"1\"}",
    });
    assert_eq!(*annotations, expected);
    assert_eq!(plan.actions[1], Action::ChangeNode(NodeChange::Delete));
}

#[test]
fn backup_that_no_object_can_hold_leaves_out_the_annotations() {
    let mut node = live("");
    node.annotations.insert("large".to_owned(), "x".repeat(250 * 1024));
    let plan = Case::off().node(present(node)).plan();
    let Action::PatchRemediation(patch) = &plan.actions[0] else {
        panic!("{plan:?}");
    };
    let annotations = &patch.clone().into_document()["metadata"]["annotations"];
    assert_eq!(annotations["remediation.metal3.io/node-annotations-backup"], "");
    assert_eq!(
        annotations["remediation.metal3.io/node-labels-backup"],
        "{\"rack\":\"a\"}"
    );
}

#[test]
fn backup_whose_labels_no_object_can_hold_leaves_them_out() {
    let mut node = live("");
    node.labels.insert("large".to_owned(), "x".repeat(250 * 1024));
    let plan = Case::off().node(present(node)).plan();
    let Action::PatchRemediation(patch) = &plan.actions[0] else {
        panic!("{plan:?}");
    };
    let annotations = &patch.clone().into_document()["metadata"]["annotations"];
    assert!(annotations["remediation.metal3.io/node-labels-backup"] == "");
    assert_eq!(
        annotations["remediation.metal3.io/node-annotations-backup"],
        "{\"note\":\"x\"}"
    );
}

#[test]
fn host_that_is_powered_on_before_its_node_is_fenced_has_an_event() {
    let deleting = LiveNode {
        is_deleting: true,
        ..live("v1.27.9")
    };
    let rows = [
        ("forbidden", Case::off().node(NodeState::Forbidden), 1),
        ("in deletion", Case::off().node(present(deleting)).off_for(300), 1),
        ("unreachable", Case::off().node(unreachable_cluster()).off_for(300), 1),
        ("not drained", Case::off().node(present(tainted())).off_for(300), 1),
        (
            "not tainted",
            Case::off().node(present(live("v1.31.0"))).off_for(300),
            1,
        ),
        (
            "not deleted",
            Case::off().node(present(live("v1.27.9"))).off_for(300),
            1,
        ),
        ("drained", Case::off().node(present(tainted())).drained(Drained::Yes), 0),
        ("deleted", Case::off().node(NodeState::Absent), 0),
    ];
    for (name, case, events) in rows {
        let plan = case.plan();
        assert_eq!(case.outline(), "phase Waiting, again", "{name}");
        assert_eq!(plan.events.len(), events, "{name}");
        let has_reason = |reason: &str| plan.events.iter().all(|event| event.reason.as_str() == reason);
        assert!(has_reason("NodeNotFenced"), "{name}");
    }
}

#[test]
fn node_of_a_paused_machine_is_neither_tainted_nor_deleted() {
    let pause = |annotations: &mut Option<std::collections::BTreeMap<String, String>>, key: &str| {
        annotations
            .get_or_insert_default()
            .insert(key.to_owned(), String::new());
    };
    let host = |case: Case| case.host(|host| pause(&mut host.metadata.annotations, "baremetalhost.metal3.io/paused"));
    let machine = |case: Case| case.machine(|one| pause(&mut one.metadata.annotations, "cluster.x-k8s.io/paused"));
    let infrastructure =
        |case: Case| case.metal3_machine(|one| pause(&mut one.metadata.annotations, "cluster.x-k8s.io/paused"));
    let older = || Case::off().node(present(live("v1.27.9")));
    let recent = || Case::off().node(present(live("v1.31.0")));
    let held = "Remediated=False HostPaused, waits 300 s";
    check(vec![
        ("host", host(older()), held),
        ("Machine", machine(older()), held),
        ("Metal3Machine", infrastructure(older()), held),
        ("host, with a recent kubelet", host(recent()), held),
        ("Machine, with a recent kubelet", machine(recent()), held),
        (
            "for half of the time",
            machine(older()).off_for(300),
            "phase Waiting, again",
        ),
    ]);
}
