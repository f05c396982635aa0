//! An address from a pool: the claim to create, and the value of each of its states.

use metal3_api::infrastructure::v1beta2::EndpointPool;
use metal3_runtime::access::{Permission, Role as _, verb};
use proptest::prelude::*;
use serde_json::json;

use super::super::existing_claim::{ExistingClaim, ExistingClaims};
use super::super::pool::{claim_name, new_claim, object_of, pool_of, source_value};
use super::super::source::{SourceState, SourceValue, SourceValues};
use super::*;
use crate::data::claims::{ClaimState, NewClaim};
use crate::data::pools::Grant;
use crate::needs::Machines;

fn pool(document: Value) -> EndpointPool {
    serde_json::from_value(document).unwrap()
}

fn vips() -> Value {
    json!({ "name": "vips" })
}

/// A pool of another provider.
fn far() -> Value {
    json!({ "name": "vips", "kind": "GlobalPool", "apiGroup": "ipam.example.org" })
}

fn granted(address: &str) -> ClaimState {
    ClaimState::Granted(Grant {
        address: address.to_owned(),
        ..Grant::default()
    })
}

fn as_wanted(wanted: &EndpointPool, state: &ClaimState) -> ExistingClaims {
    let (object, cluster) = (with_source("IPPool"), cluster(None));
    match new_claim(&object, &cluster, wanted) {
        Some(claim) => existing(&claim, state),
        None => ExistingClaims::default(),
    }
}

fn existing(claim: &NewClaim, state: &ClaimState) -> ExistingClaims {
    match claim {
        NewClaim::Metal3(claim) => ExistingClaims {
            metal3: Some(ExistingClaim::metal3(claim, state.clone())),
            ..ExistingClaims::default()
        },
        NewClaim::General(claim) => ExistingClaims {
            general: Some(ExistingClaim::general(claim, state.clone())),
            ..ExistingClaims::default()
        },
    }
}

fn state(own: &Metal3Cluster, wanted: Value, claim: &ClaimState) -> SourceState {
    let wanted = pool(wanted);
    source_value(own, &wanted, &as_wanted(&wanted, claim), false).state
}

/// The value of a claim created for `then`, while `now` is requested.
fn value_after_change(then: Value, now: Value, state: &ClaimState) -> SourceValue {
    source_value(
        &with_source("IPPool"),
        &pool(now),
        &as_wanted(&pool(then), state),
        false,
    )
}

#[test]
fn port_is_that_of_the_pool_or_that_in_the_object_or_the_default() {
    let (plain, hint) = (
        with_source("IPPool"),
        object(json!({ "controlPlaneEndpoint": { "port": 8443 } })),
    );
    let (named, unnamed) = (json!({ "name": "vips", "port": 7443 }), json!({ "name": "vips" }));
    let bound = granted("192.0.2.5");
    assert_eq!(state(&hint, named, &bound), known("192.0.2.5:7443"));
    assert_eq!(state(&hint, unnamed.clone(), &bound), known("192.0.2.5:8443"));
    assert_eq!(state(&plain, unnamed.clone(), &bound), known("192.0.2.5:6443"));
    assert_eq!(
        state(&plain, unnamed, &granted("2001:db8::5")),
        known("[2001:db8::5]:6443")
    );
}

#[test]
fn invalid_or_unrequested_address_is_reported_with_the_remedy() {
    let plain = with_source("IPPool");
    for (wanted, claim, part) in [
        (
            json!({ "name": "vips", "address": "192.0.2.9" }),
            granted("192.0.2.5"),
            "requests 192.0.2.9, the pool granted",
        ),
        (vips(), granted("0.0.0.0"), "which is not an address; correct the pool"),
        (
            vips(),
            ClaimState::Foreign {
                owner: "Metal3Data x".to_owned(),
            },
            "belongs to Metal3Data x; delete it there",
        ),
        (
            json!({ "name": "Not A Name" }),
            granted("192.0.2.5"),
            "spec.controlPlaneEndpointSource.ipPool",
        ),
    ] {
        let SourceState::Invalid(why) = state(&plain, wanted, &claim) else {
            panic!("{claim:?}");
        };
        assert!(why.contains(part), "{why}");
    }
    let same = json!({ "name": "vips", "address": "2001:DB8:0::5" });
    assert_eq!(
        state(&plain, same, &granted("2001:db8::5")),
        known("[2001:db8::5]:6443")
    );
}

/// Asserts that a claim created for `then` is not used while `now` is requested, and that the reason is reported.
fn assert_not_used(then: &Value, now: &Value, from: &str, part: &str) {
    let refused = ClaimState::Failed {
        message: "odd".to_owned(),
    };
    for state in [granted("192.0.2.9"), ClaimState::Pending, refused] {
        let value = value_after_change(then.clone(), now.clone(), &state);
        assert_eq!(value.from, format!("{from} edge-control-plane-endpoint"));
        let SourceState::Invalid(why) = &value.state else {
            panic!("{value:?}");
        };
        assert!(
            why.contains(part) && why.contains("delete the claim and remove"),
            "{why}"
        );
    }
    // A claim that is being deleted is not compared.
    let gone = value_after_change(then.clone(), now.clone(), &ClaimState::Deleting { is_owned: true });
    assert!(matches!(gone.state, SourceState::Pending(_)), "{gone:?}");
}

