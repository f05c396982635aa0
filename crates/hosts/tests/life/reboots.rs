//! Reboots of machines that are never off.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType};
use metal3_sim_bmc::fault::Fault;
use serde_json::json;
use tokio::time::sleep;

use crate::env::{Setup, TestEnv};
use crate::phases::{Phase, image};

/// The annotation was removed with the request, which the BMC failed later.
#[tokio::test(start_paused = true)]
async fn reboot_that_the_bmc_fails_is_reported_and_repeated() {
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    env.edit(1, json!({ "spec": { "image": image(), "disablePowerOff": true } }))
        .await;
    Phase::Provision.end(&env, 1).await;
    let started = || env.machine(1, |machine| machine.counts.started);
    let before = started();
    let reboot = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.annotation("reboot.metal3.io").is_some());
    env.set_faults(1, &[Fault::PowerStuck]);
    env.edit(1, json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } }))
        .await;
    let has_failed = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| host.status.error_type == Some(ErrorType::PowerManagement))
    };
    env.until(1, "error", has_failed).await;
    assert!(reboot(env.get(1).await.as_ref()), "the request is not fulfilled");
    env.set_faults(1, &[]);
    env.until(1, "end of the reboot", |host| !reboot(host)).await;
    assert_eq!(started(), before + 1);
    let is_well = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.is_empty());
    env.until(1, "host without error", is_well).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(started(), before + 1, "it is rebooted once");
}

#[tokio::test(start_paused = true)]
async fn one_request_reboots_the_machine_once() {
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    env.edit(1, json!({ "spec": { "image": image(), "disablePowerOff": true } }))
        .await;
    Phase::Provision.end(&env, 1).await;
    let started = || env.machine(1, |machine| machine.counts.started);
    let before = started();
    env.edit(1, json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } }))
        .await;
    let is_done = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.annotation("reboot.metal3.io").is_none());
    env.until(1, "end of the reboot", is_done).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(started(), before + 1);
}
