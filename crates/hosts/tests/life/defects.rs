//! Recorded defects of the Go manager, each with the right behaviour.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use metal3_api::metal3::names::DETACHED_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, OperationalStatus, ProvisioningState};
use metal3_ironic::calls::NodeRef;
use metal3_ironic::model::state::{PowerState, ProvisionState};
use metal3_sim_bmc::fault::Fault;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::env::{Setup, TestEnv, bmc};
use crate::interceptor::IronicFault;
use crate::phases::{Phase, SOURCE, image};

fn fails_in(kind: ErrorType) -> impl Fn(Option<&BareMetalHost>) -> bool {
    move |host| host.is_some_and(|host| host.status.error_type == Some(kind))
}

/// A manifest is copied, and its BMC address is forgotten.
#[tokio::test(start_paused = true)]
async fn host_with_the_bmc_of_another_is_rejected_and_the_machine_runs_on() {
    let env = TestEnv::new(Setup::default());
    crate::disturbances::provisioned(&env, 1).await;
    let seen = || {
        env.machine(1, |machine| {
            (machine.counts, machine.power.clone(), machine.disk.clone())
        })
    };
    let before = seen();
    env.login(2).await;
    let mut copy = env.document(2, &json!({ "image": image() }));
    copy["spec"]["bmc"]["address"] = crate::env::address(1).into();
    env.make::<BareMetalHost>(copy).await;
    env.until(2, "error", fails_in(ErrorType::Registration)).await;
    let message = env.get(2).await.unwrap().status.error_message;
    assert!(message.contains("the machine of BareMetalHost"), "{message}");
    sleep(Duration::from_hours(6)).await;
    assert_eq!(seen(), before);
    env.edit(2, json!({ "spec": { "bmc": { "address": crate::env::address(2) } } }))
        .await;
    Phase::Provision.end(&env, 2).await;
}

/// The ID of a node outlives the node.
#[tokio::test(start_paused = true)]
async fn detached_host_that_comes_back_with_the_bmc_of_another_is_rejected() {
    let env = TestEnv::new(Setup::default());
    crate::disturbances::provisioned(&env, 1).await;
    let seen = || {
        env.machine(1, |machine| {
            (machine.counts, machine.power.clone(), machine.disk.clone())
        })
    };
    let before = seen();
    Phase::Enrol.begin(&env, 2).await;
    Phase::Enrol.end(&env, 2).await;
    let detached = |value: serde_json::Value| json!({ "metadata": { "annotations": { DETACHED_ANNOTATION: value } } });
    env.edit(2, detached(json!(""))).await;
    env.until(2, "detached", |host| {
        host.is_some_and(|host| host.status.operational_status == OperationalStatus::Detached)
    })
    .await;
    env.edit(
        2,
        json!({ "spec": { "bmc": { "address": crate::env::address(1) }, "image": image() } }),
    )
    .await;
    env.edit(2, detached(json!(null))).await;
    env.until(2, "error", fails_in(ErrorType::Registration)).await;
    sleep(Duration::from_hours(6)).await;
    assert_eq!(seen(), before);
    // The other one goes: nothing else tells the host that the machine is free.
    env.delete(1).await;
    env.until(1, "gone", |host| host.is_none()).await;
    let began = Instant::now();
    env.until(2, "registered", |host| {
        host.is_some_and(|host| host.status.error_message.is_empty())
    })
    .await;
    assert!(began.elapsed() < Duration::from_mins(10), "{:?}", began.elapsed());
}

async fn with_image_requested(env: &TestEnv) {
    Phase::Enrol.begin(env, 1).await;
    Phase::Enrol.end(env, 1).await;
    env.edit(1, json!({ "spec": { "image": image() } })).await;
}

/// With the Go manager the host stayed `provisioning` without an error for ever, and could not be deleted for minutes.
#[tokio::test(start_paused = true)]
async fn erased_deployment_error_is_recorded_and_the_image_is_retried() {
    let mut setup = Setup::default();
    setup.pace.power_sync = Duration::from_secs(1);
    let env = TestEnv::new(setup);
    with_image_requested(&env).await;
    env.set_faults(1, &[Fault::ChecksumMismatch]);
    env.until(1, "error", fails_in(ErrorType::Provisioning)).await;
    let message = env.get(1).await.unwrap().status.error_message;
    assert!(message.contains("Deploy step deploy.write_image failed"), "{message}");
    env.set_faults(1, &[]);
    Phase::Provision.end(&env, 1).await;
    env.set_faults(1, &[Fault::ChecksumMismatch]);
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

/// With the Go manager one attempt made the node manageable and the next cleaned it, each after a growing backoff.
#[tokio::test(start_paused = true)]
async fn failed_cleaning_is_retried_after_one_backoff() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    env.set_faults(1, &[Fault::CleanStepFails]);
    Phase::Deprovision.begin(&env, 1).await;
    env.until(1, "error", fails_in(ErrorType::Provisioning)).await;
    assert_eq!(env.get(1).await.unwrap().status.error_count, 1);
    env.set_faults(1, &[]);
    let began = Instant::now();
    let cleans = |node: &ProvisionState| matches!(node, ProvisionState::Cleaning | ProvisionState::CleanWait);
    while !cleans(&env.node(1).await.unwrap().provision_state) {
        sleep(Duration::from_secs(1)).await;
        assert!(began.elapsed() < Duration::from_secs(180), "it is not cleaned");
    }
    Phase::Deprovision.end(&env, 1).await;
    env.machine(1, |machine| assert!(machine.disk.is_none()));
}

