//! The end of the Cluster and of its class.

use anyhow::ensure;

use super::super::checks;
use super::super::env::TestEnv;
use super::super::fleet::MACHINES;
use super::class::{CLASS, DOMAIN};
use crate::claim::Proof;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, nothing_is_left, until_deleted};
use crate::products::machines::template::CLUSTER;
use crate::wait::Stopwatch;

pub(in super::super) fn deleted(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let watch = Stopwatch::start();
    env.while_simulated(|| {
        stack.kubectl(&["--namespace", NAMESPACE, "delete", "cluster", CLUSTER, "--wait=false"])?;
        until_deleted(stack, "clusters,machines")?;
        freed(stack, MACHINES)
    })?;
    let took = watch.elapsed().as_secs_f64();
    let kinds = "clusterclasses,metal3clustertemplates,metal3machinetemplates,kubeadmcontrolplanetemplates,kubeadmconfigtemplates";
    let templates = list(stack, NAMESPACE, kinds)?;
    let others: Vec<String> = templates
        .iter()
        .map(name)
        .filter(|name| !name.starts_with(CLASS))
        .collect();
    ensure!(others.is_empty(), "left of the Cluster: {others:?}");
    stack.kubectl(&["--namespace", NAMESPACE, "delete", kinds, "--all"])?;
    nothing_is_left(stack)?;
    let label = format!("{DOMAIN}-");
    stack.kubectl(&["--namespace", NAMESPACE, "label", "baremetalhosts", "--all", &label])?;
    let (taken, free) = checks::hosts(env)?;
    ensure!(
        (taken, free) == (0, MACHINES),
        "{taken} hosts are taken, {free} are free"
    );
    Ok(format!(
        "{free} hosts are available again after {took:.1} s, {} objects of the class were left and are deleted",
        templates.len()
    ))
}
