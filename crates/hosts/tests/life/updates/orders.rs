//! What counts as made: only what the cleaning of the order made, also when another client cleans the node, and when requests are lost in between.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostFirmwareSettings};
use metal3_ironic::calls::{NodeRef, node as node_calls};
use metal3_ironic::model::state::ProvisionState;
use metal3_sim_bmc::fault::Fault as MachineFault;
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_sim_ironic::FirmwareUpdates;
use serde_json::json;
use tokio::time::sleep;

use super::{CLEAN, ask, change, condition, done, flashed, report, says, until_made, update};
use crate::env::{CONTROLLER_USER, Setup, TestEnv, name};
use crate::firmware::order;
use crate::interceptor::IronicFault;
use crate::phases::{image, runs};

const PAUSED: &str = "baremetalhost.metal3.io/paused";

async fn until_node(env: &TestEnv, state: ProvisionState) {
    for _ in 0..36_000 {
        if env.node(1).await.is_some_and(|node| node.provision_state == state) {
            return;
        }
        sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(env.node(1).await.map(|node| node.provision_state), Some(state));
}

/// The files that the machine got, in their order.
fn files(env: &TestEnv) -> Vec<String> {
    let made = env.machine(1, |machine| machine.flashed.clone());
    let file = |url: &str| {
        url.rsplit('/')
            .next()
            .and_then(|file| file.split('?').next())
            .unwrap_or_default()
            .to_owned()
    };
    made.iter().map(|(_, url)| file(url)).collect()
}

async fn pause(env: &TestEnv, is_paused: bool) {
    let value = is_paused.then_some("");
    env.edit(1, json!({ "metadata": { "annotations": { PAUSED: value } } }))
        .await;
}

/// An operator recovers the node himself.
async fn recover(env: &TestEnv) {
    let node = NodeRef::Uuid(env.node(1).await.unwrap().uuid);
    let end = node_calls::clear_maintenance(&node);
    env.ironic.client().unwrap().send(&end).await.unwrap();
    order(env, json!({ "target": "manage" })).await;
}

/// The cleaning of another client was taken for the one that was ordered, and the update counted as made.
#[tokio::test(start_paused = true)]
async fn order_that_another_cleaning_overtakes_is_made() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.host(1, json!({})).await;
    until_made(&env).await;
    let asked = env.interceptor.log().asked.clone();
    let number = asked.iter().position(|what| what.starts_with(CLEAN)).unwrap() + 1;
    let env = TestEnv::new(Setup::default());
    env.interceptor.log().fault = Some((number, IronicFault::KilledBefore));
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.host(1, json!({})).await;
    while !env.interceptor.log().injected {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(condition(&report(&env).await, "Updating").1, "UpdateOrdered");
    order(&env, json!({ "target": "provide" })).await;
    until_made(&env).await;
    assert_eq!(flashed(&env), ["bios"]);
}

/// Ironic failed while the host was paused, and an operator recovered the node.
#[tokio::test(start_paused = true)]
async fn failure_that_no_process_saw_is_no_success() {
    for is_killed in [false, true] {
        let env = TestEnv::new(Setup::default());
        env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::NeverEnd);
        ask(&env, json!([update("bios", "bios-2")])).await;
        env.host(1, json!({})).await;
        while condition(&report(&env).await, "Updating").1 != "UpdateBegun" {
            sleep(Duration::from_secs(1)).await;
        }
        pause(&env, true).await;
        until_node(&env, ProvisionState::CleanFailed).await;
        sleep(Duration::from_secs(90)).await;
        recover(&env).await;
        if is_killed {
            env.interceptor.kill();
        }
        sleep(Duration::from_secs(30)).await;
        env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
        pause(&env, false).await;
        until_made(&env).await;
        assert_eq!(flashed(&env), ["bios"], "{is_killed}");
    }
}

