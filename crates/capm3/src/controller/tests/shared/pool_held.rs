//! The claim on an endpoint that is deleted while somebody needs the address, and when it is given back.

use std::time::Duration;

use serde_json::{Value, json};

use super::pool::{CLAIM, Site, cluster_with, vips};
use super::scene::settle;
use crate::controller::data::tests::lab::{CLUSTER_API, CLUSTER_IPAM, INFRASTRUCTURE, IPAM};

const FINALIZER: &str = "metal3cluster.infrastructure.cluster.x-k8s.io";

fn from_pool() -> Value {
    json!({ "type": "IPPool", "ipPool": { "name": "vips" } })
}

/// A cluster whose endpoint is an address of the pool, as Cluster API has taken it.
async fn fixed() -> (Site, tokio::task::JoinSet<()>) {
    let site = Site::start();
    let program = site.program();
    vips(&site.user, 3).await;
    cluster_with(&site.user, from_pool()).await;
    settle().await;
    let fixed = json!({ "spec": { "controlPlaneEndpoint": site.metal3().await["spec"]["controlPlaneEndpoint"] } });
    site.user.change(CLUSTER_API, "clusters/edge", fixed).await;
    settle().await;
    (site, program)
}

/// How many claims and addresses there are.
async fn left(site: &Site) -> (usize, usize) {
    let claims = site.user.list(IPAM, "ipclaims").await;
    (claims.len(), site.user.list(IPAM, "ipaddresses").await.len())
}

async fn delete_claim(site: &Site) {
    site.user.delete(IPAM, &format!("ipclaims/{CLAIM}")).await;
    settle().await;
}

/// A machine of the cluster that somebody else holds.
async fn machine(site: &Site) {
    let machine = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
        "metadata": {
            "name": "m0", "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "finalizers": ["example.com/held"],
            "annotations": { "cluster.x-k8s.io/paused": "" },
        },
        "spec": { "image": { "url": "http://image", "checksum": "http://sum" } },
    });
    site.user.make(INFRASTRUCTURE, "metal3machines", machine).await;
}

