//! A deleted claim whose address is in use, and its release.

use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::wait;
use super::pool::{CLAIM, PoolFixture, cluster_with, from_pool, pool_elsewhere};
use crate::data::reconciler::tests::lab::{CLUSTER_API, CLUSTER_IPAM, INFRASTRUCTURE, IPAM};

const FINALIZER: &str = "metal3cluster.infrastructure.cluster.x-k8s.io";

/// A cluster whose endpoint is an address of the pool, as taken by Cluster API.
async fn fixed() -> (PoolFixture, tokio::task::JoinSet<()>) {
    let (fixture, program) = PoolFixture::running(3).await;
    cluster_with(&fixture.user, from_pool()).await;
    wait().await;
    let fixed = json!({ "spec": { "controlPlaneEndpoint": fixture.metal3().await["spec"]["controlPlaneEndpoint"] } });
    fixture.user.change(CLUSTER_API, "clusters/edge", fixed).await;
    wait().await;
    (fixture, program)
}

/// Number of claims and addresses.
async fn leftover(fixture: &PoolFixture) -> (usize, usize) {
    let claims = fixture.user.list(IPAM, "ipclaims").await;
    (claims.len(), fixture.user.list(IPAM, "ipaddresses").await.len())
}

/// Asserts that neither the Metal3Cluster nor its claim exists.
async fn assert_gone(fixture: &PoolFixture) {
    let left = fixture.user.list(INFRASTRUCTURE, "metal3clusters").await;
    assert_eq!(left, Vec::<Value>::new());
    assert_eq!(leftover(fixture).await, (0, 0));
}

/// The Cluster gets another endpoint.
async fn change_endpoint(fixture: &PoolFixture) {
    let other = json!({ "spec": { "controlPlaneEndpoint": { "host": "203.0.113.9", "port": 6443 } } });
    fixture.user.change(CLUSTER_API, "clusters/edge", other).await;
    wait().await;
}

async fn delete_claim(fixture: &PoolFixture) {
    fixture.user.delete(IPAM, &format!("ipclaims/{CLAIM}")).await;
    wait().await;
}

/// A machine of the cluster with another finalizer.
async fn machine(fixture: &PoolFixture) {
    let machine = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
        "metadata": {
            "name": "m0", "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "finalizers": ["example.com/held"],
            "annotations": { "cluster.x-k8s.io/paused": "" },
        },
        "spec": { "image": { "url": "http://image", "checksum": "http://sum" } },
    });
    fixture.user.make(INFRASTRUCTURE, "metal3machines", machine).await;
}

async fn delete_machine(fixture: &PoolFixture) {
    let free = json!({ "metadata": { "finalizers": null } });
    fixture.user.change(INFRASTRUCTURE, "metal3machines/m0", free).await;
    fixture.user.delete(INFRASTRUCTURE, "metal3machines/m0").await;
    wait().await;
}