/// The Go manager sent `deleted` while clusterctl had replaced all annotations of the source.
#[tokio::test(start_paused = true)]
async fn move_erases_no_disk_at_any_pause_between_writes() {
    // The writes of clusterctl in their order, with this many seconds between them.
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

/// Not a recorded defect: a running machine keeps running with new BMC credentials.
#[tokio::test(start_paused = true)]
async fn running_host_keeps_running_with_changed_credentials() {
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

/// Not a recorded defect: two hosts with the same MAC address boot from the provisioning network.
#[tokio::test(start_paused = true)]
async fn conflicting_port_is_reported_and_holds_no_slot() {
    let env = TestEnv::new(Setup {
        slots: 1,
        ..Setup::default()
    });
    let first = env.machine(1, |machine| machine.macs().remove(0));
    let booting = |number: u32| json!({ "address": format!("redfish://{}/redfish/v1/Systems/1", bmc(number)), "credentialsName": format!("bmc-{number}") });
    env.host(1, json!({ "bmc": booting(1) })).await;
    env.host(2, json!({ "bmc": booting(2), "bootMACAddress": first })).await;
    // Either host may get the port; the other must not delay further hosts.
    let is_reported =
        |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.contains("create port"));
    let other = tokio::select! {
        () = env.until(1, "refused port", is_reported) => 1,
        () = env.until(2, "refused port", is_reported) => 2,
    };
    Phase::Enrol.end(&env, 3 - other).await;
    env.host(3, json!({ "bmc": booting(3) })).await;
    Phase::Enrol.end(&env, 3).await;
    // The user deletes the wrong host.
    env.delete(2).await;
    env.until(2, "end", |host| host.is_none()).await;
    Phase::Enrol.end(&env, 1).await;
}

/// The record of the node was compared once per edit, and the removal of the image came before it.
#[tokio::test(start_paused = true)]
async fn disk_is_not_cleaned_when_the_edit_that_removes_the_image_forbids_it() {
    for deleted in [false, true] {
        let env = TestEnv::new(Setup::default());
        with_image_requested(&env).await;
        Phase::Provision.end(&env, 1).await;
        let disk = env.machine(1, |machine| machine.disk.clone());
        assert!(disk.is_some());
        env.edit(
            1,
            json!({ "spec": { "image": null, "automatedCleaningMode": "disabled" } }),
        )
        .await;
        if deleted {
            env.delete(1).await;
            env.until(1, "end", |host| host.is_none()).await;
        } else {
            Phase::Deprovision.end(&env, 1).await;
        }
        assert_eq!(
            env.machine(1, |machine| machine.disk.clone()),
            disk,
            "deleted: {deleted}"
        );
    }
}

/// The host was never provisioned, and the advice of its error erased the machine again.
#[tokio::test(start_paused = true)]
async fn image_is_provisioned_when_ironic_replaces_its_source_or_its_digest() {
    for is_local in [false, true] {
        let env = TestEnv::new(Setup::default());
        if is_local {
            env.ironic.download_images();
        } else {
            env.ironic.redirect_image(SOURCE, "http://mirror.example/7/disk.raw");
        }
        with_image_requested(&env).await;
        Phase::Provision.end(&env, 1).await;
        let status = env.get(1).await.unwrap().status;
        assert_eq!(status.provisioning.image.url, SOURCE);
        assert_eq!((status.error_message.as_str(), status.provisioning_fail_count), ("", 0));
        let digest = env.node(1).await.unwrap().instance_info;
        assert_ne!(
            (digest.text("image_source"), digest.text("image_os_hash_value")),
            (Some(SOURCE), Some(&*"c".repeat(64)))
        );
        env.edit(1, json!({ "spec": { "online": false } })).await;
        env.until(1, "off", |host| host.is_some_and(|host| !host.status.powered_on))
            .await;
    }
}

/// The host waited for ever without an error, and could not be deleted.
#[tokio::test(start_paused = true)]
async fn request_that_ironic_always_rejects_is_reported_and_deletion_ends() {
    for (rejected, status, kind) in [
        ("PUT nodes/_/states/provision manage", 400, ErrorType::Registration),
        ("PUT nodes/_/states/provision inspect", 400, ErrorType::Inspection),
        ("GET nodes/_/validate", 500, ErrorType::Provisioning),
    ] {
        let env = TestEnv::new(Setup::default());
        env.interceptor.log().rejected = Some((rejected, status));
        Phase::Enrol.begin(&env, 1).await;
        if kind == ErrorType::Provisioning {
            Phase::Enrol.end(&env, 1).await;
            env.edit(1, json!({ "spec": { "image": image() } })).await;
        }
        env.until(1, "error", fails_in(kind)).await;
        let message = env.get(1).await.unwrap().status.error_message;
        assert!(message.contains("the driver does not support this"), "{message}");
        env.interceptor.log().rejected = None;
        env.until(1, "state without error", |host| {
            host.is_some_and(|host| host.status.error_type.is_none())
        })
        .await;
        env.interceptor.log().rejected = Some(("PUT nodes/_/states/power", 400));
        env.delete(1).await;
        env.until(1, "end", |host| host.is_none()).await;
    }
}

/// The host stayed as it was without an error.
#[tokio::test(start_paused = true)]
async fn power_change_that_ironic_always_rejects_is_reported() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    env.interceptor.log().rejected = Some(("PUT nodes/_/states/power", 400));
    env.edit(1, json!({ "spec": { "online": false } })).await;
    env.until(1, "error", fails_in(ErrorType::ProvisionedRegistration))
        .await;
    env.interceptor.log().rejected = None;
    env.until(1, "off", |host| {
        host.is_some_and(|host| !host.status.powered_on && host.status.error_type.is_none())
    })
    .await;
}

