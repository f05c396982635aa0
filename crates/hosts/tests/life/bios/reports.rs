//! Reports about settings: of a machine that Ironic does not know yet, and without permission.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_sim_bmc::fault::Fault as MachineFault;
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_sim_ironic::BiosReports;
use serde_json::json;
use tokio::time::sleep;

use super::{CLEAN, ask, change, condition, done, is_available, mirror, report, until_set};
use crate::env::{CONTROLLER_USER, Setup, TestEnv};
use crate::phases::{image, runs};

/// A BMC may show its settings only once the machine has started.
#[tokio::test(start_paused = true)]
async fn machine_of_which_ironic_has_no_settings_yet_gets_them_after_its_next_cleaning() {
    let env = TestEnv::new(Setup::default());
    let factory = env.machine(1, |machine| std::mem::take(&mut machine.bios));
    ask(&env, json!({ "ProcTurboMode": "Disabled" })).await;
    env.host(1, json!({})).await;
    env.until(1, "available host", is_available).await;
    sleep(Duration::from_mins(10)).await;
    let (valid, why) = condition(&report(&env).await, "Valid");
    assert!(
        valid == "False" && why.starts_with("Ironic has no BIOS settings of this machine"),
        "{valid} {why}"
    );
    env.machine(1, |machine| machine.bios = factory);
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    env.until(1, "running host", runs).await;
    assert_eq!(done(&env, CLEAN), 0);
    env.edit(1, json!({ "spec": { "image": null } })).await;
    until_set(&env, "ProcTurboMode", "Disabled").await;
    assert_eq!(done(&env, CLEAN), 1);
}

/// What is not permitted is no reason to clean the machine again and again, nor to keep the host.
#[tokio::test(start_paused = true)]
async fn report_that_is_not_permitted_delays_no_host_and_repeats_no_cleaning() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!({ "QuietBoot": "true" })).await;
    env.host(1, json!({})).await;
    env.until(1, "available host", is_available).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(condition(&report(&env).await, "Valid").0, "True");
    refuse(&env, "patch", "hostfirmwaresettings/status");
    env.machine(1, |machine| machine.bios_reports = BiosReports::Unchanged);
    change(&env, json!({ "QuietBoot": "false" })).await;
    sleep(Duration::from_hours(24)).await;
    assert!((1..30).contains(&done(&env, CLEAN)), "{}", done(&env, CLEAN));
    // The next value is tried at once.
    env.machine(1, |machine| machine.bios_reports = BiosReports::Asked);
    change(&env, json!({ "NetworkBootRetryCount": 7 })).await;
    sleep(Duration::from_mins(10)).await;
    assert!(is_available(env.get(1).await.as_ref()));
    until_set(&env, "QuietBoot", "0").await;
}

#[tokio::test(start_paused = true)]
async fn report_that_may_not_be_written_ends_no_backoff_of_other_failures() {
    let env = TestEnv::new(Setup::default());
    env.set_faults(1, &[MachineFault::CleanStepFails]);
    ask(&env, json!({})).await;
    env.host(1, json!({ "raid": mirror() })).await;
    let has_failed = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_count >= 2);
    env.until(1, "two failures", has_failed).await;
    refuse(&env, "patch", "hostfirmwaresettings/status");
    change(&env, json!({ "ProcTurboMode": "Enabled" })).await;
    let before = done(&env, CLEAN);
    sleep(Duration::from_hours(24)).await;
    assert!((1..30).contains(&(done(&env, CLEAN) - before)), "{}", done(&env, CLEAN));
}

#[tokio::test(start_paused = true)]
async fn schema_that_is_not_permitted_keeps_no_report() {
    let env = TestEnv::new(Setup::default());
    refuse(&env, "create", "firmwareschemas");
    ask(&env, json!({ "QuietBoot": "false" })).await;
    env.host(1, json!({})).await;
    until_set(&env, "QuietBoot", "0").await;
    assert_eq!(condition(&report(&env).await, "Valid").0, "True");
}

/// The owner is written before the first report. Who may not write it asks once for each reconcile.
#[tokio::test(start_paused = true)]
async fn settings_that_may_not_be_owned_hold_no_host_and_repeat_no_request() {
    let env = TestEnv::new(Setup::default());
    refuse(&env, "patch", "hostfirmwaresettings");
    ask(&env, json!({ "QuietBoot": "false" })).await;
    env.host(1, json!({})).await;
    env.until(1, "available host", is_available).await;
    let asked = || env.cluster.audit().of(CONTROLLER_USER, "patch", "hostfirmwaresettings");
    let before = asked();
    assert!(before > 0);
    sleep(Duration::from_hours(24)).await;
    assert!(asked() - before < 10, "{} requests in a day", asked() - before);
}

fn refuse(env: &TestEnv, verb: &'static str, resource: &str) {
    let rule = Rule::random(1000, Fault::refused(403)).verb(verb).resource(resource);
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
}
