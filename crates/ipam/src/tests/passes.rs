//! Grants, refusals, releases: one replica, fresh caches.

use metal3_api::meta::ConditionStatus;
use metal3_runtime::reason::Reason;
use serde_json::{Value, json};

use super::replica::{Replica, alone};
use super::world::{NAMESPACE, POOL, World, meta_of};
use crate::claim::ClaimKind::{self, ClusterApi, Metal3};
use crate::claim::Named;
use crate::names::{condition, reason};

fn range(start: &str, end: &str) -> Value {
    json!({ "namePrefix": "p", "pools": [{ "start": start, "end": end }] })
}

fn three() -> Value {
    range("10.0.0.10", "10.0.0.12")
}

/// What a claim says of itself: its error, and the reason of `Ready`.
fn says(world: &World, kind: ClaimKind, name: &str) -> (Option<String>, String) {
    let claim = world.claim_of(kind, name);
    let ready = claim
        .conditions
        .iter()
        .find(|c| c.type_ == condition::READY)
        .expect("a Ready condition");
    (claim.error, ready.reason.clone())
}

fn asks(address: &str) -> Value {
    json!({ "annotations": { "ipAddress": address } })
}

#[test]
fn both_kinds_of_claims_share_one_pool() {
    let (mut world, mut replica) = alone(three());
    world.claim(Metal3, "c1", json!({ "labels": { "a": "b" } }));
    world.claim(ClusterApi, "c1", json!({}));
    replica.settle(&mut world);
    assert_eq!(world.granted(Metal3, "c1").as_deref(), Some("10.0.0.10"));
    assert_eq!(world.granted(ClusterApi, "c1").as_deref(), Some("10.0.0.11"));
    let status = world.pool().status;
    let indexes: Vec<_> = status
        .indexes
        .iter()
        .map(|(claim, ip)| format!("{claim}={ip}"))
        .collect();
    assert_eq!(indexes, ["c1=10.0.0.10", "ipaddressclaim/c1=10.0.0.11"]);
    let held = &world.objects.addresses[&Named::new(Metal3, "p-10-0-0-10")];
    assert_eq!(held.meta("labels"), &json!({ "a": "b" }));
    assert_eq!(status.allocator.unwrap().pending, []);
    assert_eq!(
        (status.allocated.as_deref(), status.available.as_deref()),
        (Some("2"), Some("1"))
    );
}

#[test]
fn a_claim_costs_three_writes_beside_those_to_the_pool() {
    let (mut world, mut replica) = alone(range("10.0.0.1", "10.0.3.254"));
    replica.settle(&mut world);
    for number in 0..100 {
        world.claim(Metal3, &format!("c{number:03}"), json!({}));
    }
    world.writes = 0;
    replica.settle(&mut world);
    // Finalizer, address, status for each claim; the pool once for the batch and once when it is done.
    assert_eq!(world.writes, 3 * 100 + 2);
}

