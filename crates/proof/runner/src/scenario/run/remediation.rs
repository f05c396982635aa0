//! Remediation of a machine, from an unhealthy Node to a healthy one or to another machine, with all real controllers.

use http::Method;
use metal3_sandbox::world::NAMESPACE;
use metal3_scenario::Apply;
use metal3_sim_capi::view::Object;
use serde_json::{Value, json};

use super::*;
use crate::scenario::waits::POLL_INTERVAL;

/// A cluster whose machines are ready.
struct Repaired<'a> {
    runner: Runner<'a>,
    machine: Value,
}

impl<'a> Repaired<'a> {
    /// One machine of the control plane and a worker, with one free host.
    async fn start(folder: &'a Path) -> Result<Self> {
        let scenario = Scenario {
            looks_before_joins: false,
            about: "remediation".to_owned(),
            hosts: 3,
            namespace: None,
            steps: Vec::new(),
        };
        let files = Files {
            own: folder,
            published: None,
        };
        let options = RunOptions {
            seed: 1,
            ..RunOptions::default()
        };
        let mut runner = Runner::start(&scenario, files, options).await?;
        let with = [("CLUSTER_NAME", "edge"), ("WORKER_MACHINE_COUNT", "1")];
        let apply = Apply {
            file: "objects/cluster.yaml".to_owned(),
            with: with.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        };
        runner.perform(&Step::Apply(apply)).await?;
        let mut repaired = Self {
            runner,
            machine: Value::Null,
        };
        repaired.until_ready().await?;
        let workers = repaired.workers().await?;
        repaired.machine = workers.first().context("no worker")?.clone();
        Ok(repaired)
    }

    async fn until_ready(&self) -> Result<()> {
        let wish = json!({ "kind": "Machine", "count": 2, "condition": { "Ready": "True" } });
        self.runner.wait(&serde_json::from_value(wish)?).await
    }

    async fn workers(&self) -> Result<Vec<Value>> {
        let mut all = self.runner.performer.list("Machine").await?;
        all.retain(|machine| machine["metadata"]["labels"]["cluster.x-k8s.io/deployment-name"] == "edge");
        Ok(all)
    }

