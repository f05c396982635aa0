//! What runs on the hosts of the large fleet: a Cluster for each rack, with a Machine, an address and its claim for each host in use.

use anyhow::{Context as _, Result};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use metal3_sim_cluster::Cluster;
use serde_json::{Value, json};

use crate::world::NAMESPACE;

const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta2";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
const IPAM: &str = "ipam.metal3.io/v1alpha1";
const LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// The Cluster of a rack, its infrastructure, and a pool of addresses for its hosts.
pub(crate) async fn cluster(server: &Cluster, rack: u32, held: usize) -> Result<()> {
    let name = name_of(rack);
    let labels = json!({ LABEL: name });
    let infrastructure =
        json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": name });
    let ready = json!({ "initialization": { "infrastructureProvisioned": true, "controlPlaneInitialized": true } });
    create(
        server,
        (CLUSTER_API, "Cluster", &name),
        json!({ "spec": { "infrastructureRef": infrastructure } }),
        Some(ready),
    )
    .await?;
    let endpoint = json!({ "host": "192.0.2.1", "port": 6443 });
    create(
        server,
        (INFRASTRUCTURE, "Metal3Cluster", &name),
        json!({ "metadata": { "labels": labels }, "spec": { "controlPlaneEndpoint": endpoint } }),
        None,
    )
    .await?;
    let range = json!({ "start": address(rack, 0), "end": address(rack, 63), "prefix": 24 });
    let counts = json!({ "capacity": "64", "allocated": held.to_string(), "available": (64_usize.saturating_sub(held)).to_string() });
    let spec = json!({ "clusterName": name, "namePrefix": name, "pools": [range] });
    create(server, (IPAM, "IPPool", &name), json!({ "spec": spec }), Some(counts)).await
}

/// The Machine on a host, which runs or waits for it, and its address.
pub(crate) async fn machine(server: &Cluster, host: &str, (rack, unit): (u32, u32), runs: bool) -> Result<()> {
    let (name, cluster) = (format!("edge-{host}"), name_of(rack));
    let (labels, time) = (json!({ LABEL: cluster }), "2026-01-01T00:00:00Z");
    let infrastructure =
        json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": name });
    let spec =
        json!({ "clusterName": cluster, "bootstrap": { "dataSecretName": name }, "infrastructureRef": infrastructure });
    let node = if runs { json!({ "name": name }) } else { Value::Null };
    let status = json!({ "nodeRef": node, "initialization": { "infrastructureProvisioned": runs } });
    let of_cluster = |spec: Value| json!({ "metadata": { "labels": labels }, "spec": spec });
    create(server, (CLUSTER_API, "Machine", &name), of_cluster(spec), Some(status)).await?;
    let annotated = json!({ "metadata": { "labels": labels, "annotations": { "metal3.io/BareMetalHost": format!("{NAMESPACE}/{host}") } },
        "spec": { "image": { "url": "http://images.example/node.raw", "checksum": "http://images.example/node.raw.sha256sum" } } });
    let associated = json!({ "type": "AssociateBareMetalHost", "status": "True", "reason": "Associated", "message": "", "lastTransitionTime": time });
    let status = json!({ "conditions": [associated] });
    create(
        server,
        (INFRASTRUCTURE, "Metal3Machine", &name),
        annotated,
        Some(status),
    )
    .await?;
    let address = address(rack, unit);
    let granted = format!("{cluster}-{}", address.replace('.', "-"));
    let pool = json!({ "name": cluster });
    let status = json!({ "address": { "name": granted } });
    create(
        server,
        (IPAM, "IPClaim", &name),
        of_cluster(json!({ "pool": pool })),
        Some(status),
    )
    .await?;
    let spec = json!({ "pool": pool, "claim": { "name": name }, "address": address, "prefix": 24 });
    create(server, (IPAM, "IPAddress", &granted), of_cluster(spec), None).await
}

/// The name of the Cluster of a rack.
pub(crate) fn name_of(rack: u32) -> String {
    format!("edge-{rack:03}")
}

fn address(rack: u32, unit: u32) -> String {
    format!("10.{}.{}.{}", rack / 256, rack % 256, unit + 1)
}

async fn create(
    server: &Cluster,
    (version, kind, name): (&str, &str, &str),
    part: Value,
    status: Option<Value>,
) -> Result<()> {
    let (group, number) = version.split_once('/').context("a version without its group")?;
    let of = GroupVersionKind::gvk(group, number, kind);
    let resource = ApiResource::from_gvk(&of);
    let api: Api<DynamicObject> = Api::namespaced_with(server.client("admin"), NAMESPACE, &resource);
    let mut object = part;
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), Value::from(version));
        members.insert("kind".to_owned(), Value::from(kind));
        let metadata = members.entry("metadata").or_insert(json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("name".to_owned(), Value::from(name));
            metadata.insert("namespace".to_owned(), Value::from(NAMESPACE));
        }
    }
    let created = api
        .create(&PostParams::default(), &serde_json::from_value(object)?)
        .await;
    created.with_context(|| format!("create {kind} {name}"))?;
    let Some(status) = status else { return Ok(()) };
    let patched = api
        .patch_status(
            name,
            &PatchParams::default(),
            &Patch::Merge(json!({ "status": status })),
        )
        .await;
    patched
        .map(drop)
        .with_context(|| format!("the status of {kind} {name}"))
}
