//! HostClaims: tenants who get hosts of another namespace.

mod annotations;
mod bonds;
mod moves;
mod secrets;
mod security;
mod story;
mod sweep;
mod tenant;

use std::time::Duration;

use metal3_api::metal3::v1alpha1::HardwareData;
use serde_json::json;
use tokio::time::sleep;

use crate::env::CONTROLLER_USER;
use tenant::{Tenant, condition, image, reason, status_of};

const HOUR: Duration = Duration::from_hours(1);
const MINUTES: Duration = Duration::from_mins(3);

#[tokio::test(start_paused = true)]
async fn claim_gets_a_host_runs_its_image_and_gives_the_host_back_clean() {
    let tenant = Tenant::new().await;
    let env = &tenant.env;
    tenant.open(json!({ "names": ["tenant"] })).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    let claim = tenant.until_ready("c").await;
    let host = env.get(1).await.unwrap();
    let consumer = host.spec.consumer_ref.clone().unwrap();
    assert_eq!(
        (consumer.name.as_deref(), consumer.namespace.as_deref()),
        (Some("c"), Some("tenant"))
    );
    for name in ["Associated", "Synchronized", "Provisioned", "Ready"] {
        assert_eq!(condition(&claim, name), "True", "{name}: {}", status_of(&claim));
    }
    let bound = claim.status.bare_metal_host.clone().unwrap();
    assert_eq!((bound.namespace.as_str(), bound.name.as_str()), ("default", "host-1"));
    assert_eq!(claim.status.hardware_data, Some(bound));
    assert_eq!(claim.status.powered_on, Some(true));
    env.cluster.reset_audit();
    sleep(24 * HOUR).await;
    let writes = |resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource);
    assert_eq!([writes("hostclaims"), writes("hostclaims/status")], [0, 0], "settled");
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    let host = env.get(1).await.unwrap();
    assert_eq!(host.status.provisioning.state.to_string(), "available");
    assert!(host.spec.consumer_ref.is_none() && host.spec.image.is_none() && !host.spec.online);
    assert!(host.annotation("hostclaim.metal3.io/bond").is_none());
    assert!(env.machine(1, |machine| machine.disk.is_none()), "its disk is clean");
}

#[tokio::test(start_paused = true)]
async fn claim_waits_without_polling_until_a_policy_and_a_host_exist() {
    let tenant = Tenant::without_host();
    tenant.claim("c", json!({ "poweredOn": true })).await;
    sleep(MINUTES).await;
    let claim = tenant.get("c").await;
    assert_eq!(reason(&claim, "Associated"), "NoBareMetalHost");
    assert!(
        status_of(&claim).contains("a HostDeployPolicy permits"),
        "{}",
        status_of(&claim)
    );
    tenant.env.cluster.reset_audit();
    sleep(24 * HOUR).await;
    assert_eq!(tenant.env.cluster.audit().of(CONTROLLER_USER, "get", "hostclaims"), 0);
    tenant.open(json!({})).await;
    sleep(Duration::from_secs(2)).await;
    assert!(status_of(&tenant.get("c").await).contains("no host is free"));
    tenant.env.host(1, json!({})).await;
    tenant.until_bound("c").await;
}

#[tokio::test(start_paused = true)]
async fn two_claims_never_share_a_host_and_the_second_gets_it_after_the_first() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    for name in ["a", "b"] {
        tenant.claim(name, json!({ "poweredOn": true, "image": image() })).await;
    }
    sleep(HOUR).await;
    let bound = |claim: &metal3_api::metal3::v1alpha1::HostClaim| claim.status.bare_metal_host.is_some();
    let (a, b) = (tenant.get("a").await, tenant.get("b").await);
    assert!(bound(&a) != bound(&b), "{} {}", status_of(&a), status_of(&b));
    let (first, second) = if bound(&a) { ("a", "b") } else { ("b", "a") };
    tenant.delete(first).await;
    tenant.until_ready(second).await;
    assert!(tenant.find(first).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn reboot_is_passed_on_once_and_a_key_keeps_the_host_off() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    tenant.until_ready("c").await;
    let boots = || tenant.env.machine(1, |machine| machine.counts.started);
    let before = boots();
    tenant
        .annotate("c", json!({ "reboot.metal3.io": "{\"mode\":\"hard\"}" }))
        .await;
    sleep(HOUR).await;
    assert_eq!(boots(), before + 1);
    let claim = tenant.get("c").await;
    let annotations = claim.metadata.annotations.clone().unwrap_or_default();
    let left: Vec<&String> = annotations.keys().collect();
    assert_eq!(left, ["hostclaim.metal3.io/host"], "{annotations:?}");
    tenant.annotate("c", json!({ "reboot.metal3.io/work": "" })).await;
    tenant
        .until("c", "off", |claim| claim.status.powered_on != Some(true))
        .await;
    tenant.annotate("c", json!({ "reboot.metal3.io/work": null })).await;
    tenant
        .until("c", "on", |claim| claim.status.powered_on == Some(true))
        .await;
}

