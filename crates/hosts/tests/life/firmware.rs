//! Changes of the firmware that a Go manager began with are made, and what is not known is reported.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostFirmwareComponents, HostFirmwareSettings};
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::transport::Transport as _;
use metal3_sim_bmc::fault::Fault;
use metal3_sim_faults::{Fault as Refusal, Plan, Rule};
use metal3_sim_ironic::FirmwareUpdates;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, Setup, TestEnv, name};

const URL: &str = "http://firmware.example/bios-2";
const PAUSED: &str = "baremetalhost.metal3.io/paused";

/// An order to Ironic that this program does not send.
pub(crate) async fn order(env: &TestEnv, body: Value) {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Update,
    /// The Go manager recorded it when it began.
    RecordedUpdate,
    Setting,
}

/// A cleaning of the Go manager for this that fails.
async fn clean_and_fail(env: &TestEnv, asked: Asked) {
    let step = match asked {
        Asked::RecordedUpdate => {
            env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Fail);
            let updates = [json!({ "component": "bios", "url": URL })];
            json!({ "interface": "firmware", "step": "update", "args": { "settings": updates } })
        }
        Asked::Update | Asked::Setting => {
            env.set_faults(1, &[Fault::CleanStepFails]);
            json!({ "interface": "bios", "step": "apply_configuration", "args": { "settings": [] } })
        }
    };
    order(env, json!({ "target": "clean", "clean_steps": [step] })).await;
    until_node(env, ProvisionState::CleanFailed).await;
    env.set_faults(1, &[]);
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
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
        Asked::Update | Asked::RecordedUpdate => {
            let updates = json!([{ "component": "bios", "url": URL }]);
            env.make::<HostFirmwareComponents>(
                json!({ "metadata": { "name": name(1) }, "spec": { "updates": updates } }),
            )
            .await;
            if asked == Asked::RecordedUpdate {
                let recorded = Patch::Merge(json!({ "status": { "updates": updates } }));
                let components = env.api::<HostFirmwareComponents>();
                components.patch_status(&name(1), &params, &recorded).await.unwrap();
            }
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
        clean_and_fail(&env, asked).await;
    }
    // This program starts.
    env.interceptor.kill();
    sleep(Duration::from_secs(20)).await;
    env.edit(1, json!({ "metadata": { "annotations": { PAUSED: null } } }))
        .await;
    env
}

/// It was dropped without a word, and the host offered.
#[tokio::test(start_paused = true)]
async fn update_that_another_manager_left_is_made_once() {
    for (left, asked) in [
        (Left::Begun, Asked::Update),
        (Left::Failed, Asked::Update),
        (Left::Recorded, Asked::Update),
        (Left::Failed, Asked::RecordedUpdate),
        (Left::Recorded, Asked::RecordedUpdate),
    ] {
        let env = taken_over_after(left, asked).await;
        env.until_state(1, "available").await;
        let flashed = env.machine(1, |machine| machine.flashed.clone());
        assert_eq!(flashed, [("bios".to_owned(), URL.to_owned())], "{left:?} {asked:?}");
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

/// The reconcile failed again and again, and nothing but the log said why. The wait was known from the error alone, which the next
/// error replaced.
#[tokio::test(start_paused = true)]
async fn host_whose_firmware_objects_may_not_be_read_names_the_missing_right() {
    let env = taken_over_after(Left::Recorded, Asked::Update).await;
    env.edit(1, json!({ "metadata": { "annotations": { PAUSED: "" } } }))
        .await;
    let refused = ["get", "list", "watch"].map(|verb| Rule::random(1000, Refusal::refused(403)).verb(verb));
    let refused = refused.into_iter().map(|rule| rule.resource("hostfirmwarecomponents"));
    env.cluster
        .inject_for(&[CONTROLLER_USER], refused.fold(Plan::none(), Plan::with));
    env.interceptor.kill();
    sleep(Duration::from_mins(10)).await;
    env.edit(1, json!({ "metadata": { "annotations": { PAUSED: null } } }))
        .await;
    let names_it = says("get hostfirmwarecomponents.metal3.io");
    env.until(1, "error that names the right", &names_it).await;
    sleep(Duration::from_hours(1)).await;
    let host = env.get(1).await.unwrap();
    assert_eq!(host.status.provisioning.state.to_string(), "preparing");
    let ready = &host.status.conditions[0];
    assert!(ready.message.contains("hostfirmwarecomponents"), "{ready:?}");
    let secrets = env.api::<Secret>();
    drop(secrets.delete("bmc-1", &DeleteParams::default()).await.unwrap());
    let unmarked = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    secrets
        .patch("bmc-1", &PatchParams::default(), &unmarked)
        .await
        .unwrap();
    env.until(1, "error about the login", says("create Secret")).await;
    env.login(1).await;
    env.until(1, "error that names the right", &names_it).await;
    assert!(env.machine(1, |machine| machine.flashed.is_empty()));
    env.cluster.inject(Plan::none());
    env.until_state(1, "available").await;
    assert_eq!(env.machine(1, |machine| machine.flashed.len()), 1);
}
