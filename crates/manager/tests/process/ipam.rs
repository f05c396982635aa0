//! IP address management as it is wired.

use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_manager::flags::Owner;
use metal3_manager::product::find;
use metal3_manager::run::Ended;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World, until};

/// Kinds of Cluster API, as far as a server must know them.
async fn install_cluster_api(world: &World) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ));
    let definitions: Api<DynamicObject> = Api::all_with(world.cluster.client("admin"), &resource);
    for (group, kind, plural) in [
        ("ipam.cluster.x-k8s.io", "IPAddressClaim", "ipaddressclaims"),
        ("ipam.cluster.x-k8s.io", "IPAddress", "ipaddresses"),
        ("cluster.x-k8s.io", "Cluster", "clusters"),
    ] {
        let definition: Value = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
                "versions": [{
                    "name": "v1beta2", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                }],
            },
        });
        let definition = serde_json::from_value(definition).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_gets_an_address_once_every_kind_is_there() {
    let world = World::with_kinds().await;
    let replica = world.start_with("a", "--leader-elect", vec![find(Owner::Ipam).unwrap()]);
    until("words", async || {
        let (_, text) = replica.probe("/readyz").await;
        text.contains("clusters.cluster.x-k8s.io") && text.contains("core-components.yaml")
    })
    .await;
    install_cluster_api(&world).await;
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
    let world = World::with_kinds().await;
    install_cluster_api(&world).await;
    let replica = world.start_with("a", "--observe-only", vec![find(Owner::Ipam).unwrap()]);
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
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(replica.end().await, Ended::Stopped);
    let audit = world.cluster.audit();
    let writes: Vec<_> = audit
        .counts()
        .filter(|((user, verb, _), _)| user == "a" && ["create", "update", "patch", "delete"].contains(verb))
        .collect();
    assert!(writes.is_empty(), "{writes:?}");
}
