//! The step that Ironic executes, in the conditions of a host that asks for it.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::json;
use tokio::time::sleep;

use crate::env::{Setup, TestEnv};
use crate::phases::Phase;
use crate::waits::Writes;

const ANNOTATION: &str = "baremetalhost.metal3.io/show-steps";

fn message(host: &BareMetalHost) -> String {
    let mut conditions = host.status.conditions.iter();
    let progress = conditions.find(|one| one.type_ == "Progressing");
    progress.map(|one| one.message.clone()).unwrap_or_default()
}

/// The messages of `Progressing`, one after the other, until some time after the phase is over.
async fn shown(env: &TestEnv, phase: Phase) -> Vec<String> {
    let (mut messages, mut writes) = (Vec::new(), Writes::default());
    phase.begin(env, 1).await;
    for _ in 0..30_000 {
        if writes.are_new(env) {
            messages.push(message(&env.get(1).await.unwrap()));
        }
        sleep(Duration::from_millis(20)).await;
    }
    phase.end(env, 1).await;
    messages.dedup();
    messages
}

/// The messages of a deployment and of the cleaning after it, and the writes of the status.
async fn life(is_asked: bool, step_time: Duration) -> (Vec<String>, u64) {
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    env.machine(1, |machine| machine.step_time = step_time);
    if is_asked {
        env.edit(1, json!({ "metadata": { "annotations": { ANNOTATION: "" } } }))
            .await;
    }
    sleep(Duration::from_mins(1)).await;
    let before = env.status_writes();
    let mut messages = shown(&env, Phase::Provision).await;
    messages.extend(shown(&env, Phase::Deprovision).await);
    messages.dedup();
    (messages, env.status_writes() - before)
}

#[tokio::test(start_paused = true)]
async fn steps_are_shown_while_they_run_and_cost_writes_only_where_they_are_asked_for() {
    let step_time = Duration::from_mins(1);
    let (messages, writes) = life(false, Duration::ZERO).await;
    assert_eq!(messages, [""]);
    let unasked = life(false, step_time).await;
    assert_eq!(unasked, (messages, writes), "the same writes as without steps");
    let (messages, more) = life(true, step_time).await;
    let steps: Vec<_> = messages
        .iter()
        .filter_map(|message| message.split(", since ").next())
        .collect();
    let cleaning = "clean step: deploy.erase_devices_metadata";
    let expected = [
        "",
        cleaning,
        "",
        "deploy step 2 of 6: deploy.write_image",
        "",
        cleaning,
        "",
    ];
    assert_eq!(steps, expected, "{messages:#?}");
    // A step that begins, and one that ends.
    assert_eq!(more, writes + 6, "{messages:#?}");
}
