//! Deliberate differences of allocation.

use serde_json::{Value, json};

use super::predicted::{METAL3, granted, next_free, pools, publish, push_address, put};
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
    touches: |input| pools(input).any(has_empty_cluster_name),
    predict: |input, recorded| {
        for pool in pools(input).filter(|pool| has_empty_cluster_name(pool)) {
            let is_pool = |shown: &&mut Value| text(shown, "/name") == name_of(pool);
            for shown in list_mut(recorded, "/final/pools").filter(is_pool) {
                put(shown, "/finalizers", json!(["ippool.ipam.metal3.io"]));
                shown.as_object_mut().map(|shown| shown.remove("labels"));
            }
            for claim in applied(input).filter(|claim| pool_of(claim) == name_of(pool)) {
                serve(input, recorded, claim);
            }
        }
    },
};

fn has_empty_cluster_name(pool: &Value) -> bool {
    pool.pointer("/spec/clusterName").is_some_and(|name| name == "")
}

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

/// Claims of two kinds with one name are distinct: the later one, which upstream leaves without an object, gets the next
/// free address.
const CLAIMS_OF_ONE_NAME: Rule = Rule {
    row: "ipam-claims-of-one-name",
    touches: |input| {
        let of_kind = |kind: &'static str| applied(input).filter(move |claim| text(claim, "/kind") == kind);
        of_kind("IPClaim").any(|one| of_kind("IPAddressClaim").any(|other| name_of(one) == name_of(other)))
    },
    predict: |input, recorded| {
        let lost = |claim: &&mut Value| claim.get("addressObject").is_some();
        let mut unserved: Vec<(String, String)> = claims(recorded)
            .filter(lost)
            .map(|claim| (text(claim, "/kind").to_owned(), text(claim, "/name").to_owned()))
            .collect();
        unserved.dedup();
        for (kind, name) in unserved {
            let stated = applied(input).find(|claim| text(claim, "/kind") == kind && name_of(claim) == name);
            if let Some(claim) = stated {
                serve(input, recorded, claim);
            }
        }
    },
};

/// Predicts that an applied claim gets the next free address of its pool.
fn serve(input: &Value, recorded: &mut Value, claim: &Value) {
    let (kind, name, pool) = (text(claim, "/kind"), name_of(claim), pool_of(claim));
    let Some((object, ip)) = next_free(input, recorded, pool) else {
        return;
    };
    for shown in claims(recorded).filter(|shown| text(shown, "/kind") == kind && text(shown, "/name") == name) {
        retain(shown, &["name", "kind", "finalizers"]);
        if shown.get("finalizers").is_none() {
            put(shown, "/finalizers", json!([FINALIZER]));
        }
        put(shown, "/address", json!(object));
        put(shown, "/ip", json!(ip));
    }
    publish(recorded, pool, (kind, name), &ip);
    push_address(recorded, granted(input, pool, (kind, name), (&object, &ip)));
}

