//! Reboots, most of machines that are never off.

use std::time::Duration;

use chrono::TimeDelta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType};
use metal3_sim_bmc::fault::Fault;
use metal3_sim_faults::{Fault as Lost, Plan, Rule};
use serde_json::json;
use tokio::time::sleep;

use crate::disturbances::provisioned;
use crate::env::{Setup, TestEnv};
use crate::interceptor::IronicFault;
use crate::phases::{Phase, image};

/// A host that runs an image on a machine that is never off.
async fn never_off() -> TestEnv {
    never_off_in(Setup::default()).await
}

async fn never_off_in(setup: Setup) -> TestEnv {
    let env = TestEnv::new(setup);
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    env.edit(1, json!({ "spec": { "image": image(), "disablePowerOff": true } }))
        .await;
    Phase::Provision.end(&env, 1).await;
    env
}

async fn request(env: &TestEnv) {
    request_as(env, "").await;
}

async fn request_as(env: &TestEnv, value: &str) {
    env.edit(
        1,
        json!({ "metadata": { "annotations": { "reboot.metal3.io": value } } }),
    )
    .await;
}

/// The power changes that were requested after the first requests.
fn power_requests(env: &TestEnv, first: usize) -> Vec<String> {
    let asked = env.interceptor.log().asked.split_off(first);
    let power = asked
        .into_iter()
        .filter_map(|asked| Some(asked.split_once("states/power ")?.1.to_owned()));
    power.collect()
}

fn is_requested(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| host.annotation("reboot.metal3.io").is_some())
}

fn has_failed(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| host.status.error_type == Some(ErrorType::PowerManagement))
}

/// How often the machine started.
fn starts(env: &TestEnv) -> u32 {
    env.machine(1, |machine| machine.counts.started)
}

/// The annotation was removed with the request, which the BMC failed later.
#[tokio::test(start_paused = true)]
async fn reboot_that_the_bmc_fails_is_reported_and_repeated() {
    let env = never_off().await;
    let before = starts(&env);
    env.set_faults(1, &[Fault::PowerStuck]);
    request(&env).await;
    env.until(1, "error", has_failed).await;
    assert!(is_requested(env.get(1).await.as_ref()), "the request is not fulfilled");
    env.set_faults(1, &[]);
    env.until(1, "end of the reboot", |host| !is_requested(host)).await;
    assert_eq!(starts(&env), before + 1);
    let is_well = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.is_empty());
    env.until(1, "host without error", is_well).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(starts(&env), before + 1, "it is rebooted once");
}

/// Ironic has accepted the request, and does not send it to the BMC before it restarts.
#[tokio::test(start_paused = true)]
async fn reboot_that_a_restart_of_ironic_aborts_is_reported_and_repeated() {
    let env = never_off().await;
    let before = starts(&env);
    env.set_faults(1, &[Fault::SlowBmc(60)]);
    request(&env).await;
    while env.node(1).await.is_none_or(|node| node.reservation.is_none()) {
        sleep(Duration::from_secs(1)).await;
    }
    env.ironic.restart(Duration::from_secs(5));
    env.set_faults(1, &[]);
    assert_eq!(starts(&env), before);
    env.until(1, "error", has_failed).await;
    env.until(1, "end of the reboot", |host| !is_requested(host)).await;
    assert_eq!(starts(&env), before + 1);
}

/// The machine reboots while Ironic holds the node for longer than power changes take.
#[tokio::test(start_paused = true)]
async fn reboot_that_takes_long_is_reported_and_is_over_when_ironic_ends_it() {
    let env = never_off().await;
    let before = starts(&env);
    env.set_faults(1, &[Fault::SlowBmc(1000)]);
    request(&env).await;
    env.until(1, "report", has_failed).await;
    assert!(is_requested(env.get(1).await.as_ref()), "the request is not fulfilled");
    assert!(env.node(1).await.unwrap().reservation.is_some());
    env.until(1, "end of the reboot", |host| !is_requested(host)).await;
    assert!(env.node(1).await.unwrap().reservation.is_none());
    let is_well = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.is_empty());
    env.until(1, "host without error", is_well).await;
    assert_eq!(starts(&env), before + 1);
}

#[tokio::test(start_paused = true)]
async fn one_request_reboots_the_machine_once() {
    let env = never_off().await;
    let before = starts(&env);
    request(&env).await;
    env.until(1, "end of the reboot", |host| !is_requested(host)).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(starts(&env), before + 1);
}

