//! Images of agents that are built for each host (`--build-preprov-image`): by this program, and by another builder.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, PreprovisioningImage};
use metal3_hosts::node::{Ramdisk, Ramdisks};
use metal3_sim_cluster::Admission;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, Setup, TestEnv};
use crate::faults::FAULTS;
use crate::interceptor::IronicFault;
use crate::phases::{Phase, image};
use crate::unserved::{delete, is_gone, until_gone};
use crate::waits::Writes;

const ISO: &str = "http://192.0.2.9/agent.iso";
const BUILT: &str = "http://builder.example/host-1";
const HOUR: Duration = Duration::from_hours(1);
const MINUTES: Duration = Duration::from_mins(10);

fn configured() -> Ramdisks {
    let usual = Ramdisk {
        iso: Some(ISO.to_owned()),
        ..Ramdisk::default()
    };
    Ramdisks {
        usual,
        ..Ramdisks::default()
    }
}

fn env(ramdisks: Ramdisks) -> TestEnv {
    TestEnv::new(Setup {
        agent_images: Some(ramdisks),
        unserved: true,
        ..Setup::default()
    })
}

async fn image_of(env: &TestEnv) -> Option<PreprovisioningImage> {
    env.api::<PreprovisioningImage>().get_opt("host-1").await.unwrap()
}

async fn until_requested(env: &TestEnv) -> PreprovisioningImage {
    let (mut waited, mut writes) = (Duration::ZERO, Writes::default());
    loop {
        if writes.are_new(env)
            && let Some(image) = image_of(env).await
        {
            return image;
        }
        assert!(waited < HOUR, "no image is requested: {:?}", env.get(1).await);
        sleep(Duration::from_secs(1)).await;
        waited += Duration::from_secs(1);
    }
}