/// Only with one value of the annotation was the host ever deleted.
#[tokio::test(start_paused = true)]
async fn detached_host_is_deleted_and_its_machine_keeps_running() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    let machine = |env: &TestEnv| {
        env.machine(1, |machine| {
            (machine.counts, machine.power.clone(), machine.disk.clone())
        })
    };
    let before = machine(&env);
    let annotation = json!({ "baremetalhost.metal3.io/detached": "for repair" });
    env.edit(1, json!({ "metadata": { "annotations": annotation } })).await;
    env.until(1, "detached host", |host| {
        host.is_some_and(|host| host.status.operational_status == OperationalStatus::Detached)
    })
    .await;
    assert!(env.node(1).await.is_none());
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(machine(&env), before);
}

/// An error of an earlier power change made the next soft power-off a hard one.
#[tokio::test(start_paused = true)]
async fn machine_is_asked_to_shut_down_despite_an_old_error_of_its_node() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    env.set_faults(1, &[Fault::PowerStuck]);
    env.edit(1, json!({ "spec": { "online": false } })).await;
    env.until(1, "error", fails_in(ErrorType::PowerManagement)).await;
    env.set_faults(1, &[]);
    env.edit(1, json!({ "spec": { "online": true } })).await;
    env.until(1, "host without error", |host| {
        host.is_some_and(|host| host.status.error_type.is_none())
    })
    .await;
    let error = env.node(1).await.unwrap().last_error;
    assert!(error.is_some_and(|error| error.contains("power")));
    let before = env.interceptor.log().asked.len();
    env.edit(1, json!({ "spec": { "online": false } })).await;
    env.until(1, "off", |host| host.is_some_and(|host| !host.status.powered_on))
        .await;
    let asked = env.interceptor.log().asked.split_off(before);
    let power: Vec<_> = asked.iter().filter(|what| what.contains("states/power")).collect();
    assert_eq!(power, ["PUT nodes/_/states/power soft power off"]);
}

/// The host was read before the node, and an edit while Ironic answered did not count.
#[tokio::test(start_paused = true)]
async fn disk_is_not_cleaned_when_an_edit_during_a_slow_read_of_the_node_forbids_it() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    let disk = env.machine(1, |machine| machine.disk.clone());
    {
        let mut log = env.interceptor.log();
        log.fault = Some((log.asked.len() + 1, IronicFault::Late));
    }
    env.edit(1, json!({ "spec": { "image": null } })).await;
    sleep(Duration::from_secs(5)).await;
    env.edit(1, json!({ "spec": { "automatedCleaningMode": "disabled" } }))
        .await;
    Phase::Deprovision.end(&env, 1).await;
    assert!(env.interceptor.log().injected);
    assert_eq!(env.machine(1, |machine| machine.disk.clone()), disk);
}

