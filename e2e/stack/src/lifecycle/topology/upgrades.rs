//! Kubernetes is upgraded through `spec.topology.version`.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::env::TestEnv;
use super::super::fleet::MACHINES;
use super::super::{checks, cluster, requests};
use super::changes::{machines, replaced};
use super::class::{self, CLASS, VERSIONS};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::list;
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, running};
use crate::products::machines::host_simulator::concurrently;
use crate::products::machines::template::CLUSTER;
use crate::wait::Stopwatch;

/// One control plane machine and a worker.
pub(super) const ALL: usize = 2;
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";

/// What was seen of the versions of Machines, in the order of their first appearance.
#[derive(Default)]
struct Seen {
    controls: Vec<String>,
    workers: Vec<String>,
}

impl Seen {
    fn look(&mut self, stack: &Stack) -> anyhow::Result<()> {
        for machine in list(stack, NAMESPACE, "machines")? {
            let controls = machine["metadata"]["labels"].get(CONTROL_PLANE).is_some();
            let version = machine["spec"]["version"].as_str().unwrap_or_default().to_owned();
            let seen = if controls {
                &mut self.controls
            } else {
                &mut self.workers
            };
            if !seen.contains(&version) {
                seen.push(version);
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        format!(
            "control plane {}, workers {}",
            self.controls.join(" -> "),
            self.workers.join(" -> ")
        )
    }
}

pub(in super::super) fn upgraded(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    env.while_simulated(|| {
        class::patch(stack, &json!({"controlPlane": {"replicas": 1}}))?;
        running(stack, ALL)?;
        freed(stack, MACHINES - ALL)?;
        cluster::settled(env)
    })?;
    let [from, to, ..] = VERSIONS;
    let mark = env.fleet.mark()?;
    let (seen, took) = roll(env, to)?;
    ensure!(
        seen.controls == [from, to] && seen.workers == [from, to],
        "versions: {}",
        seen.text()
    );
    let log = env.fleet.log_since(mark)?;
    let cleaned = requests::moves(&log)
        .filter(|one| *one == ("deleting", "cleaning"))
        .count();
    ensure!(cleaned >= ALL, "{cleaned} hosts were cleaned");
    Ok(format!(
        "{ALL} machines in {took:.1} s, {}, {cleaned} hosts cleaned",
        seen.text()
    ))
}

/// Over two minors: Cluster API rejects it, unless the class lists the versions between.
pub(in super::super) fn chained(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let [_, from, between, to] = VERSIONS;
    let refused = class::patch(stack, &json!({"version": to})).err();
    let refused = format!(
        "{:#}",
        refused.context("two minors were admitted without a list of versions")?
    );
    ensure!(refused.contains("cannot be increased"), "{refused}");
    let patch = json!({"spec": {"kubernetesVersions": [from, between, to]}}).to_string();
    let args = [
        "--namespace",
        NAMESPACE,
        "patch",
        "clusterclass",
        CLASS,
        "--type=merge",
        "--patch",
        &patch,
    ];
    stack.kubectl(&args)?;
    let (seen, took) = roll(env, to)?;
    ensure!(seen.controls == [from, between, to], "versions: {}", seen.text());
    ensure!(
        seen.workers.last().map(String::as_str) == Some(to),
        "versions: {}",
        seen.text()
    );
    Ok(format!(
        "{took:.1} s, {}; rejected without `kubernetesVersions` of the class",
        seen.text()
    ))
}

/// Sets the version and waits until all machines have it, and all other hosts are free and blank.
fn roll(env: &TestEnv<'_>, version: &str) -> anyhow::Result<(Seen, f64)> {
    let stack = env.stack;
    let mut seen = Seen::default();
    let watch = Stopwatch::start();
    let tick = || {
        env.simulator().step()?;
        seen.look(stack)
    };
    concurrently("the simulated machines", tick, || {
        let before = machines(stack)?;
        class::patch(stack, &json!({"version": version}))?;
        replaced(stack, &before, ALL)?;
        until_all_have(stack, version)?;
        running(stack, ALL)?;
        freed(stack, MACHINES - ALL)?;
        cluster::settled(env)
    })?;
    let took = watch.elapsed().as_secs_f64();
    let (counts, nodes) = (checks::hosts(env)?, checks::nodes(env)?);
    ensure!(
        counts == (ALL, MACHINES - ALL) && nodes == ALL,
        "{counts:?} hosts, {nodes} Nodes"
    );
    Ok((seen, took))
}

/// Waits until control plane, workers and machines have the version.
fn until_all_have(stack: &Stack, version: &str) -> anyhow::Result<()> {
    crate::wait::until(cluster::LONG, &format!("all to have {version}"), || {
        let machines = list(stack, NAMESPACE, "machines")?;
        let versions: BTreeSet<&str> = machines
            .iter()
            .filter_map(|one| one["spec"]["version"].as_str())
            .collect();
        let planes = list(stack, NAMESPACE, "kubeadmcontrolplanes")?;
        let is_done = |one: &Value| one["status"]["version"] == version;
        Ok((versions == BTreeSet::from([version]) && planes.iter().all(is_done)).then_some(()))
    })
    .with_context(|| format!("Cluster {CLUSTER}"))
}
