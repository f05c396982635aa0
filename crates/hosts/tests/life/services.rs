//! Services: what a HostUpdatePolicy lets a requested reboot change in a running machine, and nothing else does.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, HostFirmwareComponents, HostFirmwareSettings, HostUpdatePolicy, OperationalStatus,
};
use metal3_sim_bmc::fault::Fault;
use metal3_sim_faults::{Fault as Lost, Plan, Rule};
use metal3_sim_ironic::FirmwareUpdates;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cases::Case;
use crate::env::{CONTROLLER_USER, Setup, TestEnv, name};
use crate::phases::{Phase, SOURCE, runs};

const SERVICE: &str = "PUT nodes/_/states/provision service";
const TURBO: &str = "ProcTurboMode";

fn done(env: &TestEnv, what: &str) -> usize {
    env.interceptor.log().done.get(what).copied().unwrap_or_default()
}

fn services(env: &TestEnv) -> usize {
    done(env, SERVICE)
}

async fn running() -> TestEnv {
    let env = TestEnv::new(Setup::default());
    run_image(&env).await;
    env
}

async fn run_image(env: &TestEnv) {
    Phase::Enrol.begin(env, 1).await;
    Phase::Enrol.end(env, 1).await;
    Phase::Provision.begin(env, 1).await;
    Phase::Provision.end(env, 1).await;
}

async fn allow(env: &TestEnv, policy: Value) {
    env.make::<HostUpdatePolicy>(json!({ "metadata": { "name": name(1) }, "spec": policy }))
        .await;
}

async fn ask(env: &TestEnv, mode: &str) {
    env.make::<HostFirmwareSettings>(
        json!({ "metadata": { "name": name(1) }, "spec": { "settings": { TURBO: mode } } }),
    )
    .await;
}

async fn ask_update(env: &TestEnv) {
    let updates = json!([{ "component": "bios", "url": "http://firmware.example/bios-2" }]);
    env.make::<HostFirmwareComponents>(json!({ "metadata": { "name": name(1) }, "spec": { "updates": updates } }))
        .await;
}

async fn reboot(env: &TestEnv) {
    let annotations = json!({ "reboot.metal3.io": "" });
    env.edit(1, json!({ "metadata": { "annotations": annotations } })).await;
}

fn has(env: &TestEnv, setting: &str) -> Value {
    env.machine(1, |machine| machine.bios[setting].clone())
}

fn starts(env: &TestEnv) -> u32 {
    env.machine(1, |machine| machine.counts.started)
}

/// The reboot is over, and so is what it did.
fn is_at_rest(host: Option<&BareMetalHost>) -> bool {
    runs(host)
        && host.is_some_and(|host| {
            host.annotation("reboot.metal3.io").is_none()
                && host.status.operational_status != OperationalStatus::Servicing
        })
}

async fn rebooted(env: &TestEnv) {
    reboot(env).await;
    env.until(1, "rebooted host", is_at_rest).await;
    sleep(Duration::from_mins(30)).await;
    env.until(1, "rebooted host", is_at_rest).await;
}

async fn message(env: &TestEnv) -> String {
    let object = env.api::<HostFirmwareSettings>().get(&name(1)).await.unwrap();
    let mut conditions = object.status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == "ChangeDetected");
    found.map_or_else(String::new, |found| format!("{:?} {}", found.status, found.message))
}

/// The system of the machine is as it was.
fn assert_untouched(env: &TestEnv) {
    let (source, erased, written) = env.machine(1, |machine| {
        let source = machine.disk.as_ref().map(|disk| disk.source.clone());
        (source, machine.counts.erased, machine.counts.written)
    });
    assert_eq!((source.as_deref(), written), (Some(SOURCE), 1));
    assert!(erased <= 1, "erased {erased} times, once before the deployment");
}

async fn assert_healthy(env: &TestEnv) {
    let status = env.get(1).await.unwrap().status;
    assert_eq!(
        (
            status.operational_status,
            status.error_message.as_str(),
            status.error_count
        ),
        (OperationalStatus::Ok, "", 0)
    );
}

#[tokio::test(start_paused = true)]
async fn settings_are_changed_at_a_requested_reboot_alone_and_once() {
    let env = running().await;
    allow(&env, json!({ "firmwareSettings": "onReboot" })).await;
    ask(&env, "disabled").await;
    let before = starts(&env);
    sleep(Duration::from_hours(1)).await;
    assert_eq!(
        (services(&env), starts(&env)),
        (0, before),
        "nothing reboots the machine by itself"
    );
    let expected =
        "True ProcTurboMode: applied when the host is rebooted the next time, as its HostUpdatePolicy allows";
    assert_eq!(message(&env).await, expected);
    rebooted(&env).await;
    assert_eq!((services(&env), has(&env, TURBO)), (1, json!("Disabled")));
    assert_eq!(message(&env).await, "False ");
    assert_untouched(&env);
    assert_healthy(&env).await;
    rebooted(&env).await;
    assert_eq!(services(&env), 1, "what is in force costs no service");
    let policy = env.api::<HostUpdatePolicy>().get(&name(1)).await.unwrap();
    let host = env.get(1).await.unwrap();
    let owners = policy.metadata.owner_references.unwrap();
    assert_eq!(
        Some(&owners[0].uid),
        host.metadata.uid.as_ref(),
        "the policy goes with the host"
    );
}

