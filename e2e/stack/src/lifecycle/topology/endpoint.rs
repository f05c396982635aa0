//! Another Cluster of the class, whose endpoint is an address of a pool that kube-vip announces. Its machines get no host.

use std::fs;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::cluster::LONG;
use super::super::env::TestEnv;
use super::super::install;
use super::changes::{copies, quiet, since, touch, writes};
use super::class;
use super::rebase::{self, COPY};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::{self, list, name};
use crate::products::machines::NAMESPACE;
use crate::wait::until;

const OTHER: &str = "pooled";
/// The pool, the ConfigMap and the Secret.
const VIP: &str = "pooled-vip";
const MANIFEST: &str = "kube-vip.yaml";
const ADDRESS: &str = "10.245.0.50";
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";

pub(in super::super) fn assigned(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let mut copied = rebase::with_own_templates(copies(stack)?)?;
    for template in copied.iter_mut().filter(|one| one["kind"] == "Metal3MachineTemplate") {
        template["spec"]["template"]["spec"]["hostSelector"] =
            json!({"matchLabels": {"suite.example.org/none": "none"}});
    }
    install::apply(stack, NAMESPACE, &copied)?;
    let data = env.while_simulated(|| {
        rebase::until_known(stack)?;
        install::apply(stack, NAMESPACE, &objects(stack)?)?;
        until(LONG, "a condition about the ConfigMap that may not be read", || {
            Ok(is_forbidden(stack)?.then_some(()))
        })?;
        install::apply(stack, NAMESPACE, &[grant()])?;
        let data = until(LONG, "bootstrap data of a control plane machine", || {
            bootstrap_data(stack)
        })?;
        quiet(stack)?;
        Ok(data)
    })?;
    for part in [
        format!("/etc/kubernetes/manifests/{MANIFEST}"),
        format!("{RENDERED} {ADDRESS}:6443"),
    ] {
        ensure!(data.contains(&part), "the bootstrap data have no {part}");
    }
    let before = endpoint(stack)?;
    ensure!(before["host"] == ADDRESS, "the endpoint is {before}");
    let mark = fs::metadata(stack.places.log("audit"))?.len();
    // The topology controller compares again, and leaves the address to the manager that wrote it.
    env.while_simulated(|| {
        touch(stack, ["cluster", OTHER], 1)?;
        quiet(stack)
    })?;
    let (writes, after) = (writes(&since(stack, mark)?)?, endpoint(stack)?);
    ensure!(writes.is_empty(), "managers wrote {writes:?}");
    ensure!(before == after, "the endpoint {before} became {after}");
    env.while_simulated(|| ended(stack))?;
    rebase::remove(stack, &copied)?;
    Ok(format!("{ADDRESS} is in the bootstrap data and stays, then it is free"))
}

/// The reason of that condition.
const FORBIDDEN: &str = "TemplateForbidden";
/// What no file of kubeadm has.
const RENDERED: &str = "the virtual address is";

/// The pool of the address, the manifest, and the Cluster.
fn objects(stack: &Stack) -> anyhow::Result<[Value; 3]> {
    let topology = class::topology(stack)?;
    let variables = topology["variables"].as_array().context("no variables")?;
    let image = variables
        .iter()
        .find(|one| one["name"] == "image")
        .context("no image")?;
    let source = json!({"type": "IPPool", "ipPool": {"name": VIP},
        "render": {"configMapName": VIP, "key": MANIFEST, "secretName": format!("{VIP}-rendered")}});
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": VIP},
        "data": {MANIFEST: format!("{RENDERED} ${{HOST}}:${{PORT}}\n")}});
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": OTHER},
    "spec": {"topology": {
        "classRef": {"name": COPY}, "version": topology["version"], "controlPlane": {"replicas": 1},
        "variables": [image, {"name": "endpointSource", "value": source}],
    }}});
    Ok([load::pool(VIP, ADDRESS, ADDRESS), manifest, cluster])
}

/// As docs/multi-provider.md has it.
fn grant() -> Value {
    let label = "infrastructure.cluster.x-k8s.io/aggregate-to-capm3-endpoint-reader";
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": VIP, "labels": {label: "true"}},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [VIP], "verbs": ["list", "watch"]}]})
}

/// Whether the Metal3Cluster says which right it lacks.
fn is_forbidden(stack: &Stack) -> anyhow::Result<bool> {
    let clusters = list(stack, NAMESPACE, "metal3clusters")?;
    let mut own = clusters
        .iter()
        .filter(|one| one["metadata"]["labels"][CLUSTER_NAME] == OTHER);
    let names_right = |condition: &Value| {
        let message = condition["message"].as_str().unwrap_or_default();
        condition["reason"] == FORBIDDEN && message.contains("configmaps")
    };
    Ok(own.any(|one| {
        one["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(names_right))
    }))
}

/// What the first machine would boot with, once Cluster API has made it.
fn bootstrap_data(stack: &Stack) -> anyhow::Result<Option<String>> {
    let machines = list(stack, NAMESPACE, "machines")?;
    let mut own = machines
        .iter()
        .filter(|one| one["metadata"]["labels"][CLUSTER_NAME] == OTHER);
    let secret = own.find_map(|one| one["spec"]["bootstrap"]["dataSecretName"].as_str());
    let template = "--template={{.data.value | base64decode}}";
    secret
        .map(|secret| stack.kubectl(&["--namespace", NAMESPACE, "get", "secret", secret, template]))
        .transpose()
}

/// The endpoint in the Metal3Cluster.
fn endpoint(stack: &Stack) -> anyhow::Result<Value> {
    let clusters = list(stack, NAMESPACE, "metal3clusters")?;
    let own = clusters
        .iter()
        .find(|one| one["metadata"]["labels"][CLUSTER_NAME] == OTHER);
    let own = own.context("no Metal3Cluster")?;
    let mut endpoint = own["spec"]["controlPlaneEndpoint"].clone();
    endpoint["generation"] = own["metadata"]["generation"].clone();
    Ok(endpoint)
}

/// Deletes the Cluster; its address is free afterwards.
fn ended(stack: &Stack) -> anyhow::Result<()> {
    stack.kubectl(&["--namespace", NAMESPACE, "delete", "cluster", OTHER, "--wait=false"])?;
    until(LONG, "the end of the Cluster and of its claim", || {
        let clusters = list(stack, NAMESPACE, "clusters")?;
        let claims = list(stack, NAMESPACE, "ipclaims.ipam.metal3.io")?;
        let is_left =
            clusters.iter().any(|one| name(one) == OTHER) || claims.iter().any(|one| name(one).starts_with(OTHER));
        Ok((!is_left).then_some(()))
    })?;
    let left = ["ippools.ipam.metal3.io", "configmap", "clusterrole"].map(|kind| format!("{kind}/{VIP}"));
    let [pool, manifest, role] = left.each_ref().map(String::as_str);
    stack
        .kubectl(&["--namespace", NAMESPACE, "delete", pool, manifest, role])
        .map(drop)
}