fn name_of(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// The pool that a claim of either kind names.
fn pool_of(claim: &Value) -> &str {
    [text(claim, "/spec/pool/name"), text(claim, "/spec/poolRef/name")]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}

/// An address without owner belongs only to a claim whose status names it, not to the claim that it names.
const MATCH_BY_UID: Rule = Rule {
    row: "ipam-match-by-uid",
    touches: |input| unowned(input).next().is_some(),
    predict: |input, recorded| {
        for (address, claim) in unowned(input) {
            let ip = text(address, "/spec/address");
            for indexes in list_mut(recorded, "/final/pools").filter_map(|pool| pool.pointer_mut("/indexes")) {
                let Some(indexes) = indexes.as_object_mut() else {
                    continue;
                };
                indexes.retain(|name, shown| name != name_of(claim) || shown != ip);
            }
            serve(input, recorded, claim);
        }
    },
};

/// The addresses that exist before the claim that they name, with this claim.
fn unowned(input: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let addresses = list(input, "/objects").filter(|object| text(object, "/kind") == "IPAddress");
    addresses.filter_map(|address| {
        let claim = applied(input).find(|claim| name_of(claim) == text(address, "/spec/claim/name"));
        claim.map(|claim| (address, claim))
    })
}

/// A claim whose pre-allocated address is in use reports it.
const PRE_ALLOCATION_HELD: Rule = Rule {
    row: "ipam-pre-allocation-held",
    touches: |input| {
        let changes = list(input, "/steps").flat_map(|step| list(step, "/mergePatch"));
        changes
            .into_iter()
            .any(|pool| pool.pointer("/spec/preAllocations").is_some())
    },
    predict: |input, recorded| {
        let mut reserved: Vec<(String, String)> = pools(input).flat_map(pre_allocations).collect();
        for (step, shown) in list(input, "/steps").zip(list_mut(recorded, "/steps")) {
            for (claim, ip) in list(step, "/mergePatch").flat_map(pre_allocations) {
                reserved.retain(|(other, _)| *other != claim);
                reserved.push((claim, ip));
            }
            let held: Vec<String> = list(shown, "/claims")
                .map(|claim| text(claim, "/ip").to_owned())
                .collect();
            for claim in list_mut(shown, "/claims") {
                let is_silent = claim.get("address").is_none() && claim.get("errorMessage").is_none();
                let wanted = reserved.iter().find(|(name, _)| name == text(claim, "/name"));
                let Some((_, ip)) = wanted.filter(|(_, ip)| is_silent && held.contains(ip)) else {
                    continue;
                };
                let message = format!(
                    "Pre-allocated IP not available: {ip} is granted to another claim, whose machine may use it; change spec.preAllocations, or delete that machine"
                );
                put(claim, "/errorMessage", json!(message));
            }
        }
    },
};

/// The pre-allocations of a pool: claim and address.
fn pre_allocations(pool: &Value) -> Vec<(String, String)> {
    let all = pool.pointer("/spec/preAllocations").and_then(Value::as_object);
    let text = |ip: &Value| ip.as_str().unwrap_or_default().to_owned();
    all.into_iter()
        .flatten()
        .map(|(claim, ip)| (claim.clone(), text(ip)))
        .collect()
}

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
    touches: |input| pools(input).any(|pool| shares_prefix(input, pool)),
    predict: |input, recorded| {
        let unserved = |recorded: &mut Value, claim: &Value| {
            let mut shown = claims(recorded)
                .filter(|shown| text(shown, "/kind") == text(claim, "/kind") && text(shown, "/name") == name_of(claim));
            shown.all(|shown| shown.get("address").is_none() && shown.get("errorMessage").is_none())
        };
        let collides =
            |claim: &&Value| pools(input).any(|pool| name_of(pool) == pool_of(claim) && shares_prefix(input, pool));
        for claim in applied(input).filter(collides) {
            if unserved(recorded, claim) {
                serve(input, recorded, claim);
            }
        }
    },
};

fn shares_prefix(input: &Value, pool: &Value) -> bool {
    let prefix = text(pool, "/spec/namePrefix");
    pools(input).any(|other| name_of(other) != name_of(pool) && text(other, "/spec/namePrefix") == prefix)
}

/// A pool that is being deleted allocates nothing.
const POOL_DELETING: Rule = Rule {
    row: "ipam-pool-deleting",
    touches: |input| late_claims(input).next().is_some(),
    predict: |input, recorded| {
        for claim in late_claims(input) {
            let (kind, name) = (text(claim, "/kind"), name_of(claim));
            for shown in claims(recorded).filter(|shown| text(shown, "/kind") == kind && text(shown, "/name") == name) {
                retain(shown, &["name", "kind"]);
                put(shown, "/errorMessage", json!("The pool is being deleted"));
            }
            if let Some(Value::Array(addresses)) = recorded.pointer_mut("/final/addresses") {
                addresses.retain(|held| text(held, "/spec/claim/name") != name);
            }
            for indexes in list_mut(recorded, "/final/pools").filter_map(|pool| pool.pointer_mut("/indexes")) {
                indexes.as_object_mut().map(|indexes| indexes.remove(name));
            }
        }
    },
};