/// Ironic has accepted the second attempt when the write of its status fails, so the error of the first is still recorded.
#[tokio::test(start_paused = true)]
async fn repeated_reboot_whose_status_write_is_lost_is_not_repeated_again() {
    let env = never_off().await;
    let before = starts(&env);
    env.set_faults(1, &[Fault::PowerStuck]);
    request(&env).await;
    env.until(1, "error", has_failed).await;
    env.set_faults(1, &[]);
    let lost = Rule::at(1, Lost::Conflict)
        .verb("patch")
        .resource("baremetalhosts/status");
    env.cluster.inject(Plan::none().with(lost));
    env.until(1, "end of the reboot", |host| !is_requested(host)).await;
    assert_eq!(env.cluster.injected(), 1);
    let is_well = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.is_empty());
    env.until(1, "host without error", is_well).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(starts(&env), before + 1, "it is rebooted once");
}

/// A request that the user takes back before the end is not taken for the next one.
#[tokio::test(start_paused = true)]
async fn reboot_requested_after_one_that_was_taken_back_is_done() {
    let env = never_off().await;
    env.edit(1, json!({ "spec": { "online": false } })).await;
    sleep(Duration::from_mins(1)).await;
    let before = starts(&env);
    let ordered = |env: &TestEnv| {
        let log = env.interceptor.log();
        log.asked.iter().filter(|asked| asked.ends_with("rebooting")).count()
    };
    env.set_faults(1, &[Fault::SlowBmc(10)]);
    request(&env).await;
    while ordered(&env) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let taken_back = json!({ "metadata": { "annotations": { "reboot.metal3.io": null } } });
    env.edit(1, taken_back).await;
    sleep(Duration::from_mins(10)).await;
    env.set_faults(1, &[]);
    assert_eq!(starts(&env), before + 1);
    request(&env).await;
    env.until(1, "end of the reboot", |host| !is_requested(host)).await;
    assert_eq!(starts(&env), before + 2);
}

/// Times of Ironic's clock were compared with this one, and each reboot seemed to last for ever.
#[tokio::test(start_paused = true)]
async fn reboot_is_no_error_while_it_runs_whatever_the_clock_of_ironic_shows() {
    for minutes in [20, -20, 600] {
        let env = never_off_in(Setup {
            ironic_ahead: TimeDelta::minutes(minutes),
            ..Setup::default()
        })
        .await;
        let before = starts(&env);
        env.set_faults(1, &[Fault::SlowBmc(30)]);
        request(&env).await;
        let mut host = env.get(1).await;
        while is_requested(host.as_ref()) {
            let status = host.unwrap().status;
            assert_eq!(status.error_message, "", "{minutes} minutes ahead");
            sleep(Duration::from_secs(1)).await;
            host = env.get(1).await;
        }
        assert_eq!(starts(&env), before + 1);
    }
}

