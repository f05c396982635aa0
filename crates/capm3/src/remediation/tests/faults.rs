//! The controller under fault injection: every write of its scenarios with every fault.

use std::future::pending;
use std::pin::Pin;

use metal3_api::infrastructure::v1beta2::RemediationPhase;
use metal3_harness::{Instance, State, TestEnv};
use metal3_runtime::write::Mode;
use metal3_sim_cluster::Cluster;
use serde_json::Value;

use super::case::FINALIZER;
use super::lab::{Step, View, kinds, start};
use crate::data::reconciler::tests::lab::User;
use crate::tests::sweep;

/// Longer than a test waits for the end of a stage.
const LONG: i32 = 1_000_000;

struct Scenario {
    name: &'static str,
    stages: &'static [&'static [Step]],
    /// What the final state lacks.
    unfinished: fn(&View) -> Vec<&'static str>,
}

impl TestEnv for Scenario {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self, cluster: &Cluster) {
        cluster.install(&kinds()).unwrap();
    }

    fn stages(&self) -> usize {
        self.stages.len()
    }

    async fn stage(&self, stage: usize, user: kube::Client) {
        for step in self.stages[stage] {
            step.take(&User(user.clone())).await;
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let _tasks = start(&instance.client, &instance.clock, Mode::Perform);
            pending().await
        })
    }

    fn kinds(&self) -> Vec<String> {
        View::paths()
    }

    fn violations(&self, state: &State) -> Vec<String> {
        violations(&View::of(state))
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let view = View::of(state);
        let missing = (self.unfinished)(&view).into_iter();
        missing.map(|what| format!("{what}: {:?}", view.remediation)).collect()
    }

    fn comparable_state(&self, end: &State) -> Value {
        without_times(end.lasting())
    }
}

/// The state without times, which differ with every fault.
fn without_times(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(key, _)| !["lastRemediated", "timeAdded"].contains(&key.as_str()))
            .map(|(key, member)| (key, without_times(member)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_times).collect(),
        other => other,
    }
}

/// The violated invariants.
fn violations(view: &View) -> Vec<String> {
    let finalizers = view
        .remediation
        .iter()
        .filter_map(|one| one.metadata.finalizers.as_ref());
    let has_finalizer = finalizers.flatten().any(|name| name == FINALIZER);
    let tried = view.remediation.as_ref().and_then(|one| one.status.retry_count);
    let is_on = view.host.as_ref().is_none_or(|host| host.status.powered_on);
    let is_running = view
        .remediation
        .as_ref()
        .is_some_and(|one| one.status.phase == Some(RemediationPhase::Running));
    let rules = [
        (
            "a host is kept off, and nothing ends that",
            view.is_held() && !has_finalizer,
        ),
        (
            "a Node is out of service, and nothing ends that",
            // Cluster API deletes the Node of a deleted Machine.
            view.is_tainted() && !has_finalizer && view.machine.is_some(),
        ),
        (
            "the Node was fenced before its host is off",
            is_running && tried.is_none() && is_on && view.host.is_some() && (view.node.is_none() || view.is_tainted()),
        ),
        (
            "the Machine is given up before its host is excluded",
            view.is_given_up() && !view.is_excluded(),
        ),
        (
            "the host is excluded although a try is left",
            view.is_excluded() && tried != Some(1),
        ),
    ];
    let wrong = rules.into_iter().filter(|(_, is_wrong)| *is_wrong);
    wrong.map(|(rule, _)| rule.to_owned()).collect()
}

