//! Pools with Clusters, paused pools, and claims of other controllers.

use metal3_api::meta::ConditionStatus;
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use super::api_server::{ApiServer, POOL, meta_of};
use super::replica::{Replica, one_replica};
use crate::claim::ClaimKind::{self, ClusterApi, Metal3};
use crate::claim::ObjectId;
use crate::index::ClusterState;
use crate::names::{condition, reason};

fn of_cluster(name: &str) -> Value {
    json!({ "namePrefix": "p", "clusterName": name, "pools": [{ "start": "10.0.0.10", "end": "10.0.0.12" }] })
}

fn cluster(paused: bool) -> ClusterState {
    ClusterState {
        uid: "cluster-uid".into(),
        paused,
    }
}

fn condition_of(server: &ApiServer, aspect: &str) -> (ConditionStatus, String) {
    let found = server
        .pool()
        .status
        .conditions
        .into_iter()
        .find(|c| c.type_ == aspect)
        .unwrap();
    (found.status, found.reason)
}

#[test]
fn pool_is_labelled_and_owned_by_its_cluster_and_a_deleted_owner_is_replaced() {
    let (mut server, mut replica) = one_replica(of_cluster("alpha"));
    server.change().clusters.insert("alpha".into(), cluster(false));
    let owner = json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "alpha", "uid": "dead" });
    server.edit_pool(&json!({ "metadata": { "ownerReferences": [owner] } }));
    replica.settle(&mut server);
    let meta = meta_of(server.objects.pool.as_ref().unwrap());
    let labels = meta.labels.unwrap();
    assert_eq!(labels["cluster.x-k8s.io/cluster-name"], "alpha");
    assert_eq!(labels["cluster.x-k8s.io/provider"], "ipam-metal3");
    let owners = meta.owner_references.unwrap();
    assert_eq!((owners.len(), owners[0].uid.as_str()), (1, "cluster-uid"));
    assert_eq!(meta.finalizers.unwrap(), ["ippool.ipam.metal3.io"]);
}

#[test]
fn pool_without_its_cluster_allocates_nothing_and_still_releases() {
    let (mut server, mut replica) = one_replica(of_cluster("alpha"));
    server.change().clusters.insert("alpha".into(), cluster(false));
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    server.change().clusters.clear();
    server.claim(Metal3, "c2", json!({}));
    server.delete_claim(&ObjectId::new(Metal3, "c1"));
    replica.settle(&mut server);
    assert!(!server.objects.claims.contains_key(&ObjectId::new(Metal3, "c1")));
    let waiting = server.claim_of(Metal3, "c2");
    assert_eq!((waiting.error, waiting.finalizers.len()), (None, 0));
    assert_eq!(
        condition_of(&server, condition::READY).1,
        reason::CLUSTER_NOT_FOUND.as_str()
    );
    server.change().clusters.insert("alpha".into(), cluster(false));
    replica.settle(&mut server);
    assert!(server.granted(Metal3, "c2").is_some());
}

#[test]
fn paused_pool_allocates_and_releases_nothing_and_reports_it() {
    for by_annotation in [true, false] {
        let (mut server, mut replica) = one_replica(of_cluster("alpha"));
        server.change().clusters.insert("alpha".into(), cluster(false));
        server.claim(Metal3, "c1", json!({}));
        replica.settle(&mut server);
        if by_annotation {
            server.edit_pool(&json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } }));
        } else {
            server.change().clusters.insert("alpha".into(), cluster(true));
        }
        server.delete_claim(&ObjectId::new(Metal3, "c1"));
        server.claim(Metal3, "c2", json!({}));
        server.writes = 0;
        replica.settle(&mut server);
        assert_eq!(server.writes, 1, "the condition alone");
        assert_eq!(
            condition_of(&server, condition::PAUSED),
            (ConditionStatus::True, reason::PAUSED.as_str().to_owned())
        );
        assert!(server.granted(Metal3, "c1").is_some() && server.granted(Metal3, "c2").is_none());
        let next = replica.plan(&server).next;
        assert!(matches!(next, Next::Waiting(on) if on.reason == reason::PAUSED));
    }
}

