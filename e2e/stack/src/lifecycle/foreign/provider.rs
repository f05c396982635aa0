//! The other provider: sets the endpoint and `provisioned` when a Cluster owns its object.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::install::{ENDPOINT, PORT};
use crate::claims::providers;
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::template::CLUSTER;

const KIND: &str = "TestCluster";
pub(crate) const RESOURCE: &str = "testclusters.infrastructure.cluster.x-k8s.io";

/// Installs its CRD, with the label for clusterctl.
pub(super) fn install(stack: &Stack) -> anyhow::Result<()> {
    for object in providers::infrastructure() {
        stack.run("kubectl", &["apply", "--filename", "-"], Some(&object.to_string()))?;
    }
    let kind = format!("crd/{RESOURCE}");
    stack.kubectl(&["label", "--overwrite", &kind, "clusterctl.cluster.x-k8s.io="])?;
    stack
        .kubectl(&["wait", "--for=condition=Established", &kind, "--timeout=60s"])
        .map(drop)
}

/// Changes the Cluster's infrastructure to the other kind; the Metal3Cluster joins the Cluster without an endpoint.
pub(super) fn change_infrastructure(objects: &mut Vec<Value>) -> anyhow::Result<()> {
    let of_kind = |kind: &str| {
        let at = objects.iter().position(|object| object["kind"] == kind);
        at.with_context(|| format!("the template makes no {kind}"))
    };
    let (cluster, metal3) = (of_kind("Cluster")?, of_kind("Metal3Cluster")?);
    let mut other = json!({"metadata": {"name": CLUSTER, "namespace": NAMESPACE}});
    if let Some(metal3) = objects.get_mut(metal3) {
        other["apiVersion"] = metal3["apiVersion"].clone();
        metal3["metadata"]["name"] = format!("{CLUSTER}-metal3").into();
        metal3["spec"] = json!({"cloudProviderEnabled": false, "clusterName": CLUSTER});
    }
    other["kind"] = KIND.into();
    if let Some(cluster) = objects.get_mut(cluster) {
        cluster["spec"]["infrastructureRef"]["kind"] = KIND.into();
    }
    objects.push(other);
    Ok(())
}

/// One reconciliation of the provider.
pub(super) fn reconcile(stack: &Stack) -> anyhow::Result<()> {
    for one in list(stack, NAMESPACE, RESOURCE)? {
        let is_owned = one["metadata"]["ownerReferences"][0]["kind"] == "Cluster";
        if !is_owned || one["status"]["initialization"]["provisioned"] == true {
            continue;
        }
        let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": ENDPOINT, "port": PORT}}}).to_string();
        let status = json!({"status": {"initialization": {"provisioned": true}}}).to_string();
        let own = name(&one);
        let args = [
            "--namespace",
            NAMESPACE,
            "patch",
            RESOURCE,
            &own,
            "--type=merge",
            "--patch",
        ];
        let patch = |more: &[&str]| stack.kubectl(&[&args, more].concat());
        patch(&[&endpoint])?;
        patch(&[&status, "--subresource=status"])?;
    }
    Ok(())
}

/// Checks that the Cluster owns the Metal3Cluster, which has the endpoint of the other provider.
pub(super) fn is_secondary(stack: &Stack) -> anyhow::Result<()> {
    let metal3 = list(stack, NAMESPACE, "metal3clusters")?;
    let one = metal3.first().context("there is no Metal3Cluster")?;
    let owner = &one["metadata"]["ownerReferences"][0];
    ensure!(
        owner["kind"] == "Cluster" && owner["name"] == CLUSTER,
        "it is owned by {owner}"
    );
    let endpoint = &one["spec"]["controlPlaneEndpoint"];
    ensure!(
        *endpoint == json!({"host": ENDPOINT, "port": PORT}),
        "its endpoint is {endpoint}"
    );
    Ok(())
}
