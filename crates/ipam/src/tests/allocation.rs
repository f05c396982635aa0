//! Allocations, refusals, releases: one replica, current caches.

use metal3_api::meta::ConditionStatus;
use metal3_runtime::reason::Reason;
use serde_json::{Value, json};

use super::api_server::{ApiServer, NAMESPACE, POOL, meta_of};
use super::replica::{Replica, one_replica};
use crate::claim::ClaimKind::{self, ClusterApi, Metal3};
use crate::claim::ObjectId;
use crate::names::{condition, reason};

fn range(start: &str, end: &str) -> Value {
    json!({ "namePrefix": "p", "pools": [{ "start": start, "end": end }] })
}

fn three() -> Value {
    range("10.0.0.10", "10.0.0.12")
}

/// The error of a claim, and the reason of `Ready`.
fn status_of(server: &ApiServer, kind: ClaimKind, name: &str) -> (Option<String>, String) {
    let claim = server.claim_of(kind, name);
    let ready = claim
        .conditions
        .iter()
        .find(|c| c.type_ == condition::READY)
        .expect("a Ready condition");
    (claim.error, ready.reason.clone())
}

fn requesting(address: &str) -> Value {
    json!({ "annotations": { "ipAddress": address } })
}

#[test]
fn both_kinds_of_claims_share_one_pool() {
    let (mut server, mut replica) = one_replica(three());
    server.claim(Metal3, "c1", json!({ "labels": { "a": "b" } }));
    server.claim(ClusterApi, "c1", json!({}));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c1").as_deref(), Some("10.0.0.10"));
    assert_eq!(server.granted(ClusterApi, "c1").as_deref(), Some("10.0.0.11"));
    let status = server.pool().status;
    let indexes: Vec<_> = status
        .indexes
        .iter()
        .map(|(claim, ip)| format!("{claim}={ip}"))
        .collect();
    assert_eq!(indexes, ["c1=10.0.0.10", "ipaddressclaim/c1=10.0.0.11"]);
    let object = &server.objects.addresses[&ObjectId::new(Metal3, "p-10-0-0-10")];
    assert_eq!(object.meta("labels"), &json!({ "a": "b" }));
    assert_eq!(status.allocator.unwrap().pending, []);
    assert_eq!(
        (status.allocated.as_deref(), status.available.as_deref()),
        (Some("2"), Some("1"))
    );
}

#[test]
fn a_claim_costs_three_writes_in_addition_to_those_to_the_pool() {
    let (mut server, mut replica) = one_replica(range("10.0.0.1", "10.0.3.254"));
    replica.settle(&mut server);
    for number in 0..100 {
        server.claim(Metal3, &format!("c{number:03}"), json!({}));
    }
    server.writes = 0;
    replica.settle(&mut server);
    // Finalizer, address, status for each claim; the pool once for the batch and once after it.
    assert_eq!(server.writes, 3 * 100 + 2);
}

const REFUSALS: [(ClaimKind, &str, &str, Reason); 6] = [
    (
        Metal3,
        "a-bad",
        "Invalid ipAddress annotation \"nope\": not a valid IP address",
        reason::ALLOCATION_FAILED,
    ),
    (
        Metal3,
        "far",
        "Exhausted IP Pools: requested address 10.8.0.1 is not part of any range",
        reason::POOL_EXHAUSTED,
    ),
    (
        Metal3,
        "outside",
        "Pre-allocated IP out of bounds",
        reason::ALLOCATION_FAILED,
    ),
    (
        Metal3,
        "torn",
        "PreAllocation and requested ip address are conflicting",
        reason::ALLOCATION_FAILED,
    ),
    (
        Metal3,
        "want-kept",
        "Requested IP not available",
        reason::ALLOCATION_FAILED,
    ),
    (Metal3, "z3", "Exhausted IP Pools", reason::POOL_EXHAUSTED),
];

