use std::collections::BTreeSet;

use metal3_api::cluster::{IPAddress, IPAddressClaim};
use metal3_api::ipam::v1alpha1::IPClaim;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::claims::{ClaimState, Naming, NewClaim, general_state, is_orphan, metal3_state, names, new_claim};
use super::super::pools::PoolRef;
use super::{Grant, fixture, metadata, name, owner, read};

fn pool(kind: &str, group: &str, text: &str) -> PoolRef {
    PoolRef {
        group: group.to_owned(),
        kind: kind.to_owned(),
        name: name(text),
    }
}

fn metal3(text: &str) -> PoolRef {
    pool("IPPool", "ipam.metal3.io", text)
}

/// The name of a new claim, then the names under which it is searched.
fn known(pool: &PoolRef, others: &[PoolRef], naming: Naming) -> Vec<String> {
    let needed: BTreeSet<PoolRef> = others.iter().chain([pool]).cloned().collect();
    let names = names("tpl-2", "host-7", pool, &needed, naming).unwrap();
    let all = std::iter::once(&names.made).chain(&names.known);
    all.map(ToString::to_string).collect()
}

#[test]
fn claims_on_metal3_pools_are_found_by_data_and_host_name_and_created_by_the_setting() {
    let of = |naming| known(&metal3("p"), &[], naming);
    assert_eq!(of(Naming::Data), ["tpl-2-p", "tpl-2-p", "host-7-p"]);
    assert_eq!(of(Naming::Host), ["host-7-p", "tpl-2-p", "host-7-p"]);
}

#[test]
fn claims_on_other_pools_have_the_data_name_and_the_kind_when_names_collide() {
    let netbox = pool("NetboxPool", "ipam.example.com", "p");
    let cluster = pool("InClusterIPPool", "ipam.cluster.x-k8s.io", "p");
    assert_eq!(known(&netbox, &[metal3("p")], Naming::Host), ["tpl-2-p"; 2]);
    let longer = "tpl-2-p-netboxpool.ipam.example.com";
    assert_eq!(known(&netbox, &[cluster], Naming::Data), [longer; 2]);
}

#[test]
fn too_long_claim_name_is_an_error_with_the_pool() {
    let long = "d".repeat(253);
    let error = names(&long, "host-7", &metal3("p"), &BTreeSet::new(), Naming::Data).unwrap_err();
    assert!(
        error.to_string().contains("the claim on pool p") && error.to_string().contains("shorten"),
        "{error}"
    );
    let host = names("tpl-2", &long, &metal3("p"), &BTreeSet::new(), Naming::Data).unwrap();
    assert_eq!(host.known, [name("tpl-2-p")], "an invalid alternative name is ignored");
}

#[test]
fn claim_is_created_with_owner_labels_and_finalizer() {
    let mut data = fixture(json!({})).data;
    data.metadata.labels = Some([("cluster.x-k8s.io/cluster-name".to_owned(), "alpha".to_owned())].into());
    for naming in [Naming::Data, Naming::Host] {
        let NewClaim::Metal3(claim) = new_claim(&data, &metal3("p"), &name("c"), naming) else {
            panic!("the other contract")
        };
        let written = json!(claim);
        assert_eq!(
            written["metadata"]["finalizers"],
            json!(["metal3data.infrastructure.cluster.x-k8s.io"])
        );
        assert_eq!(written["metadata"]["ownerReferences"][0]["uid"], "uid-tpl-2");
        assert_eq!(written["metadata"]["ownerReferences"][0]["controller"], true);
        assert_eq!(written["spec"]["pool"], json!({ "name": "p", "namespace": "lab" }));
        let labels = written["metadata"]["labels"].as_object().unwrap();
        assert_eq!(labels["cluster.x-k8s.io/cluster-name"], "alpha");
        assert_eq!(
            labels.contains_key("infrastructure.cluster.x-k8s.io/pool-name"),
            naming == Naming::Host
        );
        let data_name = labels.get("infrastructure.cluster.x-k8s.io/data-name");
        assert_eq!(data_name, Some(&json!("tpl-2")).filter(|_| naming == Naming::Host));
    }
}

