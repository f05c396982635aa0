//! IPAM in the whole process.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_flags::Owner;
use metal3_manager::product::find;
use metal3_manager::run::Ended;
use serde_json::{Value, json};

use crate::environment::{TestCluster, assert_no_writes, until};

fn pool_and_claim() -> (Value, Value) {
    let pool = json!({
        "metadata": { "name": "rack" },
        "spec": { "namePrefix": "rack", "prefix": 24, "pools": [{ "start": "192.0.2.10", "end": "192.0.2.20" }] },
    });
    let claim = json!({ "metadata": { "name": "one" }, "spec": { "pool": { "name": "rack" } } });
    (pool, claim)
}

async fn create_pool_and_claim(world: &TestCluster) {
    let (pool, claim) = pool_and_claim();
    world.create::<IPPool>(pool).await;
    world.create::<IPClaim>(claim).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_gets_an_address_once_every_kind_is_served() {
    let world = TestCluster::with_kinds().await;
    let replica = world.start_with("a", "--leader-elect", vec![find(Owner::Ipam)]);
    until("words", async || {
        let (_, text) = replica.probe("/readyz").await;
        text.contains("clusters.cluster.x-k8s.io") && text.contains("core-components.yaml")
    })
    .await;
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    until("ready", async || replica.ready().await).await;
    create_pool_and_claim(&world).await;
    let addresses = world.api::<IPAddress>();
    until("an address", async || {
        let found = addresses.list(&Default::default()).await.unwrap().items;
        found
            .first()
            .is_some_and(|address| address.spec.address.as_str() == "192.0.2.10")
    })
    .await;
    assert_eq!(replica.end().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn claims_of_the_watched_namespace_alone_get_addresses() {
    let world = TestCluster::with_kinds().await;
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    let admin = world.cluster.client("admin");
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "watched" } })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    create_pool_and_claim(&world).await;
    let pools: Api<IPPool> = Api::namespaced(admin.clone(), "watched");
    let claims: Api<IPClaim> = Api::namespaced(admin.clone(), "watched");
    let (pool, claim) = pool_and_claim();
    pools
        .create(&PostParams::default(), &serde_json::from_value(pool).unwrap())
        .await
        .unwrap();
    claims
        .create(&PostParams::default(), &serde_json::from_value(claim).unwrap())
        .await
        .unwrap();
    let replica = world.start_with("a", "--namespace=watched", vec![find(Owner::Ipam)]);
    let watched: Api<IPAddress> = Api::namespaced(admin, "watched");
    until("an address", async || {
        !watched.list(&Default::default()).await.unwrap().items.is_empty()
    })
    .await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let others = world.api::<IPAddress>().list(&Default::default()).await.unwrap();
    assert!(others.items.is_empty(), "{others:?}");
    assert_eq!(replica.end().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn observing_grants_nothing() {
    let world = TestCluster::with_kinds().await;
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    let replica = world.start_with("a", "--observe-only", vec![find(Owner::Ipam)]);
    until("ready", async || replica.ready().await).await;
    // It would be granted an address at once.
    create_pool_and_claim(&world).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(replica.end().await, Ended::Stopped);
    assert_no_writes(&world.cluster);
}