#[test]
fn claims_that_cannot_be_served_report_why_and_block_no_other() {
    let spec = json!({
        "namePrefix": "p",
        "pools": [{ "start": "10.0.0.10", "end": "10.0.0.13" }],
        "preAllocations": { "kept": "10.0.0.13", "outside": "10.9.0.1", "torn": "10.0.0.12" },
    });
    let (mut server, mut replica) = one_replica(spec);
    let requests = [
        ("a-bad", "nope"),
        ("far", "10.8.0.1"),
        ("torn", "10.0.0.11"),
        ("want-kept", "10.0.0.13"),
    ];
    for (name, requested) in requests {
        server.claim(Metal3, name, requesting(requested));
    }
    for name in ["kept", "outside", "z1", "z2", "z3"] {
        server.claim(Metal3, name, json!({}));
    }
    server.claim(ClusterApi, "far", requesting("10.8.0.1"));
    replica.settle(&mut server);
    for (kind, name, error, reason) in REFUSALS {
        assert_eq!(
            status_of(&server, kind, name),
            (Some(error.to_owned()), reason.as_str().to_owned()),
            "{name}"
        );
    }
    assert_eq!(
        status_of(&server, ClusterApi, "far"),
        (None, reason::POOL_EXHAUSTED.as_str().to_owned())
    );
    assert_eq!(server.granted(Metal3, "kept").as_deref(), Some("10.0.0.13"));
    assert_eq!(server.granted(Metal3, "z2").as_deref(), Some("10.0.0.11"));
}

#[test]
fn failed_claims_are_served_when_the_pool_grows_or_an_address_is_released() {
    let (mut server, mut replica) = one_replica(range("10.0.0.10", "10.0.0.10"));
    for name in ["c1", "c2", "c3"] {
        server.claim(Metal3, name, json!({}));
    }
    replica.settle(&mut server);
    assert!(server.granted(Metal3, "c2").is_none());
    server.delete_claim(&ObjectId::new(Metal3, "c1"));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c2").as_deref(), Some("10.0.0.10"));
    assert_eq!(
        status_of(&server, Metal3, "c2"),
        (None, reason::READY.as_str().to_owned())
    );
    server.edit_pool(&json!({ "spec": { "pools": [{ "start": "10.0.0.10", "end": "10.0.0.11" }] } }));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c3").as_deref(), Some("10.0.0.11"));
}

#[test]
fn pre_allocation_waits_until_its_address_is_released() {
    let (mut server, mut replica) = one_replica(three());
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    server.edit_pool(&json!({ "spec": { "preAllocations": { "vip": "10.0.0.10" } } }));
    server.claim(Metal3, "vip", json!({}));
    replica.settle(&mut server);
    let (error, reason) = status_of(&server, Metal3, "vip");
    assert!(error.unwrap().starts_with("Pre-allocated IP not available: 10.0.0.10"));
    assert_eq!(reason, reason::ALLOCATION_FAILED.as_str());
    server.delete_claim(&ObjectId::new(Metal3, "c1"));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "vip").as_deref(), Some("10.0.0.10"));
}

#[test]
fn v6_reservation_counts_in_any_notation() {
    let mut spec = range("2001:db8::5", "2001:db8::6");
    spec["preAllocations"] = json!({ "vip": "2001:db8::0005" });
    let (mut server, mut replica) = one_replica(spec);
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c1").as_deref(), Some("2001:db8::6"));
    server.claim(Metal3, "vip", json!({}));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "vip").as_deref(), Some("2001:db8::5"));
}

#[test]
fn claim_in_use_keeps_its_address_until_its_other_finalizers_are_removed() {
    let (mut server, mut replica) = one_replica(three());
    let id = ObjectId::new(Metal3, "c1");
    server.claim(Metal3, "c1", json!({ "finalizers": ["in.use/yes"] }));
    replica.settle(&mut server);
    server.delete_claim(&id);
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c1").as_deref(), Some("10.0.0.10"));
    server.edit_claim(
        &id,
        &json!({ "metadata": { "finalizers": ["ipclaim.ipam.metal3.io"] } }),
    );
    replica.settle(&mut server);
    assert!(server.objects.claims.is_empty() && server.objects.addresses.is_empty());
    assert!(server.pool().status.indexes.is_empty());
}

/// As the API server and the garbage collector leave them when claim and pool are deleted in the foreground.
#[test]
fn claim_in_foreground_deletion_is_released() {
    for of_api_server in ["foregroundDeletion", "orphan"] {
        let (mut server, mut replica) = one_replica(three());
        server.claim(ClusterApi, "c1", json!({}));
        replica.settle(&mut server);
        let claim = ObjectId::new(ClusterApi, "c1");
        let deleting = |own: &str| json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [own, of_api_server] } });
        server.edit_claim(&claim, &deleting(ClusterApi.claim_finalizer()));
        server.edit_pool(&deleting("ippool.ipam.metal3.io"));
        let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        server.edit_address(&ObjectId::new(ClusterApi, "p-10-0-0-10"), &deleted);
        replica.settle(&mut server);
        assert!(
            server.objects.addresses.is_empty(),
            "its finalizer keeps claim and pool"
        );
        assert_eq!(server.objects.claims[&claim].finalizers(), [of_api_server]);
        assert_eq!(server.objects.pool.as_ref().unwrap().finalizers(), [of_api_server]);
    }
}