#[test]
fn pool_of_an_unreadable_cluster_does_nothing_and_reports_it() {
    let (mut server, mut replica) = one_replica(of_cluster("alpha"));
    server.change().clusters.insert("alpha".into(), cluster(false));
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    replica.unreadable = Some("alpha".to_owned());
    server.delete_claim(&ObjectId::new(Metal3, "c1"));
    server.writes = 0;
    replica.settle(&mut server);
    assert_eq!(server.writes, 1, "the condition alone");
    let unreadable = reason::OBJECT_UNREADABLE.as_str().to_owned();
    assert_eq!(
        condition_of(&server, condition::READY),
        (ConditionStatus::False, unreadable)
    );
    let Next::Waiting(waiting) = replica.plan(&server).next else {
        panic!("it waits without a reason")
    };
    assert!(waiting.message.contains("Cluster alpha"), "{}", waiting.message);
    replica.unreadable = None;
    replica.settle(&mut server);
    assert_eq!(condition_of(&server, condition::READY).0, ConditionStatus::True);
    assert!(server.objects.addresses.is_empty());
}

#[test]
fn claim_of_an_unreadable_cluster_on_a_shared_pool_reports_it() {
    for kind in ClaimKind::ALL {
        let (mut server, mut replica) = one_replica(shared_pool());
        replica.unreadable = Some("alpha".to_owned());
        server.claim(
            kind,
            "c1",
            json!({ "labels": { "cluster.x-k8s.io/cluster-name": "alpha" } }),
        );
        server.claim(kind, "c2", json!({}));
        replica.settle(&mut server);
        let waiting = server.claim_of(kind, "c1");
        assert_eq!(waiting.conditions[0].reason, reason::OBJECT_UNREADABLE.as_str());
        assert!(waiting.conditions[0].message.contains("Cluster alpha"));
        assert_eq!((waiting.error, waiting.address_name), (None, None));
        assert!(server.granted(kind, "c2").is_some());
        replica.unreadable = None;
        server.change().clusters.insert("alpha".into(), cluster(false));
        replica.settle(&mut server);
        assert!(server.granted(kind, "c1").is_some());
    }
}

#[test]
fn pool_states_why_its_first_claim_waits() {
    let (mut server, mut replica) = one_replica(json!({ "namePrefix": "p", "pools": [] }));
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    let next = replica.plan(&server).next;
    assert_eq!(
        next,
        Next::waiting(reason::POOL_EXHAUSTED, "IPClaim c1: Exhausted IP Pools").quiet()
    );
}

