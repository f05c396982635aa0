//! Deliberate differences of allocation.

use serde_json::{Value, json};

use super::view::list_mut;
use crate::golden::group::Rule;
use crate::values::{list, text};

/// Rules in their order of application.
pub(super) const RULES: &[Rule] = &[
    MIXED_FAMILIES,
    EMPTY_CLUSTER_NAME,
    PAUSE_WITHOUT_CLUSTER,
    FOREIGN_POOL_KIND,
    CLAIMS_OF_ONE_NAME,
    MATCH_BY_UID,
    PRE_ALLOCATION_HELD,
    REQUESTED_OUTSIDE,
    NAME_COLLISION,
    POOL_DELETING,
    OWNER_REFERENCES,
    CLAIM_READY,
];

const METAL3: &str = "ipam.metal3.io/v1alpha1";
const FINALIZER: &str = "ipclaim.ipam.metal3.io";

/// A range with mixed address families allocates nothing.
const MIXED_FAMILIES: Rule = Rule {
    row: "pool-mixed-families",
    touches: |input| {
        let mapped = |range: &Value| text(range, "/end").starts_with("::ffff:");
        pools(input).any(|pool| list(pool, "/spec/pools").any(mapped))
    },
    predict: |_, recorded| {
        put(recorded, "/final/addresses", json!([]));
        for claim in claims(recorded) {
            refuse(claim, "Exhausted IP Pools");
        }
        each_pool(recorded, |pool| drop(pool.remove("indexes")));
    },
};

/// An empty cluster name means none: the pool allocates.
const EMPTY_CLUSTER_NAME: Rule = Rule {
    row: "ipam-empty-cluster-name",
    touches: |input| pools(input).any(|pool| pool.pointer("/spec/clusterName").is_some_and(|name| name == "")),
    predict: |_, recorded| {
        put(
            recorded,
            "/final/addresses",
            json!([address("p-10-0-0-10", "10.0.0.10", "c1", "pool-a")]),
        );
        each_pool(recorded, |pool| {
            pool.remove("labels");
            pool.insert("finalizers".to_owned(), json!(["ippool.ipam.metal3.io"]));
            pool.insert("indexes".to_owned(), json!({ "c1": "10.0.0.10" }));
        });
        for claim in claims(recorded) {
            grant(claim, "p-10-0-0-10", "10.0.0.10");
        }
    },
};

/// The annotation pauses a pool with or without a Cluster.
const PAUSE_WITHOUT_CLUSTER: Rule = Rule {
    row: "ipam-pause-without-cluster",
    touches: |input| pools(input).any(|pool| pool.pointer("/metadata/annotations/cluster.x-k8s.io~1paused").is_some()),
    predict: |_, recorded| {
        put(recorded, "/final/addresses", json!([]));
        each_pool(recorded, |pool| pool.retain(|member, _| member == "name"));
        for claim in claims(recorded) {
            retain(claim, &["name", "kind"]);
        }
    },
};

/// A claim on a pool of another kind is ignored.
const FOREIGN_POOL_KIND: Rule = Rule {
    row: "ipam-foreign-pool-kind",
    touches: |input| {
        applied(input).any(|claim| claim.pointer("/spec/poolRef/kind").is_some_and(|kind| kind != "IPPool"))
    },
    predict: |_, recorded| {
        put(recorded, "/final/addresses", json!([]));
        each_pool(recorded, |pool| drop(pool.remove("indexes")));
        for claim in claims(recorded) {
            retain(claim, &["name", "kind"]);
        }
    },
};

/// Claims of two kinds with one name are distinct.
const CLAIMS_OF_ONE_NAME: Rule = Rule {
    row: "ipam-claims-of-one-name",
    touches: |input| {
        let kinds = |kind: &str| applied(input).any(|claim| text(claim, "/kind") == kind);
        kinds("IPClaim") && kinds("IPAddressClaim")
    },
    predict: |_, recorded| {
        let foreign_address = json!({
            "name": "p-10-0-0-11",
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2",
            "spec": {
                "address": "10.0.0.11",
                "claimRef": { "name": "c1" },
                "poolRef": { "name": "pool-a", "kind": "IPPool", "apiGroup": "ipam.metal3.io" },
                "prefix": 24,
            },
        });
        if let Some(Value::Array(addresses)) = recorded.pointer_mut("/final/addresses") {
            addresses.push(foreign_address);
        }
        set_indexes(
            recorded,
            &json!({ "c1": "10.0.0.10", "ipaddressclaim/c1": "10.0.0.11" }),
        );
        for claim in claims(recorded).filter(|claim| claim.get("addressObject").is_some()) {
            retain(claim, &["name", "kind", "finalizers"]);
            put(claim, "/address", json!("p-10-0-0-11"));
            put(claim, "/ip", json!("10.0.0.11"));
        }
    },
};