/// A machine whose firmware is written must not be rebooted, and Ironic that lost its node does not know that it is.
#[tokio::test(start_paused = true)]
async fn machine_whose_node_is_lost_while_it_is_updated_is_left_alone_for_two_hours() {
    let env = TestEnv::new(Setup::default());
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::NeverEnd);
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.host(1, json!({})).await;
    while condition(&report(&env).await, "Updating").1 != "UpdateBegun" {
        sleep(Duration::from_secs(1)).await;
    }
    let cleanings = done(&env, CLEAN);
    env.ironic.lose_database();
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
    env.until(1, "hold that names the cause", says("Ironic lost the node"))
        .await;
    sleep(Duration::from_mins(110)).await;
    assert_eq!((done(&env, CLEAN), flashed(&env).len()), (cleanings, 0));
    until_made(&env).await;
    assert_eq!(flashed(&env), ["bios"]);
}

/// The older of two files for one component was written again.
#[tokio::test(start_paused = true)]
async fn refused_order_does_not_make_an_older_file_of_the_same_component_again() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!([update("bios", "bios-1")])).await;
    env.host(1, json!({})).await;
    until_made(&env).await;
    env.interceptor.log().rejected = Some((CLEAN, 503));
    change(&env, json!([update("bios", "bios-1"), update("bios", "bios-2")])).await;
    sleep(Duration::from_hours(1)).await;
    env.interceptor.log().rejected = None;
    until_made(&env).await;
    assert_eq!(files(&env), ["bios-1", "bios-2"]);
}

#[tokio::test(start_paused = true)]
async fn update_that_ended_is_not_repeated_with_one_that_failed_behind_it() {
    let env = TestEnv::new(Setup::default());
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::FailBmc);
    ask(&env, json!([update("bios", "bios-2"), update("bmc", "bmc-2")])).await;
    env.host(1, json!({})).await;
    let has_failed = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_count >= 3);
    env.until(1, "three failures", has_failed).await;
    env.until(1, "name of the one that failed", says("firmware (bmc) failed"))
        .await;
    assert_eq!(flashed(&env), ["bios"]);
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
    until_made(&env).await;
    assert_eq!(flashed(&env), ["bios", "bmc"]);
}

/// The host was made available, and deployed, without its update.
#[tokio::test(start_paused = true)]
async fn host_whose_object_is_known_and_may_not_be_read_again_waits() {
    for code in [403, 404] {
        let env = TestEnv::new(Setup::default());
        env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Fail);
        ask(&env, json!([update("bios", "bios-2")])).await;
        env.host(1, json!({ "image": image() })).await;
        env.until(1, "error", says("Firmware update failed")).await;
        env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
        let rule = Rule::random(1000, Fault::refused(code));
        let rule = rule.verb("get").resource("hostfirmwarecomponents");
        env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
        let cleanings = done(&env, CLEAN);
        let says_why = "hostfirmwarecomponents";
        env.until(1, "error that names the cause", says(says_why)).await;
        sleep(Duration::from_hours(6)).await;
        let host = env.get(1).await.unwrap();
        assert_eq!(host.status.provisioning.state.to_string(), "preparing", "{code}");
        let held = host.status.conditions.iter().find(|one| one.type_ == "Held");
        assert_eq!(held.unwrap().reason, "FirmwarePending");
        assert!(says(says_why)(Some(&host)) && done(&env, CLEAN) == cleanings);
        env.cluster.inject(Plan::none());
        env.until(1, "running host", runs).await;
        assert_eq!(flashed(&env), ["bios"], "{code}");
    }
}

/// The setting is not known to the firmware of before.
#[tokio::test(start_paused = true)]
async fn update_is_made_before_a_setting_that_only_its_firmware_has() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.make::<HostFirmwareSettings>(
        json!({ "metadata": { "name": name(1) }, "spec": { "settings": { "PowerProfile": "Performance" } } }),
    )
    .await;
    env.host(1, json!({})).await;
    until_made(&env).await;
    assert_eq!(
        env.machine(1, |machine| machine.bios["PowerProfile"].clone()),
        "Performance"
    );
    assert_eq!((done(&env, CLEAN), flashed(&env).len()), (2, 1));
    // A setting that no firmware has is named once nothing else is due.
    let wrong = Patch::Merge(json!({ "spec": { "settings": { "Turbo": "On" } } }));
    let settings = env.api::<HostFirmwareSettings>();
    settings.patch(&name(1), &PatchParams::default(), &wrong).await.unwrap();
    change(&env, json!([update("bios", "bios-3")])).await;
    env.until(1, "error that names the setting", says("Turbo")).await;
    assert_eq!(files(&env), ["bios-2", "bios-3"]);
}