/// Ironic accepts the order, and the connection breaks before its answer, or when the reboot is over; or Ironic begins after
/// this program gave up waiting.
#[tokio::test(start_paused = true)]
async fn reboot_whose_answer_is_lost_is_done_once() {
    for (mode, verb) in [("", "soft rebooting"), (r#"{"mode":"hard"}"#, "rebooting")] {
        for fault in [IronicFault::ReplyLost, IronicFault::ReplyLostLate, IronicFault::Queued] {
            let env = never_off().await;
            let (before, asked) = (starts(&env), env.interceptor.log().asked.len());
            // After the read of the node.
            env.interceptor.log().fault = Some((asked + 2, fault));
            request_as(&env, mode).await;
            env.until(1, "end of the reboot", |host| !is_requested(host)).await;
            sleep(Duration::from_hours(1)).await;
            assert!(env.interceptor.log().injected);
            assert_eq!(power_requests(&env, asked), [verb], "{fault:?}");
            assert_eq!(starts(&env), before + 1, "{fault:?}");
            let status = env.get(1).await.unwrap().status;
            assert_eq!(status.error_message, "", "{fault:?}");
        }
    }
}

/// Ironic had not begun when the time was over, so the node showed nothing and the order was repeated.
#[tokio::test(start_paused = true)]
async fn machine_whose_power_off_ironic_begins_late_is_restarted_once() {
    for (mode, verb) in [("", "soft power off"), (r#"{"mode":"hard"}"#, "power off")] {
        let env = TestEnv::new(Setup::default());
        provisioned(&env, 1).await;
        let (before, asked) = (starts(&env), env.interceptor.log().asked.len());
        env.interceptor.log().fault = Some((asked + 2, IronicFault::Queued));
        request_as(&env, mode).await;
        env.until(1, "end of the reboot", |host| !is_requested(host)).await;
        env.until(1, "host that runs", crate::phases::runs).await;
        sleep(Duration::from_hours(1)).await;
        assert!(env.interceptor.log().injected);
        assert_eq!(power_requests(&env, asked), [verb, "power on"]);
        assert_eq!(starts(&env), before + 1);
        assert_eq!(env.get(1).await.unwrap().status.error_message, "");
    }
}

/// Ironic did not receive the order.
#[tokio::test(start_paused = true)]
async fn reboot_that_ironic_never_got_is_ordered_again() {
    let env = never_off().await;
    let (before, asked) = (starts(&env), env.interceptor.log().asked.len());
    env.interceptor.log().fault = Some((asked + 2, IronicFault::LostBefore));
    request(&env).await;
    env.until(1, "end of the reboot", |host| !is_requested(host)).await;
    assert_eq!(power_requests(&env, asked), ["soft rebooting"; 2]);
    assert_eq!(starts(&env), before + 1);
}

/// Changes of the node by this program and by others do not show that Ironic accepted the order.
#[tokio::test(start_paused = true)]
async fn reboot_that_ironic_rejected_is_not_over_because_its_node_changed() {
    let env = never_off().await;
    let (before, asked) = (starts(&env), env.interceptor.log().asked.len());
    env.interceptor.log().fault = Some((asked + 2, IronicFault::LostBefore));
    env.interceptor.log().rejected = Some(("PUT nodes/_/states/power", 503));
    request(&env).await;
    while power_requests(&env, asked).len() < 2 {
        sleep(Duration::from_secs(1)).await;
    }
    env.edit(1, json!({ "spec": { "automatedCleaningMode": "disabled" } }))
        .await;
    sleep(Duration::from_secs(30)).await;
    env.interceptor.log().rejected = None;
    env.until(1, "end of the reboot", |host| !is_requested(host)).await;
    assert_eq!(starts(&env), before + 1);
}

/// The end of a request to an earlier node is not that of a later one.
#[tokio::test(start_paused = true)]
async fn reboot_of_an_earlier_node_is_not_that_of_the_present_one() {
    const DETACHED: &str = "baremetalhost.metal3.io/detached";
    let env = never_off().await;
    env.set_faults(1, &[Fault::SlowBmc(60)]);
    request(&env).await;
    while env.node(1).await.is_none_or(|node| node.reservation.is_none()) {
        sleep(Duration::from_secs(1)).await;
    }
    let annotations = |detached: Option<&str>, reboot: Option<&str>| json!({ "metadata": { "annotations": { DETACHED: detached, "reboot.metal3.io": reboot } } });
    env.edit(1, annotations(Some(""), None)).await;
    env.set_faults(1, &[]);
    while env.node(1).await.is_some() {
        sleep(Duration::from_secs(1)).await;
    }
    let (before, asked) = (starts(&env), env.interceptor.log().asked.len());
    env.edit(1, annotations(None, Some(""))).await;
    env.until(1, "end of the reboot", |host| !is_requested(host)).await;
    assert_eq!(power_requests(&env, asked), ["soft rebooting"]);
    assert_eq!(starts(&env), before + 1);
}

/// The conductor lost the order, so nothing shows that the system does not shut down.
#[tokio::test(start_paused = true)]
async fn reboot_that_a_restart_of_ironic_aborts_is_repeated_in_the_mode_that_was_asked() {
    for (stays_on, verb) in [(true, "soft rebooting"), (false, "soft power off")] {
        let env = never_off().await;
        env.edit(1, json!({ "spec": { "disablePowerOff": stays_on } })).await;
        sleep(Duration::from_mins(1)).await;
        let (before, asked) = (starts(&env), env.interceptor.log().asked.len());
        env.set_faults(1, &[Fault::SlowBmc(60)]);
        request(&env).await;
        while env.node(1).await.is_none_or(|node| node.reservation.is_none()) {
            sleep(Duration::from_secs(1)).await;
        }
        env.ironic.restart(Duration::from_secs(5));
        env.set_faults(1, &[]);
        env.until(1, "end of the reboot", |host| !is_requested(host)).await;
        let stops: Vec<_> = power_requests(&env, asked);
        let stops: Vec<_> = stops.iter().filter(|target| *target != "power on").collect();
        assert_eq!(stops, [verb; 2]);
        env.until(1, "host that runs", crate::phases::runs).await;
        assert_eq!(starts(&env), before + 1);
    }
}
