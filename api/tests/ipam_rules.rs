//! Cases that the examples do not cover: accepted requests, and updates of stored invalid objects.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_api::catalog;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::rules::{Decision, Operation};
use serde_json::{Value, json};

fn pool(spec: &Value) -> Value {
    json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool",
        "metadata": { "name": "p", "namespace": "metal" }, "spec": spec,
    })
}

fn review(operation: Operation, old: Option<&Value>, new: Option<&Value>) -> Decision {
    let reviewer = catalog::reviewers()
        .into_iter()
        .find(|reviewer| reviewer.kind == "IPPool")
        .unwrap();
    (reviewer.review)(operation, old, new).unwrap()
}

#[test]
fn a_stored_pool_with_invalid_ranges_can_be_relabelled() {
    let old = pool(
        &json!({ "namePrefix": "p", "gateway": "router", "preAllocations": { "a": "10.0.0.1" },
        "pools": [{ "start": "10.0.0.9", "end": "10.0.0.1" }] }),
    );
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "moved": "yes" });
    assert!(review(Operation::Create, None, Some(&old)).findings.len() > 2);
    assert_eq!(review(Operation::Update, Some(&old), Some(&new)), Decision::default());
}

#[test]
fn a_stored_range_of_mixed_families_does_not_block_another_range() {
    let mixed = json!({ "start": "10.0.0.1", "end": "2001:db8::1" });
    let old = pool(&json!({ "namePrefix": "p", "pools": [mixed] }));
    let new = pool(&json!({ "namePrefix": "p", "pools": [mixed, { "subnet": "10.1.0.0/24" }] }));
    assert!(review(Operation::Update, Some(&old), Some(&new)).allowed());
    assert!(!review(Operation::Create, None, Some(&new)).allowed());
}

#[test]
fn a_pool_is_always_deletable() {
    let old = pool(&json!({ "namePrefix": "p", "pools": [{}] }));
    assert!(review(Operation::Delete, Some(&old), None).allowed());
}

#[test]
fn a_range_of_any_size_may_be_random_if_it_has_an_end() {
    for range in [
        json!({ "subnet": "2001:db8::/32" }),
        json!({ "start": "::1", "end": "ffff::" }),
    ] {
        let new = pool(&json!({ "namePrefix": "p", "allocationStrategy": "random", "pools": [range] }));
        assert!(review(Operation::Create, None, Some(&new)).allowed(), "{range}");
    }
}

#[test]
fn a_subnet_alone_bounds_pre_allocations() {
    for (subnet, address, allowed) in [
        ("192.0.2.16/28", "192.0.2.16", true),
        ("192.0.2.16/28", "192.0.2.31", true),
        ("192.0.2.16/28", "192.0.2.15", false),
        ("192.0.2.16/28", "192.0.2.32", false),
        ("192.0.2.16/28", "2001:db8::1", false),
        ("2001:db8::/64", "2001:db8::ffff", true),
        ("2001:db8::/64", "2001:db8:0:1::1", false),
    ] {
        let spec = json!({ "namePrefix": "p", "pools": [{ "subnet": subnet }], "preAllocations": { "a": address } });
        let decision = review(Operation::Create, None, Some(&pool(&spec)));
        assert_eq!(decision.allowed(), allowed, "{address} in {subnet}");
    }
}

#[test]
fn addresses_in_no_range_are_out_of_range() {
    let spec = json!({ "namePrefix": "p", "pools": [{ "start": "192.0.2.1", "end": "192.0.2.9" }] });
    let pool: IPPool = serde_json::from_value(pool(&spec)).unwrap();
    let granted = ["192.0.2.1", "192.0.2.10", "router", "2001:db8::1", "192.0.2.9"];
    assert_eq!(pool.out_of_range(granted), ["192.0.2.10", "2001:db8::1"]);
}
