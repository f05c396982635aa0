//! The other provider: a few lines that say the endpoint and that all is provisioned, once a Cluster owns its object.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::install::{ENDPOINT, PORT};
use crate::claims::providers;
use crate::claims::world::World;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::scene::CLUSTER;

const KIND: &str = "WitnessCluster";
pub(in crate::mission) const RESOURCE: &str = "witnessclusters.infrastructure.cluster.x-k8s.io";

/// Its kind, which clusterctl moves.
pub(super) fn install(world: &World) -> anyhow::Result<()> {
    for object in providers::infrastructure() {
        world.run("kubectl", &["apply", "--filename", "-"], Some(&object.to_string()))?;
    }
    let kind = format!("crd/{RESOURCE}");
    world.kubectl(&["label", "--overwrite", &kind, "clusterctl.cluster.x-k8s.io="])?;
    world
        .kubectl(&["wait", "--for=condition=Established", &kind, "--timeout=60s"])
        .map(drop)
}

/// The Cluster's infrastructure is the other kind's; what was it joins the Cluster, and is told no endpoint.
pub(super) fn elsewhere(objects: &mut Vec<Value>) -> anyhow::Result<()> {
    let of_kind = |kind: &str| {
        let at = objects.iter().position(|object| object["kind"] == kind);
        at.with_context(|| format!("the template makes no {kind}"))
    };
    let (cluster, ours) = (of_kind("Cluster")?, of_kind("Metal3Cluster")?);
    let mut other = json!({"metadata": {"name": CLUSTER, "namespace": NAMESPACE}});
    if let Some(ours) = objects.get_mut(ours) {
        other["apiVersion"] = ours["apiVersion"].clone();
        ours["metadata"]["name"] = format!("{CLUSTER}-metal3").into();
        ours["spec"] = json!({"cloudProviderEnabled": false, "clusterName": CLUSTER});
    }
    other["kind"] = KIND.into();
    if let Some(cluster) = objects.get_mut(cluster) {
        cluster["spec"]["infrastructureRef"]["kind"] = KIND.into();
    }
    objects.push(other);
    Ok(())
}

/// What it does.
pub(super) fn look(world: &World) -> anyhow::Result<()> {
    for one in list(world, NAMESPACE, RESOURCE)? {
        let is_owned = one["metadata"]["ownerReferences"][0]["kind"] == "Cluster";
        if !is_owned || one["status"]["initialization"]["provisioned"] == true {
            continue;
        }
        let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": ENDPOINT, "port": PORT}}}).to_string();
        let status = json!({"status": {"initialization": {"provisioned": true}}}).to_string();
        let own = name(&one);
        let words = [
            "--namespace",
            NAMESPACE,
            "patch",
            RESOURCE,
            &own,
            "--type=merge",
            "--patch",
        ];
        let patch = |more: &[&str]| world.kubectl(&[&words, more].concat());
        patch(&[&endpoint])?;
        patch(&[&status, "--subresource=status"])?;
    }
    Ok(())
}

/// The Metal3Cluster belongs to the Cluster, and says the endpoint that the other provider said.
pub(super) fn is_secondary(world: &World) -> anyhow::Result<()> {
    let ours = list(world, NAMESPACE, "metal3clusters")?;
    let one = ours.first().context("there is no Metal3Cluster")?;
    let owner = &one["metadata"]["ownerReferences"][0];
    ensure!(
        owner["kind"] == "Cluster" && owner["name"] == CLUSTER,
        "it is owned by {owner}"
    );
    let endpoint = &one["spec"]["controlPlaneEndpoint"];
    ensure!(
        *endpoint == json!({"host": ENDPOINT, "port": PORT}),
        "it says the endpoint {endpoint}"
    );
    Ok(())
}
