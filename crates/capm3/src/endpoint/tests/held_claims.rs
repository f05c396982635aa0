//! The release of claims.

use metal3_api::cluster::IPAddressClaim;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_runtime::plan::{Observed, UnknownReason};

use super::super::held_claims::{HeldClaim, HeldClaims};
use super::*;

const IN_USE: &str = "192.0.2.5";

fn claim(owners: &[&str], is_deleting: bool) -> IPClaim {
    let owner = |uid: &&str| json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster", "name": "edge", "uid": uid });
    let owners: Vec<Value> = owners.iter().map(owner).collect();
    serde_json::from_value(json!({
        "metadata": {
            "name": "edge-control-plane-endpoint", "namespace": "metal", "uid": "i1", "resourceVersion": "8",
            "finalizers": ["ipclaim.ipam.metal3.io", "metal3cluster.infrastructure.cluster.x-k8s.io"],
            "deletionTimestamp": is_deleting.then_some("2026-01-01T00:00:00Z"), "ownerReferences": owners,
        },
        "spec": { "pool": { "name": "vips" } },
    }))
    .unwrap()
}

pub(crate) fn held_claims(owners: &[&str], is_deleting: bool, granted: Observed<String>) -> HeldClaims {
    HeldClaims {
        all: HeldClaim::of(&claim(owners, is_deleting), granted)
            .into_iter()
            .collect(),
        unreadable: None,
    }
}

pub(crate) fn granted(address: &str) -> Observed<String> {
    Observed::Present(address.to_owned())
}

fn derived_from_pool() -> Metal3Cluster {
    let endpoint = derived(EndpointOrigin::IPPool, &format!("{IN_USE}:6443"));
    with_derived(&with_source("IPPool"), &endpoint)
}

#[test]
fn release_removes_only_this_finalizer_at_the_observed_version() {
    let holds = held_claims(&["u1"], false, granted(IN_USE));
    let [one] = &holds.all[..] else { panic!("{holds:?}") };
    let expected = json!({ "metadata": { "finalizers": ["ipclaim.ipam.metal3.io"], "resourceVersion": "8" } });
    let patch = one
        .let_go
        .patch
        .clone()
        .map(metal3_runtime::patch::MergePatch::into_document);
    assert_eq!((patch, one.let_go.delete), (Some(expected), false));
    let mut free = claim(&["u1"], true);
    free.metadata.finalizers = Some(vec!["ipclaim.ipam.metal3.io".to_owned()]);
    assert_eq!(
        HeldClaim::of(&free, Observed::Absent),
        None,
        "it has no finalizer of this controller"
    );
    let general: IPAddressClaim = serde_json::from_value(
        serde_json::to_value(json!({
            "metadata": claim(&["u1"], true).metadata, "spec": {},
        }))
        .unwrap(),
    )
    .unwrap();
    assert!(!HeldClaim::of(&general, Observed::Absent).unwrap().is_metal3);
}

/// Asserts that a claim with this address is released or kept once it is deleted, and unchanged until then.
fn assert_release(
    what: &str,
    (object, fixed): (&Metal3Cluster, Option<&str>),
    granted: &Observed<String>,
    is_released: bool,
) {
    let cluster = cluster(fixed);
    let deleting = held_claims(&["u1"], true, granted.clone());
    let released = deleting.releasable(object, Some(&cluster)).len();
    assert_eq!(released, usize::from(is_released), "{what}");
    assert_eq!(deleting.keeps_deleted(object, &cluster), !is_released, "{what}");
    let stays = held_claims(&["u1"], false, granted.clone());
    assert!(
        stays.releasable(object, Some(&cluster)).is_empty(),
        "{what}: not deleted"
    );
    assert!(!stays.keeps_deleted(object, &cluster), "{what}: not deleted");
}

#[test]
fn claim_of_a_live_object_is_released_only_if_deleted_and_not_the_endpoint() {
    let (derived, typed) = (derived_from_pool(), with_endpoint("IPPool", "192.0.2.5:6443"));
    let other = with_endpoint("Spec", "203.0.113.9:6443");
    let moved = with_derived(
        &with_source("Spec"),
        &super::derived(EndpointOrigin::IPPool, "192.0.2.5:6443"),
    );
    let unset = with_source("IPPool");
    let (same, differs) = (Some("192.0.2.5:7443"), Some("203.0.113.9:6443"));
    let (unbound, unknown) = (|| Observed::Absent, || Observed::Unknown(UnknownReason::NotListed));
    for (what, object, fixed, granted, is_released) in [
        ("derived, open", &derived, None, granted(IN_USE), false),
        ("typed, open", &typed, None, granted(IN_USE), false),
        ("no endpoint, open", &unset, None, granted(IN_USE), true),
        ("another typed, open", &other, None, granted(IN_USE), true),
        ("fixed, any port", &unset, same, granted(IN_USE), false),
        ("fixed, another source", &other, same, granted(IN_USE), false),
        ("fixed to another", &derived, differs, granted(IN_USE), true),
        ("another address", &derived, None, granted("192.0.2.6"), true),
        ("unbound, no endpoint", &unset, None, unbound(), true),
        ("unbound, from a pool", &moved, None, unbound(), false),
        ("unbound, Cluster differs", &moved, differs, unbound(), true),
        ("unknown, pool requested", &unset, same, unknown(), false),
        ("unknown, from a pool", &moved, None, unknown(), false),
        ("unknown, without pool", &other, differs, unknown(), true),
        ("unknown, no endpoint", &unset, None, unknown(), true),
    ] {
        assert_release(what, (object, fixed), &granted, is_released);
    }
}

#[test]
fn claim_of_a_deleted_object_is_released_only_if_deleted_with_any_owner() {
    for owners in [&["u1"][..], &["u0"], &[]] {
        let deleting = held_claims(owners, true, granted(IN_USE));
        assert_eq!(deleting.of_deleted_object(), deleting.all);
        assert_eq!(
            held_claims(owners, false, granted(IN_USE)).of_deleted_object(),
            [],
            "not deleted"
        );
    }
}

#[test]
fn claim_is_kept_for_the_endpoint_of_an_object_with_another_uid_after_a_restore() {
    let (object, fixed) = (derived_from_pool(), cluster(Some("192.0.2.5:6443")));
    for cluster in [&fixed, &cluster(None)] {
        let deleting = held_claims(&["u0"], true, granted(IN_USE));
        assert_eq!(deleting.releasable(&object, Some(cluster)), []);
        assert!(deleting.keeps_deleted(&object, cluster));
    }
}