#[test]
fn owner_that_the_garbage_collector_removed_is_not_written_again_while_the_pool_is_deleted() {
    let (mut server, mut replica) = one_replica(three());
    server.claim(ClusterApi, "c1", json!({}));
    replica.settle(&mut server);
    server.delete_pool();
    replica.settle(&mut server);
    let id = ObjectId::new(ClusterApi, "p-10-0-0-10");
    let mut owners = meta_of(&server.objects.addresses[&id]).owner_references.unwrap();
    owners.retain(|owner| owner.kind != "IPPool");
    server.edit_address(&id, &json!({ "metadata": { "ownerReferences": owners } }));
    let version = server.objects.addresses[&id].version().to_owned();
    replica.settle(&mut server);
    assert_eq!(server.objects.addresses[&id].version(), version);
    server.delete_claim(&ObjectId::new(ClusterApi, "c1"));
    replica.settle(&mut server);
    assert!(server.objects.pool.is_none(), "it is released all the same");
}

#[test]
fn deleted_pool_refuses_new_claims_and_is_removed_with_the_last() {
    let (mut server, mut replica) = one_replica(three());
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    server.delete_pool();
    server.claim(Metal3, "c2", json!({}));
    replica.settle(&mut server);
    assert_eq!(
        status_of(&server, Metal3, "c2").0.as_deref(),
        Some("The pool is being deleted")
    );
    assert!(server.objects.pool.is_some());
    server.delete_claim(&ObjectId::new(Metal3, "c1"));
    replica.settle(&mut server);
    assert!(server.objects.pool.is_none() && server.objects.addresses.is_empty());
    // The waiting claim reports that there is no pool, and can be deleted.
    assert_eq!(
        status_of(&server, Metal3, "c2"),
        (None, reason::POOL_NOT_FOUND.as_str().to_owned())
    );
    server.delete_claim(&ObjectId::new(Metal3, "c2"));
    replica.settle(&mut server);
    assert!(server.objects.claims.is_empty());
}

#[test]
fn moved_pool_recovers_its_allocations() {
    let (mut server, mut replica) = one_replica(three());
    server.claim(Metal3, "c1", json!({}));
    server.claim(ClusterApi, "c2", json!({}));
    replica.settle(&mut server);
    server.edit_pool(&json!({ "status": null }));
    for id in [ObjectId::new(Metal3, "c1"), ObjectId::new(ClusterApi, "c2")] {
        server.edit_claim(&id, &json!({ "status": null }));
    }
    let before = server.objects.addresses.len();
    Replica::new("other", &server).settle(&mut server);
    assert_eq!(server.granted(Metal3, "c1").as_deref(), Some("10.0.0.10"));
    assert_eq!(server.granted(ClusterApi, "c2").as_deref(), Some("10.0.0.11"));
    assert_eq!(
        (server.objects.addresses.len(), server.pool().status.indexes.len()),
        (before, 2)
    );
}

#[test]
fn addresses_of_the_go_manager_get_the_owners_that_the_contract_requires() {
    let (mut server, mut replica) = one_replica(three());
    server.claim(ClusterApi, "c1", json!({}));
    replica.settle(&mut server);
    let id = ObjectId::new(ClusterApi, "p-10-0-0-10");
    let mut owners = meta_of(&server.objects.addresses[&id]).owner_references.unwrap();
    let whole = owners.clone();
    for owner in &mut owners {
        (owner.controller, owner.block_owner_deletion) = (None, None);
    }
    server.edit_address(&id, &json!({ "metadata": { "ownerReferences": owners } }));
    replica.settle(&mut server);
    assert_eq!(meta_of(&server.objects.addresses[&id]).owner_references, Some(whole));
}

