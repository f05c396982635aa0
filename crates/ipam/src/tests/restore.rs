//! A backup that is restored into another cluster: every object comes back under its name and with its finalizers, all
//! UIDs are new, the status is lost, and the owners that address objects name are no more.

use std::collections::BTreeMap;

use kube_core::{NamespaceResourceScope, Resource};
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_api::meta::ConditionStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::lab::Lab;
use super::world::POOL;
use crate::claim::ClaimKind::{ClusterApi, Metal3};
use crate::names::condition;

async fn restored<K>(from: &Lab, to: &Lab)
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

/// Objects of both kinds: the address, and whether the object is on its way out.
async fn addresses(lab: &Lab) -> BTreeMap<String, (String, bool)> {
    let own = lab.api::<IPAddress>().list(&Default::default()).await.unwrap();
    let own = own.into_iter().map(|a| (a.metadata, a.spec.address.to_string()));
    let theirs = lab.api::<cluster::IPAddress>().list(&Default::default()).await.unwrap();
    let theirs = theirs.into_iter().map(|a| (a.metadata, a.spec.address));
    own.chain(theirs)
        .map(|(meta, address)| (address, (meta.uid.unwrap(), meta.deletion_timestamp.is_some())))
        .collect()
}

async fn backed_up() -> Lab {
    let lab = Lab::new(1).await;
    let replica = lab.replica("before");
    lab.pool(json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.0.3" }] }))
        .await;
    lab.claim(Metal3, "a").await;
    lab.claim(ClusterApi, "b").await;
    lab.rest().await;
    replica.kill();
    assert_eq!(addresses(&lab).await.len(), 2);
    lab
}

async fn held_orphans(lab: &Lab) -> Option<String> {
    let pool = lab.api::<IPPool>().get(POOL).await.unwrap();
    let mut conditions = pool.status.conditions.into_iter();
    let held = conditions.find(|c| c.type_ == condition::ORPHANS_HELD && c.status == ConditionStatus::True);
    held.map(|held| held.message)
}

#[tokio::test(start_paused = true)]
async fn a_restore_releases_no_address_until_it_is_confirmed_though_the_collector_deletes_them() {
    let before = backed_up().await;
    let lab = Lab::new(2).await;
    restored::<IPAddress>(&before, &lab).await;
    restored::<cluster::IPAddress>(&before, &lab).await;
    restored::<IPClaim>(&before, &lab).await;
    restored::<IPAddressClaim>(&before, &lab).await;
    // In the middle of it there is no pool.
    let _replica = lab.replica("after");
    lab.rest().await;
    let restored_as = addresses(&lab).await;
    assert_eq!(restored_as.len(), 2);
    assert_eq!(lab.cluster.collect_garbage(), 2, "their owners are no more");
    lab.rest().await;
    restored::<IPPool>(&before, &lab).await;
    lab.claim(Metal3, "new").await;
    lab.rest().await;

    let after = addresses(&lab).await;
    for (address, (uid, _)) in &restored_as {
        assert_eq!(after.get(address), Some(&(uid.clone(), true)), "{address}");
    }
    assert!(held_orphans(&lab).await.unwrap().contains("release-orphans=2"));
    let granted = |grants: &[(String, Option<String>)]| grants.iter().filter(|(_, to)| to.is_some()).count();
    assert_eq!(granted(&lab.grants().await), 1, "there was one that nobody had");

    let confirmed: Value = json!({ "metadata": { "annotations": { "ipam.metal3.io/release-orphans": "2" } } });
    lab.edit_pool(confirmed).await;
    lab.rest().await;
    assert_eq!(granted(&lab.grants().await), 3);
    assert_eq!((addresses(&lab).await.len(), held_orphans(&lab).await), (3, None));
}
