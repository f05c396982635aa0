//! An address from a pool: which claim is made, and what each state of it says.

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

fn granted(address: &str) -> ClaimState {
    ClaimState::Granted(Grant {
        address: address.to_owned(),
        ..Grant::default()
    })
}

/// A claim in this state that asks for what is wanted.
fn as_wanted(wanted: &EndpointPool, state: &ClaimState) -> ExistingClaims {
    let (object, cluster) = (asking("IPPool"), cluster(None));
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

/// What is heard of a claim that was made for `then`, where `now` is asked for.
fn after_change(then: Value, now: Value, state: &ClaimState) -> SourceValue {
    source_value(&asking("IPPool"), &pool(now), &as_wanted(&pool(then), state), false)
}

#[test]
fn port_is_that_of_the_pool_or_the_hint_in_the_object_or_the_usual_one() {
    let (plain, hint) = (
        asking("IPPool"),
        object(json!({ "controlPlaneEndpoint": { "port": 8443 } })),
    );
    let (named, nameless) = (json!({ "name": "vips", "port": 7443 }), json!({ "name": "vips" }));
    let bound = granted("192.0.2.5");
    assert_eq!(state(&hint, named, &bound), says("192.0.2.5:7443"));
    assert_eq!(state(&hint, nameless.clone(), &bound), says("192.0.2.5:8443"));
    assert_eq!(state(&plain, nameless.clone(), &bound), says("192.0.2.5:6443"));
    assert_eq!(
        state(&plain, nameless, &granted("2001:db8::5")),
        says("[2001:db8::5]:6443")
    );
}

#[test]
fn what_is_no_address_or_not_the_one_that_was_asked_for_is_invalid_with_the_cure() {
    let plain = asking("IPPool");
    for (wanted, claim, part) in [
        (
            json!({ "name": "vips", "address": "192.0.2.9" }),
            granted("192.0.2.5"),
            "asks for 192.0.2.9, the pool granted",
        ),
        (
            json!({ "name": "vips" }),
            granted("0.0.0.0"),
            "which is no address; correct the pool",
        ),
        (
            json!({ "name": "vips" }),
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
    assert_eq!(state(&plain, same, &granted("2001:db8::5")), says("[2001:db8::5]:6443"));
}

/// A claim that was made for `then` is not used where `now` is asked for, and why is said.
fn assert_not_used(then: &Value, now: &Value, from: &str, part: &str) {
    let refused = ClaimState::Failed {
        message: "odd".to_owned(),
    };
    for state in [granted("192.0.2.9"), ClaimState::Pending, refused] {
        let value = after_change(then.clone(), now.clone(), &state);
        assert_eq!(value.from, format!("{from} edge-control-plane-endpoint"));
        let SourceState::Invalid(why) = &value.state else {
            panic!("{value:?}");
        };
        assert!(
            why.contains(part) && why.contains("delete the claim and remove"),
            "{why}"
        );
    }
    // One that goes is not asked for anything.
    let gone = after_change(then.clone(), now.clone(), &ClaimState::Deleting { is_owned: true });
    assert!(matches!(gone.state, SourceState::Pending(_)), "{gone:?}");
}

#[test]
fn claim_that_asks_for_something_else_is_not_used_and_both_are_named_with_the_cure() {
    let (plain, far) = (
        json!({ "name": "vips" }),
        json!({ "name": "vips", "kind": "GlobalPool", "apiGroup": "ipam.example.org" }),
    );
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
            ".address asks for 192.0.2.9, the claim for none;",
        ),
        (
            at("192.0.2.9"),
            plain,
            "IPClaim",
            ".address asks for none, the claim for 192.0.2.9;",
        ),
        (
            at("192.0.2.9"),
            at("192.0.2.8"),
            "IPClaim",
            ".address asks for 192.0.2.8, the claim for 192.0.2.9;",
        ),
    ] {
        assert_not_used(&then, &now, from, part);
    }
    let same = after_change(at("2001:DB8:0::5"), at("2001:db8::5"), &granted("2001:db8::5"));
    assert_eq!(same.state, says("[2001:db8::5]:6443"));
}

#[test]
fn claim_on_a_pool_of_another_namespace_or_of_another_kind_of_somebody_else_is_not_taken_for_ours() {
    let wanted = pool(json!({ "name": "vips" }));
    let Some(NewClaim::Metal3(mut claim)) = new_claim(&asking("IPPool"), &cluster(None), &wanted) else {
        panic!("a claim on a pool of ours");
    };
    claim.spec.pool.namespace = Some("elsewhere".to_owned());
    let claims = existing(&NewClaim::Metal3(claim), &granted("192.0.2.5"));
    let SourceState::Invalid(why) = source_value(&asking("IPPool"), &wanted, &claims, false).state else {
        panic!("used");
    };
    assert!(why.contains("the claim is on pool elsewhere/vips"), "{why}");
    let far = json!({ "name": "vips", "kind": "GlobalPool", "apiGroup": "ipam.example.org" });
    let owner = "Metal3Data x".to_owned();
    for state in [ClaimState::Foreign { owner }, ClaimState::Deleting { is_owned: false }] {
        let value = after_change(far.clone(), json!({ "name": "vips" }), &state);
        assert_eq!(
            (value.state, value.from.split(' ').next()),
            (SourceState::Absent, Some("IPClaim"))
        );
    }
}

#[test]
fn claim_that_has_no_address_is_waited_for_and_says_why() {
    let (object, unfixed) = (asking("IPPool"), cluster(None));
    for (claim, part) in [
        (None, "waiting for IPClaim edge-control-plane-endpoint to be made"),
        (Some(ClaimState::Pending), "pool vips has not granted an address yet"),
        (Some(ClaimState::Deleting { is_owned: true }), "it is being deleted"),
        (
            Some(ClaimState::Failed {
                message: "Exhausted IP Pools".to_owned(),
            }),
            "Exhausted IP Pools; make room",
        ),
    ] {
        let vips = pool(json!({ "name": "vips" }));
        let claims = claim.map_or_else(ExistingClaims::default, |claim| as_wanted(&vips, &claim));
        let values = SourceValues {
            pool: Some(source_value(&object, &vips, &claims, false)),
            ..SourceValues::default()
        };
        let resolution = ask(&object, &unfixed, false, &values);
        let (status, reason, message) = said(&resolution);
        assert_eq!(
            (status, reason.as_str()),
            (ConditionStatus::False, "WaitingForIPAddress"),
            "{message}"
        );
        assert!(message.contains(part), "{message}");
        assert!(!resolution.is_provisioned);
    }
}

#[test]
fn claim_goes_with_its_object_and_says_where_it_belongs() {
    let (object, cluster) = (asking("IPPool"), cluster(None));
    let wanted = pool(json!({ "name": "vips", "address": "192.0.2.9" }));
    let Some(NewClaim::Metal3(claim)) = new_claim(&object, &cluster, &wanted) else {
        panic!("a claim on a pool of ours");
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
    // Who makes such an owner of it has to be allowed to keep that owner.
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
    fn no_state_of_a_claim_and_no_text_makes_a_placeholder_an_endpoint(text in "[0-9a-z.:]{0,20}", name in ".{0,12}") {
        let wanted = pool(json!({ "name": name }));
        if let SourceState::Address(address) = source_value(&asking("IPPool"), &wanted, &as_wanted(&wanted, &granted(&text)), false).state {
            prop_assert!(pool_of(&wanted).is_ok());
            prop_assert!(!address.host.is_empty() && address.host != "0.0.0.0" && address.host != "::");
        }
    }
}
