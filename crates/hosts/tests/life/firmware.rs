//! Changes of the firmware that a Go manager began with: settings are applied, updates are reported.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostFirmwareComponents, HostFirmwareSettings};
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::transport::Transport as _;
use metal3_sim_bmc::fault::Fault;
use metal3_sim_faults::{Fault as Refusal, Plan, Rule};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, Setup, TestEnv, name};

const PAUSED: &str = "baremetalhost.metal3.io/paused";

/// An order to Ironic that this program does not send.
async fn order(env: &TestEnv, body: Value) {
    let node = env.node(1).await.unwrap();
    let request = http::Request::put(format!("/v1/nodes/{}/states/provision", node.uuid))
        .header("X-OpenStack-Ironic-API-Version", "1.95")
        .header("Content-Type", "application/json");
    let request = request.body(body.to_string().into_bytes()).unwrap();
    assert!(env.ironic.exchange(request).await.unwrap().status().is_success());
}

async fn until_node(env: &TestEnv, state: ProvisionState) {
    for _ in 0..3_600 {
        if env.node(1).await.unwrap().provision_state == state {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(env.node(1).await.unwrap().provision_state, state, "within an hour");
}

/// What the Go manager had done when it was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Begun,
    Failed,
    Recorded,
}

/// A host whose Go manager failed to update the firmware, and was replaced.
async fn taken_over(recorded: bool) -> TestEnv {
    taken_over_after(if recorded { Left::Recorded } else { Left::Failed }, Asked::Update).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Update,
    Setting,
}

async fn taken_over_after(done: Left, asked: Asked) -> TestEnv {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({ "online": false })).await;
    env.until_state(1, "available").await;
    env.edit(1, json!({ "metadata": { "annotations": { PAUSED: "" } } }))
        .await;
    let params = PatchParams::default();
    let mut left = json!({ "provisioning": { "state": "preparing" } });
    if done == Left::Recorded {
        left["errorType"] = json!("preparation error");
        left["errorMessage"] = json!("Clean step failed");
        left["errorCount"] = json!(1);
        left["operationalStatus"] = json!("error");
    }
    let left = Patch::Merge(json!({ "status": left }));
    env.api::<BareMetalHost>()
        .patch_status(&name(1), &params, &left)
        .await
        .unwrap();
    match asked {
        Asked::Update => {
            let updates = json!([{ "component": "bios", "url": "http://firmware.example/bios" }]);
            env.make::<HostFirmwareComponents>(
                json!({ "metadata": { "name": name(1) }, "spec": { "updates": updates } }),
            )
            .await;
        }
        Asked::Setting => {
            env.make::<HostFirmwareSettings>(json!({ "metadata": { "name": name(1) },
                "spec": { "settings": { "ProcTurboMode": "Disabled" } } }))
                .await;
            let reported = Patch::Merge(json!({ "status": { "settings": { "ProcTurboMode": "Enabled" } } }));
            let settings = env.api::<HostFirmwareSettings>();
            settings.patch_status(&name(1), &params, &reported).await.unwrap();
        }
    }
    until_node(&env, ProvisionState::Manageable).await;
    if done == Left::Failed {
        env.set_faults(1, &[Fault::CleanStepFails]);
        let step = json!({ "interface": "bios", "step": "apply_configuration", "args": { "settings": [] } });
        order(&env, json!({ "target": "clean", "clean_steps": [step] })).await;
        until_node(&env, ProvisionState::CleanFailed).await;
        env.set_faults(1, &[]);
    }
    // This program starts.
    env.interceptor.kill();
    sleep(Duration::from_secs(20)).await;
    env.edit(1, json!({ "metadata": { "annotations": { PAUSED: null } } }))
        .await;
    env
}