#[test]
fn address_without_an_owner_belongs_to_the_claim_that_it_names() {
    let (mut server, mut replica) = one_replica(three());
    let name = "p-10-0-0-12";
    let spec = json!({ "address": "10.0.0.12", "pool": { "name": POOL }, "claim": { "name": "c1" } });
    let metadata = json!({ "name": name, "namespace": NAMESPACE });
    server.address(Metal3, json!({ "metadata": metadata, "spec": spec }));
    server.claim(Metal3, "c1", json!({}));
    let granted = json!({ "status": { "address": { "name": name, "namespace": NAMESPACE } } });
    server.edit_claim(&ObjectId::new(Metal3, "c1"), &granted);
    server.claim(Metal3, "c2", json!({}));
    replica.settle(&mut server);
    let indexes = server.pool().status.indexes;
    let indexes: Vec<_> = indexes.iter().map(|(claim, ip)| format!("{claim}={ip}")).collect();
    assert_eq!(indexes, ["c1=10.0.0.12", "c2=10.0.0.10"]);
    assert_eq!(status_of(&server, Metal3, "c1").0, None);
}

/// The owners as IP address managers 1.10 to 1.12 copied them from a claim of CAPM3, derived from their code.
#[test]
fn address_with_another_controller_gets_its_claim_as_the_only_one() {
    let (mut server, mut replica) = one_replica(three());
    server.claim(ClusterApi, "c1", json!({}));
    replica.settle(&mut server);
    let id = ObjectId::new(ClusterApi, "p-10-0-0-10");
    let mut owners = meta_of(&server.objects.addresses[&id]).owner_references.unwrap();
    for owner in &mut owners {
        (owner.controller, owner.block_owner_deletion) = (None, None);
    }
    let data = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Data", "name": "d", "uid": "d", "controller": true });
    owners.push(serde_json::from_value(data).unwrap());
    server.edit_address(&id, &json!({ "metadata": { "ownerReferences": owners } }));
    replica.settle(&mut server);
    let owners = meta_of(&server.objects.addresses[&id]).owner_references.unwrap();
    let controllers = owners.iter().filter(|owner| owner.controller == Some(true));
    assert_eq!(
        controllers.map(|owner| owner.kind.as_str()).collect::<Vec<_>>(),
        ["IPAddressClaim"]
    );
    assert!(
        owners.iter().any(|owner| owner.kind == "Metal3Data"),
        "the owner is kept"
    );
}

#[test]
fn random_pool_grants_nothing_from_an_entry_that_has_only_a_start() {
    let open = json!({ "start": "10.0.0.10" });
    let spec = |pools: Value| json!({ "namePrefix": "p", "allocationStrategy": "random", "pools": pools });
    let (mut server, mut replica) = one_replica(spec(json!([open])));
    server.claim(Metal3, "c1", json!({}));
    server.claim(Metal3, "asks", requesting("10.0.0.99"));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c1"), None);
    assert_eq!(
        server.granted(Metal3, "asks").as_deref(),
        Some("10.0.0.99"),
        "it is part of the pool"
    );
    server.edit_pool(&json!({ "spec": spec(json!([open, { "start": "10.0.1.1", "end": "10.0.1.1" }])) }));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c1").as_deref(), Some("10.0.1.1"));
}

#[test]
fn map_of_the_pool_shows_the_granted_address_and_not_an_unowned_one_that_names_the_claim() {
    let (mut server, mut replica) = one_replica(three());
    let unowned = json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPAddress",
        "metadata": { "name": "p-10-0-0-10", "namespace": NAMESPACE },
        "spec": { "address": "10.0.0.10", "claim": { "name": "c1", "namespace": NAMESPACE }, "pool": { "name": POOL, "namespace": NAMESPACE } },
    });
    server.address(Metal3, unowned);
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    let granted = server.granted(Metal3, "c1").unwrap();
    assert_ne!(granted, "10.0.0.10", "another object has it");
    assert_eq!(server.pool().status.indexes["c1"].as_str(), granted);
}

#[test]
fn deleted_address_is_created_again_for_the_same_claim() {
    let (mut server, mut replica) = one_replica(three());
    server.claim(Metal3, "c1", json!({}));
    server.claim(Metal3, "c2", json!({}));
    replica.settle(&mut server);
    server.change().addresses.remove(&ObjectId::new(Metal3, "p-10-0-0-11"));
    server.claim(Metal3, "a-new", json!({}));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c2").as_deref(), Some("10.0.0.11"));
    assert_eq!(server.granted(Metal3, "a-new").as_deref(), Some("10.0.0.12"));
}

