//! A pool with a hundred thousand grants: its object stays within what etcd takes in one request.

use std::net::Ipv4Addr;

use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_api::meta::Time;
use metal3_runtime::patch;
use serde_json::{Map, Value, json};

use super::world::{NAMESPACE, POOL};
use crate::accounts::{Accounts, key};
use crate::action::{Action, Plan};
use crate::claim::Claim;
use crate::facts::{Evidence, Facts};
use crate::held::Held;
use crate::names::condition;
use crate::plan::plan_under;
use crate::ranges::Ranges;
use crate::rules::Rules;

const GRANTS: u32 = 100_000;
/// As many as one pass takes on without leaving the map for the next.
const WAITING: u32 = 499;
/// `--max-request-bytes` of etcd, as it comes.
const MOST_BYTES: usize = 1_572_864;

/// As long as a name may be.
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

/// A claim that has an address, or one that is protected and waits.
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

/// As long as the API server's are.
fn uid(number: u32) -> String {
    format!("{number:0>36}")
}

fn object(number: u32) -> String {
    format!("p-{}", address(number).to_string().replace('.', "-"))
}

fn held() -> Value {
    let owner = |api: &str, kind: &str, name: &str, uid: String| {
        json!({ "apiVersion": api, "kind": kind, "name": name,
        "uid": uid })
    };
    let ours = "ipam.metal3.io/v1alpha1";
    json!({
        "metadata": {
            "name": object(0), "namespace": NAMESPACE, "uid": "held", "resourceVersion": "7",
            "finalizers": ["ipaddress.ipam.metal3.io"],
            "ownerReferences": [
                owner(ours, "IPPool", POOL, "pool".into()),
                owner(ours, "IPClaim", &long(0), uid(0)),
            ],
        },
        "spec": { "address": address(0).to_string(), "pool": { "name": POOL }, "claim": { "name": long(0) } },
    })
}

/// Read once and then told apart: reading is not what is on trial.
fn accounts(pool: &IPPool) -> Accounts {
    let mut accounts = Accounts::default();
    accounts.put_pool(key(NAMESPACE, POOL), Ranges::of(&pool.spec).covered().clone());
    accounts.clusters_are_known();
    let claim = |is_granted| {
        let read: IPClaim = serde_json::from_value(claim(is_granted)).unwrap();
        Claim::of_metal3(&read).unwrap().1
    };
    let (granted, waiting) = (claim(true), claim(false));
    let read: IPAddress = serde_json::from_value(held()).unwrap();
    let held = Held::of_metal3(&read).unwrap().1;
    for number in 0..GRANTS {
        let mut claim = granted.clone();
        (claim.id.name, claim.uid, claim.names) = (long(number), uid(number), Some(object(number)));
        accounts.put_claim(NAMESPACE, POOL, claim);
        let mut held = held.clone();
        (held.id.name, held.uid, held.address) = (object(number), object(number), Some(address(number).into()));
        (held.claim, held.owner) = (long(number), Some(uid(number)));
        accounts.put_address(NAMESPACE, POOL, held);
    }
    for number in GRANTS..GRANTS + WAITING {
        let mut claim = waiting.clone();
        (claim.id.name, claim.uid) = (long(number), uid(number));
        accounts.put_claim(NAMESPACE, POOL, claim);
    }
    accounts
}

/// What the API server notes of who wrote what: every member of every map once more.
fn noted(value: &Value) -> Value {
    let members = value.as_object().into_iter().flatten();
    members
        .map(|(name, value)| (format!("f:{name}"), noted(value)))
        .collect::<Map<_, _>>()
        .into()
}

/// The pool after the writes of a plan, as etcd gets it.
fn written(pool: &mut Value, plan: &Plan) -> usize {
    let chains = plan.chains.iter().flat_map(|chain| &chain.actions);
    for action in plan.first.iter().chain(chains) {
        if let Action::PatchPool(change) | Action::PatchPoolStatus(change) = action {
            patch::apply(&change.clone().into_document(), pool);
        }
    }
    let mut stored = pool.clone();
    stored["metadata"]["managedFields"] = json!([{ "manager": "capm3", "operation": "Update", "apiVersion":
        "ipam.metal3.io/v1alpha1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "subresource": "status",
        "fieldsV1": { "f:status": noted(&pool["status"]) } }]);
    stored.to_string().len()
}

/// The longest names there are, a hundred thousand grants, and more claims than fit into a pass: the largest that a pool
/// gets.
#[test]
fn a_pool_with_a_hundred_thousand_grants_fits_into_a_request_to_etcd() {
    let mut document = pool();
    let read: IPPool = serde_json::from_value(document.clone()).unwrap();
    let accounts = accounts(&read);
    let plan = plan_under(
        &Facts {
            key: &key(NAMESPACE, POOL),
            pool: Some(&read),
            accounts: &accounts,
            me: "a",
            listed: true,
            evidence: &Evidence::default(),
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
    println!("{bytes} bytes: {shown} grants shown, {pending} under way");
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
    assert!(pending > 0 && shown > 0, "{shown} grants shown, {pending} under way");
    assert_eq!(
        after.status.allocated.unwrap(),
        (GRANTS + u32::try_from(pending).unwrap()).to_string()
    );
    let truncated = after
        .status
        .conditions
        .iter()
        .find(|c| c.type_ == condition::INDEXES_TRUNCATED);
    assert!(truncated.unwrap().message.contains("the IPAddress objects show all"));
}