#[test]
fn claim_is_paused_with_its_cluster_and_deleted_without_it() {
    let (mut server, mut replica) = one_replica(json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.10" }] }));
    for (name, cluster_name) in [("of-paused", "beta"), ("of-none", "gone")] {
        server.claim(ClusterApi, name, json!({}));
        server.edit_claim(
            &ObjectId::new(ClusterApi, name),
            &json!({ "spec": { "clusterName": cluster_name } }),
        );
    }
    server.change().clusters.insert("beta".into(), cluster(true));
    replica.settle(&mut server);
    assert!(server.claim_of(ClusterApi, "of-paused").conditions.is_empty());
    assert_eq!(
        server.claim_of(ClusterApi, "of-none").conditions[0].reason,
        reason::CLUSTER_NOT_FOUND.as_str()
    );
    server.change().clusters.insert("beta".into(), cluster(false));
    replica.settle(&mut server);
    assert!(server.granted(ClusterApi, "of-paused").is_some());
    server.change().clusters.clear();
    server.delete_claim(&ObjectId::new(ClusterApi, "of-paused"));
    replica.settle(&mut server);
    assert!(
        !server
            .objects
            .claims
            .contains_key(&ObjectId::new(ClusterApi, "of-paused"))
    );
}

#[test]
fn unknown_kind_of_this_group_is_reported() {
    let (mut server, mut replica) = one_replica(of_cluster(""));
    server.claim(ClusterApi, "c1", json!({}));
    server.edit_claim(
        &ObjectId::new(ClusterApi, "c1"),
        &json!({ "spec": { "poolRef": { "kind": "IPPol" } } }),
    );
    replica.settle(&mut server);
    assert_eq!(
        server.claim_of(ClusterApi, "c1").conditions[0].reason,
        reason::POOL_KIND_UNKNOWN.as_str()
    );
}

#[test]
fn idle_pool_costs_no_write_when_reconciled_repeatedly() {
    let (mut server, mut replica) = one_replica(of_cluster(""));
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    server.writes = 0;
    for name in ["b", "c", "d"] {
        assert_eq!(Replica::new(name, &server).settle(&mut server), 0);
    }
    assert_eq!((server.writes, POOL), (0, "pool-a"));
}

fn shared_pool() -> Value {
    json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.10", "end": "10.0.0.13" }] })
}

/// The objects of a shared pool with one claim, and the address of the claim.
fn moved(label: &Value) -> (ApiServer, Value, String) {
    let (mut server, mut replica) = one_replica(shared_pool());
    server.claim(Metal3, "first", json!({}));
    server.claim(Metal3, "moved", label.clone());
    replica.settle(&mut server);
    let address = server.granted(Metal3, "moved").unwrap();
    let name = server.claim_of(Metal3, "moved").address_name.unwrap();
    let object = &server.objects.addresses[&ObjectId::new(Metal3, &name)];
    let mut document = (*object.document).clone();
    for member in ["uid", "resourceVersion"] {
        document["metadata"].as_object_mut().unwrap().remove(member);
    }
    (server, document, address)
}

/// clusterctl creates the objects group by group while the Cluster is paused, and the controller starts at any moment.
#[test]
fn moved_claim_keeps_its_address_in_any_order_of_arrival_with_a_pool_without_cluster() {
    let label = json!({ "labels": { "cluster.x-k8s.io/cluster-name": "alpha" } });
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for cluster_is_listed in [true, false] {
            let (_, address, granted) = moved(&label);
            let mut server = ApiServer::default();
            if cluster_is_listed {
                server.change().clusters.insert("alpha".into(), cluster(true));
            }
            let mut replica = Replica::new("target", &server);
            for step in order {
                match step {
                    0 => server
                        .put_pool(json!({ "metadata": { "name": POOL, "namespace": "metal" }, "spec": shared_pool() })),
                    1 => server.claim(Metal3, "moved", label.clone()),
                    _ => server.address(Metal3, address.clone()),
                }
                if server.objects.pool.is_some() && cluster_is_listed {
                    replica.settle(&mut server);
                    replica = Replica::new("restarted", &server);
                }
            }
            server.change().clusters.insert("alpha".into(), cluster(false));
            server.claim(Metal3, "another", json!({}));
            replica.settle(&mut server);
            assert_eq!(server.granted(Metal3, "moved"), Some(granted.clone()), "{order:?}");
            assert_ne!(server.granted(Metal3, "another").unwrap(), granted, "{order:?}");
        }
    }
}

#[test]
fn address_that_a_living_claim_owns_is_not_released_although_the_claim_names_another() {
    let (_, address, granted) = moved(&json!({}));
    let (mut server, mut replica) = one_replica(shared_pool());
    server.claim(Metal3, "moved", json!({}));
    replica.settle(&mut server);
    assert_ne!(
        server.granted(Metal3, "moved").unwrap(),
        granted,
        "it arrived before its address"
    );
    server.address(Metal3, address);
    server.claim(Metal3, "another", json!({}));
    server.claim(Metal3, "third", json!({}));
    replica.settle(&mut server);
    assert!(
        server
            .objects
            .addresses
            .values()
            .any(|object| object.document["spec"]["address"] == granted.as_str())
    );
    for name in ["another", "third"] {
        assert_ne!(server.granted(Metal3, name), Some(granted.clone()));
    }
    server.delete_claim(&ObjectId::new(Metal3, "moved"));
    replica.settle(&mut server);
    let mut left = server.objects.addresses.values();
    assert!(
        left.all(|object| object.document["spec"]["address"] != granted.as_str()),
        "released with its claim"
    );
}

#[test]
fn claim_of_a_cluster_that_does_not_exist_is_granted() {
    let (mut server, mut replica) = one_replica(shared_pool());
    let label = json!({ "labels": { "cluster.x-k8s.io/cluster-name": "gone" } });
    server.claim(Metal3, "c1", label);
    replica.settle(&mut server);
    assert!(server.granted(Metal3, "c1").is_some());
}

