//! Pools with Clusters, paused ones, and what does not concern us.

use metal3_api::meta::ConditionStatus;
use serde_json::{Value, json};

use super::replica::{Replica, alone};
use super::world::{POOL, World, meta_of};
use crate::accounts::ClusterFact;
use crate::claim::ClaimKind::{ClusterApi, Metal3};
use crate::claim::Named;
use crate::names::{condition, reason};

fn of_cluster(name: &str) -> Value {
    json!({ "namePrefix": "p", "clusterName": name, "pools": [{ "start": "10.0.0.10", "end": "10.0.0.12" }] })
}

fn cluster(paused: bool) -> ClusterFact {
    ClusterFact::Found {
        uid: "cluster-uid".into(),
        paused,
    }
}

fn condition_of(world: &World, aspect: &str) -> (ConditionStatus, String) {
    let found = world
        .pool()
        .status
        .conditions
        .into_iter()
        .find(|c| c.type_ == aspect)
        .unwrap();
    (found.status, found.reason)
}

#[test]
fn pool_is_labelled_and_owned_by_its_cluster_and_a_dead_owner_is_replaced() {
    let (mut world, mut replica) = alone(of_cluster("alpha"));
    world.change().clusters.insert("alpha".into(), cluster(false));
    let owner = json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "alpha", "uid": "dead" });
    world.edit_pool(&json!({ "metadata": { "ownerReferences": [owner] } }));
    replica.settle(&mut world);
    let meta = meta_of(world.objects.pool.as_ref().unwrap());
    assert_eq!(meta.labels.unwrap()["cluster.x-k8s.io/cluster-name"], "alpha");
    let owners = meta.owner_references.unwrap();
    assert_eq!((owners.len(), owners[0].uid.as_str()), (1, "cluster-uid"));
    assert_eq!(meta.finalizers.unwrap(), ["ippool.ipam.metal3.io"]);
}

#[test]
fn pool_without_its_cluster_grants_nothing_and_still_releases() {
    let (mut world, mut replica) = alone(of_cluster("alpha"));
    world.change().clusters.insert("alpha".into(), cluster(false));
    world.claim(Metal3, "c1", json!({}));
    replica.settle(&mut world);
    world.change().clusters.clear();
    world.claim(Metal3, "c2", json!({}));
    world.delete_claim(&Named::new(Metal3, "c1"));
    replica.settle(&mut world);
    assert!(!world.objects.claims.contains_key(&Named::new(Metal3, "c1")));
    let waiting = world.claim_of(Metal3, "c2");
    assert_eq!((waiting.error, waiting.finalizers.len()), (None, 0));
    assert_eq!(
        condition_of(&world, condition::READY).1,
        reason::CLUSTER_NOT_FOUND.as_str()
    );
    world.change().clusters.insert("alpha".into(), cluster(false));
    replica.settle(&mut world);
    assert!(world.granted(Metal3, "c2").is_some());
}

#[test]
fn paused_pool_grants_and_releases_nothing_and_says_so() {
    for by_annotation in [true, false] {
        let (mut world, mut replica) = alone(of_cluster("alpha"));
        world.change().clusters.insert("alpha".into(), cluster(false));
        world.claim(Metal3, "c1", json!({}));
        replica.settle(&mut world);
        if by_annotation {
            world.edit_pool(&json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } }));
        } else {
            world.change().clusters.insert("alpha".into(), cluster(true));
        }
        world.delete_claim(&Named::new(Metal3, "c1"));
        world.claim(Metal3, "c2", json!({}));
        world.writes = 0;
        replica.settle(&mut world);
        assert_eq!(world.writes, 1, "the condition alone");
        assert_eq!(
            condition_of(&world, condition::PAUSED),
            (ConditionStatus::True, reason::PAUSED.as_str().to_owned())
        );
        assert!(world.granted(Metal3, "c1").is_some() && world.granted(Metal3, "c2").is_none());
    }
}

#[test]
fn claim_rests_with_its_own_cluster_and_goes_without_it() {
    let (mut world, mut replica) = alone(json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.10" }] }));
    for (name, cluster_name) in [("of-paused", "beta"), ("of-none", "gone")] {
        world.claim(ClusterApi, name, json!({}));
        world.edit_claim(
            &Named::new(ClusterApi, name),
            &json!({ "spec": { "clusterName": cluster_name } }),
        );
    }
    world.change().clusters.insert("beta".into(), cluster(true));
    replica.settle(&mut world);
    assert!(world.claim_of(ClusterApi, "of-paused").conditions.is_empty());
    assert_eq!(
        world.claim_of(ClusterApi, "of-none").conditions[0].reason,
        reason::CLUSTER_NOT_FOUND.as_str()
    );
    world.change().clusters.insert("beta".into(), cluster(false));
    replica.settle(&mut world);
    assert!(world.granted(ClusterApi, "of-paused").is_some());
    world.change().clusters.clear();
    world.delete_claim(&Named::new(ClusterApi, "of-paused"));
    replica.settle(&mut world);
    assert!(!world.objects.claims.contains_key(&Named::new(ClusterApi, "of-paused")));
}

#[test]
fn unknown_kind_of_our_own_group_is_told_so() {
    let (mut world, mut replica) = alone(of_cluster(""));
    world.claim(ClusterApi, "c1", json!({}));
    world.edit_claim(
        &Named::new(ClusterApi, "c1"),
        &json!({ "spec": { "poolRef": { "kind": "IPPol" } } }),
    );
    replica.settle(&mut world);
    assert_eq!(
        world.claim_of(ClusterApi, "c1").conditions[0].reason,
        reason::POOL_KIND_UNKNOWN.as_str()
    );
}

#[test]
fn idle_pool_costs_no_write_however_often_it_is_looked_at() {
    let (mut world, mut replica) = alone(of_cluster(""));
    world.claim(Metal3, "c1", json!({}));
    replica.settle(&mut world);
    world.writes = 0;
    for name in ["b", "c", "d"] {
        assert_eq!(Replica::new(name, &world).settle(&mut world), 0);
    }
    assert_eq!((world.writes, POOL), (0, "pool-a"));
}