/// An address without owner belongs only to a claim whose status names it, not to the claim that it names.
const MATCH_BY_UID: Rule = Rule {
    row: "ipam-match-by-uid",
    touches: |input| {
        let names: Vec<&Value> = applied(input)
            .filter_map(|claim| claim.pointer("/metadata/name"))
            .collect();
        list(input, "/objects").any(|object| {
            object
                .pointer("/spec/claim/name")
                .is_some_and(|name| names.contains(&name))
        })
    },
    predict: |_, recorded| {
        if let Some(Value::Array(addresses)) = recorded.pointer_mut("/final/addresses") {
            addresses.insert(0, address("p-10-0-0-10", "10.0.0.10", "c1", "pool-a"));
        }
        set_indexes(recorded, &json!({ "c1": "10.0.0.10" }));
        for claim in claims(recorded) {
            grant(claim, "p-10-0-0-10", "10.0.0.10");
        }
    },
};

/// A claim whose pre-allocated address is in use reports it.
const PRE_ALLOCATION_HELD: Rule = Rule {
    row: "ipam-pre-allocation-held",
    touches: |input| list(input, "/steps").any(|step| step.get("mergePatch").is_some()),
    predict: |_, recorded| {
        let text = "Pre-allocated IP not available: 10.0.0.10 is granted to another claim; delete that claim, or change spec.preAllocations";
        for claim in claims(recorded).filter(|claim| claim.get("address").is_none()) {
            put(claim, "/errorMessage", json!(text));
        }
    },
};

/// A claim that requests an address outside of all ranges reports it after the upstream text.
const REQUESTED_OUTSIDE: Rule = Rule {
    row: "ipam-requested-outside",
    touches: |input| requested_addresses(input).next().is_some(),
    predict: |input, recorded| {
        let requested_addresses: Vec<(String, String)> = requested_addresses(input).collect();
        for claim in claims(recorded) {
            let name = text(claim, "/name");
            let Some((_, requested)) = requested_addresses.iter().find(|(asking, _)| asking == name) else {
                continue;
            };
            let message = json!(format!(
                "Exhausted IP Pools: requested address {requested} is not part of any range"
            ));
            for place in ["/errorMessage", "/conditions/0/message"] {
                if text(claim, place) == "Exhausted IP Pools" {
                    put(claim, place, message.clone());
                }
            }
        }
    },
};

/// A name in use by another pool is skipped.
const NAME_COLLISION: Rule = Rule {
    row: "ipam-name-collision",
    touches: |input| {
        let prefixes: Vec<&Value> = pools(input)
            .filter_map(|pool| pool.pointer("/spec/namePrefix"))
            .collect();
        matches!(prefixes.as_slice(), [one, other] if one == other)
    },
    predict: |_, recorded| {
        if let Some(Value::Array(addresses)) = recorded.pointer_mut("/final/addresses") {
            addresses.push(address("x-10-0-0-11", "10.0.0.11", "c2", "pool-b"));
        }
        each_pool(recorded, |pool| {
            pool.entry("indexes").or_insert_with(|| json!({ "c2": "10.0.0.11" }));
        });
        for claim in claims(recorded).filter(|claim| claim.get("address").is_none()) {
            grant(claim, "x-10-0-0-11", "10.0.0.11");
        }
    },
};

