//! The Node object with its heartbeats: status and Lease.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::clock;
use crate::clock::bounded;
use crate::context::Context;
use crate::plan::environment::ALLOCATABLE;

/// A Node without heartbeats for 40 s is marked unreachable: three may be lost.
const HEARTBEAT: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// Port of the kubelet API, published in the Node object.
pub(crate) const PORT: u16 = 10250;

/// Creates the Node if needed, and sends heartbeats.
pub(crate) async fn keep(cx: &Context) {
    let mut registered = false;
    let mut beat = tokio::time::interval(HEARTBEAT);
    loop {
        beat.tick().await;
        let done = async {
            if !registered {
                register(cx).await?;
            }
            heartbeat(cx).await
        };
        match done.await {
            Ok(()) => registered = true,
            Err(error) => tracing::warn!(error = format!("{error:#}"), "no heartbeat"),
        }
    }
}

async fn register(cx: &Context) -> anyhow::Result<()> {
    let node: Node = serde_json::from_value(node(&cx.node_name))?;
    let nodes: Api<Node> = Api::all(cx.client.clone());
    let parameters = PostParams::default();
    match nodes.create(&parameters, &node).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

async fn heartbeat(cx: &Context) -> anyhow::Result<()> {
    let now = clock::now();
    let nodes: Api<Node> = Api::all(cx.client.clone());
    let status = Patch::Strategic(json!({"status": status(&cx.node_address, now)}));
    bounded(nodes.patch_status(&cx.node_name, &PatchParams::default(), &status)).await?;
    let leases: Api<Lease> = Api::namespaced(cx.client.clone(), LEASE_NAMESPACE);
    let spec = lease(&cx.node_name, now);
    match bounded(leases.patch(&cx.node_name, &PatchParams::default(), &Patch::Merge(&spec))).await {
        Ok(_) => Ok(()),
        Err(error) if is_not_found(&error) => {
            let lease: Lease = serde_json::from_value(spec)?;
            let parameters = PostParams::default();
            bounded(leases.create(&parameters, &lease)).await.map(drop)
        }
        Err(error) => Err(error),
    }
}

fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 404)
}

fn node(name: &str) -> Value {
    let labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"});
    json!({"metadata": {"name": name, "labels": labels}})
}

/// Resources are for the scheduler only: containers are not limited.
fn status(address: &str, now: Timestamp) -> Value {
    let resources: Value = ALLOCATABLE
        .iter()
        .map(|(name, quantity)| ((*name).to_owned(), json!(quantity)))
        .collect();
    json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": PORT}},
        "nodeInfo": {
            "kubeletVersion": concat!("v1.36.0-process.", env!("CARGO_PKG_VERSION")),
            "containerRuntimeVersion": concat!("process://", env!("CARGO_PKG_VERSION")),
            "operatingSystem": "linux",
            "architecture": architecture(),
            "osImage": "processes of one machine",
            "kernelVersion": "", "machineID": "", "systemUUID": "", "bootID": "", "kubeProxyVersion": "",
        },
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "the process kubelet runs Pods",
            "lastHeartbeatTime": now.to_string(), "lastTransitionTime": now.to_string(),
        }],
    })
}

/// The architecture name of images and node selectors.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn lease(name: &str, now: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": format!("{now:.6}")},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_and_lease_have_the_fields_of_the_api() {
        let now = Timestamp::from_second(1).unwrap();
        let node: Node = serde_json::from_value(json!({"status": status("10.0.0.1", now)})).unwrap();
        let status = node.status.unwrap();
        assert_eq!(
            status.daemon_endpoints.unwrap().kubelet_endpoint.unwrap().port,
            i32::from(PORT)
        );
        assert_eq!(status.conditions.unwrap()[0].status, "True");
        let lease: Lease = serde_json::from_value(lease("n", now)).unwrap();
        assert_eq!(lease.spec.unwrap().renew_time.unwrap().0, now);
    }
}
