//! Prints the memory of a cached object, for each kind: as the server sends it, and as it is kept. The figures depend
//! on allocator and machine: they are reported and never asserted.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Secret;
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_runtime::cache::{Item, SharedCache};
use metal3_runtime::version::ResourceVersion;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const OBJECTS: u64 = 20_000;

/// Resident memory of this process.
fn resident_bytes() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line
        .and_then(|line| line.split_whitespace().next())
        .context("no VmRSS")?;
    Ok(kilobytes.parse::<u64>()?.saturating_mul(1024))
}

/// An object as a server sends it, bookkeeping included.
fn document(number: u64, rest: &Value) -> Value {
    let manager = |name: &str| {
        json!({
            "manager": name, "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:cluster.x-k8s.io/cluster-name": {}}, "f:ownerReferences": {}}, "f:spec": {}},
        })
    };
    let mut document = json!({"metadata": {
        "name": format!("cluster-control-plane-{number}"), "namespace": "metal3", "uid": format!("0b6a6f0e-0000-0000-0000-{number:012}"),
        "resourceVersion": (number + 1).to_string(), "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"cluster.x-k8s.io/cluster-name": "cluster"},
        "finalizers": ["metal3.io/finalizer"],
        "ownerReferences": [{
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
            "name": format!("cluster-control-plane-{number}"), "uid": format!("0b6a6f0e-1111-0000-0000-{number:012}"),
        }],
        "managedFields": [manager("manager"), manager("kubectl")],
    }});
    metal3_runtime::patch::apply(rest, &mut document);
    document
}

fn measure<K: Resource + DeserializeOwned>(what: &str, rest: &Value) -> anyhow::Result<()> {
    let sent = document(0, rest).to_string().len();
    let cache = SharedCache::<K>::default();
    let start = ResourceVersion::parse("1")?;
    cache.listed(Vec::new(), start)?;
    let before = resident_bytes()?;
    for number in 1..=OBJECTS {
        cache.observed(Item::Object(serde_json::from_value(document(number, rest))?))?;
    }
    let kept = resident_bytes()?
        .saturating_sub(before)
        .checked_div(OBJECTS)
        .unwrap_or(0);
    println!("{what:<28} {sent:>6} bytes sent {kept:>6} bytes kept");
    // Kept to the end: memory freed by one cache would reduce the figure of the next.
    std::mem::forget(cache);
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let named = json!({"name": "cluster-control-plane-1"});
    measure::<Metal3DataClaim>(
        "Metal3DataClaim",
        &json!({"spec": {"template": named}, "status": {"renderedData": named}}),
    )?;
    measure::<Metal3Data>(
        "Metal3Data",
        &json!({"spec": {"index": 1, "template": named, "claim": named}, "status": {"ready": true}}),
    )?;
    measure::<IPClaim>(
        "IPClaim",
        &json!({"spec": {"pool": named}, "status": {"address": named}}),
    )?;
    measure::<IPAddress>(
        "IPAddress",
        &json!({"spec": {"claim": named, "pool": named, "address": "10.0.0.1", "prefix": 24, "gateway": "10.0.0.254"}}),
    )?;
    let secret = json!({"data": {"userData": "QUFB".repeat(4096)}, "type": "Opaque"});
    measure::<Secret>("Secret, whole", &secret)?;
    measure::<PartialObjectMeta<Secret>>("Secret, metadata only", &secret)?;
    Ok(())
}