/// A pool that is being deleted allocates nothing.
const POOL_DELETING: Rule = Rule {
    row: "ipam-pool-deleting",
    touches: |input| {
        list(input, "/steps").any(|step| list(step, "/delete").any(|object| text(object, "/kind") == "IPPool"))
    },
    predict: |_, recorded| {
        if let Some(Value::Array(addresses)) = recorded.pointer_mut("/final/addresses") {
            addresses.retain(|address| text(address, "/spec/claim/name") == "c1");
        }
        set_indexes(recorded, &json!({ "c1": "10.0.0.10" }));
        for claim in claims(recorded).filter(|claim| text(claim, "/name") == "c2") {
            retain(claim, &["name", "kind"]);
            put(claim, "/errorMessage", json!("The pool is being deleted"));
        }
    },
};

/// The address of a Cluster API claim has the owner references of the contract.
const OWNER_REFERENCES: Rule = Rule {
    row: "ipam-owner-references",
    touches: |input| applied(input).any(|claim| text(claim, "/kind") == "IPAddressClaim"),
    predict: |_, recorded| {
        for held in list_mut(recorded, "/final/addresses").filter(|held| text(held, "/apiVersion") != METAL3) {
            for owner in list_mut(held, "/metadata/ownerReferences") {
                let controls = text(owner, "/kind") == "IPAddressClaim";
                put(owner, "/controller", json!(controls));
                put(owner, "/blockOwnerDeletion", json!(true));
            }
        }
    },
};

/// A Cluster API claim with an address is ready, with a reason.
const CLAIM_READY: Rule = Rule {
    row: "ipam-claim-ready",
    touches: |input| applied(input).any(|claim| text(claim, "/kind") == "IPAddressClaim"),
    predict: |_, recorded| {
        let ready = json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "" }]);
        for claim in claims(recorded).filter(|claim| text(claim, "/kind") == "IPAddressClaim") {
            if claim.get("address").is_some() {
                put(claim, "/conditions", ready.clone());
            }
        }
    },
};

fn pools(input: &Value) -> impl Iterator<Item = &Value> {
    list(input, "/objects").filter(|object| text(object, "/kind") == "IPPool")
}

fn applied(input: &Value) -> impl Iterator<Item = &Value> {
    list(input, "/steps").flat_map(|step| list(step, "/apply"))
}

/// Claims with a requested address.
fn requested_addresses(input: &Value) -> impl Iterator<Item = (String, String)> {
    applied(input).filter_map(|claim| {
        let requested = text(claim, "/metadata/annotations/ipAddress");
        (!requested.is_empty()).then(|| (text(claim, "/metadata/name").to_owned(), requested.to_owned()))
    })
}

fn claims(recorded: &mut Value) -> impl Iterator<Item = &mut Value> {
    list_mut(recorded, "/steps").flat_map(|step| list_mut(step, "/claims"))
}

fn each_pool(recorded: &mut Value, change: impl Fn(&mut serde_json::Map<String, Value>)) {
    list_mut(recorded, "/final/pools")
        .filter_map(Value::as_object_mut)
        .for_each(change);
}

fn set_indexes(recorded: &mut Value, indexes: &Value) {
    each_pool(recorded, |pool| {
        drop(pool.insert("indexes".to_owned(), indexes.clone()))
    });
}

/// Sets a member of an existing parent.
fn put(value: &mut Value, place: &str, new: Value) {
    let (parent, member) = place.rsplit_once('/').unwrap_or_default();
    if let Some(members) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        members.insert(member.to_owned(), new);
    }
}

fn retain(claim: &mut Value, members: &[&str]) {
    if let Some(claim) = claim.as_object_mut() {
        claim.retain(|member, _| members.contains(&member.as_str()));
    }
}

fn refuse(claim: &mut Value, why: &str) {
    retain(claim, &["name", "kind", "finalizers"]);
    put(claim, "/errorMessage", json!(why));
}

fn grant(claim: &mut Value, object: &str, ip: &str) {
    retain(claim, &["name", "kind"]);
    put(claim, "/finalizers", json!([FINALIZER]));
    put(claim, "/address", json!(object));
    put(claim, "/ip", json!(ip));
}

/// An address of ipam.metal3.io in the namespace of the cases.
fn address(name: &str, ip: &str, claim: &str, pool: &str) -> Value {
    json!({
        "name": name,
        "apiVersion": METAL3,
        "spec": {
            "address": ip,
            "claim": { "name": claim, "namespace": "metal" },
            "pool": { "name": pool, "namespace": "metal" },
        },
    })
}