#[tokio::test(start_paused = true)]
async fn pause_of_a_claim_pauses_its_host_and_a_moved_claim_erases_nothing() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    tenant.until_ready("c").await;
    tenant.annotate("c", json!({ "cluster.x-k8s.io/paused": "" })).await;
    sleep(MINUTES).await;
    let paused = |host: metal3_api::metal3::v1alpha1::BareMetalHost| {
        host.annotation("baremetalhost.metal3.io/paused").map(str::to_owned)
    };
    assert_eq!(
        paused(tenant.env.get(1).await.unwrap()).as_deref(),
        Some("metal3.io/hostclaim")
    );
    tenant.delete("c").await;
    sleep(HOUR).await;
    assert!(
        tenant.env.get(1).await.unwrap().spec.image.is_some(),
        "paused claims release nothing"
    );
    let moving = json!({ "cluster.x-k8s.io/paused": null, "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
    tenant.annotate("c", moving).await;
    tenant.env.interceptor.kill();
    sleep(HOUR).await;
    assert!(
        tenant.env.get(1).await.unwrap().spec.image.is_some(),
        "a moved claim erases nothing"
    );
    assert!(tenant.find("c").await.is_some(), "clusterctl removes the finalizer");
}

#[tokio::test(start_paused = true)]
async fn host_kept_for_reuse_is_for_claims_of_the_same_namespace_and_value() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    let labels = json!({ "infrastructure.cluster.x-k8s.io/node-reuse": "kcp" });
    let runs = json!({ "poweredOn": true, "image": image() });
    tenant
        .labelled_claim("unused", labels.clone(), json!({ "poweredOn": true }))
        .await;
    tenant.until_bound("unused").await;
    tenant.delete("unused").await;
    tenant.until_gone("unused").await;
    let released = tenant.env.get(1).await.unwrap();
    assert!(
        released.label("infrastructure.cluster.x-k8s.io/node-reuse").is_none(),
        "what ran nothing is not kept"
    );
    tenant.labelled_claim("a", labels.clone(), runs).await;
    tenant.until_ready("a").await;
    tenant.delete("a").await;
    tenant.until_gone("a").await;
    let label = tenant
        .env
        .get(1)
        .await
        .unwrap()
        .label("infrastructure.cluster.x-k8s.io/node-reuse")
        .map(str::to_owned);
    assert_eq!(label.as_deref(), Some("tenant.kcp"));
    tenant.claim("other", json!({ "poweredOn": true })).await;
    sleep(HOUR / 2).await;
    assert!(
        tenant.get("other").await.status.bare_metal_host.is_none(),
        "it is kept for others"
    );
    tenant.labelled_claim("b", labels, json!({ "poweredOn": true })).await;
    tenant.until_bound("b").await;
    tenant.delete("b").await;
    tenant.until_gone("b").await;
    tenant.until_bound("other").await;
}

#[tokio::test(start_paused = true)]
async fn host_that_is_gone_is_reported_and_not_replaced() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true })).await;
    tenant.until_bound("c").await;
    tenant.env.delete(1).await;
    tenant
        .until("c", "a missing host", |claim| {
            reason(claim, "Associated") == "MissingBareMetalHost"
        })
        .await;
    tenant.env.host(2, json!({})).await;
    sleep(HOUR).await;
    assert_eq!(tenant.get("c").await.status.bare_metal_host.unwrap().name, "host-1");
    tenant.delete("c").await;
    tenant.until_gone("c").await;
}

#[tokio::test(start_paused = true)]
async fn labels_that_a_policy_names_are_copied_to_hardware_data_and_removed_again() {
    let tenant = Tenant::new().await;
    let labels = json!({ "rack": "r7", "topology.example/zone": "z", "secret": "x" });
    tenant.env.edit(1, json!({ "metadata": { "labels": labels } })).await;
    let copy = json!({ "labelsMatch": "rack|topology\\.example/.*", "annotationsMatch": ".*" });
    tenant
        .policy("p", json!({ "hostClaimNamespaces": {}, "metadataCopy": copy }))
        .await;
    tenant.claim("c", json!({ "poweredOn": true })).await;
    tenant.until_bound("c").await;
    sleep(MINUTES).await;
    let found = || async { tenant.env.api::<HardwareData>().get("host-1").await.unwrap().metadata };
    let labels = found().await.labels.unwrap_or_default();
    assert_eq!(labels.get("rack").map(String::as_str), Some("r7"), "{labels:?}");
    assert!(
        labels.contains_key("topology.example/zone") && !labels.contains_key("secret"),
        "{labels:?}"
    );
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    let left = found().await;
    assert!(!left.labels.unwrap_or_default().contains_key("rack"));
    assert!(
        !left
            .annotations
            .unwrap_or_default()
            .contains_key("hostclaim.metal3.io/copied-metadata")
    );
}
