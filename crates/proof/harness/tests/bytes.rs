//! Memory per object of each kind in a cache, compared with the allocator.
//!
//! In its own binary, because the allocator counts everything.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and shows its table"
)]

use std::alloc::System;

use cap::Cap;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use kube_core::Resource;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_runtime::cache::{Cache, Item};
use metal3_runtime::version::ResourceVersion;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const OBJECTS: usize = 1000;

/// Upper limits of bytes per object; at least nine tenths must be used, so that the table stays accurate. The pool has
/// fifty grants in its status.
const BUDGET: [(&str, usize); 5] = [
    ("ConfigMap", 3_200),
    ("IPAddress", 3_250),
    ("IPClaim", 3_500),
    ("IPPool", 9_700),
    ("Secret, metadata only", 2_600),
];

/// Metadata as on the wire; the cache drops managed fields and the last-applied annotation.
fn metadata(number: usize, owner: &str) -> Value {
    json!({
        "name": format!("workload-cluster-1-control-plane-{number:05}"),
        "namespace": "bare-metal-clusters",
        "uid": format!("7a1f3c52-9f0e-4d6b-8a51-{number:012}"),
        "resourceVersion": (1_000_000 + number).to_string(),
        "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"cluster.x-k8s.io/cluster-name": "workload-cluster-1"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x".repeat(600)},
        "ownerReferences": [{
            "apiVersion": "ipam.metal3.io/v1alpha1",
            "kind": owner,
            "name": format!("workload-cluster-1-control-plane-{number:05}"),
            "uid": format!("1b0d9e7c-2f44-4c0d-b0a3-{number:012}"),
        }],
        "managedFields": [{
            "manager": "manager",
            "operation": "Update",
            "apiVersion": "ipam.metal3.io/v1alpha1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:cluster.x-k8s.io/cluster-name": {}}}},
        }],
    })
}

fn reference(name: &str) -> Value {
    json!({"name": name, "namespace": "bare-metal-clusters"})
}

/// Bytes per object in a cache of a thousand objects.
fn bytes<K: Resource + DeserializeOwned>(document: impl Fn(usize) -> Value) -> usize {
    let texts: Vec<String> = (0..OBJECTS).map(|number| document(number).to_string()).collect();
    let before = ALLOCATOR.allocated();
    let mut cache: Cache<K> = Cache::default();
    // From text, as the watch decodes it: decoding from a `Value` allocates other capacities.
    let items = texts
        .iter()
        .map(|text| Item::Object(serde_json::from_str(text).unwrap()))
        .collect();
    cache.listed(items, ResourceVersion::parse("2000000").unwrap()).unwrap();
    let after = ALLOCATOR.allocated();
    assert_eq!(cache.objects().count(), OBJECTS);
    (after - before).div_ceil(OBJECTS)
}

fn config_map(number: usize) -> Value {
    json!({"metadata": metadata(number, "IPClaim"), "data": {"key": "value"}})
}

fn address(number: usize) -> Value {
    json!({
        "metadata": metadata(number, "IPClaim"),
        "spec": {
            "claim": reference("workload-cluster-1-control-plane-0"),
            "pool": reference("provisioning-pool"),
            "address": "192.168.100.17",
            "prefix": 24,
            "gateway": "192.168.100.1",
            "dnsServers": ["192.168.100.2", "192.168.100.3"],
        },
    })
}

fn claim(number: usize) -> Value {
    json!({
        "metadata": metadata(number, "Metal3Data"),
        "spec": {"pool": reference("provisioning-pool")},
        "status": {
            "address": reference("provisioning-192-168-100-17"),
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "AddressGranted",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        },
    })
}

fn pool(number: usize) -> Value {
    let grant = |host: u32| (format!("control-plane-{host}"), json!(format!("192.168.100.{host}")));
    let grants: serde_json::Map<String, Value> = (0..50).map(grant).collect();
    json!({
        "metadata": metadata(number, "Cluster"),
        "spec": {
            "namePrefix": "provisioning",
            "pools": [{"start": "192.168.100.10", "end": "192.168.100.200"}],
            "prefix": 24,
            "gateway": "192.168.100.1",
        },
        "status": {"indexes": grants, "lastUpdated": "2026-01-01T00:00:00Z"},
    })
}

fn secret(number: usize) -> Value {
    json!({"metadata": metadata(number, "Metal3Machine")})
}

#[test]
fn memory_per_object_matches_the_table() {
    let measured = [
        ("ConfigMap", bytes::<ConfigMap>(config_map)),
        ("IPAddress", bytes::<IPAddress>(address)),
        ("IPClaim", bytes::<IPClaim>(claim)),
        ("IPPool", bytes::<IPPool>(pool)),
        ("Secret, metadata only", bytes::<PartialObjectMeta<Secret>>(secret)),
    ];
    let mut wrong = Vec::new();
    for ((kind, found), (row, most)) in measured.into_iter().zip(BUDGET) {
        println!("{kind}: {found} bytes per object, limit {most}");
        if kind != row || found > most || found < most - most / 10 {
            wrong.push(kind);
        }
    }
    assert!(wrong.is_empty(), "outside the table: {wrong:?}");
}