async fn machine_goes(site: &Site) {
    let free = json!({ "metadata": { "finalizers": null } });
    site.user.change(INFRASTRUCTURE, "metal3machines/m0", free).await;
    site.user.delete(INFRASTRUCTURE, "metal3machines/m0").await;
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn claim_that_is_deleted_keeps_its_address_while_the_endpoint_is_it_and_that_is_said() {
    let (site, _program) = fixed().await;
    delete_claim(&site).await;
    assert_eq!(left(&site).await, (1, 1));
    let (status, reason, message) = site.said("ControlPlaneEndpointDrifted").await;
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "SourceNotFound"));
    assert!(
        message.contains("it is deleted, and held while the endpoint is its address"),
        "{message}"
    );
    let endpoint = &site.metal3().await["spec"]["controlPlaneEndpoint"];
    assert_eq!(endpoint["host"], "192.0.2.50");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(left(&site).await, (1, 1));
    site.user.delete(INFRASTRUCTURE, "metal3clusters/edge").await;
    settle().await;
    assert_eq!(
        site.user.list(INFRASTRUCTURE, "metal3clusters").await,
        Vec::<Value>::new()
    );
    assert_eq!(left(&site).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn claim_that_is_deleted_is_given_back_once_the_endpoint_is_another_and_none_is_made_again() {
    let (site, _program) = fixed().await;
    delete_claim(&site).await;
    let other = json!({ "spec": { "controlPlaneEndpoint": { "host": "203.0.113.9", "port": 6443 } } });
    site.user.change(CLUSTER_API, "clusters/edge", other).await;
    settle().await;
    assert_eq!(left(&site).await, (0, 0));
    assert_eq!(site.said("ControlPlaneEndpointDrifted").await.1, "SourceNotFound");
}

#[tokio::test(start_paused = true)]
async fn claim_that_nobody_deletes_is_kept_although_the_endpoint_is_another() {
    let (site, _program) = fixed().await;
    let other = json!({ "spec": { "controlPlaneEndpoint": { "host": "203.0.113.9", "port": 6443 } } });
    site.user.change(CLUSTER_API, "clusters/edge", other).await;
    settle().await;
    assert_eq!(left(&site).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn claim_that_is_deleted_before_the_cluster_has_an_endpoint_is_given_back_with_what_was_derived() {
    let site = Site::start();
    let _program = site.program();
    vips(&site.user, 3).await;
    cluster_with(&site.user, from_pool()).await;
    settle().await;
    delete_claim(&site).await;
    assert_eq!(
        left(&site).await,
        (1, 1),
        "Cluster API may be about to take the endpoint"
    );
    let asks = json!({ "spec": {
        "controlPlaneEndpoint": null, "controlPlaneEndpointSource": { "ipPool": { "address": "192.0.2.51" } },
    } });
    site.user.change(INFRASTRUCTURE, "metal3clusters/edge", asks).await;
    settle().await;
    assert_eq!(
        site.metal3().await["spec"]["controlPlaneEndpoint"]["host"],
        "192.0.2.51"
    );
    assert_eq!(left(&site).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn claim_that_has_no_address_yet_is_given_back_at_once_and_made_again() {
    let site = Site::start();
    let _program = site.program();
    cluster_with(&site.user, from_pool()).await;
    settle().await;
    let before = site.user.get(IPAM, &format!("ipclaims/{CLAIM}")).await;
    assert_eq!(before["metadata"]["finalizers"], json!([FINALIZER]));
    delete_claim(&site).await;
    let after = site.user.get(IPAM, &format!("ipclaims/{CLAIM}")).await;
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn address_outlives_all_machines_even_where_the_garbage_collector_deletes_the_claim_first() {
    let (site, _program) = fixed().await;
    machine(&site).await;
    settle().await;
    site.user.delete(INFRASTRUCTURE, "metal3clusters/edge").await;
    delete_claim(&site).await;
    assert_eq!(left(&site).await, (1, 1));
    let (_, reason, message) = site.said("Ready").await;
    assert_eq!(reason, "Deleting");
    assert!(message.contains("m0"), "{message}");
    machine_goes(&site).await;
    assert_eq!(
        site.user.list(INFRASTRUCTURE, "metal3clusters").await,
        Vec::<Value>::new()
    );
    assert_eq!(left(&site).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn claim_of_an_object_that_was_forced_to_go_is_given_back() {
    let (site, _program) = fixed().await;
    let pause = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } });
    site.user.change(INFRASTRUCTURE, "metal3clusters/edge", pause).await;
    settle().await;
    let force = json!({ "metadata": { "finalizers": null } });
    site.user.change(INFRASTRUCTURE, "metal3clusters/edge", force).await;
    site.user.delete(INFRASTRUCTURE, "metal3clusters/edge").await;
    settle().await;
    assert_eq!(left(&site).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn restore_that_gave_new_uids_frees_no_address_that_is_in_use() {
    let (site, _program) = fixed().await;
    let owner = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster", "name": "edge", "uid": "before",
    });
    let restored = json!({ "metadata": { "ownerReferences": [owner] } });
    site.user.change(IPAM, &format!("ipclaims/{CLAIM}"), restored).await;
    settle().await;
    let claim = site.user.get(IPAM, &format!("ipclaims/{CLAIM}")).await;
    let deleted = &claim["metadata"]["deletionTimestamp"];
    assert!(
        deleted.is_string(),
        "the garbage collector takes it for an orphan: {claim}"
    );
    assert_eq!(left(&site).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn paused_object_gives_nothing_back() {
    let (site, _program) = fixed().await;
    let other = json!({ "spec": {
        "paused": true, "controlPlaneEndpoint": { "host": "203.0.113.9", "port": 6443 },
    } });
    site.user.change(CLUSTER_API, "clusters/edge", other).await;
    settle().await;
    delete_claim(&site).await;
    assert_eq!(left(&site).await, (1, 1));
    site.user
        .change(CLUSTER_API, "clusters/edge", json!({ "spec": { "paused": false } }))
        .await;
    settle().await;
    assert_eq!(left(&site).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn claim_on_a_pool_of_another_provider_is_held_and_given_back_the_same_way() {
    let site = Site::start();
    let _program = site.program();
    let pool = json!({ "apiGroup": "ipam.example.org", "kind": "GlobalPool", "name": "far" });
    cluster_with(&site.user, json!({ "type": "IPPool", "ipPool": pool })).await;
    settle().await;
    let address = json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress", "metadata": { "name": "far-1" },
        "spec": { "claimRef": { "name": CLAIM }, "poolRef": pool, "address": "198.51.100.1", "prefix": 24 },
    });
    site.user.make(CLUSTER_IPAM, "ipaddresses", address).await;
    let answer = json!({ "status": { "addressRef": { "name": "far-1" } } });
    let claim = format!("ipaddressclaims/{CLAIM}");
    site.user.change(CLUSTER_IPAM, &format!("{claim}/status"), answer).await;
    settle().await;
    site.user.delete(CLUSTER_IPAM, &claim).await;
    settle().await;
    assert_eq!(site.user.list(CLUSTER_IPAM, "ipaddressclaims").await.len(), 1);
    site.user.delete(CLUSTER_IPAM, "ipaddresses/far-1").await;
    settle().await;
    assert_eq!(
        site.user.list(CLUSTER_IPAM, "ipaddressclaims").await.len(),
        1,
        "what cannot be seen is in use"
    );
    site.user.delete(INFRASTRUCTURE, "metal3clusters/edge").await;
    settle().await;
    assert_eq!(
        site.user.list(CLUSTER_IPAM, "ipaddressclaims").await,
        Vec::<Value>::new()
    );
}