/// Whether everything is as before the remediation.
fn is_as_before(view: &View) -> Vec<&'static str> {
    let labels = view.labels();
    let rules = [
        ("the host is kept off", view.is_held()),
        ("the Node is fenced", view.is_tainted() || view.node.is_none()),
        ("a label is lost", !labels.iter().any(|label| label == "rack=a")),
        ("the remediation is still there", view.remediation.is_some()),
        ("the Machine was given up", view.is_given_up()),
    ];
    rules
        .into_iter()
        .filter(|(_, is_wrong)| *is_wrong)
        .map(|(rule, _)| rule)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn machine_with_a_recent_kubelet_is_fenced_by_the_taint_under_every_fault() {
    let report = sweep(Scenario {
        name: "remediation by the taint",
        stages: &[
            &[Step::Begin("v1.31.0"), Step::Unhealthy(LONG)],
            &[Step::Terminating(true), Step::Power],
            &[Step::Terminating(false)],
            &[Step::Power],
            &[Step::Delete],
        ],
        unfinished: is_as_before,
    })
    .await;
    let tainted = report
        .effects
        .iter()
        .filter(|effect| effect.ends_with("/nodes/n0"))
        .count();
    assert_eq!(tainted, 2, "with the taint and without it: {:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn machine_with_an_older_kubelet_loses_its_node_and_gets_its_labels_back_under_every_fault() {
    let report = sweep(Scenario {
        name: "remediation by the deletion of the Node",
        stages: &[
            &[Step::Begin("v1.27.3"), Step::Unhealthy(LONG)],
            &[Step::Power],
            &[Step::Register, Step::Power],
            &[Step::Delete],
        ],
        unfinished: is_as_before,
    })
    .await;
    let deleted = report
        .effects
        .iter()
        .filter(|effect| effect.starts_with("DELETE"))
        .count();
    assert_eq!(deleted, 1, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn machine_that_does_not_come_back_is_given_up_after_its_retries_under_every_fault() {
    let report = sweep(Scenario {
        name: "remediation that is given up",
        stages: &[
            &[Step::Begin("v1.27.3"), Step::Unhealthy(100)],
            &[Step::Power],
            // On again: the Node does not return, and the retry begins.
            &[Step::Power],
            &[Step::Power],
            &[Step::Power],
        ],
        unfinished: |view| {
            let phase = view.remediation.as_ref().and_then(|one| one.status.phase.clone());
            let finalizers = view
                .remediation
                .as_ref()
                .and_then(|one| one.metadata.finalizers.clone());
            let rules = [
                ("the phase differs", phase != Some(RemediationPhase::DeletingMachine)),
                ("the Machine is not given up", !view.is_given_up()),
                ("the host is not excluded", !view.is_excluded()),
                ("the host is kept off", view.is_held()),
                ("the finalizer is left", finalizers.is_some_and(|all| !all.is_empty())),
            ];
            rules
                .into_iter()
                .filter(|(_, is_wrong)| *is_wrong)
                .map(|(rule, _)| rule)
                .collect()
        },
    })
    .await;
    assert!(report.effects.len() > 12, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn remediation_that_is_deleted_while_its_host_is_off_powers_it_on_under_every_fault() {
    sweep(Scenario {
        name: "remediation deleted in the middle",
        stages: &[
            &[Step::Begin("v1.31.0"), Step::Unhealthy(LONG)],
            &[Step::Terminating(true), Step::Power],
            &[Step::Delete],
            &[Step::Power],
        ],
        unfinished: is_as_before,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn machine_that_is_deleted_while_its_host_is_off_leaves_no_host_off_under_every_fault() {
    sweep(Scenario {
        name: "Machine deleted in the middle of its remediation",
        stages: &[
            &[Step::Begin("v1.31.0"), Step::Unhealthy(LONG)],
            &[Step::Power],
            &[Step::Replace],
        ],
        unfinished: |view| {
            let rules = [
                ("the host is kept off", view.is_held()),
                ("the remediation is still there", view.remediation.is_some()),
            ];
            rules
                .into_iter()
                .filter(|(_, is_wrong)| *is_wrong)
                .map(|(rule, _)| rule)
                .collect()
        },
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn remediation_of_a_paused_cluster_begins_after_the_pause_under_every_fault() {
    sweep(Scenario {
        name: "remediation of a paused Cluster",
        stages: &[
            &[Step::Begin("v1.31.0"), Step::Pause(true), Step::Unhealthy(LONG)],
            &[Step::Pause(false)],
            &[Step::Power],
            &[Step::Power],
            &[Step::Delete],
        ],
        unfinished: is_as_before,
    })
    .await;
}
