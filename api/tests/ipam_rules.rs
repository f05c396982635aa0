//! What the examples cannot say: which requests the rules let pass, and that what is stored stays editable.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_api::catalog;
use metal3_api::rules::{Operation, Verdict};
use serde_json::{Value, json};

fn pool(spec: &Value) -> Value {
    json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool",
        "metadata": { "name": "p", "namespace": "metal" }, "spec": spec,
    })
}

fn review(operation: Operation, old: Option<&Value>, new: Option<&Value>) -> Verdict {
    let reviewer = catalog::reviewers()
        .into_iter()
        .find(|reviewer| reviewer.kind == "IPPool")
        .unwrap();
    (reviewer.review)(operation, old, new).unwrap()
}

#[test]
fn a_stored_pool_with_bad_ranges_can_still_be_relabelled() {
    let old = pool(
        &json!({ "namePrefix": "p", "gateway": "router", "preAllocations": { "a": "10.0.0.1" },
        "pools": [{ "start": "10.0.0.9", "end": "10.0.0.1" }] }),
    );
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "moved": "yes" });
    assert!(review(Operation::Create, None, Some(&old)).findings.len() > 2);
    assert_eq!(review(Operation::Update, Some(&old), Some(&new)), Verdict::default());
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