#[test]
fn different_claim_is_not_used_and_the_difference_is_reported_with_the_remedy() {
    let (plain, far) = (vips(), far());
    let at = |address: &str| json!({ "name": "vips", "address": address });
    for (then, now, from, part) in [
        (
            plain.clone(),
            json!({ "name": "other" }),
            "IPClaim",
            "names pool other, the claim is on pool vips;",
        ),
        (
            plain.clone(),
            far.clone(),
            "IPClaim",
            "names pool vips (GlobalPool.ipam.example.org), the claim is on pool vips;",
        ),
        (
            far.clone(),
            plain.clone(),
            "IPAddressClaim",
            "names pool vips, the claim is on pool vips (GlobalPool.ipam.example.org);",
        ),
        (
            far,
            json!({ "name": "vips", "kind": "OtherPool", "apiGroup": "ipam.example.org" }),
            "IPAddressClaim",
            "names pool vips (OtherPool.ipam.example.org), the claim is on pool vips (GlobalPool",
        ),
        (
            plain.clone(),
            at("192.0.2.9"),
            "IPClaim",
            ".address requests 192.0.2.9, the claim requests none;",
        ),
        (
            at("192.0.2.9"),
            plain,
            "IPClaim",
            ".address requests none, the claim requests 192.0.2.9;",
        ),
        (
            at("192.0.2.9"),
            at("192.0.2.8"),
            "IPClaim",
            ".address requests 192.0.2.8, the claim requests 192.0.2.9;",
        ),
    ] {
        assert_not_used(&then, &now, from, part);
    }
    let same = value_after_change(at("2001:DB8:0::5"), at("2001:db8::5"), &granted("2001:db8::5"));
    assert_eq!(same.state, known("[2001:db8::5]:6443"));
}

#[test]
fn claim_on_a_pool_of_another_namespace_or_of_another_owner_is_not_used() {
    let wanted = pool(vips());
    let Some(NewClaim::Metal3(mut claim)) = new_claim(&with_source("IPPool"), &cluster(None), &wanted) else {
        panic!("a claim on an IPPool");
    };
    claim.spec.pool.namespace = Some("elsewhere".to_owned());
    let claims = existing(&NewClaim::Metal3(claim), &granted("192.0.2.5"));
    let SourceState::Invalid(why) = source_value(&with_source("IPPool"), &wanted, &claims, false).state else {
        panic!("used");
    };
    assert!(why.contains("the claim is on pool elsewhere/vips"), "{why}");
    let owner = "Metal3Data x".to_owned();
    for state in [ClaimState::Foreign { owner }, ClaimState::Deleting { is_owned: false }] {
        let value = value_after_change(far(), vips(), &state);
        assert_eq!(
            (value.state, value.from.split(' ').next()),
            (SourceState::Absent, Some("IPClaim"))
        );
    }
}

#[test]
fn claim_without_address_is_waited_for_with_the_reason() {
    let (object, open_cluster) = (with_source("IPPool"), cluster(None));
    for (claim, part) in [
        (None, "waiting for the creation of IPClaim edge-control-plane-endpoint"),
        (Some(ClaimState::Pending), "pool vips has not granted an address yet"),
        (Some(ClaimState::Deleting { is_owned: true }), "it is being deleted"),
        (
            Some(ClaimState::Failed {
                message: "Exhausted IP Pools".to_owned(),
            }),
            "Exhausted IP Pools; it is granted once",
        ),
    ] {
        let vips = pool(vips());
        let claims = claim.map_or_else(ExistingClaims::default, |claim| as_wanted(&vips, &claim));
        let source_values = SourceValues {
            pool: Some(source_value(&object, &vips, &claims, false)),
            ..SourceValues::default()
        };
        let resolution = resolve_for(&object, &open_cluster, false, &source_values);
        assert_missing(&resolution, "WaitingForIPAddress", part);
        assert!(!resolution.is_provisioned);
    }
}

#[test]
fn claim_is_owned_by_its_object_and_labelled() {
    let (object, cluster) = (with_source("IPPool"), cluster(None));
    let wanted = pool(json!({ "name": "vips", "address": "192.0.2.9" }));
    let Some(NewClaim::Metal3(claim)) = new_claim(&object, &cluster, &wanted) else {
        panic!("a claim on an IPPool");
    };
    let expected = json!({
        "name": "edge-control-plane-endpoint", "namespace": "metal",
        "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "annotations": { "ipAddress": "192.0.2.9" },
        "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io"], "ownerReferences": [{
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster", "name": "edge",
            "uid": "u1", "controller": true, "blockOwnerDeletion": true,
        }],
    });
    assert_eq!(serde_json::to_value(&claim.metadata).unwrap(), expected);
    // Creating a blocking owner reference requires this permission.
    assert!(Machines::permissions().contains(&Permission::of::<verb::UpdateFinalizers, Metal3Cluster>()));
    assert_eq!(claim.spec.pool.name.as_deref(), Some("vips"));
    assert!(new_claim(&object, &cluster, &pool(json!({ "name": "Not A Name" }))).is_none());
}

proptest! {
    #[test]
    fn object_is_found_by_the_name_of_its_claim(name in "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", other in "[a-z-]{0,30}") {
        let claim = claim_name(&name);
        prop_assert_eq!(object_of(&claim), Some(name.as_str()));
        prop_assert_eq!(object_of(&other).is_some(), other.len() > 23 && other.ends_with("-control-plane-endpoint"));
    }

    #[test]
    fn no_claim_makes_a_placeholder_an_endpoint(text in "[0-9a-z.:]{0,20}", name in ".{0,12}") {
        let wanted = pool(json!({ "name": name }));
        if let SourceState::Address(address) = source_value(&with_source("IPPool"), &wanted, &as_wanted(&wanted, &granted(&text)), false).state {
            prop_assert!(pool_of(&wanted).is_ok());
            prop_assert!(!address.host.is_empty() && address.host != "0.0.0.0" && address.host != "::");
        }
    }
}
