//! The ledger of a remediation: the Node of a machine in service does not answer, its host is powered off and on, and the
//! machine is healthy again. The workload cluster is the same simulated API server.

use anyhow::{Result, ensure};
use metal3_ledger::Ledger;
use serde_json::{Value, json};

use crate::lab::{CLUSTER_API, HOSTS, INFRASTRUCTURE, owner};
use crate::site::{Awaited, CORE, Requests, Site};
use crate::{all, detail, enrol, provision, row, sum};

const NODES: &str = "/api/v1";
/// Longer than the whole life: a user, and no time, ends the remediation.
const LONG: i32 = 100_000_000;
const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n\
                          clusters: [{name: k, cluster: {server: 'https://192.0.2.1:6443'}}]\nusers: [{name: u, user: {token: t}}]\n";

/// A way to fence a Node, with the accepted counts per machine: writes, reads, requests to Ironic, requests to the
/// workload cluster. `docs/counts.md` explains each request above the ideal.
struct Way {
    name: &'static str,
    kubelet: &'static str,
    most: [u64; 4],
    least: [&'static str; 4],
}

const WAYS: [Way; 2] = [
    Way {
        name: "taint",
        kubelet: "v1.31.0",
        most: [15, 18, 3, 10],
        least: ["9", "6", "2", "5"],
    },
    Way {
        name: "deleted Node",
        kubelet: "v1.27.3",
        most: [16, 18, 3, 7],
        least: ["10", "6", "2", "4"],
    },
];
const NAMES: [&str; 4] = ["API writes", "API reads", "Ironic requests", "workload requests"];

fn text<'a>(object: &'a Value, place: &str) -> &'a str {
    object.pointer(place).and_then(Value::as_str).unwrap_or_default()
}

impl Site {
    /// Each machine without a Node gets one.
    async fn register(&self, kubelet: &str) {
        let nodes = self.user.list(NODES, "nodes").await;
        for host in self.user.list(HOSTS, "baremetalhosts").await {
            let (name, machine) = (text(&host, "/metadata/name"), text(&host, "/spec/consumerRef/name"));
            if nodes.iter().any(|node| text(node, "/metadata/name") == machine) {
                continue;
            }
            let node = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": { "name": machine, "labels": { "kubernetes.io/hostname": machine } },
                "spec": { "providerID": format!("metal3://default/{name}/{machine}") },
            });
            self.user.make(NODES, "nodes", node).await;
            let info = [
                "architecture",
                "bootID",
                "containerRuntimeVersion",
                "kernelVersion",
                "kubeProxyVersion",
                "machineID",
                "operatingSystem",
                "osImage",
                "systemUUID",
            ];
            let mut info: serde_json::Map<String, Value> =
                info.map(|field| (field.to_owned(), json!(""))).into_iter().collect();
            info.insert("kubeletVersion".to_owned(), json!(kubelet));
            let status = json!({ "status": { "nodeInfo": info } });
            self.user
                .change(NODES, &format!("nodes/{machine}/status"), status)
                .await;
            let status = json!({ "status": { "nodeRef": { "name": machine } } });
            self.user
                .change(CLUSTER_API, &format!("machines/{machine}/status"), status)
                .await;
        }
    }

    /// A MachineHealthCheck creates a remediation of each machine.
    async fn remediate(&self) {
        for machine in self.user.list(CLUSTER_API, "machines").await {
            let remediation = json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Remediation",
                "metadata": { "name": text(&machine, "/metadata/name"), "ownerReferences": [owner(&machine)] },
                "spec": { "strategy": { "type": "Reboot", "retryLimit": 1, "timeoutSeconds": LONG } },
            });
            self.user.make(INFRASTRUCTURE, "metal3remediations", remediation).await;
        }
    }
}

/// The requests from the creation of the remediations to their deletion.
async fn requests(machines: u32, way: &Way) -> Result<Requests> {
    let (site, count) = (Site::new().await?, usize::try_from(machines)?);
    enrol(&site, machines).await?;
    provision(&site, machines).await?;
    let data = json!({ "value": KUBECONFIG });
    let secret =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "edge-kubeconfig" }, "stringData": data });
    site.user.make(CORE, "secrets", secret).await;
    site.register(way.kubelet).await;
    site.until_idle().await?;
    site.requests();
    site.remediate().await;
    site.until(Awaited::Remediations, "/status/phase", &json!("Waiting"), count)
        .await?;
    site.register("").await;
    site.until_idle().await?;
    for remediation in site.user.list(INFRASTRUCTURE, "metal3remediations").await {
        let name = text(&remediation, "/metadata/name").to_owned();
        ensure!(
            remediation.pointer("/metadata/finalizers").is_none(),
            "never released: {remediation:#}"
        );
        site.user
            .delete(INFRASTRUCTURE, &format!("metal3remediations/{name}"))
            .await;
    }
    site.until_left(Awaited::Remediations, 0).await?;
    Ok(site.requests())
}

/// The rows of both ways.
pub(crate) async fn rows(ledger: &mut Ledger, machines: u32, in_detail: bool) -> Result<()> {
    for way in WAYS {
        let (requests, several) = (requests(machines, &way).await?, u64::from(machines));
        let [writes, reads, ironic] = all(&requests);
        let measured = [writes, reads, ironic, sum(&requests.workload)];
        let phase = format!("remediation by {}, {machines}", way.name);
        for (((what, measured), most), least) in NAMES.iter().zip(measured).zip(way.most).zip(way.least) {
            let each = measured.div_ceil(several);
            row(ledger, &phase, &format!("{what} per machine"), (each, most), least);
        }
        if in_detail {
            detail(way.name, &requests, several);
        }
    }
    Ok(())
}