/// The update was dropped without a word, and the host offered.
#[tokio::test(start_paused = true)]
async fn host_with_a_pending_firmware_update_is_not_made_available_after_a_failed_preparation() {
    for recorded in [false, true] {
        let env = taken_over(recorded).await;
        let names_it = says("HostFirmwareComponents: bios");
        env.until(1, "error that names the update", &names_it).await;
        sleep(Duration::from_hours(3)).await;
        let host = env.get(1).await.unwrap();
        assert_eq!(host.status.provisioning.state.to_string(), "preparing");
        assert!(names_it(Some(&host)));
        let ready = &host.status.conditions[0];
        assert!(ready.message.contains("HostFirmwareComponents"), "{ready:?}");
        request_nothing(&env).await;
        env.until_state(1, "available").await;
    }
}

/// The Go manager was replaced before it applied the setting, or after it had failed to.
#[tokio::test(start_paused = true)]
async fn setting_that_another_manager_left_is_applied() {
    for left in [Left::Begun, Left::Failed, Left::Recorded] {
        let env = taken_over_after(left, Asked::Setting).await;
        env.until_state(1, "available").await;
        let value = env.machine(1, |machine| machine.bios["ProcTurboMode"].clone());
        assert_eq!(value, "Disabled", "{left:?}");
        sleep(Duration::from_mins(10)).await;
        let settings = env.api::<HostFirmwareSettings>().get(&name(1)).await.unwrap();
        assert_eq!(settings.status.settings["ProcTurboMode"], "Disabled", "{left:?}");
    }
}

fn says(part: &str) -> impl Fn(Option<&BareMetalHost>) -> bool {
    move |host| host.is_some_and(|host| host.status.error_message.contains(part))
}

async fn request_nothing(env: &TestEnv) {
    let none = Patch::Merge(json!({ "spec": { "updates": [] } }));
    let components = env.api::<HostFirmwareComponents>();
    components
        .patch(&name(1), &PatchParams::default(), &none)
        .await
        .unwrap();
}

/// The reconcile failed again and again, and nothing but the log said why.
#[tokio::test(start_paused = true)]
async fn host_whose_firmware_objects_may_not_be_read_names_the_missing_right() {
    let env = taken_over(true).await;
    let refused = Rule::random(1000, Refusal::refused(403))
        .verb("get")
        .resource("hostfirmwarecomponents");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(refused));
    env.until(
        1,
        "error that names the right",
        says("get hostfirmwarecomponents.metal3.io"),
    )
    .await;
    let host = env.get(1).await.unwrap();
    assert_eq!(host.status.provisioning.state.to_string(), "preparing");
    let ready = &host.status.conditions[0];
    assert!(ready.message.contains("hostfirmwarecomponents"), "{ready:?}");
    // What is asked for is not known, so the host is not offered.
    request_nothing(&env).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(
        env.get(1).await.unwrap().status.provisioning.state.to_string(),
        "preparing"
    );
    env.cluster.inject(Plan::none());
    env.until_state(1, "available").await;
}

/// The wait was known from the error alone, which the next error replaced.
#[tokio::test(start_paused = true)]
async fn pending_firmware_is_not_forgotten_when_another_error_replaces_its_own() {
    let env = taken_over(true).await;
    env.until(1, "error that names the update", says("HostFirmwareComponents: bios"))
        .await;
    let secrets = env.api::<Secret>();
    drop(secrets.delete("bmc-1", &DeleteParams::default()).await.unwrap());
    let unmarked = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    secrets
        .patch("bmc-1", &PatchParams::default(), &unmarked)
        .await
        .unwrap();
    env.until(1, "error about the login", says("create Secret")).await;
    env.login(1).await;
    sleep(Duration::from_hours(3)).await;
    let host = env.get(1).await.unwrap();
    assert_eq!(host.status.provisioning.state.to_string(), "preparing");
    assert!(
        says("HostFirmwareComponents: bios")(Some(&host)),
        "{}",
        host.status.error_message
    );
    request_nothing(&env).await;
    env.until_state(1, "available").await;
}

/// A Go manager had begun and was replaced before it recorded anything.
#[tokio::test(start_paused = true)]
async fn firmware_that_another_manager_may_have_begun_with_is_reported_before_a_failure_is_recorded() {
    let env = taken_over_after(Left::Begun, Asked::Update).await;
    env.until(1, "error that names the update", says("HostFirmwareComponents: bios"))
        .await;
    request_nothing(&env).await;
    env.until_state(1, "available").await;
}