/// One of a shared pool's claims names an object that does not exist, while `block` keeps it from being served.
fn granted_after_a_loss(block: impl Fn(&mut ApiServer, bool), extra: &Value) -> (Option<String>, Option<String>) {
    let (mut server, mut replica) = one_replica(shared_pool());
    server.change().clusters.insert("alpha".into(), cluster(false));
    server.claim(
        ClusterApi,
        "c1",
        json!({ "labels": { "cluster.x-k8s.io/cluster-name": "alpha" } }),
    );
    replica.settle(&mut server);
    let object = server.claim_of(ClusterApi, "c1").address_name.unwrap();
    block(&mut server, true);
    server.change().addresses.remove(&ObjectId::new(ClusterApi, &object));
    replica.settle(&mut server);
    assert_eq!(server.granted(ClusterApi, "c1"), None, "it is blocked");
    // An older claim in the order of the names.
    server.claim(Metal3, "a2", extra.clone());
    replica.settle(&mut server);
    let other = server.granted(Metal3, "a2");
    block(&mut server, false);
    replica.settle(&mut server);
    (server.granted(ClusterApi, "c1"), other)
}

/// Blocks a claim, or ends that.
type Block<'a> = &'a dyn Fn(&mut ApiServer, bool);

#[test]
fn address_of_a_blocked_claim_is_granted_to_no_other_claim_while_its_object_is_gone() {
    let paused = |server: &mut ApiServer, is_blocked| {
        server.change().clusters.insert("alpha".into(), cluster(is_blocked));
    };
    let without_cluster = |server: &mut ApiServer, is_blocked: bool| {
        if is_blocked {
            server.change().clusters.clear();
        } else {
            server.change().clusters.insert("alpha".into(), cluster(false));
        }
    };
    let without_finalizer = |server: &mut ApiServer, is_blocked: bool| {
        paused(server, is_blocked);
        if is_blocked {
            let none = json!({ "metadata": { "finalizers": null } });
            server.edit_claim(&ObjectId::new(ClusterApi, "c1"), &none);
        }
    };
    let restored = |server: &mut ApiServer, is_blocked: bool| {
        paused(server, is_blocked);
        server.edit_pool(&json!({ "status": null }));
    };
    let blocks: [Block<'_>; 4] = [&paused, &without_cluster, &without_finalizer, &restored];
    for (number, block) in blocks.into_iter().enumerate() {
        let expected = [Some("10.0.0.10".to_owned()), Some("10.0.0.11".to_owned())];
        let (first, other) = granted_after_a_loss(block, &json!({}));
        assert_eq!([first.clone(), other], expected, "block {number}");
        let (again, other) = granted_after_a_loss(block, &json!({ "annotations": { "ipAddress": "10.0.0.10" } }));
        assert_eq!((again, other), (first, None), "block {number}");
    }
}

#[test]
fn pre_allocation_is_not_granted_while_another_claim_names_its_object() {
    let reserve = |server: &mut ApiServer, is_blocked| {
        server.change().clusters.insert("alpha".into(), cluster(is_blocked));
        server.edit_pool(&json!({ "spec": { "preAllocations": { "a2": "10.0.0.10" } } }));
    };
    let (first, other) = granted_after_a_loss(reserve, &json!({}));
    assert_eq!((first.as_deref(), other), (Some("10.0.0.10"), None));
}

/// An older claim that asks for the address is looked at first.
#[test]
fn requested_address_is_not_taken_from_a_claim_whose_object_is_gone() {
    let (mut server, mut replica) = one_replica(shared_pool());
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    server.claim(Metal3, "a-wait", json!({ "annotations": { "ipAddress": "10.0.0.10" } }));
    replica.settle(&mut server);
    server.change().addresses.remove(&ObjectId::new(Metal3, "p-10-0-0-10"));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c1").as_deref(), Some("10.0.0.10"));
    assert_eq!(server.granted(Metal3, "a-wait"), None);
}

#[test]
fn claim_in_deletion_without_a_user_holds_no_address() {
    let (mut server, mut replica) = one_replica(shared_pool());
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    server.change().addresses.remove(&ObjectId::new(Metal3, "p-10-0-0-10"));
    server.delete_claim(&ObjectId::new(Metal3, "c1"));
    server.claim(Metal3, "a2", json!({}));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "a2").as_deref(), Some("10.0.0.10"));
}