#[test]
fn name_that_another_pool_uses_is_skipped() {
    let (mut server, mut replica) = one_replica(range("10.0.0.10", "10.0.0.11"));
    replica.settle(&mut server);
    let taken = json!({
        "metadata": { "name": "p-10-0-0-10" },
        "spec": { "address": "10.0.0.10", "claim": { "name": "x" }, "pool": { "name": "pool-b" } },
    });
    server.address(Metal3, taken);
    server.claim(Metal3, "c1", json!({}));
    replica.settle(&mut server);
    assert_eq!(server.granted(Metal3, "c1").as_deref(), Some("10.0.0.11"));
    server.claim(Metal3, "c2", requesting("10.0.0.10"));
    server.claim(Metal3, "c3", json!({}));
    replica.settle(&mut server);
    for name in ["c2", "c3"] {
        let (error, reason) = status_of(&server, Metal3, name);
        assert_eq!(reason, reason::NAME_COLLISION.as_str(), "{name}");
        assert!(
            error
                .unwrap()
                .contains("pool pool-b has an address object named p-10-0-0-10")
        );
    }
}

/// A pool with two allocations after a restore that keeps the owner references: every object has a new UID, so no
/// reference is valid. One claim is older than those with an address.
fn restored() -> ApiServer {
    let (mut server, mut replica) = one_replica(three());
    for name in ["c1", "c2"] {
        server.claim(Metal3, name, json!({}));
    }
    replica.settle(&mut server);
    let old = server.objects.clone();
    let mut restored = ApiServer::default();
    restored.claim(Metal3, "before", json!({}));
    for (id, claim) in &old.claims {
        restored.claim(
            id.kind,
            &id.name,
            json!({ "finalizers": claim.finalizers(), "uid": null }),
        );
        restored.claim(
            id.kind,
            &id.name,
            json!({ "finalizers": claim.finalizers(), "uid": null }),
        );
    }
    for (id, object) in &old.addresses {
        restored.address(id.kind, (*object.document).clone());
    }
    let pool = (*old.pool.as_ref().unwrap().document).clone();
    for _ in 0..2 {
        restored.put_pool(json!({ "metadata": { "name": POOL, "namespace": NAMESPACE, "finalizers": pool["metadata"]["finalizers"] }, "spec": pool["spec"] }));
    }
    restored
}

#[test]
fn restored_pool_keeps_unowned_addresses_until_their_release_is_confirmed() {
    let mut restored = restored();
    let mut fresh = Replica::new("fresh", &restored);
    fresh.settle(&mut restored);
    assert_eq!(restored.objects.addresses.len(), 3, "two are kept, one is new");
    assert_eq!(
        (restored.granted(Metal3, "before"), restored.granted(Metal3, "c2")),
        (None, None)
    );
    let object = restored
        .pool()
        .status
        .conditions
        .into_iter()
        .find(|c| c.type_ == condition::ORPHANS_HELD)
        .unwrap();
    assert_eq!(object.status, ConditionStatus::True);
    assert!(object.message.contains("release-orphans=2"), "{}", object.message);
    restored.edit_pool(&json!({ "metadata": { "annotations": { "ipam.metal3.io/release-orphans": "2" } } }));
    fresh.settle(&mut restored);
    let mut granted =
        [("before", Metal3), ("c1", Metal3), ("c2", Metal3)].map(|(name, kind)| restored.granted(kind, name).unwrap());
    granted.sort();
    assert_eq!(granted, ["10.0.0.10", "10.0.0.11", "10.0.0.12"]);
}

#[test]
fn without_the_rule_that_keeps_them_a_restore_releases_addresses_unconfirmed() {
    let (mut with, mut without) = (restored(), restored());
    let kept = with.objects.addresses.keys().cloned().collect::<Vec<_>>();
    let uids = |server: &ApiServer| {
        let of = |id| server.objects.addresses.get(id).map(|object| object.uid().to_owned());
        kept.iter().map(of).collect::<Vec<_>>()
    };
    let before = uids(&with);
    Replica::new("fresh", &with).settle(&mut with);
    assert_eq!(uids(&with), before);
    let mut fresh = Replica::new("fresh", &without);
    fresh.rules.keep_many_orphans = false;
    fresh.settle(&mut without);
    assert_ne!(uids(&without), before);
}