#[tokio::test(start_paused = true)]
async fn deleted_claim_keeps_its_address_while_it_is_the_endpoint_and_reports_it() {
    let (fixture, _program) = fixed().await;
    delete_claim(&fixture).await;
    assert_eq!(leftover(&fixture).await, (1, 1));
    let part = "it is deleted, and held while the endpoint is its address";
    fixture
        .assert_condition("ControlPlaneEndpointDrifted", ("Unknown", "SourceNotFound"), part)
        .await;
    assert_eq!(fixture.host().await, "192.0.2.50");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(leftover(&fixture).await, (1, 1));
    fixture.user.delete(INFRASTRUCTURE, "metal3clusters/edge").await;
    wait().await;
    assert_gone(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn deleted_claim_is_released_once_the_endpoint_changes_and_not_created_again() {
    let (fixture, _program) = fixed().await;
    delete_claim(&fixture).await;
    change_endpoint(&fixture).await;
    assert_eq!(leftover(&fixture).await, (0, 0));
    assert_eq!(fixture.reason("ControlPlaneEndpointDrifted").await, "SourceNotFound");
}

#[tokio::test(start_paused = true)]
async fn claim_that_is_not_deleted_is_kept_although_the_endpoint_changed() {
    let (fixture, _program) = fixed().await;
    change_endpoint(&fixture).await;
    assert_eq!(leftover(&fixture).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn claim_deleted_before_the_cluster_has_an_endpoint_is_released_with_the_derived_endpoint() {
    let (fixture, _program) = PoolFixture::running(3).await;
    cluster_with(&fixture.user, from_pool()).await;
    wait().await;
    delete_claim(&fixture).await;
    assert_eq!(
        leftover(&fixture).await,
        (1, 1),
        "Cluster API may be about to take the endpoint"
    );
    let asks = json!({ "spec": {
        "controlPlaneEndpoint": null, "controlPlaneEndpointSource": { "ipPool": { "address": "192.0.2.51" } },
    } });
    fixture.change(asks).await;
    wait().await;
    assert_eq!(fixture.host().await, "192.0.2.51");
    assert_eq!(leftover(&fixture).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn deleted_claim_without_address_is_released_at_once_and_created_again() {
    let fixture = PoolFixture::start();
    let _program = fixture.program();
    cluster_with(&fixture.user, from_pool()).await;
    wait().await;
    let before = fixture.claim().await;
    assert_eq!(before["metadata"]["finalizers"], json!([FINALIZER]));
    delete_claim(&fixture).await;
    let after = fixture.claim().await;
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn address_is_kept_until_the_last_machine_is_deleted_even_if_the_claim_is_deleted_first() {
    let (fixture, _program) = fixed().await;
    machine(&fixture).await;
    wait().await;
    fixture.user.delete(INFRASTRUCTURE, "metal3clusters/edge").await;
    delete_claim(&fixture).await;
    assert_eq!(leftover(&fixture).await, (1, 1));
    fixture.assert_condition("Ready", ("False", "Deleting"), "m0").await;
    delete_machine(&fixture).await;
    assert_gone(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn claim_of_a_force_deleted_object_is_released() {
    let (fixture, _program) = fixed().await;
    let pause = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } });
    fixture.change(pause).await;
    wait().await;
    let force = json!({ "metadata": { "finalizers": null } });
    fixture.change(force).await;
    fixture.user.delete(INFRASTRUCTURE, "metal3clusters/edge").await;
    wait().await;
    assert_eq!(leftover(&fixture).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn restore_with_new_uids_frees_no_address_in_use() {
    let (fixture, _program) = fixed().await;
    let owner = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster", "name": "edge", "uid": "before",
    });
    let restored = json!({ "metadata": { "ownerReferences": [owner] } });
    fixture.user.change(IPAM, &format!("ipclaims/{CLAIM}"), restored).await;
    wait().await;
    let claim = fixture.claim().await;
    let deleted = &claim["metadata"]["deletionTimestamp"];
    assert!(deleted.is_string(), "the garbage collector deletes it: {claim}");
    assert_eq!(leftover(&fixture).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn paused_object_releases_nothing() {
    let (fixture, _program) = fixed().await;
    let other = json!({ "spec": {
        "paused": true, "controlPlaneEndpoint": { "host": "203.0.113.9", "port": 6443 },
    } });
    fixture.user.change(CLUSTER_API, "clusters/edge", other).await;
    wait().await;
    delete_claim(&fixture).await;
    assert_eq!(leftover(&fixture).await, (1, 1));
    fixture
        .user
        .change(CLUSTER_API, "clusters/edge", json!({ "spec": { "paused": false } }))
        .await;
    wait().await;
    assert_eq!(leftover(&fixture).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn claim_on_a_pool_of_another_provider_is_held_and_released_the_same_way() {
    let fixture = PoolFixture::start();
    let _program = fixture.program();
    let (pool, claim) = (pool_elsewhere(), format!("ipaddressclaims/{CLAIM}"));
    cluster_with(&fixture.user, json!({ "type": "IPPool", "ipPool": pool })).await;
    wait().await;
    fixture.serve_claim_elsewhere(&pool).await;
    fixture.user.delete(CLUSTER_IPAM, &claim).await;
    wait().await;
    assert_eq!(fixture.user.list(CLUSTER_IPAM, "ipaddressclaims").await.len(), 1);
    fixture.user.delete(CLUSTER_IPAM, "ipaddresses/far-1").await;
    wait().await;
    assert_eq!(
        fixture.user.list(CLUSTER_IPAM, "ipaddressclaims").await.len(),
        1,
        "an unreadable address counts as in use"
    );
    fixture.user.delete(INFRASTRUCTURE, "metal3clusters/edge").await;
    wait().await;
    assert_eq!(
        fixture.user.list(CLUSTER_IPAM, "ipaddressclaims").await,
        Vec::<Value>::new()
    );
}
