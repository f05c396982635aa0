//! A pool with a hundred thousand allocations: its object fits into a request to etcd.

use std::net::Ipv4Addr;

use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_api::meta::Time;
use metal3_runtime::patch;
use serde_json::{Map, Value, json};

use super::api_server::{NAMESPACE, POOL};
use crate::action::{Action, Plan};
use crate::address::AddressObject;
use crate::claim::Claim;
use crate::facts::{Facts, LiveReads};
use crate::index::{PoolIndex, key};
use crate::names::condition;
use crate::plan::decide_under;
use crate::ranges::Ranges;
use crate::rules::Rules;

const ALLOCATIONS: u32 = 100_000;
/// As many as one reconcile serves without deferring the map.
const WAITING: u32 = 499;
/// Default of `--max-request-bytes` of etcd.
const MOST_BYTES: usize = 1_572_864;

/// A name of the maximum length.
fn long(number: u32) -> String {
    format!("{number:-<253}").replace('-', "x")
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + number)
}

fn pool() -> Value {
    json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool",
        "metadata": {
            "name": POOL, "namespace": NAMESPACE, "uid": "pool", "resourceVersion": "7", "generation": 1,
            "finalizers": ["ippool.ipam.metal3.io"],
        },
        "spec": { "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.3.255.254" }] },
    })
}

/// A claim with an address, or one with the finalizer that waits.
fn claim(is_granted: bool) -> Value {
    let named = json!({ "name": object(0), "namespace": NAMESPACE });
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    json!({
        "metadata": {
            "name": long(0), "namespace": NAMESPACE, "uid": uid(0), "resourceVersion": "7",
            "finalizers": ["ipclaim.ipam.metal3.io"],
        },
        "spec": { "pool": { "name": POOL } },
        "status": if is_granted { json!({ "address": named, "conditions": ready }) } else { json!({}) },
    })
}

/// A UID as long as those of the API server.
fn uid(number: u32) -> String {
    format!("{number:0>36}")
}

fn object(number: u32) -> String {
    format!("p-{}", address(number).to_string().replace('.', "-"))
}

fn address_document() -> Value {
    let owner = |api: &str, kind: &str, name: &str, uid: String| {
        json!({ "apiVersion": api, "kind": kind, "name": name,
        "uid": uid })
    };
    let api_version = "ipam.metal3.io/v1alpha1";
    json!({
        "metadata": {
            "name": object(0), "namespace": NAMESPACE, "uid": "held", "resourceVersion": "7",
            "finalizers": ["ipaddress.ipam.metal3.io"],
            "ownerReferences": [
                owner(api_version, "IPPool", POOL, "pool".into()),
                owner(api_version, "IPClaim", &long(0), uid(0)),
            ],
        },
        "spec": { "address": address(0).to_string(), "pool": { "name": POOL }, "claim": { "name": long(0) } },
    })
}

/// Parses one document and varies it: parsing is not tested here.
fn index(pool: &IPPool) -> PoolIndex {
    let mut index = PoolIndex::default();
    index.put_pool(key(NAMESPACE, POOL), Ranges::of(&pool.spec).covered().clone());
    index.set_clusters_synced();
    let claim = |is_granted| {
        let read: IPClaim = serde_json::from_value(claim(is_granted)).unwrap();
        Claim::of_metal3(&read).unwrap().1
    };
    let (granted, waiting) = (claim(true), claim(false));
    let read: IPAddress = serde_json::from_value(address_document()).unwrap();
    let address_object = AddressObject::of_metal3(&read).unwrap().1;
    for number in 0..ALLOCATIONS {
        let mut claim = granted.clone();
        (claim.id.name, claim.uid, claim.address_name) = (long(number), uid(number), Some(object(number)));
        index.put_claim(NAMESPACE, POOL, claim);
        let mut address_object = address_object.clone();
        (address_object.id.name, address_object.uid, address_object.address) =
            (object(number), object(number), Some(address(number).into()));
        (address_object.claim, address_object.owner) = (long(number), Some(uid(number)));
        index.put_address(NAMESPACE, POOL, address_object);
    }
    for number in ALLOCATIONS..ALLOCATIONS + WAITING {
        let mut claim = waiting.clone();
        (claim.id.name, claim.uid) = (long(number), uid(number));
        index.put_claim(NAMESPACE, POOL, claim);
    }
    index
}

/// The managed fields of the API server: every member of every map once more.
fn managed_fields(value: &Value) -> Value {
    let members = value.as_object().into_iter().flatten();
    members
        .map(|(name, value)| (format!("f:{name}"), managed_fields(value)))
        .collect::<Map<_, _>>()
        .into()
}

/// The pool after the writes of a plan, in the size that etcd receives.
fn written(pool: &mut Value, plan: &Plan) -> usize {
    for action in plan.actions.iter().flat_map(|chain| &chain.actions) {
        if let Action::PatchPool(change) | Action::PatchPoolStatus(change) = action {
            patch::apply(&change.clone().into_document(), pool);
        }
    }
    let mut stored = pool.clone();
    stored["metadata"]["managedFields"] = json!([{ "manager": "capm3", "operation": "Update", "apiVersion":
        "ipam.metal3.io/v1alpha1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "subresource": "status",
        "fieldsV1": { "f:status": managed_fields(&pool["status"]) } }]);
    stored.to_string().len()
}

/// The longest names, a hundred thousand allocations, and more claims than one reconcile serves: the largest size of a
/// pool.
#[test]
fn pool_with_a_hundred_thousand_allocations_fits_into_a_request_to_etcd() {
    let mut document = pool();
    let read: IPPool = serde_json::from_value(document.clone()).unwrap();
    let index = index(&read);
    let (plan, _) = decide_under(
        &Facts {
            key: &key(NAMESPACE, POOL),
            pool: Some(&read),
            index: &index,
            identity: "a",
            listed: true,
            live_reads: &LiveReads::default(),
            now: Time::default(),
        },
        &Rules::ALL,
    );
    let bytes = written(&mut document, &plan);
    let after: IPPool = serde_json::from_value(document).unwrap();
    let (shown, pending) = (
        after.status.indexes.len(),
        after.status.allocator.unwrap().pending.len(),
    );
    println!("{bytes} bytes: {shown} allocations shown, {pending} pending");
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
    assert!(pending > 0 && shown > 0, "{shown} allocations shown, {pending} pending");
    assert_eq!(
        after.status.allocated.unwrap(),
        (ALLOCATIONS + u32::try_from(pending).unwrap()).to_string()
    );
    let truncated = after
        .status
        .conditions
        .iter()
        .find(|c| c.type_ == condition::INDEXES_TRUNCATED);
    assert!(truncated.unwrap().message.contains("the IPAddress objects show all"));
}