/// Ironic gave up what an operator had left in the node, and the cleaning waited for ever without a word.
#[tokio::test(start_paused = true)]
async fn maintenance_that_ironic_begins_in_a_cleaning_is_ended() {
    let env = TestEnv::new(Setup::default());
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::NeverEnd);
    ask(&env, json!([update("bios", "bios-2"), update("bmc", "bmc-2")])).await;
    env.host(1, json!({})).await;
    until_node(&env, ProvisionState::CleanWait).await;
    pause(&env, true).await;
    until_node(&env, ProvisionState::CleanFailed).await;
    recover(&env).await;
    assert_eq!(env.node(1).await.unwrap().firmware_left().len(), 2);
    change(&env, json!([])).await;
    let volumes = json!({ "softwareRAIDVolumes": [{ "level": "1", "rootVolume": false }] });
    env.edit(1, json!({ "spec": { "raid": volumes } })).await;
    pause(&env, false).await;
    env.until(1, "hold that names what is left", says("that an earlier cleaning left"))
        .await;
    until_made(&env).await;
    assert_eq!(json!(env.get(1).await.unwrap().status.provisioning.raid), volumes);
    assert!(flashed(&env).is_empty());
}

/// Ironic does not listen to the agent of a node in maintenance.
#[tokio::test(start_paused = true)]
async fn maintenance_of_an_operator_in_a_cleaning_is_named() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.host(1, json!({})).await;
    until_node(&env, ProvisionState::CleanWait).await;
    let node = NodeRef::Uuid(env.node(1).await.unwrap().uuid);
    let begin = node_calls::set_maintenance(&node, "a person works at the rack");
    env.ironic.client().unwrap().send(&begin).await.unwrap();
    env.until(1, "error that names the reason", says("a person works at the rack"))
        .await;
    sleep(Duration::from_hours(1)).await;
    assert!(says("a person works at the rack")(env.get(1).await.as_ref()));
    let end = node_calls::clear_maintenance(&node);
    env.ironic.client().unwrap().send(&end).await.unwrap();
    until_made(&env).await;
    assert_eq!((done(&env, CLEAN), flashed(&env).len()), (1, 1));
}

/// The error changed with each look, and each was a failure more.
#[tokio::test(start_paused = true)]
async fn failure_that_may_not_be_recorded_is_one_error() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Fail);
    env.host(1, json!({})).await;
    while condition(&report(&env).await, "Updating").1 != "UpdateBegun" {
        sleep(Duration::from_secs(1)).await;
    }
    let rule = Rule::random(1000, Fault::refused(403));
    let rule = rule.verb("patch").resource("hostfirmwarecomponents/status");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
    env.until(
        1,
        "error that names the right",
        says("may not patch hostfirmwarecomponents/status"),
    )
    .await;
    sleep(Duration::from_hours(6)).await;
    let host = env.get(1).await.unwrap();
    assert!(host.status.error_count <= 2, "{}", host.status.error_count);
    env.cluster.inject(Plan::none());
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
    until_made(&env).await;
    assert_eq!(flashed(&env), ["bios"]);
}

/// A report is due whenever it was refused. The versions are read for it, and it must not count as a new request each time.
#[tokio::test(start_paused = true)]
async fn report_that_may_not_be_written_ends_no_backoff_of_other_failures() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.host(1, json!({})).await;
    until_made(&env).await;
    env.set_faults(1, &[MachineFault::CleanStepFails]);
    env.edit(
        1,
        json!({ "spec": { "raid": { "softwareRAIDVolumes": [{ "level": "1" }] } } }),
    )
    .await;
    let has_failed = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_count >= 2);
    env.until(1, "two failures", has_failed).await;
    let rule = Rule::random(1000, Fault::refused(403)).verb("patch");
    let rule = rule.resource("hostfirmwarecomponents/status");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
    change(&env, json!([])).await;
    let before = done(&env, CLEAN);
    for wake in 0..144 {
        sleep(Duration::from_mins(10)).await;
        let label = json!({ "metadata": { "labels": { "wake": wake.to_string() } } });
        env.edit(1, label).await;
    }
    let cleanings = done(&env, CLEAN) - before;
    assert!((1..30).contains(&cleanings), "{cleanings}");
}
