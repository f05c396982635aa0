//! IPAM in the whole process.

use kube::Api;
use kube::api::PostParams;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_flags::Owner;
use metal3_manager::product::find;
use metal3_manager::run::Ended;
use serde_json::json;

use crate::environment::{NAMESPACE, TestCluster, until};

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
    let pools: Api<IPPool> = Api::namespaced(world.cluster.client("admin"), NAMESPACE);
    let pool = json!({
        "metadata": { "name": "rack" },
        "spec": { "namePrefix": "rack", "prefix": 24, "pools": [{ "start": "192.0.2.10", "end": "192.0.2.20" }] },
    });
    pools
        .create(&PostParams::default(), &serde_json::from_value(pool).unwrap())
        .await
        .unwrap();
    let claims: Api<IPClaim> = Api::namespaced(world.cluster.client("admin"), NAMESPACE);
    let claim = json!({ "metadata": { "name": "one" }, "spec": { "pool": { "name": "rack" } } });
    claims
        .create(&PostParams::default(), &serde_json::from_value(claim).unwrap())
        .await
        .unwrap();
    let addresses: Api<IPAddress> = Api::namespaced(world.cluster.client("admin"), NAMESPACE);
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
    let pools: Api<IPPool> = Api::namespaced(world.cluster.client("admin"), NAMESPACE);
    let pool = json!({
        "metadata": { "name": "rack" },
        "spec": { "namePrefix": "rack", "pools": [{ "start": "192.0.2.10", "end": "192.0.2.20" }] },
    });
    pools
        .create(&PostParams::default(), &serde_json::from_value(pool).unwrap())
        .await
        .unwrap();
    // It would be granted an address at once.
    let claims: Api<IPClaim> = Api::namespaced(world.cluster.client("admin"), NAMESPACE);
    let claim = json!({ "metadata": { "name": "one" }, "spec": { "pool": { "name": "rack" } } });
    claims
        .create(&PostParams::default(), &serde_json::from_value(claim).unwrap())
        .await
        .unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(replica.end().await, Ended::Stopped);
    let audit = world.cluster.audit();
    let writes: Vec<_> = audit
        .counts()
        .filter(|((user, verb, _), _)| user == "a" && ["create", "update", "patch", "delete"].contains(verb))
        .collect();
    assert!(writes.is_empty(), "{writes:?}");
}