    fn name(&self) -> &str {
        self.machine["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn node(&self) -> String {
        let node = self.machine["status"]["nodeRef"]["name"].as_str().unwrap_or_default();
        format!("/api/v1/nodes/{node}")
    }

    async fn workload(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let workload = self.runner.performer.world.workloads.at("192.0.2.10:6443");
        let client = workload.context("no workload cluster")?.client("test");
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/merge-patch+json")
            .body(body.to_string().into_bytes())?;
        Ok(client.request(request).await?)
    }

    /// The kubelet stops. Its last report gets old, until the machine starts again.
    async fn hang(&self) -> Result<()> {
        let ready = json!({ "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "" });
        let status = json!({ "status": { "conditions": [ready] } });
        let path = format!("{}/status", self.node());
        self.workload(Method::PATCH, &path, &status).await.map(drop)
    }

    async fn is_node_ready(&self) -> Result<bool> {
        let node = self.workload(Method::GET, &self.node(), &Value::Null).await?;
        let node = Object(node);
        Ok(node.is_true("Ready"))
    }

    /// What a MachineHealthCheck creates.
    async fn remediate(&self, timeout: u32) -> Result<()> {
        let remediation = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Remediation",
            "metadata": {
                "name": self.name(), "namespace": NAMESPACE, "labels": { "cluster.x-k8s.io/cluster-name": "edge" },
                "ownerReferences": [{
                    "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": self.name(),
                    "uid": self.machine["metadata"]["uid"],
                }],
            },
            "spec": { "strategy": { "type": "Reboot", "retryLimit": 1, "timeoutSeconds": timeout } },
        });
        Ok(self.runner.performer.world.apply(&remediation).await?)
    }

    /// Waits until the remediation has this phase, and its finalizer or not.
    async fn until(&self, phase: &str, is_held: bool) -> Result<Value> {
        for _ in 0..1200 {
            if let Some(found) = self.runner.performer.list("Metal3Remediation").await?.pop() {
                let has_finalizer = !Object(found.clone()).finalizers().is_empty();
                if found["status"]["phase"] == phase && has_finalizer == is_held {
                    return Ok(found);
                }
            }
            sleep(POLL_INTERVAL).await;
        }
        let found = self.runner.performer.list("Metal3Remediation").await?;
        anyhow::bail!("the remediation is not in phase {phase}: {found:#?}")
    }

    /// The number of disk writes of all machines, and the hosts that are marked unhealthy.
    async fn hosts(&self) -> Result<(u32, Vec<Value>)> {
        let world = &self.runner.performer.world;
        let written = (1..=3).filter_map(|host| world.machine(host, |machine| machine.counts.written));
        let mut marked = self.runner.performer.list("BareMetalHost").await?;
        marked.retain(|host| !host["metadata"]["annotations"]["capm3.metal3.io/unhealthy"].is_null());
        Ok((written.sum(), marked))
    }
}

fn play(story: impl AsyncFnOnce(&Path) -> Result<()>) {
    let folder = metal3_files::workspace::root().unwrap().join("e2e/scenarios");
    let runtime = simulated_time().unwrap();
    runtime.block_on(story(&folder)).unwrap();
}

#[test]
fn machine_whose_kubelet_hangs_is_power_cycled_and_its_node_is_ready_again() {
    play(async |folder| {
        let repaired = Repaired::start(folder).await?;
        let labels = json!({ "metadata": { "labels": { "rack": "a" } } });
        repaired.workload(Method::PATCH, &repaired.node(), &labels).await?;
        repaired.hang().await?;
        assert!(!repaired.is_node_ready().await?);
        repaired.remediate(600).await?;
        repaired.until("Waiting", false).await?;
        assert!(repaired.is_node_ready().await?);
        let node = repaired.workload(Method::GET, &repaired.node(), &Value::Null).await?;
        assert_eq!(node["metadata"]["labels"]["rack"], "a");
        let delete = Step::Delete(format!("Metal3Remediation/{}", repaired.name()));
        let mut repaired = repaired;
        repaired.runner.perform(&delete).await?;
        let gone = json!({ "kind": "Metal3Remediation", "count": 0 });
        repaired.runner.wait(&serde_json::from_value(gone)?).await?;
        repaired.until_ready().await?;
        let (written, marked) = repaired.hosts().await?;
        assert_eq!((written, marked.len()), (2, 0), "no disk is written again");
        repaired.runner.recorder.ensure_no_violation()
    });
}

#[test]
fn machine_that_stays_unhealthy_is_replaced_on_another_host() {
    play(async |folder| {
        let repaired = Repaired::start(folder).await?;
        repaired.hang().await?;
        // The MachineHealthCheck does not consider it healthy again, whatever the Node reports.
        repaired.remediate(100).await?;
        let wish = json!({ "kind": "Metal3Remediation", "where": { "/status/retryCount": 1 } });
        repaired.runner.wait(&serde_json::from_value(wish)?).await?;
        let gone = json!({ "kind": "Metal3Remediation", "count": 0 });
        repaired.runner.wait(&serde_json::from_value(gone)?).await?;
        repaired.until_ready().await?;
        let workers = repaired.workers().await?;
        assert_eq!(workers.len(), 1);
        assert_ne!(workers[0]["metadata"]["uid"], repaired.machine["metadata"]["uid"]);
        let (written, marked) = repaired.hosts().await?;
        assert_eq!((written, marked.len()), (3, 1), "the new machine has the third host");
        assert!(marked[0]["spec"]["consumerRef"].is_null(), "{:#}", marked[0]);
        repaired.runner.recorder.ensure_no_violation()
    });
}
