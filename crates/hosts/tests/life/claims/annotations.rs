//! What becomes of the annotation of a claim while nothing else names its host, and what it cannot reach.

use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;
use tokio::time::sleep;

use super::tenant::{NAMESPACE, Tenant, image, reason, status_of};
use super::{HOUR, MINUTES};
use crate::env::CONTROLLER_USER;

const TRACE: &str = "hostclaim.metal3.io/host";
const ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// A claim whose status cannot be written, with a second host that is free.
async fn without_status() -> Tenant {
    let tenant = Tenant::new().await;
    tenant.env.host(2, json!({})).await;
    tenant.env.until_state(2, "available").await;
    let never = Rule::random(1000, Fault::refused(500))
        .verb("patch")
        .resource("hostclaims/status");
    tenant
        .env
        .cluster
        .inject_for(&[CONTROLLER_USER], Plan::none().with(never));
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    sleep(MINUTES).await;
    assert_eq!(bound(&tenant).await.len(), 1);
    for name in ["host-1", "host-2"] {
        let host = tenant.env.api::<BareMetalHost>().get(name).await.unwrap();
        assert!(
            host.spec.image.is_none(),
            "nothing is deployed before the status names it"
        );
    }
    tenant
}

/// The hosts that have the claim as their consumer.
async fn bound(tenant: &Tenant) -> Vec<String> {
    let mut bound = Vec::new();
    for number in [1, 2] {
        let host = tenant.env.get(number).await.unwrap();
        if host.spec.consumer_ref.is_some() {
            bound.push(format!("host-{number}"));
        }
    }
    bound
}

#[tokio::test(start_paused = true)]
async fn annotation_that_is_removed_before_the_first_status_gets_no_second_host() {
    let tenant = without_status().await;
    let first = bound(&tenant).await;
    for _ in 0..5 {
        tenant.annotate("c", json!({ TRACE: null })).await;
        tenant.env.interceptor.kill();
        sleep(Duration::from_secs(5)).await;
        assert_eq!(bound(&tenant).await, first);
    }
    tenant.annotate("c", json!({ TRACE: null })).await;
    tenant.env.cluster.inject_for(&[CONTROLLER_USER], Plan::none());
    let claim = tenant.until_ready("c").await;
    assert_eq!(Some(claim.status.bare_metal_host.unwrap().name), first.first().cloned());
    assert_eq!(bound(&tenant).await, first);
}

#[tokio::test(start_paused = true)]
async fn claim_whose_annotation_is_removed_before_the_first_status_is_deleted_with_its_bond() {
    let tenant = without_status().await;
    tenant.annotate("c", json!({ TRACE: null })).await;
    tenant.delete("c").await;
    tenant.annotate("c", json!({ TRACE: null })).await;
    tenant.env.cluster.inject_for(&[CONTROLLER_USER], Plan::none());
    tenant.until_gone("c").await;
    assert!(bound(&tenant).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn annotation_brings_no_host_of_a_namespace_that_is_not_watched_into_the_program() {
    let tenant = Tenant::of(Some("default"));
    tenant.env.host(1, json!({})).await;
    tenant.env.until_state(1, "available").await;
    tenant.namespace("elsewhere", json!({})).await;
    let client = tenant.env.cluster.client("admin");
    let elsewhere: Api<BareMetalHost> = Api::namespaced(client.clone(), "elsewhere");
    let x = json!({ "metadata": { "name": "x" }, "spec": { "online": true } });
    let x = serde_json::from_value(x).unwrap();
    let before = elsewhere.create(&PostParams::default(), &x).await.unwrap();
    let claims: Api<HostClaim> = Api::namespaced(client.clone(), "default");
    let document = json!({ "metadata": { "name": "c" }, "spec": { "poweredOn": true } });
    let claim: HostClaim = serde_json::from_value(document).unwrap();
    let created = claims.create(&PostParams::default(), &claim).await.unwrap();
    let annotate = async |uid: &str| {
        let name = if uid == "former" { "d" } else { "c" };
        let of = format!("default/{name}");
        let text = json!({ "claim": of, "host": "elsewhere/x", "id": ID, "uid": uid }).to_string();
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { TRACE: text } } }));
        claims.patch(name, &PatchParams::default(), &patch).await.unwrap();
        sleep(MINUTES).await;
    };
    let is_untouched = async || {
        let x = elsewhere.get("x").await.unwrap();
        assert_eq!(x.metadata.resource_version, before.metadata.resource_version, "{x:#?}");
    };
    let mut restored = claim.clone();
    restored.metadata.name = Some("d".to_owned());
    claims.create(&PostParams::default(), &restored).await.unwrap();
    let own = created.metadata.uid.unwrap();
    for uid in [own.as_str(), "former"] {
        annotate(uid).await;
        is_untouched().await;
    }
    // A consumer of another namespace brings no claim into it either.
    let foreign: Api<HostClaim> = Api::namespaced(client, NAMESPACE);
    tenant.namespace(NAMESPACE, json!({})).await;
    foreign.create(&PostParams::default(), &claim).await.unwrap();
    tenant.open(json!({})).await;
    let consumer =
        json!({ "kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "c", "namespace": NAMESPACE });
    tenant.env.edit(1, json!({ "spec": { "consumerRef": consumer } })).await;
    sleep(HOUR).await;
    let unserved = foreign.get("c").await.unwrap();
    assert!(unserved.status.conditions.is_empty(), "{}", status_of(&unserved));
    assert!(unserved.metadata.finalizers.is_none());
    // Its own claims get hosts of its own namespace.
    tenant.env.edit(1, json!({ "spec": { "consumerRef": null } })).await;
    annotate(&own).await;
    is_untouched().await;
    let served = claims.get("c").await.unwrap();
    assert_eq!(
        served.status.bare_metal_host.as_ref().map(|host| host.name.as_str()),
        Some("host-1")
    );
    let_go(&claims).await;
}

/// A host that cannot be read may be bound to a deleted claim, until its annotation names none.
async fn let_go(claims: &Api<HostClaim>) {
    claims.delete("c", &DeleteParams::default()).await.unwrap();
    sleep(HOUR).await;
    let deleted = claims.get("c").await.unwrap();
    let why = status_of(&deleted);
    assert!(why.contains("restore the annotation hostclaim.metal3.io/host"), "{why}");
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { TRACE: null } } }));
    claims.patch("c", &PatchParams::default(), &patch).await.unwrap();
    sleep(HOUR).await;
    assert!(claims.get_opt("c").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn annotations_do_not_undo_the_number_of_claims_that_wait_at_a_time() {
    let tenant = Tenant::without_host();
    tenant.open(json!({})).await;
    for number in 0..102 {
        let name = format!("c{number:03}");
        tenant.claim(&name, json!({ "poweredOn": true })).await;
        let uid = tenant.get(&name).await.metadata.uid;
        let text = json!({ "claim": format!("{NAMESPACE}/{name}"), "host": "default/host-1", "id": ID, "uid": uid });
        tenant.annotate(&name, json!({ TRACE: text.to_string() })).await;
    }
    sleep(MINUTES).await;
    let beyond = tenant.get("c101").await;
    assert_eq!(reason(&beyond, "Associated"), "NoBareMetalHost");
    assert!(
        status_of(&beyond).contains("other claims of this namespace wait"),
        "{}",
        status_of(&beyond)
    );
}
