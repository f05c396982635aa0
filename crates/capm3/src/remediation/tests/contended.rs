//! Another program that undoes each change of a Node.

use std::time::Duration;

use metal3_capi::workload::Drained;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::case::{Case, check, live, present, tainted};
use super::lab::Step;
use super::refused::{Site, remediated};
use crate::data::reconciler::tests::lab::{INFRASTRUCTURE, User};
use crate::remediation::facts::NodeStep;

const NODES: &str = "/api/v1";

/// Sets or removes the taint whenever it is not so. It never ends.
async fn keep_tainted(user: &User, is_tainted: bool) {
    let taint = json!({ "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute" });
    let kept = if is_tainted { json!([taint]) } else { json!(null) };
    loop {
        let node = user.get(NODES, "nodes/n0").await;
        if node["spec"]["taints"].as_array().is_some_and(|all| !all.is_empty()) != is_tainted {
            let change = json!({ "spec": { "taints": kept } });
            user.change(NODES, "nodes/n0", change).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Creates the Node whenever it is missing. It never ends.
async fn keep_created(user: &User) {
    loop {
        Step::Register.take(user).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The writes of five minutes, when the first of them was before.
fn writes(site: &Site) -> u64 {
    let audit = site.server.audit();
    audit.of("manager", "patch", "nodes") + audit.of("manager", "delete", "nodes")
}

#[tokio::test(start_paused = true)]
async fn taint_that_is_set_again_is_removed_twice_a_minute_and_awaited_for_twice_the_time() {
    let site = Site::new("v1.31.0").await;
    site.take(&[Step::Power], 20).await;
    let steps = async {
        // The taint is there again before anything else reads the Node.
        site.take(&[Step::Delete], 5).await;
        site.server.reset_audit();
        site.take(&[Step::Power], 300).await;
        let made = writes(&site);
        assert!((5..=11).contains(&made), "{made}");
        let (reason, message) = remediated(&site.remediation().await);
        assert_eq!(reason, "NodeChangeUndone");
        assert!(message.contains("sets") && message.contains("stop it"), "{message}");
        site.take(&[], 850).await;
        assert!(site.remediation().await["metadata"]["deletionTimestamp"].is_string());
        site.take(&[], 100).await;
        let left = site.user.list(INFRASTRUCTURE, "metal3remediations").await;
        assert!(left.is_empty(), "{left:#?}");
    };
    tokio::select! {
        () = keep_tainted(&site.user, true) => {}
        () = steps => {}
    }
}

#[tokio::test(start_paused = true)]
async fn fencing_that_is_undone_is_repeated_twice_a_minute_for_half_of_the_time() {
    for kubelet in ["v1.31.0", "v1.27.3"] {
        let site = Site::new(kubelet).await;
        // The Node is there again when its deletion is confirmed.
        let slow = Rule::random(1000, Fault::Delay(Duration::from_secs(1)));
        let slow = slow.verb("delete").resource("nodes");
        site.server.inject_for(&["manager"], Plan::none().with(slow));
        let steps = async {
            site.server.reset_audit();
            site.take(&[Step::Power], 280).await;
            let made = writes(&site);
            assert!((5..=11).contains(&made), "{kubelet}: {made}");
            assert!(site.is_held().await, "{kubelet}");
            let (reason, message) = remediated(&site.remediation().await);
            assert_eq!(reason, "NodeChangeUndone", "{kubelet}");
            assert!(message.contains("stop it"), "{message}");
            site.take(&[], 30).await;
            assert!(!site.is_held().await, "{kubelet}");
        };
        tokio::select! {
            () = keep_tainted(&site.user, false), if kubelet == "v1.31.0" => {}
            () = keep_created(&site.user), if kubelet != "v1.31.0" => {}
            () = steps => {}
        }
    }
}

/// The last change of the Node by this process.
fn after(case: Case, step: NodeStep, seconds: u64) -> Case {
    case.facts(|facts| facts.changed = Some((step, Duration::from_secs(seconds))))
}

#[test]
fn taint_that_is_there_again_is_removed_after_half_a_minute() {
    let undone = |case: Case, seconds| after(case, NodeStep::Untaint, seconds).node(present(tainted()));
    let waits = "Remediated=False NodeChangeUndone, waits 29 s";
    let (given_up, failed) = (|| Case::new("Deleting machine"), || Case::new("Failed"));
    check(vec![
        ("deleted", undone(Case::running(), 1).deleted(), waits),
        ("waiting", undone(Case::waiting(), 1), waits),
        ("given up", undone(given_up(), 1), waits),
        ("failed", undone(failed(), 1), waits),
        ("after half a minute", undone(Case::waiting(), 30), "0 taints, in 1 s"),
        (
            "deleted, after half a minute",
            undone(Case::running(), 30).deleted(),
            "0 taints, in 1 s",
        ),
        (
            "fenced by this process",
            after(Case::waiting(), NodeStep::Taint, 1).node(present(tainted())),
            "0 taints, in 1 s",
        ),
        (
            "removed",
            after(Case::waiting(), NodeStep::Untaint, 1).node(present(live(""))),
            "release, again",
        ),
    ]);
}

#[test]
fn node_that_another_program_fences_is_awaited_no_longer_than_one_that_is_gone() {
    let undone = |case: Case, seconds| after(case, NodeStep::Untaint, seconds).node(present(tainted()));
    check(vec![
        (
            "deleted, shortly before the time is over",
            undone(Case::running(), 1).deleted().awaited(1199),
            "Remediated=False NodeChangeUndone, waits 1 s",
        ),
        (
            "deleted, for twice the time",
            undone(Case::running(), 1).deleted().awaited(1200),
            "release, again",
        ),
        (
            "deleted, for twice the time, and never removed",
            Case::running().node(present(tainted())).deleted().awaited(1200),
            "0 taints, in 1 s",
        ),
        (
            "the attempt is over",
            undone(Case::waiting(), 1).after(600),
            "phase Running, retry 1, new time, again",
        ),
        (
            "the attempt is over, and it was never removed",
            Case::waiting().node(present(tainted())).after(600),
            "0 taints, in 1 s",
        ),
    ]);
    let plan = undone(Case::running(), 1).deleted().awaited(1200).plan();
    let events: Vec<_> = plan.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(events, ["NodeNotRestored"]);
    assert!(plan.events[0].message.contains("another program"), "{plan:?}");
}

#[test]
fn fencing_that_is_undone_is_repeated_after_half_a_minute() {
    let recent = || Case::off().node(present(live("v1.31.0")));
    let older = || Case::off().node(present(live("v1.27.9")));
    let waits = "Remediated=False NodeChangeUndone, waits 29 s";
    check(vec![
        ("tainted", after(recent(), NodeStep::Taint, 1), waits),
        (
            "tainted half a minute ago",
            after(recent(), NodeStep::Taint, 30),
            "1 taints, Remediated=False NodeChangeUndone, waits 1 s",
        ),
        (
            "an earlier attempt",
            after(recent(), NodeStep::Untaint, 1),
            "1 taints, Remediated=False WaitingForDrain, waits 1 s",
        ),
        (
            "tainted, shortly before half of the time",
            after(recent(), NodeStep::Taint, 1).off_for(299),
            "Remediated=False NodeChangeUndone, waits 1 s",
        ),
        (
            "tainted, for half of the time",
            after(recent(), NodeStep::Taint, 1).off_for(300),
            "phase Waiting, again",
        ),
        ("deleted", after(older(), NodeStep::Delete, 1), waits),
        (
            "deleted half a minute ago",
            after(older(), NodeStep::Delete, 30),
            "backup, delete Node, in 1 s",
        ),
        (
            "tainted and drained",
            after(Case::off(), NodeStep::Taint, 1)
                .node(present(tainted()))
                .drained(Drained::Yes),
            "phase Waiting, again",
        ),
    ]);
}
