//! When the claim on an address is given back, and when it is not.

use metal3_api::cluster::IPAddressClaim;
use metal3_api::ipam::v1alpha1::IPClaim;

use super::super::held_claims::{GrantedAddress, HeldClaim, HeldClaims};
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

fn held(owners: &[&str], is_deleting: bool, granted: GrantedAddress) -> HeldClaims {
    HeldClaims {
        all: HeldClaim::metal3(&claim(owners, is_deleting), granted)
            .into_iter()
            .collect(),
        unreadable: None,
    }
}

fn granted(address: &str) -> GrantedAddress {
    GrantedAddress::Address(address.to_owned())
}

/// An object with an endpoint that was derived from the pool.
fn derived_from_pool() -> Metal3Cluster {
    let endpoint = derived(EndpointOrigin::IPPool, &format!("{IN_USE}:6443"));
    written(&asking("IPPool"), &endpoint)
}

#[test]
fn giving_back_takes_our_finalizer_alone_at_the_version_that_was_seen() {
    let holds = held(&["u1"], false, granted(IN_USE));
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
        HeldClaim::metal3(&free, GrantedAddress::None),
        None,
        "there is nothing of ours to take"
    );
    let general: IPAddressClaim = serde_json::from_value(
        serde_json::to_value(json!({
            "metadata": claim(&["u1"], true).metadata, "spec": {},
        }))
        .unwrap(),
    )
    .unwrap();
    assert!(!HeldClaim::general(&general, GrantedAddress::None).unwrap().is_metal3);
}

/// A claim with this grant is given back, or kept, once somebody deletes it, and left alone until then.
fn judge(what: &str, (object, fixed): (&Metal3Cluster, Option<&str>), granted: &GrantedAddress, is_given_back: bool) {
    let cluster = cluster(fixed);
    let deleting = held(&["u1"], true, granted.clone());
    let given_back = deleting.releasable(object, Some(&cluster)).len();
    assert_eq!(given_back, usize::from(is_given_back), "{what}");
    assert_eq!(deleting.keeps_deleted(object, &cluster), !is_given_back, "{what}");
    let stays = held(&["u1"], false, granted.clone());
    assert!(
        stays.releasable(object, Some(&cluster)).is_empty(),
        "{what}: nobody deletes it"
    );
    assert!(!stays.keeps_deleted(object, &cluster), "{what}: nobody deletes it");
}

#[test]
fn claim_is_given_back_while_its_object_lives_only_if_it_is_deleted_and_the_endpoint_is_not_its_address() {
    let (derived, typed) = (derived_from_pool(), typing("IPPool", "192.0.2.5:6443"));
    let elsewhere = typing("Spec", "203.0.113.9:6443");
    let moved = written(
        &asking("Spec"),
        &super::derived(EndpointOrigin::IPPool, "192.0.2.5:6443"),
    );
    let unset = asking("IPPool");
    let (here, there) = (Some("192.0.2.5:7443"), Some("203.0.113.9:6443"));
    for (what, object, fixed, granted, is_given_back) in [
        ("derived, open", &derived, None, granted(IN_USE), false),
        ("typed, open", &typed, None, granted(IN_USE), false),
        ("nothing in the object, open", &unset, None, granted(IN_USE), true),
        ("something else typed, open", &elsewhere, None, granted(IN_USE), true),
        ("fixed, whatever the port", &unset, here, granted(IN_USE), false),
        (
            "fixed, and another source now",
            &elsewhere,
            here,
            granted(IN_USE),
            false,
        ),
        ("fixed to another", &derived, there, granted(IN_USE), true),
        ("another was granted", &derived, None, granted("192.0.2.6"), true),
        ("none was granted", &unset, None, GrantedAddress::None, true),
        (
            "none is said, and the endpoint came from a pool",
            &moved,
            None,
            GrantedAddress::None,
            false,
        ),
        (
            "none is said, and the Cluster has another",
            &moved,
            there,
            GrantedAddress::None,
            true,
        ),
        (
            "unseen, and a pool is asked for",
            &unset,
            here,
            GrantedAddress::Unknown,
            false,
        ),
        (
            "unseen, and the endpoint came from a pool",
            &moved,
            None,
            GrantedAddress::Unknown,
            false,
        ),
        (
            "unseen, and nothing speaks of a pool",
            &elsewhere,
            there,
            GrantedAddress::Unknown,
            true,
        ),
        (
            "unseen, and there is no endpoint",
            &unset,
            None,
            GrantedAddress::Unknown,
            true,
        ),
    ] {
        judge(what, (object, fixed), &granted, is_given_back);
    }
}

#[test]
fn claim_is_left_behind_only_if_it_is_deleted_whoever_owns_it() {
    for owners in [&["u1"][..], &["u0"], &[]] {
        let deleting = held(owners, true, granted(IN_USE));
        assert_eq!(deleting.of_deleted_object(), deleting.all);
        assert_eq!(
            held(owners, false, granted(IN_USE)).of_deleted_object(),
            [],
            "nobody deletes it"
        );
    }
}

#[test]
fn claim_is_kept_for_the_endpoint_of_an_object_that_has_another_uid_since_a_restore() {
    let (object, fixed) = (derived_from_pool(), cluster(Some("192.0.2.5:6443")));
    for cluster in [&fixed, &cluster(None)] {
        let deleting = held(&["u0"], true, granted(IN_USE));
        assert_eq!(deleting.releasable(&object, Some(cluster)), []);
        assert!(deleting.keeps_deleted(&object, cluster));
    }
}
