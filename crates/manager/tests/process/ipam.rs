//! IPAM in the whole process.

use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_flags::Owner;
use metal3_manager::product::find;
use metal3_manager::run::Ended;
use serde_json::json;

use crate::environment::{TestCluster, assert_no_writes, until};

async fn create_pool_and_claim(world: &TestCluster) {
    let pool = json!({
        "metadata": { "name": "rack" },
        "spec": { "namePrefix": "rack", "prefix": 24, "pools": [{ "start": "192.0.2.10", "end": "192.0.2.20" }] },
    });
    world.create::<IPPool>(pool).await;
    let claim = json!({ "metadata": { "name": "one" }, "spec": { "pool": { "name": "rack" } } });
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