fn claim(owner_uid: &str, deleting: bool, status: Value) -> IPClaim {
    let mut metadata = metadata("tpl-2-p");
    metadata["ownerReferences"] = owner("Metal3Data", "tpl-2", owner_uid);
    if deleting {
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    read(json!({ "metadata": metadata, "spec": { "pool": { "name": "p" } }, "status": status }))
}

#[test]
fn claim_state_depends_on_owner_deletion_error_and_address() {
    let data = fixture(json!({})).data;
    let spec = json!({
        "claim": {}, "pool": {}, "address": "10.0.0.9", "prefix": 24, "gateway": "10.0.0.1", "dnsServers": ["192.0.2.1"],
    });
    let address = read(json!({ "spec": spec }));
    let granted = Grant {
        address: "10.0.0.9".to_owned(),
        prefix: Some(24),
        gateway: "10.0.0.1".to_owned(),
        dns_servers: vec!["192.0.2.1".to_owned()],
    };
    let bound = json!({ "address": { "name": "a" } });
    let (open, failed) = (json!({}), json!({ "errorMessage": "none left" }));
    let (message, owner) = ("none left".into(), "Metal3Data tpl-2".into());
    let (own, old) = ("uid-tpl-2", "uid-old");
    for (uid, deleting, status, address, expected) in [
        (own, false, &bound, Some(&address), ClaimState::Granted(granted)),
        (own, false, &bound, None, ClaimState::Pending),
        (own, false, &open, Some(&address), ClaimState::Pending),
        (own, false, &failed, None, ClaimState::Failed { message }),
        (
            own,
            true,
            &bound,
            Some(&address),
            ClaimState::Deleting { is_owned: true },
        ),
        (
            old,
            true,
            &bound,
            Some(&address),
            ClaimState::Deleting { is_owned: false },
        ),
        (old, false, &bound, Some(&address), ClaimState::Foreign { owner }),
    ] {
        let claim = claim(uid, deleting, status.clone());
        assert_eq!(metal3_state(&data.metadata, &claim, address), expected, "{claim:?}");
    }
}

#[test]
fn general_claim_requires_the_owner_and_keeps_an_unknown_prefix_unknown() {
    let data = fixture(json!({})).data;
    let address: IPAddress = read(json!({ "spec": { "address": "198.51.100.7" } }));
    let of = |uid: &str, status: Value| -> ClaimState {
        let mut metadata = metadata("tpl-2-nb");
        metadata["ownerReferences"] = owner("Metal3Data", "tpl-2", uid);
        let claim: IPAddressClaim = read(json!({ "metadata": metadata, "status": status }));
        general_state(&data.metadata, &claim, Some(&address))
    };
    let bound = json!({ "addressRef": { "name": "nb-1" } });
    let granted = Grant {
        address: "198.51.100.7".to_owned(),
        ..Grant::default()
    };
    assert_eq!(of("uid-tpl-2", bound.clone()), ClaimState::Granted(granted));
    assert_eq!(of("uid-tpl-2", json!({})), ClaimState::Pending);
    assert!(matches!(of("uid-other", bound), ClaimState::Foreign { .. }));
}

#[test]
fn orphan_is_in_deletion_with_the_finalizer_and_without_existing_data() {
    let orphan = |deleting: bool, finalizer: &str, lives: bool| {
        let mut claim = claim("uid-old", deleting, json!({}));
        claim.metadata.finalizers = Some(vec![finalizer.to_owned()]);
        is_orphan(&claim.metadata, |_| lives)
    };
    let is_owned = "metal3data.infrastructure.cluster.x-k8s.io";
    assert!(orphan(true, is_owned, false));
    assert!(!orphan(false, is_owned, false) && !orphan(true, "other", false) && !orphan(true, is_owned, true));
}

proptest! {
    #[test]
    fn claim_of_another_owner_never_gives_an_address(uid in "[a-z0-9-]{0,12}", deleting in any::<bool>()) {
        prop_assume!(uid != "uid-tpl-2");
        let data = fixture(json!({})).data;
        let address = read(json!({ "spec": { "claim": {}, "pool": {}, "address": "10.0.0.9" } }));
        let state = metal3_state(&data.metadata, &claim(&uid, deleting, json!({ "address": {} })), Some(&address));
        prop_assert!(!matches!(state, ClaimState::Granted(_)), "{state:?}");
    }
}