#[tokio::test(start_paused = true)]
async fn reboot_changes_nothing_without_a_policy_that_says_so() {
    for policy in [
        None,
        Some(json!({})),
        Some(json!({ "firmwareSettings": "onPreparing", "firmwareUpdates": "onPreparing" })),
    ] {
        let env = running().await;
        if let Some(policy) = policy {
            allow(&env, policy).await;
        }
        ask(&env, "disabled").await;
        ask_update(&env).await;
        rebooted(&env).await;
        assert_eq!((services(&env), has(&env, TURBO)), (0, json!("Enabled")));
        assert_eq!(
            message(&env).await,
            "True ProcTurboMode: applied when the host is prepared the next time"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn updates_are_made_at_a_requested_reboot_and_recorded() {
    let env = running().await;
    allow(&env, json!({ "firmwareUpdates": "onReboot" })).await;
    ask(&env, "disabled").await;
    ask_update(&env).await;
    rebooted(&env).await;
    assert_eq!(services(&env), 1);
    let flashed = env.machine(1, |machine| machine.flashed.len());
    assert_eq!(
        (flashed, has(&env, TURBO)),
        (1, json!("Enabled")),
        "the policy is for updates alone"
    );
    let object = env.api::<HostFirmwareComponents>().get(&name(1)).await.unwrap();
    assert_eq!(object.status.updates, object.spec.updates);
    assert_untouched(&env);
    assert_healthy(&env).await;
    rebooted(&env).await;
    assert_eq!(env.machine(1, |machine| machine.flashed.len()), 1, "they are made once");
}

/// Its system runs meanwhile, and the user sees what failed. A Go manager would service a running machine with the error at once.
#[tokio::test(start_paused = true)]
async fn service_that_fails_ends_and_is_repeated_at_the_next_reboot() {
    let env = running().await;
    allow(
        &env,
        json!({ "firmwareSettings": "onReboot", "firmwareUpdates": "onReboot" }),
    )
    .await;
    ask(&env, "disabled").await;
    env.set_faults(1, &[Fault::CleanStepFails]);
    rebooted(&env).await;
    sleep(Duration::from_hours(12)).await;
    assert_eq!(services(&env), 1, "no reboot was requested since");
    let host = env.get(1).await.unwrap();
    assert!(runs(Some(&host)), "{host:?}");
    assert_eq!((host.status.error_type, host.status.error_count), (None, 0));
    let reported = message(&env).await;
    assert!(
        reported.starts_with("True ProcTurboMode: the last service failed (")
            && reported.contains("disk does not answer")
            && reported.ends_with("; applied when the host is rebooted the next time, as its HostUpdatePolicy allows"),
        "{reported}"
    );
    env.set_faults(1, &[]);
    rebooted(&env).await;
    assert_eq!((services(&env), has(&env, TURBO)), (2, json!("Disabled")));
    assert_untouched(&env);
    assert_healthy(&env).await;
}

#[tokio::test(start_paused = true)]
async fn failure_is_not_shown_any_more_when_what_failed_is_taken_back() {
    let env = running().await;
    allow(&env, json!({ "firmwareUpdates": "onReboot" })).await;
    ask_update(&env).await;
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Fail);
    rebooted(&env).await;
    let components = env.api::<HostFirmwareComponents>().get(&name(1)).await.unwrap();
    let failed = components
        .status
        .conditions
        .iter()
        .any(|one| one.reason == "UpdateFailed" && one.message.contains("bios"));
    assert!(failed, "{:?}", components.status.conditions);
    let api = env.api::<HostUpdatePolicy>();
    api.delete(&name(1), &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_mins(5)).await;
    assert_healthy(&env).await;
    assert!(runs(env.get(1).await.as_ref()));
}

#[tokio::test(start_paused = true)]
async fn service_that_is_taken_back_while_it_waits_for_its_agent_is_aborted() {
    let env = running().await;
    allow(&env, json!({ "firmwareSettings": "onReboot" })).await;
    ask(&env, "disabled").await;
    sleep(Duration::from_mins(5)).await;
    reboot(&env).await;
    env.until(1, "a service", |host| {
        host.is_some_and(|host| host.status.operational_status == OperationalStatus::Servicing)
    })
    .await;
    let policy = Patch::Merge(json!({ "spec": { "firmwareSettings": null } }));
    let api = env.api::<HostUpdatePolicy>();
    api.patch(&name(1), &PatchParams::default(), &policy).await.unwrap();
    env.until(1, "running host", is_at_rest).await;
    sleep(Duration::from_mins(30)).await;
    assert_eq!((services(&env), has(&env, TURBO)), (1, json!("Enabled")));
    assert_untouched(&env);
    assert_healthy(&env).await;
    let policy = Patch::Merge(json!({ "spec": { "firmwareSettings": "onReboot" } }));
    api.patch(&name(1), &PatchParams::default(), &policy).await.unwrap();
    rebooted(&env).await;
    assert_eq!(
        (services(&env), has(&env, TURBO)),
        (2, json!("Disabled")),
        "it is allowed again"
    );
}

#[tokio::test(start_paused = true)]
async fn service_that_ironic_rejects_keeps_no_machine_off() {
    let env = running().await;
    allow(&env, json!({ "firmwareSettings": "onReboot" })).await;
    ask(&env, "disabled").await;
    env.interceptor.log().rejected = Some((SERVICE, 400));
    rebooted(&env).await;
    assert_eq!((services(&env), has(&env, TURBO)), (0, json!("Enabled")));
    let events = env.events();
    assert!(events.contains("Ironic rejects the service"), "{events}");
    assert_healthy(&env).await;
    env.interceptor.log().rejected = None;
    rebooted(&env).await;
    assert_eq!(
        (services(&env), has(&env, TURBO)),
        (1, json!("Disabled")),
        "the next reboot tries again"
    );
}

/// The roles of an older release have no right to the policy's owners.
#[tokio::test(start_paused = true)]
async fn owner_that_may_not_be_written_is_tried_once() {
    let env = running().await;
    let refused = Rule::random(1000, Lost::refused(403))
        .verb("patch")
        .resource("hostupdatepolicies");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(refused));
    allow(&env, json!({ "firmwareSettings": "onReboot" })).await;
    ask(&env, "disabled").await;
    rebooted(&env).await;
    assert_eq!((services(&env), has(&env, TURBO)), (1, json!("Disabled")));
    let tried = env.cluster.audit().of(CONTROLLER_USER, "patch", "hostupdatepolicies");
    assert_eq!(tried, 1);
}

/// Removing the image would cut the power while the BMC writes.
#[tokio::test(start_paused = true)]
async fn image_that_is_removed_while_firmware_is_written_waits_for_its_end() {
    let env = running().await;
    allow(&env, json!({ "firmwareUpdates": "onReboot" })).await;
    ask_update(&env).await;
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::NeverEnd);
    reboot(&env).await;
    env.until(1, "a service", |host| {
        host.is_some_and(|host| host.status.operational_status == OperationalStatus::Servicing)
    })
    .await;
    env.edit(1, json!({ "spec": { "image": null } })).await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(
        done(&env, "PUT nodes/_/states/provision deleted"),
        0,
        "{:#?}",
        env.get(1).await
    );
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
    env.until_state(1, "available").await;
}

