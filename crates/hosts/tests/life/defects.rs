//! What the Go manager was recorded to do wrong, each in a test of its own: here it ends well.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, ProvisioningState};
use metal3_ironic::model::state::{PowerState, ProvisionState};
use metal3_sim_bmc::fault::Fault;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::env::{TestEnv, Setup, bmc};
use crate::phases::{Phase, SOURCE, image};

fn set_faults(env: &TestEnv, faults: &[Fault]) {
    env.machine(1, |machine| machine.faults = faults.iter().copied().collect());
}

fn fails_in(kind: ErrorType) -> impl Fn(Option<&BareMetalHost>) -> bool {
    move |host| host.is_some_and(|host| host.status.error_type == Some(kind))
}

async fn with_image_requested(env: &TestEnv) {
    Phase::Enrol.begin(env, 1).await;
    Phase::Enrol.end(env, 1).await;
    env.edit(1, json!({ "spec": { "image": image() } })).await;
}

/// There the host stayed `provisioning` without an error for ever, and could not be deleted for minutes.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_deployment_that_ironic_erased_is_told_and_the_image_is_tried_again() {
    let mut setup = Setup::default();
    setup.pace.power_sync = Duration::from_secs(1);
    let env = TestEnv::new(setup);
    with_image_requested(&env).await;
    set_faults(&env, &[Fault::ChecksumMismatch]);
    env.until(1, "error", fails_in(ErrorType::Provisioning)).await;
    let message = env.get(1).await.unwrap().status.error_message;
    assert!(message.contains("Deploy step deploy.write_image failed"), "{message}");
    set_faults(&env, &[]);
    Phase::Provision.end(&env, 1).await;
    set_faults(&env, &[Fault::ChecksumMismatch]);
    env.edit(
        1,
        json!({ "spec": { "image": { "url": "http://images.example/other.raw" } } }),
    )
    .await;
    env.until(1, "error", fails_in(ErrorType::Provisioning)).await;
    let began = Instant::now();
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    assert!(began.elapsed() < Duration::from_secs(300), "{:?}", began.elapsed());
}

/// There the node was taken back in one attempt and cleaned in the next, each after a wait that grows.
#[tokio::test(start_paused = true)]
async fn a_cleaning_that_failed_is_tried_again_after_one_wait() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    set_faults(&env, &[Fault::CleanStepFails]);
    Phase::Deprovision.begin(&env, 1).await;
    env.until(1, "error", fails_in(ErrorType::Provisioning)).await;
    assert_eq!(env.get(1).await.unwrap().status.error_count, 1);
    set_faults(&env, &[]);
    let began = Instant::now();
    let cleans = |node: &ProvisionState| matches!(node, ProvisionState::Cleaning | ProvisionState::CleanWait);
    while !cleans(&env.node(1).await.unwrap().provision_state) {
        sleep(Duration::from_secs(1)).await;
        assert!(began.elapsed() < Duration::from_secs(180), "it is not cleaned");
    }
    Phase::Deprovision.end(&env, 1).await;
    env.machine(1, |machine| assert!(machine.disk.is_none()));
}

/// There `deleted` went out in the moment in which clusterctl had replaced all annotations of the source.
#[tokio::test(start_paused = true)]
async fn the_move_that_wiped_a_disk_leaves_it_whenever_the_source_is_looked_at() {
    // clusterctl's writes, in its order, with so many seconds between them for the program to look.
    for pause in [0, 1, 20] {
        let env = TestEnv::new(Setup::default());
        with_image_requested(&env).await;
        Phase::Provision.end(&env, 1).await;
        let counts = env.machine(1, |machine| machine.counts);
        let paused = json!({ "baremetalhost.metal3.io/paused": "metal3.io/capm3" });
        let stripped = json!({
            "baremetalhost.metal3.io/paused": null, "clusterctl.cluster.x-k8s.io/delete-for-move": "",
        });
        for annotations in [paused, stripped] {
            env.edit(1, json!({ "metadata": { "annotations": annotations } })).await;
            sleep(Duration::from_secs(pause)).await;
        }
        env.delete(1).await;
        sleep(Duration::from_secs(pause)).await;
        env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
        env.until(1, "end", |host| host.is_none()).await;
        sleep(Duration::from_mins(10)).await;
        env.machine(1, |machine| {
            assert_eq!(
                (machine.counts, machine.power.clone()),
                (counts, PowerState::On),
                "{pause} s"
            );
            assert_eq!(machine.disk.as_ref().unwrap().source, SOURCE);
        });
    }
}

/// Nobody recorded it, and nothing may happen: a running machine is only told of another way in.
#[tokio::test(start_paused = true)]
async fn a_running_host_whose_login_changes_runs_on_and_ironic_has_the_new_one() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    let (counts, before) = (
        env.machine(1, |machine| machine.counts),
        env.get(1).await.unwrap().status,
    );
    let another = Patch::Merge(json!({ "stringData": { "username": "another" } }));
    let secrets = env.api::<Secret>();
    secrets.patch("bmc-1", &PatchParams::default(), &another).await.unwrap();
    let has_new_login =
        |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.good_credentials != before.good_credentials);
    env.until(1, "host with another login", has_new_login).await;
    sleep(Duration::from_hours(1)).await;
    let (host, node) = (env.get(1).await.unwrap(), env.node(1).await.unwrap());
    assert_eq!(host.status.provisioning.state, ProvisioningState::Provisioned);
    assert_eq!(host.status.good_credentials, host.status.tried_credentials);
    assert_eq!(host.status.error_message, "");
    assert_eq!(node.driver_info.text("redfish_username"), Some("another"));
    assert_eq!(node.provision_state, ProvisionState::Active);
    env.machine(1, |machine| {
        assert_eq!((machine.counts, machine.power.clone()), (counts, PowerState::On));
    });
}

/// Nobody recorded it: two hosts were given one address by a slip of the hand, and boot from the provisioning network.
#[tokio::test(start_paused = true)]
async fn a_port_that_another_node_has_is_told_and_holds_no_slot() {
    let env = TestEnv::new(Setup {
        slots: 1,
        ..Setup::default()
    });
    let first = env.machine(1, |machine| machine.macs().remove(0));
    let booting = |number: u32| json!({ "address": format!("redfish://{}/redfish/v1/Systems/1", bmc(number)), "credentialsName": format!("bmc-{number}") });
    env.host(1, json!({ "bmc": booting(1) })).await;
    env.host(2, json!({ "bmc": booting(2), "bootMACAddress": first })).await;
    // Whose port is the first is chance; the other may not stop anybody.
    let is_reported =
        |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.contains("create port"));
    let other = tokio::select! {
        () = env.until(1, "refused port", is_reported) => 1,
        () = env.until(2, "refused port", is_reported) => 2,
    };
    Phase::Enrol.end(&env, 3 - other).await;
    env.host(3, json!({ "bmc": booting(3) })).await;
    Phase::Enrol.end(&env, 3).await;
    // Its user takes the wrong one away.
    env.delete(2).await;
    env.until(2, "end", |host| host.is_none()).await;
    Phase::Enrol.end(&env, 1).await;
}