/// After four responses with an error of Ironic itself the node was deleted with the disk as it was.
#[tokio::test(start_paused = true)]
async fn failing_ironic_delays_a_deletion_and_does_not_skip_the_cleaning() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    // Reads succeed, so this is no outage.
    env.interceptor.log().rejected = Some(("PUT", 500));
    env.delete(1).await;
    env.until(1, "error", fails_in(ErrorType::Provisioning)).await;
    let before = env.interceptor.log().asked.len();
    sleep(Duration::from_hours(1)).await;
    let asked = env.interceptor.log().asked.len() - before;
    let host = env.get(1).await.unwrap();
    assert_eq!(host.status.provisioning.state, ProvisioningState::Deprovisioning);
    assert!(asked < 150, "{asked} requests");
    env.interceptor.log().rejected = None;
    env.until(1, "end", |host| host.is_none()).await;
    env.machine(1, |machine| assert!(machine.disk.is_none(), "the disk was not cleaned"));
}

/// Its power-off was repeated for ever.
#[tokio::test(start_paused = true)]
async fn failing_power_off_does_not_keep_a_deletion() {
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    env.until(1, "on", |host| host.is_some_and(|host| host.status.powered_on))
        .await;
    env.interceptor.log().rejected = Some(("PUT nodes/_/states/power", 500));
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    assert!(env.node(1).await.is_none());
}

/// A detachment that Ironic rejected was repeated without a pause.
#[tokio::test(start_paused = true)]
async fn detachment_that_ironic_rejects_is_repeated_with_pauses() {
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    let node = NodeRef::from(&env.node(1).await.unwrap().uuid);
    let instance = env.get(1).await.unwrap().metadata.uid.unwrap();
    let patch = metal3_ironic::calls::patch::Patch::new().set(&["instance_uuid"], instance);
    let client = env.ironic.client().unwrap();
    client
        .send(&metal3_ironic::calls::node::patch(&node, patch).unwrap())
        .await
        .unwrap();
    let before = env.interceptor.log().asked.len();
    env.interceptor.log().rejected = Some(("PATCH nodes/_", 400));
    let annotation = json!({ "baremetalhost.metal3.io/detached": "" });
    env.edit(1, json!({ "metadata": { "annotations": annotation } })).await;
    sleep(Duration::from_mins(1)).await;
    let asked = env.interceptor.log().asked.len() - before;
    assert!((1..20).contains(&asked), "{asked} requests in a minute");
}

/// A rejection of a request that the host does not need any more was reported again and again.
#[tokio::test(start_paused = true)]
async fn rejection_of_a_reboot_that_is_taken_back_is_not_reported_again() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    env.interceptor.log().rejected = Some(("PUT nodes/_/states/power", 409));
    let reboot = |value: serde_json::Value| json!({ "metadata": { "annotations": { "reboot.metal3.io": value } } });
    env.edit(1, reboot(json!(r#"{"mode":"hard"}"#))).await;
    env.until(1, "error", fails_in(ErrorType::ProvisionedRegistration))
        .await;
    // An annotation does not change the generation.
    env.edit(1, reboot(json!(null))).await;
    env.interceptor.log().rejected = None;
    env.until(1, "host without error", |host| {
        host.is_some_and(|host| host.status.error_type.is_none())
    })
    .await;
    for minute in 0..60 {
        env.edit(1, json!({ "metadata": { "labels": { "minute": minute.to_string() } } }))
            .await;
        sleep(Duration::from_mins(1)).await;
        let status = env.get(1).await.unwrap().status;
        assert_eq!(status.error_message, "", "after {minute} minutes");
    }
}

/// Three equal responses came within some milliseconds, and were taken for a failure that lasts.
#[tokio::test(start_paused = true)]
async fn short_failure_of_ironic_is_no_error_of_a_host() {
    let env = TestEnv::new(Setup::default());
    with_image_requested(&env).await;
    Phase::Provision.end(&env, 1).await;
    env.interceptor.log().rejected = Some(("PUT nodes/_/states/power", 500));
    env.edit(1, json!({ "spec": { "online": false } })).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(env.get(1).await.unwrap().status.error_message, "");
    env.interceptor.log().rejected = None;
    let began = Instant::now();
    env.until(1, "off", |host| host.is_some_and(|host| !host.status.powered_on))
        .await;
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

/// A new host needs a read before its first request.
#[tokio::test(start_paused = true)]
async fn rejected_access_of_a_read_is_reported() {
    let env = TestEnv::new(Setup::default());
    env.interceptor.log().rejected = Some(("GET nodes/_", 401));
    env.host(1, json!({})).await;
    let reports = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            host.status
                .error_message
                .contains("Ironic rejected the request (read node)")
        })
    };
    env.until(1, "error about the access", reports).await;
    env.interceptor.log().rejected = None;
    env.until_state(1, "available").await;
}