async fn life(case: Case) -> (usize, u64) {
    let env = TestEnv::new(Setup::default());
    run_image(&env).await;
    allow(
        &env,
        json!({ "firmwareSettings": "onReboot", "firmwareUpdates": "onReboot" }),
    )
    .await;
    ask(&env, "disabled").await;
    ask_update(&env).await;
    sleep(Duration::from_mins(5)).await;
    let (asked, written) = (env.interceptor.log().asked.len(), writes(&env));
    let case = match case {
        Case::Ironic(at, fault) => Case::Ironic(asked + at, fault),
        other => other,
    };
    case.inject(&env, None);
    rebooted(&env).await;
    // A service whose request never reached Ironic, or that failed, is for the next one.
    rebooted(&env).await;
    let in_force = (
        has(&env, TURBO),
        env.machine(1, |machine| machine.firmware.get("bios").cloned()),
    );
    assert_eq!(in_force.0, "Disabled", "{case:?}: {:#?}", env.interceptor.log().asked);
    let object = env.api::<HostFirmwareComponents>().get(&name(1)).await.unwrap();
    assert_eq!(object.status.updates, object.spec.updates, "{case:?}");
    assert!(services(&env) <= 3, "{case:?}: {:#?}", env.interceptor.log().asked);
    assert_untouched(&env);
    assert_healthy(&env).await;
    (env.interceptor.log().asked.len() - asked, writes(&env) - written)
}

fn writes(env: &TestEnv) -> u64 {
    let of = |resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource);
    let resources = [
        "baremetalhosts",
        "baremetalhosts/status",
        "hostfirmwaresettings/status",
        "hostfirmwarecomponents/status",
    ];
    resources.into_iter().map(of).sum()
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_request_or_a_write_ends_with_a_running_system_and_what_is_asked_for() {
    for case in Case::all(life(Case::NoFault).await, 7) {
        life(case).await;
    }
}