/// Claims, and what they are told.
const TOLD: [(ClaimKind, &str, &str, Reason); 6] = [
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
fn claims_that_cannot_be_served_say_why_and_hold_up_nobody() {
    let spec = json!({
        "namePrefix": "p",
        "pools": [{ "start": "10.0.0.10", "end": "10.0.0.13" }],
        "preAllocations": { "kept": "10.0.0.13", "outside": "10.9.0.1", "torn": "10.0.0.12" },
    });
    let (mut world, mut replica) = alone(spec);
    let wishes = [
        ("a-bad", "nope"),
        ("far", "10.8.0.1"),
        ("torn", "10.0.0.11"),
        ("want-kept", "10.0.0.13"),
    ];
    for (name, wish) in wishes {
        world.claim(Metal3, name, asks(wish));
    }
    for name in ["kept", "outside", "z1", "z2", "z3"] {
        world.claim(Metal3, name, json!({}));
    }
    world.claim(ClusterApi, "far", asks("10.8.0.1"));
    replica.settle(&mut world);
    for (kind, name, error, reason) in TOLD {
        assert_eq!(
            says(&world, kind, name),
            (Some(error.to_owned()), reason.as_str().to_owned()),
            "{name}"
        );
    }
    assert_eq!(
        says(&world, ClusterApi, "far"),
        (None, reason::POOL_EXHAUSTED.as_str().to_owned())
    );
    assert_eq!(world.granted(Metal3, "kept").as_deref(), Some("10.0.0.13"));
    assert_eq!(world.granted(Metal3, "z2").as_deref(), Some("10.0.0.11"));
}

#[test]
fn failed_claims_are_served_when_the_pool_grows_or_an_address_is_released() {
    let (mut world, mut replica) = alone(range("10.0.0.10", "10.0.0.10"));
    for name in ["c1", "c2", "c3"] {
        world.claim(Metal3, name, json!({}));
    }
    replica.settle(&mut world);
    assert!(world.granted(Metal3, "c2").is_none());
    world.delete_claim(&Named::new(Metal3, "c1"));
    replica.settle(&mut world);
    assert_eq!(world.granted(Metal3, "c2").as_deref(), Some("10.0.0.10"));
    assert_eq!(says(&world, Metal3, "c2"), (None, reason::READY.as_str().to_owned()));
    world.edit_pool(&json!({ "spec": { "pools": [{ "start": "10.0.0.10", "end": "10.0.0.11" }] } }));
    replica.settle(&mut world);
    assert_eq!(world.granted(Metal3, "c3").as_deref(), Some("10.0.0.11"));
}

#[test]
fn pre_allocation_that_somebody_holds_waits_for_him() {
    let (mut world, mut replica) = alone(three());
    world.claim(Metal3, "c1", json!({}));
    replica.settle(&mut world);
    world.edit_pool(&json!({ "spec": { "preAllocations": { "vip": "10.0.0.10" } } }));
    world.claim(Metal3, "vip", json!({}));
    replica.settle(&mut world);
    let (error, reason) = says(&world, Metal3, "vip");
    assert!(error.unwrap().starts_with("Pre-allocated IP not available: 10.0.0.10"));
    assert_eq!(reason, reason::ALLOCATION_FAILED.as_str());
    world.delete_claim(&Named::new(Metal3, "c1"));
    replica.settle(&mut world);
    assert_eq!(world.granted(Metal3, "vip").as_deref(), Some("10.0.0.10"));
}

#[test]
fn v6_reservation_counts_however_it_is_written() {
    let mut spec = range("2001:db8::5", "2001:db8::6");
    spec["preAllocations"] = json!({ "vip": "2001:db8::0005" });
    let (mut world, mut replica) = alone(spec);
    world.claim(Metal3, "c1", json!({}));
    replica.settle(&mut world);
    assert_eq!(world.granted(Metal3, "c1").as_deref(), Some("2001:db8::6"));
    world.claim(Metal3, "vip", json!({}));
    replica.settle(&mut world);
    assert_eq!(world.granted(Metal3, "vip").as_deref(), Some("2001:db8::5"));
}

#[test]
fn claim_in_use_keeps_its_address_until_the_user_lets_go() {
    let (mut world, mut replica) = alone(three());
    let id = Named::new(Metal3, "c1");
    world.claim(Metal3, "c1", json!({ "finalizers": ["in.use/yes"] }));
    replica.settle(&mut world);
    world.delete_claim(&id);
    replica.settle(&mut world);
    assert_eq!(world.granted(Metal3, "c1").as_deref(), Some("10.0.0.10"));
    world.edit_claim(
        &id,
        &json!({ "metadata": { "finalizers": ["ipclaim.ipam.metal3.io"] } }),
    );
    replica.settle(&mut world);
    assert!(world.objects.claims.is_empty() && world.objects.addresses.is_empty());
    assert!(world.pool().status.indexes.is_empty());
}

#[test]
fn pool_on_its_way_out_refuses_new_claims_and_goes_with_the_last() {
    let (mut world, mut replica) = alone(three());
    world.claim(Metal3, "c1", json!({}));
    replica.settle(&mut world);
    world.delete_pool();
    world.claim(Metal3, "c2", json!({}));
    replica.settle(&mut world);
    assert_eq!(
        says(&world, Metal3, "c2").0.as_deref(),
        Some("The pool is being deleted")
    );
    assert!(world.objects.pool.is_some());
    world.delete_claim(&Named::new(Metal3, "c1"));
    replica.settle(&mut world);
    assert!(world.objects.pool.is_none() && world.objects.addresses.is_empty());
    // The claim that waits learns that there is no pool, and can go.
    assert_eq!(
        says(&world, Metal3, "c2"),
        (None, reason::POOL_NOT_FOUND.as_str().to_owned())
    );
    world.delete_claim(&Named::new(Metal3, "c2"));
    replica.settle(&mut world);
    assert!(world.objects.claims.is_empty());
}

#[test]
fn moved_pool_finds_its_grants_again() {
    let (mut world, mut replica) = alone(three());
    world.claim(Metal3, "c1", json!({}));
    world.claim(ClusterApi, "c2", json!({}));
    replica.settle(&mut world);
    world.edit_pool(&json!({ "status": null }));
    for id in [Named::new(Metal3, "c1"), Named::new(ClusterApi, "c2")] {
        world.edit_claim(&id, &json!({ "status": null }));
    }
    let before = world.objects.addresses.len();
    Replica::new("other", &world).settle(&mut world);
    assert_eq!(world.granted(Metal3, "c1").as_deref(), Some("10.0.0.10"));
    assert_eq!(world.granted(ClusterApi, "c2").as_deref(), Some("10.0.0.11"));
    assert_eq!(
        (world.objects.addresses.len(), world.pool().status.indexes.len()),
        (before, 2)
    );
}

#[test]
fn addresses_of_the_go_manager_get_the_owners_that_the_contract_asks_for() {
    let (mut world, mut replica) = alone(three());
    world.claim(ClusterApi, "c1", json!({}));
    replica.settle(&mut world);
    let id = Named::new(ClusterApi, "p-10-0-0-10");
    let mut owners = meta_of(&world.objects.addresses[&id]).owner_references.unwrap();
    let whole = owners.clone();
    for owner in &mut owners {
        (owner.controller, owner.block_owner_deletion) = (None, None);
    }
    world.edit_address(&id, &json!({ "metadata": { "ownerReferences": owners } }));
    replica.settle(&mut world);
    assert_eq!(meta_of(&world.objects.addresses[&id]).owner_references, Some(whole));
}

#[test]
fn address_that_vanished_is_made_again_for_the_same_claim() {
    let (mut world, mut replica) = alone(three());
    world.claim(Metal3, "c1", json!({}));
    world.claim(Metal3, "c2", json!({}));
    replica.settle(&mut world);
    world.change().addresses.remove(&Named::new(Metal3, "p-10-0-0-11"));
    world.claim(Metal3, "a-new", json!({}));
    replica.settle(&mut world);
    assert_eq!(world.granted(Metal3, "c2").as_deref(), Some("10.0.0.11"));
    assert_eq!(world.granted(Metal3, "a-new").as_deref(), Some("10.0.0.12"));
}

#[test]
fn name_that_another_pool_uses_is_passed_over() {
    let (mut world, mut replica) = alone(range("10.0.0.10", "10.0.0.11"));
    replica.settle(&mut world);
    let taken = json!({
        "metadata": { "name": "p-10-0-0-10" },
        "spec": { "address": "10.0.0.10", "claim": { "name": "x" }, "pool": { "name": "pool-b" } },
    });
    world.address(Metal3, taken);
    world.claim(Metal3, "c1", json!({}));
    replica.settle(&mut world);
    assert_eq!(world.granted(Metal3, "c1").as_deref(), Some("10.0.0.11"));
    world.claim(Metal3, "c2", asks("10.0.0.10"));
    world.claim(Metal3, "c3", json!({}));
    replica.settle(&mut world);
    for name in ["c2", "c3"] {
        let (error, reason) = says(&world, Metal3, name);
        assert_eq!(reason, reason::NAME_COLLISION.as_str(), "{name}");
        assert!(
            error
                .unwrap()
                .contains("pool pool-b has an address object named p-10-0-0-10")
        );
    }
}

/// A pool with two grants as a restore leaves it that keeps the owner references: every object has a new UID, none of
/// the references is right. A claim came before those that had an address.
fn restored() -> World {
    let (mut world, mut replica) = alone(three());
    for name in ["c1", "c2"] {
        world.claim(Metal3, name, json!({}));
    }
    replica.settle(&mut world);
    let old = world.objects.clone();
    let mut restored = World::default();
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
    for (id, held) in &old.addresses {
        restored.address(id.kind, (*held.document).clone());
    }
    let pool = (*old.pool.as_ref().unwrap().document).clone();
    for _ in 0..2 {
        restored.put_pool(json!({ "metadata": { "name": POOL, "namespace": NAMESPACE, "finalizers": pool["metadata"]["finalizers"] }, "spec": pool["spec"] }));
    }
    restored
}

#[test]
fn restored_pool_keeps_addresses_that_no_claim_owns_until_it_is_told_otherwise() {
    let mut restored = restored();
    let mut fresh = Replica::new("fresh", &restored);
    fresh.settle(&mut restored);
    assert_eq!(restored.objects.addresses.len(), 3, "two are kept, one is new");
    assert_eq!(
        (restored.granted(Metal3, "before"), restored.granted(Metal3, "c2")),
        (None, None)
    );
    let held = restored
        .pool()
        .status
        .conditions
        .into_iter()
        .find(|c| c.type_ == condition::ORPHANS_HELD)
        .unwrap();
    assert_eq!(held.status, ConditionStatus::True);
    assert!(held.message.contains("release-orphans=2"), "{}", held.message);
    restored.edit_pool(&json!({ "metadata": { "annotations": { "ipam.metal3.io/release-orphans": "2" } } }));
    fresh.settle(&mut restored);
    let mut granted =
        [("before", Metal3), ("c1", Metal3), ("c2", Metal3)].map(|(name, kind)| restored.granted(kind, name).unwrap());
    granted.sort();
    assert_eq!(granted, ["10.0.0.10", "10.0.0.11", "10.0.0.12"]);
}

#[test]
fn without_the_rule_that_holds_them_a_restore_releases_addresses_unasked() {
    let (mut with, mut without) = (restored(), restored());
    let kept = with.objects.addresses.keys().cloned().collect::<Vec<_>>();
    let uids = |world: &World| {
        let of = |id| world.objects.addresses.get(id).map(|held| held.uid().to_owned());
        kept.iter().map(of).collect::<Vec<_>>()
    };
    let before = uids(&with);
    Replica::new("fresh", &with).settle(&mut with);
    assert_eq!(uids(&with), before);
    let mut fresh = Replica::new("fresh", &without);
    fresh.rules.hold_many_orphans = false;
    fresh.settle(&mut without);
    assert_ne!(uids(&without), before);
}
