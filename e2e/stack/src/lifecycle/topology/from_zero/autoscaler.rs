//! The real cluster-autoscaler with its provider for Cluster API, and the Pod for which it grows a group.
//!
//! The workload cluster has no scheduler: the suite reports that the Pod fits nowhere.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::super::env::TestEnv;
use crate::pki::ADMIN;
use crate::products::load::list;
use crate::products::machines::NAMESPACE;
use crate::products::machines::template::CLUSTER;
use crate::wait::until;

const POD: &str = "large";
const START: Duration = Duration::from_secs(120);

pub(super) struct Autoscaler(Child);

impl Drop for Autoscaler {
    fn drop(&mut self) {
        // After a failure; otherwise it is stopped.
        self.0.kill().unwrap_or_default();
    }
}

impl Autoscaler {
    pub(super) fn start(env: &TestEnv<'_>, program: &Path) -> anyhow::Result<Self> {
        let places = &env.stack.places;
        let workload = places.state_file("autoscaler.kubeconfig");
        let secret = format!("{CLUSTER}-kubeconfig");
        let template = "--template={{.data.value | base64decode}}";
        fs::write(
            &workload,
            env.stack
                .kubectl(&["--namespace", NAMESPACE, "get", "secret", &secret, template])?,
        )?;
        let log = File::create(places.log("cluster-autoscaler"))?;
        let child = Command::new(program)
            .arg("--cloud-provider=clusterapi")
            .arg(format!("--kubeconfig={}", workload.display()))
            .arg(format!("--cloud-config={}", places.kubeconfig(ADMIN).display()))
            .arg(format!(
                "--node-group-auto-discovery=clusterapi:namespace={NAMESPACE},clusterName={CLUSTER}"
            ))
            .args([
                "--leader-elect=false",
                "--scan-interval=5s",
                "--scale-down-delay-after-add=5s",
            ])
            .args(["--scale-down-unneeded-time=5s", "--address=127.0.0.1:8085", "--v=2"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Self(child))
    }

    /// Waits until it has written its status into the workload cluster.
    pub(super) fn is_running(&mut self, env: &TestEnv<'_>) -> anyhow::Result<()> {
        let status = [
            "--namespace",
            "kube-system",
            "get",
            "configmap",
            "cluster-autoscaler-status",
        ];
        let ended = until(START, "the status of the autoscaler", || {
            if self.0.try_wait()?.is_some() {
                return Ok(Some(true));
            }
            env.simulator()
                .workload()?
                .kubectl(env.stack, &status, None)
                .map(|_| Some(false))
        })?;
        ensure!(!ended, "cluster-autoscaler ended, see its log");
        Ok(())
    }

    /// A Pod with this memory in MiB, for Nodes of the architecture that the template names.
    pub(super) fn add_pod(&self, env: &TestEnv<'_>, template: &Value, memory: u64) -> anyhow::Result<()> {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}});
        let image = "registry.example/large:v1";
        let requests = json!({"cpu": "1", "memory": format!("{memory}Mi")});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD, "namespace": "default"},
            "spec": {"automountServiceAccountToken": false, "nodeSelector": labels(template), "containers": [
                {"name": POD, "image": image, "resources": {"requests": requests}}]}});
        let lacking = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no Node has room"});
        let status = json!({"status": {"conditions": [lacking]}}).to_string();
        let simulator = env.simulator();
        let workload = simulator.workload()?;
        for object in [account, pod] {
            workload.apply(env.stack, &object)?;
        }
        let args = ["patch", "pod", POD, "--subresource=status", "--patch", &status];
        workload.kubectl(env.stack, &args, None).map(drop)
    }

    /// Reports capacity and labels of the template on each Node, as its kubelet does, and that it has started.
    pub(super) fn report_capacity(&self, env: &TestEnv<'_>, template: &Value) -> anyhow::Result<()> {
        let mut capacity = template["capacity"].clone();
        capacity["pods"] = "110".into();
        let status = json!({"status": {"capacity": capacity, "allocatable": capacity}}).to_string();
        let nodes: Vec<String> = list(env.stack, NAMESPACE, "machines")?
            .iter()
            .filter_map(|machine| machine["status"]["nodeRef"]["name"].as_str().map(str::to_owned))
            .collect();
        let simulator = env.simulator();
        let workload = simulator.workload()?;
        for node in nodes {
            let metadata = json!({"metadata": {"labels": labels(template)}}).to_string();
            workload.kubectl(env.stack, &["patch", "node", &node, "--patch", &metadata], None)?;
            let args = ["patch", "node", &node, "--subresource=status", "--patch", &status];
            workload.kubectl(env.stack, &args, None)?;
        }
        // Admission adds it to each new Node, and no controller of the workload cluster removes it.
        let args = ["taint", "nodes", "--all", "node.kubernetes.io/not-ready-"];
        workload.kubectl(env.stack, &args, None).map(drop)
    }

    pub(super) fn remove_pod(&self, env: &TestEnv<'_>) -> anyhow::Result<()> {
        let args = ["delete", "pod", POD, "--grace-period=0", "--force"];
        env.simulator().workload()?.kubectl(env.stack, &args, None).map(drop)
    }

    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

/// What Pods select of a Node of the template.
fn labels(template: &Value) -> Value {
    let info = &template["nodeInfo"];
    json!({"kubernetes.io/arch": info["architecture"], "kubernetes.io/os": info["operatingSystem"]})
}