/// The claims of ipam.metal3.io that are applied after the deletion of their pool.
fn late_claims(input: &Value) -> impl Iterator<Item = &Value> {
    let deleted = |at: usize, pool: &str| {
        let mut until = list(input, "/steps").take(at).flat_map(|step| list(step, "/delete"));
        until.any(|object| text(object, "/kind") == "IPPool" && name_of(object) == pool)
    };
    let steps = list(input, "/steps").enumerate();
    let applied = steps.flat_map(|(at, step)| list(step, "/apply").map(move |claim| (at, claim)));
    applied
        .filter(move |(at, claim)| text(claim, "/kind") == "IPClaim" && deleted(*at, pool_of(claim)))
        .map(|(_, claim)| claim)
}

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

fn retain(claim: &mut Value, members: &[&str]) {
    if let Some(claim) = claim.as_object_mut() {
        claim.retain(|member, _| members.contains(&member.as_str()));
    }
}

fn refuse(claim: &mut Value, why: &str) {
    retain(claim, &["name", "kind", "finalizers"]);
    put(claim, "/errorMessage", json!(why));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(spec: &Value) -> Value {
        json!({ "kind": "IPPool", "metadata": { "name": "pool-a" }, "spec": spec })
    }

    fn claim(kind: &str, name: &str) -> Value {
        json!({ "kind": kind, "metadata": { "name": name }, "spec": { "pool": { "name": "pool-a" } } })
    }

    fn predicted(rule: &Rule, input: &Value, recorded: &Value) -> Value {
        let mut predicted = recorded.clone();
        if (rule.touches)(input) {
            (rule.predict)(input, &mut predicted);
        }
        predicted
    }

    #[test]
    fn second_claim_of_a_name_gets_the_next_free_address_of_its_own_pool() {
        let spec = json!({ "namePrefix": "x", "prefix": 25, "pools": [{ "start": "192.0.2.7", "end": "192.0.2.20" }], "preAllocations": { "vip": "192.0.2.8" } });
        let steps = json!([{ "apply": [claim("IPAddressClaim", "c1")] }, { "apply": [claim("IPClaim", "c1")] }]);
        let input = json!({ "objects": [pool(&spec)], "steps": steps });
        let first = json!({ "name": "x-192-0-2-7", "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "spec": { "address": "192.0.2.7" } });
        let recorded = json!({
            "final": { "addresses": [first], "pools": [{ "name": "pool-a", "indexes": { "c1": "192.0.2.7" } }, { "name": "other" }] },
            "steps": [{ "claims": [{ "name": "c1", "kind": "IPClaim", "address": "x-192-0-2-7", "addressObject": "missing" }] }],
        });
        let shown = predicted(&CLAIMS_OF_ONE_NAME, &input, &recorded);
        let indexes = &shown["final"]["pools"][0]["indexes"];
        assert_eq!(*indexes, json!({ "c1": "192.0.2.9", "ipaddressclaim/c1": "192.0.2.7" }));
        assert_eq!(
            shown["steps"][0]["claims"][0]["ip"], "192.0.2.9",
            "the next one is pre-allocated"
        );
        assert_eq!(shown["final"]["addresses"][0]["spec"]["prefix"], 25);
        assert_eq!(shown["final"]["pools"][1], recorded["final"]["pools"][1]);
        let served =
            json!({ "final": {}, "steps": [{ "claims": [{ "name": "c1", "kind": "IPClaim", "address": "a" }] }] });
        assert_eq!(
            predicted(&CLAIMS_OF_ONE_NAME, &input, &served),
            served,
            "nothing is lost"
        );
        let others = json!({ "steps": [{ "apply": [claim("IPAddressClaim", "c1"), claim("IPClaim", "c2")] }] });
        assert!(!(CLAIMS_OF_ONE_NAME.touches)(&others));
    }

    #[test]
    fn only_a_claim_whose_pre_allocated_address_is_held_reports_that() {
        let spec = json!({ "namePrefix": "p", "pools": [] });
        let patch = json!({ "metadata": { "name": "pool-a" }, "spec": { "preAllocations": { "vip": "192.0.2.7", "far": "192.0.2.99" } } });
        let input = json!({ "objects": [pool(&spec)], "steps": [{}, { "mergePatch": [patch] }] });
        let claims = json!([
            { "name": "c1", "ip": "192.0.2.7", "address": "p-192-0-2-7" },
            { "name": "vip" }, { "name": "far" }, { "name": "full", "errorMessage": "Exhausted IP Pools" },
        ]);
        let recorded = json!({ "steps": [{ "claims": claims }, { "claims": claims }] });
        let shown = predicted(&PRE_ALLOCATION_HELD, &input, &recorded);
        assert_eq!(shown["steps"][0], recorded["steps"][0], "nothing is pre-allocated yet");
        let after = &shown["steps"][1]["claims"];
        assert!(
            after[1]["errorMessage"]
                .as_str()
                .unwrap_or_default()
                .contains("192.0.2.7 is granted")
        );
        for other in [0, 2, 3] {
            assert_eq!(after[other], claims[other]);
        }
    }
    fn range(pool: &str, prefix: &str, start: &str) -> Value {
        let spec = json!({ "namePrefix": prefix, "pools": [{ "start": start }] });
        json!({ "kind": "IPPool", "metadata": { "name": pool }, "spec": spec })
    }

    fn on_pool(claim: &str, pool: &str) -> Value {
        json!({ "kind": "IPClaim", "metadata": { "name": claim }, "spec": { "pool": { "name": pool } } })
    }

    fn shown(claim: &str, ip: Option<&str>) -> Value {
        match ip {
            None => json!({ "name": claim, "kind": "IPClaim" }),
            Some(ip) => json!({ "name": claim, "kind": "IPClaim", "address": "x", "ip": ip }),
        }
    }

    #[test]
    fn each_claim_on_a_pool_with_an_empty_cluster_name_gets_an_address_of_that_pool() {
        let mut pool = range("pool-b", "b", "192.0.2.30");
        pool["spec"]["clusterName"] = "".into();
        let steps = json!([{ "apply": [on_pool("c1", "pool-a"), on_pool("c2", "pool-b"), on_pool("c3", "pool-b")] }]);
        let input = json!({ "objects": [range("pool-a", "a", "192.0.2.7"), pool], "steps": steps });
        let recorded = json!({
            "final": { "pools": [{ "name": "pool-a" }, { "name": "pool-b", "labels": {} }] },
            "steps": [{ "claims": [shown("c1", Some("192.0.2.7")), shown("c2", None), shown("c3", None)] }],
        });
        let after = predicted(&EMPTY_CLUSTER_NAME, &input, &recorded);
        let claims = &after["steps"][0]["claims"];
        assert_eq!(claims[0], recorded["steps"][0]["claims"][0]);
        assert_eq!(
            (&claims[1]["ip"], &claims[2]["ip"]),
            (&json!("192.0.2.30"), &json!("192.0.2.31"))
        );
        assert_eq!(after["final"]["pools"][0], json!({ "name": "pool-a" }));
        let indexes = json!({ "c2": "192.0.2.30", "c3": "192.0.2.31" });
        assert_eq!(after["final"]["pools"][1]["indexes"], indexes);
        assert_eq!(after["final"]["addresses"][1]["name"], "b-192-0-2-31");
    }

    #[test]
    fn claim_that_an_unowned_address_names_gets_another_and_others_keep_theirs() {
        let unowned = json!({ "kind": "IPAddress", "metadata": { "name": "a-192-0-2-7" }, "spec": { "address": "192.0.2.7", "claim": { "name": "c2" } } });
        let steps = json!([{ "apply": [on_pool("c1", "pool-a"), on_pool("c2", "pool-a")] }]);
        let input = json!({ "objects": [range("pool-a", "a", "192.0.2.7"), unowned], "steps": steps });
        let held = json!([{ "name": "a-192-0-2-7" }, { "name": "a-192-0-2-8" }]);
        let pools = json!([{ "name": "pool-a", "indexes": { "c1": "192.0.2.8", "c2": "192.0.2.7" } }]);
        let claims = json!([shown("c1", Some("192.0.2.8")), shown("c2", Some("192.0.2.7"))]);
        let recorded = json!({ "final": { "addresses": held, "pools": pools }, "steps": [{ "claims": claims }] });
        let after = predicted(&MATCH_BY_UID, &input, &recorded);
        let indexes = json!({ "c1": "192.0.2.8", "c2": "192.0.2.9" });
        assert_eq!(after["final"]["pools"][0]["indexes"], indexes);
        assert_eq!(after["steps"][0]["claims"][0], claims[0]);
        assert_eq!(after["steps"][0]["claims"][1]["ip"], "192.0.2.9");
        assert!(list(&after, "/final/addresses").any(|held| *held == json!({ "name": "a-192-0-2-7" })));
    }

    #[test]
    fn claim_whose_name_is_taken_in_another_pool_of_the_prefix_gets_the_next_address() {
        let pools =
            [("pool-a", "x"), ("pool-b", "x"), ("pool-c", "y")].map(|(pool, prefix)| range(pool, prefix, "192.0.2.7"));
        let steps = json!([{ "apply": [on_pool("c1", "pool-a"), on_pool("c2", "pool-b"), on_pool("c3", "pool-c")] }]);
        let input = json!({ "objects": pools, "steps": steps });
        let of_a = json!({ "name": "x-192-0-2-7", "spec": { "address": "192.0.2.7", "pool": { "name": "pool-a" } } });
        let recorded = json!({
            "final": { "addresses": [of_a], "pools": [{ "name": "pool-b" }, { "name": "pool-c" }] },
            "steps": [{ "claims": [shown("c1", Some("192.0.2.7")), shown("c2", None), shown("c3", None)] }],
        });
        let after = predicted(&NAME_COLLISION, &input, &recorded);
        assert_eq!(after["steps"][0]["claims"][1]["ip"], "192.0.2.8");
        assert_eq!(after["final"]["pools"][0]["indexes"], json!({ "c2": "192.0.2.8" }));
        assert_eq!(
            after["steps"][0]["claims"][2],
            shown("c3", None),
            "its prefix is its own"
        );
    }

    #[test]
    fn only_claims_applied_after_the_deletion_of_their_pool_are_refused() {
        let delete = json!([{ "kind": "IPPool", "metadata": { "name": "pool-a" } }]);
        let late = json!([on_pool("c2", "pool-a"), on_pool("c3", "pool-b")]);
        let steps = json!([{ "apply": [on_pool("c1", "pool-a")] }, { "delete": delete }, { "apply": late }]);
        let input = json!({ "objects": [], "steps": steps });
        let held = ["c1", "c2", "c3"].map(|claim| json!({ "spec": { "claim": { "name": claim } } }));
        let claims = ["c1", "c2", "c3"].map(|claim| shown(claim, Some("192.0.2.9")));
        let pools = json!([{ "indexes": { "c1": "192.0.2.9", "c2": "192.0.2.9" } }]);
        let recorded = json!({ "final": { "addresses": held, "pools": pools }, "steps": [{ "claims": claims }] });
        let after = predicted(&POOL_DELETING, &input, &recorded);
        assert_eq!(after["steps"][0]["claims"][0], claims[0]);
        assert_eq!(
            after["steps"][0]["claims"][1]["errorMessage"],
            "The pool is being deleted"
        );
        assert_eq!(after["steps"][0]["claims"][2], claims[2]);
        assert_eq!(after["final"]["addresses"], json!([held[0], held[2]]));
        assert_eq!(after["final"]["pools"][0]["indexes"], json!({ "c1": "192.0.2.9" }));
        let early = json!({ "steps": [{ "apply": [on_pool("c1", "pool-a")] }, { "delete": delete }] });
        assert!(!(POOL_DELETING.touches)(&early));
    }
}
