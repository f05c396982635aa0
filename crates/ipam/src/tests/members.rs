//! Each member of a pool, removed alone, changes what claims get.

use metal3_api::ipam::v1alpha1::IPPool;
use metal3_harness::without_effect;
use serde_json::{Value, json};

use super::replica::one_replica;
use crate::claim::ClaimKind::{ClusterApi, Metal3};

/// Pools that together have every member.
fn documents() -> [Value; 5] {
    let pool = |more: Value, entry: Value| {
        let mut spec = json!({ "namePrefix": "p", "prefix": 24, "gateway": "10.0.0.1", "dnsServers": ["192.0.2.1"], "pools": [entry] });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "spec": spec })
    };
    let range = json!({ "start": "10.0.0.10", "end": "10.0.0.11" });
    let own = json!({ "start": "10.1.0.10", "end": "10.1.0.20", "prefix": 16, "gateway": "10.1.0.1", "dnsServers": ["192.0.2.2"] });
    [
        pool(json!({}), range.clone()),
        pool(json!({ "preAllocations": { "c1": "10.1.0.15" } }), own.clone()),
        pool(json!({ "allocationStrategy": "random" }), own),
        pool(json!({}), json!({ "subnet": "10.0.0.0/30" })),
        pool(json!({ "clusterName": "absent" }), range),
    ]
}

/// The addresses and claims after three claims, and the label and status of the pool. `None` when the pool does not decode.
fn allocated(pool: &Value) -> Option<String> {
    serde_json::from_value::<IPPool>(pool.clone()).ok()?;
    let (mut server, mut replica) = one_replica(pool["spec"].clone());
    server.claim(Metal3, "c1", json!({}));
    server.claim(ClusterApi, "c2", json!({}));
    server.claim(Metal3, "c3", json!({}));
    replica.settle(&mut server);
    let addresses: Vec<String> = server
        .objects
        .addresses
        .values()
        .map(|stored| format!("{} {}", stored.meta("name"), stored.document["spec"]))
        .collect();
    let errors = [(Metal3, "c1"), (ClusterApi, "c2"), (Metal3, "c3")]
        .map(|(kind, name)| server.claim_of(kind, name).error.clone());
    let pool = server.pool();
    Some(format!(
        "{addresses:?} {errors:?} {:?} {:?}",
        pool.metadata.labels, pool.status
    ))
}

#[test]
fn each_member_of_a_pool_changes_what_claims_get() {
    assert_eq!(without_effect(("IPPool", "v1alpha1"), &documents(), allocated), [""; 0]);
}