/// Serves the image as another builder does: with the finalizer, then the status.
async fn serve(env: &TestEnv, url: &str) {
    let api = env.api::<PreprovisioningImage>();
    let image = until_requested(env).await;
    let mut finalizers = image.metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|one| one == "preprovisioningimage.metal3.io") {
        finalizers.push("preprovisioningimage.metal3.io".to_owned());
    }
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let image = api.patch("host-1", &PatchParams::default(), &patch).await.unwrap();
    let mut network = Value::Null;
    if let Some(name) = image.spec.network_data_name.as_deref() {
        let version = env.api::<Secret>().get(name).await.unwrap().metadata.resource_version;
        network = json!({ "name": name, "version": version });
    }
    let condition = |kind: &str, status: &str| {
        json!({ "type": kind, "status": status, "reason": "ImageSuccess", "message": "", "observedGeneration": image.metadata.generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let status = json!({ "status": { "imageUrl": url, "kernelUrl": "http://builder.example/kernel", "extraKernelParams": "ip=dhcp",
        "format": "initrd", "architecture": image.spec.architecture, "networkData": network,
        "conditions": [condition("Ready", "True"), condition("Error", "False")] } });
    api.patch_status("host-1", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

fn held(host: Option<&BareMetalHost>) -> Option<(String, String)> {
    let mut conditions = host?.status.conditions.iter();
    let held = conditions.find(|condition| condition.type_ == "Held")?;
    Some((held.reason.clone(), held.message.clone()))
}

async fn until_held(env: &TestEnv, reason: &str) -> String {
    let is_held = |host: Option<&BareMetalHost>| held(host).is_some_and(|(found, _)| found == reason);
    env.until(1, reason, is_held).await;
    held(env.get(1).await.as_ref()).unwrap().1
}

async fn agent_of_node(env: &TestEnv) -> Value {
    let info = env.node(1).await.unwrap().driver_info;
    let keys = ["deploy_iso", "deploy_kernel", "deploy_ramdisk", "kernel_append_params"];
    json!(keys.map(|key| info.get(key).cloned()))
}

/// The garbage collector deletes the image of a host that is gone, and its builder lets it go.
async fn until_collected(env: &TestEnv) {
    env.cluster.collect_garbage();
    until_gone::<PreprovisioningImage>(env, "host-1").await;
}

/// A life with the configured images.
async fn live(env: &TestEnv, case: &dyn std::fmt::Debug) {
    for phase in Phase::ALL {
        phase.begin(env, 1).await;
        phase.end(env, 1).await;
        match phase {
            Phase::Delete => until_collected(env).await,
            _ => {
                let status = image_of(env).await.unwrap().status;
                assert_eq!(status.image_url.as_deref(), Some(ISO), "{case:?} {phase:?}");
                assert_eq!(
                    agent_of_node(env).await,
                    json!([ISO, null, null, null]),
                    "{case:?} {phase:?}"
                );
            }
        }
    }
    assert!(env.node(1).await.is_none(), "{case:?}");
}

#[tokio::test(start_paused = true)]
async fn host_boots_the_configured_agent_that_its_image_names() {
    let env = env(configured());
    live(&env, &"no fault").await;
    let audit = env.cluster.audit();
    let writes = |verb, resource| audit.of(CONTROLLER_USER, verb, resource);
    assert_eq!(writes("create", "preprovisioningimages"), 1);
    assert_eq!(writes("patch", "preprovisioningimages/status"), 1);
    // The removal of both finalizers.
    assert_eq!(writes("patch", "preprovisioningimages"), 2);
    assert!(!env.events().contains("KindUnserved"));
}

/// Without the flag not one request concerns the kind.
#[tokio::test(start_paused = true)]
async fn host_without_the_flag_has_no_image() {
    let env = TestEnv::new(Setup::default());
    for phase in Phase::ALL {
        phase.begin(&env, 1).await;
        phase.end(&env, 1).await;
    }
    let audit = env.cluster.audit();
    let of_kind = audit
        .counts()
        .filter(|((user, _, resource), _)| *user == CONTROLLER_USER && resource.starts_with("preprovisioningimages"));
    assert_eq!(of_kind.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_write_of_an_image_leaves_one_life() {
    let kinds = [
        ("create", "preprovisioningimages", 1),
        ("patch", "preprovisioningimages", 2),
        ("patch", "preprovisioningimages/status", 1),
    ];
    for (verb, resource, count) in kinds {
        for at in 1..=count {
            for fault in FAULTS {
                let env = env(configured());
                let rule = Rule::at(at, fault).verb(verb).resource(resource);
                env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
                live(&env, &(verb, resource, at, fault)).await;
                assert!(env.cluster.injected() > 0, "{verb} {resource} {at} was not made");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_request_to_ironic_leaves_one_life() {
    let env_without = env(configured());
    live(&env_without, &"no fault").await;
    let requests = env_without.interceptor.log().asked.len();
    for at in 1..=requests {
        let fault = IronicFault::ALL[at % IronicFault::ALL.len()];
        let env = env(configured());
        env.interceptor.log().fault = Some((at, fault));
        live(&env, &(at, fault)).await;
        assert!(env.interceptor.log().injected, "{at} was not made");
    }
}

#[tokio::test(start_paused = true)]
async fn host_waits_for_another_builder_and_boots_what_it_built() {
    let env = env(Ramdisks::default());
    env.host(1, json!({})).await;
    let message = until_held(&env, "PreprovisioningImagePending").await;
    assert!(
        message.contains("PreprovisioningImage host-1 is not ready") && message.contains("start one"),
        "{message}"
    );
    sleep(HOUR).await;
    let image = image_of(&env).await.unwrap();
    assert_eq!(image.metadata.annotations, None, "another one builds it");
    assert_eq!(
        serde_json::to_value(&image.status).unwrap(),
        json!({}),
        "and writes its status"
    );
    assert_eq!(
        env.get(1).await.unwrap().status.provisioning.state.to_string(),
        "inspecting"
    );
    serve(&env, BUILT).await;
    env.until_state(1, "available").await;
    assert_eq!(held(env.get(1).await.as_ref()), None);
    let params = "%default% ip=dhcp";
    assert_eq!(
        agent_of_node(&env).await,
        json!([null, "http://builder.example/kernel", BUILT, params])
    );
}

async fn provisioned_by_another_builder() -> TestEnv {
    let env = env(Ramdisks::default());
    env.host(1, json!({})).await;
    serve(&env, BUILT).await;
    env.until_state(1, "available").await;
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    env.until_state(1, "provisioned").await;
    env
}

/// The builder of the image does nothing any more.
#[tokio::test(start_paused = true)]
async fn deleted_host_waits_for_no_builder() {
    let env = provisioned_by_another_builder().await;
    env.edit(1, json!({ "spec": { "architecture": "aarch64" } })).await;
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    env.machine(1, |machine| assert!(machine.disk.is_none()));
    until_collected(&env).await;
}

#[tokio::test(start_paused = true)]
async fn host_without_an_image_is_deprovisioned_by_the_agent_that_its_node_has() {
    let env = provisioned_by_another_builder().await;
    env.edit(1, json!({ "spec": { "image": null, "architecture": "aarch64" } }))
        .await;
    env.until_state(1, "available").await;
    env.machine(1, |machine| assert!(machine.disk.is_none()));
    // What is deployed next waits for the new image.
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    until_held(&env, "PreprovisioningImagePending").await;
    serve(&env, "http://builder.example/arm").await;
    env.until_state(1, "provisioned").await;
    assert_eq!(agent_of_node(&env).await[2], json!("http://builder.example/arm"));
}

#[tokio::test(start_paused = true)]
async fn refused_image_is_named_in_a_condition_and_tried_again() {
    let env = env(configured());
    let refused = Fault::Refused {
        code: 403,
        retry_after: None,
    };
    let rule = Rule::at(1, refused).verb("create").resource("preprovisioningimages");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
    env.host(1, json!({})).await;
    let message = until_held(&env, "PreprovisioningImageRefused").await;
    assert!(message.contains("rights, quotas and webhooks"), "{message}");
    env.until_state(1, "available").await;
    assert_eq!(held(env.get(1).await.as_ref()), None);
}

fn always(code: u16, verb: &'static str) -> Plan {
    let refused = Fault::Refused {
        code,
        retry_after: None,
    };
    let rule = Rule::random(1000, refused);
    Plan::none().with(rule.verb(verb).resource("preprovisioningimages"))
}

/// A webhook that is down answers for it.
#[tokio::test(start_paused = true)]
async fn image_that_cannot_be_created_stops_no_erasure() {
    let env = env(configured());
    env.host(1, json!({ "image": image() })).await;
    env.until_state(1, "provisioned").await;
    let api = env.api::<PreprovisioningImage>();
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    delete::<PreprovisioningImage>(&env, "host-1").await;
    api.patch("host-1", &PatchParams::default(), &released).await.unwrap();
    env.cluster.inject_for(&[CONTROLLER_USER], always(500, "create"));
    env.edit(1, json!({ "spec": { "image": null } })).await;
    env.until_state(1, "available").await;
    env.machine(1, |machine| assert!(machine.disk.is_none()));
    assert!(env.cluster.injected() > 0);
}

/// A policy removes a label that the host has.
#[tokio::test(start_paused = true)]
async fn change_that_a_webhook_takes_back_is_not_repeated_without_end() {
    let env = env(configured());
    let without_label = |_: &Admission<'_>, image: &mut Value| {
        image["metadata"]["labels"] = Value::Null;
        Ok(())
    };
    let kind = "PreprovisioningImage";
    env.cluster.mutate("policy", "metal3.io", kind, Arc::new(without_label));
    env.host(1, json!({})).await;
    env.edit(1, json!({ "metadata": { "labels": { "rack": "7" } } })).await;
    env.until_state(1, "available").await;
    let patches = || {
        env.cluster
            .audit()
            .of(CONTROLLER_USER, "patch", "preprovisioningimages")
    };
    let before = patches();
    assert!(before < 10, "{before}");
    sleep(HOUR).await;
    assert!(patches() < before + 15, "{before} {}", patches());
}

/// A policy removes annotations of others, so that nothing shows who builds the image.
#[tokio::test(start_paused = true)]
async fn builder_repeats_no_claim_that_a_webhook_takes_back() {
    let env = env(configured());
    let without_builder = |_: &Admission<'_>, image: &mut Value| {
        image["metadata"]["annotations"] = Value::Null;
        Ok(())
    };
    let kind = "PreprovisioningImage";
    env.cluster
        .mutate("policy", "metal3.io", kind, Arc::new(without_builder));
    env.host(1, json!({})).await;
    until_held(&env, "PreprovisioningImagePending").await;
    sleep(HOUR).await;
    let patches = env
        .cluster
        .audit()
        .of(CONTROLLER_USER, "patch", "preprovisioningimages");
    assert!(patches < 30, "{patches}");
}

#[tokio::test(start_paused = true)]
async fn image_that_cannot_be_released_stops_no_deletion() {
    let env = env(configured());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    env.cluster.inject_for(&[CONTROLLER_USER], always(403, "patch"));
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    assert!(env.cluster.injected() > 0);
}

#[tokio::test(start_paused = true)]
async fn image_waits_for_its_network_data_and_follows_them() {
    let env = env(configured());
    env.host(1, json!({ "preprovisioningNetworkDataName": "net" })).await;
    let has_failed =
        |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_type == Some(ErrorType::Registration));
    env.until(1, "error", has_failed).await;
    let secret = json!({ "metadata": { "name": "net", "labels": { "environment.metal3.io": "baremetal" } },
        "stringData": { "networkData": "{\"links\":[]}" } });
    env.make::<Secret>(secret).await;
    env.until_state(1, "available").await;
    let has_network = |node: &metal3_ironic::model::node::Node| node.network_data.0.contains_key("links");
    assert!(
        has_network(&env.node(1).await.unwrap()),
        "the configured image has none"
    );
    let built = image_of(&env).await.unwrap().status.network_data.unwrap();
    let secret = env.api::<Secret>().get("net").await.unwrap();
    assert_eq!(built.version, secret.metadata.resource_version);
    env.edit(1, json!({ "spec": { "preprovisioningNetworkDataName": null } }))
        .await;
    sleep(MINUTES).await;
    assert!(!has_network(&env.node(1).await.unwrap()));
    let status = image_of(&env).await.unwrap().status;
    assert_eq!((status.network_data, status.image_url.as_deref()), (None, Some(ISO)));
}

/// A user deletes it.
#[tokio::test(start_paused = true)]
async fn deleted_image_is_used_while_the_machine_needs_it_and_replaced_then() {
    let env = env(configured());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    env.until_state(1, "provisioned").await;
    let former = image_of(&env).await.unwrap().metadata.uid;
    delete::<PreprovisioningImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    assert_eq!(image_of(&env).await.unwrap().metadata.uid, former);
    let edited = json!({ "metadata": { "labels": { "rack": "7" } }, "spec": { "image": null } });
    env.edit(1, edited).await;
    env.until_state(1, "available").await;
    sleep(MINUTES).await;
    let image = image_of(&env).await.unwrap();
    assert_ne!(image.metadata.uid, former);
    assert_eq!(image.metadata.labels.unwrap()["rack"], "7");
}

/// The work on the host may take days.
#[tokio::test(start_paused = true)]
async fn deleted_image_of_a_paused_host_is_reported_once() {
    let env = env(configured());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    env.edit(
        1,
        json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "" } } }),
    )
    .await;
    sleep(MINUTES).await;
    let written = || {
        let audit = env.cluster.audit();
        let of = |resource| audit.of(CONTROLLER_USER, "patch", resource);
        (of("preprovisioningimages"), of("preprovisioningimages/status"))
    };
    let before = written();
    delete::<PreprovisioningImage>(&env, "host-1").await;
    sleep(HOUR).await;
    assert_eq!(written(), (before.0, before.1 + 1));
    let conditions = image_of(&env).await.unwrap().status.conditions;
    let error = conditions.iter().find(|one| one.type_ == "Error").unwrap();
    assert!(error.message.contains("its host is paused"), "{}", error.message);
}

/// Its builder is gone: the machine that names it in Ironic does not hold it.
#[tokio::test(start_paused = true)]
async fn deleted_image_of_a_builder_that_is_gone_is_replaced() {
    let env = env(Ramdisks::default());
    env.host(1, json!({})).await;
    serve(&env, BUILT).await;
    env.until_state(1, "available").await;
    let former = image_of(&env).await.unwrap().metadata.uid;
    delete::<PreprovisioningImage>(&env, "host-1").await;
    sleep(HOUR).await;
    assert_ne!(image_of(&env).await.unwrap().metadata.uid, former);
}

/// A user removes the finalizer of the host by hand, and creates the host again.
#[tokio::test(start_paused = true)]
async fn image_of_a_former_host_makes_way_for_that_of_the_next() {
    for ramdisks in [configured(), Ramdisks::default()] {
        let env = env(ramdisks.clone());
        env.host(1, json!({})).await;
        if ramdisks == Ramdisks::default() {
            serve(&env, BUILT).await;
        }
        env.until_state(1, "available").await;
        let former = image_of(&env).await.unwrap().metadata.uid;
        env.delete(1).await;
        env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
        assert!(env.get(1).await.is_none());
        env.make::<BareMetalHost>(env.document(1, &json!({}))).await;
        env.cluster.collect_garbage();
        sleep(HOUR).await;
        assert_ne!(image_of(&env).await.unwrap().metadata.uid, former, "{ramdisks:?}");
    }
}

/// Nothing holds it that is not there.
#[tokio::test(start_paused = true)]
async fn deleted_image_without_host_and_builder_disappears() {
    let env = env(Ramdisks::default());
    let finalizers = [
        "preprovisioningimage.metal3.io",
        "baremetalhost.metal3.io/preprovisioningImage",
    ];
    let document = json!({ "metadata": { "name": "host-1", "finalizers": finalizers }, "spec": {} });
    env.make::<PreprovisioningImage>(document).await;
    sleep(HOUR).await;
    assert!(!is_gone::<PreprovisioningImage>(&env, "host-1").await);
    delete::<PreprovisioningImage>(&env, "host-1").await;
    until_gone::<PreprovisioningImage>(&env, "host-1").await;
}
