//! A backup restored into another cluster: every object has its name and finalizers, all UIDs are new, the status is
//! lost, and the owners of address objects do not exist.

use std::collections::BTreeMap;

use kube_core::{NamespaceResourceScope, Resource};
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_api::meta::ConditionStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::api_server::POOL;
use super::fixture::Fixture;
use crate::claim::ClaimKind::{ClusterApi, Metal3};
use crate::names::condition;

async fn restored<K>(from: &Fixture, to: &Fixture)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Serialize
        + DeserializeOwned
        + std::fmt::Debug,
{
    for object in from.api::<K>().list(&Default::default()).await.unwrap() {
        let mut document = serde_json::to_value(object).unwrap();
        let metadata = document["metadata"].as_object_mut().unwrap();
        for member in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            metadata.remove(member);
        }
        to.make::<K>(document).await;
    }
}

/// Address objects of both kinds: the address to UID, and whether it is being deleted.
async fn addresses(fixture: &Fixture) -> BTreeMap<String, (String, bool)> {
    let own = fixture.api::<IPAddress>().list(&Default::default()).await.unwrap();
    let own = own.into_iter().map(|a| (a.metadata, a.spec.address.to_string()));
    let cluster_api = fixture
        .api::<cluster::IPAddress>()
        .list(&Default::default())
        .await
        .unwrap();
    let cluster_api = cluster_api.into_iter().map(|a| (a.metadata, a.spec.address));
    own.chain(cluster_api)
        .map(|(meta, address)| (address, (meta.uid.unwrap(), meta.deletion_timestamp.is_some())))
        .collect()
}

async fn backed_up() -> Fixture {
    let fixture = Fixture::new(1).await;
    let replica = fixture.replica("before");
    fixture
        .pool(json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.0.3" }] }))
        .await;
    fixture.claim(Metal3, "a").await;
    fixture.claim(ClusterApi, "b").await;
    fixture.wait_until_idle().await;
    replica.kill();
    assert_eq!(addresses(&fixture).await.len(), 2);
    fixture
}

async fn kept_orphans(fixture: &Fixture) -> Option<String> {
    let pool = fixture.api::<IPPool>().get(POOL).await.unwrap();
    let mut conditions = pool.status.conditions.into_iter();
    let object = conditions.find(|c| c.type_ == condition::ORPHANS_HELD && c.status == ConditionStatus::True);
    object.map(|object| object.message)
}

#[tokio::test(start_paused = true)]
async fn restore_releases_no_address_until_confirmed_although_the_garbage_collector_deletes_them() {
    let before = backed_up().await;
    let fixture = Fixture::new(2).await;
    restored::<IPAddress>(&before, &fixture).await;
    restored::<cluster::IPAddress>(&before, &fixture).await;
    restored::<IPClaim>(&before, &fixture).await;
    restored::<IPAddressClaim>(&before, &fixture).await;
    // During the restore there is no pool.
    let _replica = fixture.replica("after");
    fixture.wait_until_idle().await;
    let restored_as = addresses(&fixture).await;
    assert_eq!(restored_as.len(), 2);
    assert_eq!(fixture.cluster.collect_garbage(), 2, "their owners do not exist");
    fixture.wait_until_idle().await;
    restored::<IPPool>(&before, &fixture).await;
    fixture.claim(Metal3, "new").await;
    fixture.wait_until_idle().await;

    let after = addresses(&fixture).await;
    for (address, (uid, _)) in &restored_as {
        assert_eq!(after.get(address), Some(&(uid.clone(), true)), "{address}");
    }
    assert!(kept_orphans(&fixture).await.unwrap().contains("release-orphans=2"));
    let granted = |allocations: &[(String, Option<String>)]| allocations.iter().filter(|(_, to)| to.is_some()).count();
    assert_eq!(granted(&fixture.allocations().await), 1, "one address was free");

    let confirmed: Value = json!({ "metadata": { "annotations": { "ipam.metal3.io/release-orphans": "2" } } });
    fixture.edit_pool(confirmed).await;
    fixture.wait_until_idle().await;
    assert_eq!(granted(&fixture.allocations().await), 3);
    assert_eq!(
        (addresses(&fixture).await.len(), kept_orphans(&fixture).await),
        (3, None)
    );
}
