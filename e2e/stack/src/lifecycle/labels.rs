//! Labels of a host on the Node of its machine, in the real API server of a workload cluster.

use anyhow::ensure;
use serde_json::{Value, json};

use super::cluster::{LONG, settled};
use super::env::TestEnv;
use super::workers::{Worker, worker};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::kill_leader;
use crate::products::machines::template::CLUSTER;
use crate::wait::{Stopwatch, until};

const PREFIXES: &str = "metal3.io/metal3-label-sync-prefixes";
const RACK: &str = "place.example.org/rack";
/// No prefix selects it.
const OWNER: &str = "owner.example.org/team";

pub(super) fn copied(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    env.while_simulated(|| settled(env))?;
    let Worker { host, node, .. } = worker(stack)?;
    let (host, cluster) = (format!("baremetalhost/{host}"), format!("metal3cluster/{CLUSTER}"));
    let watch = Stopwatch::start();
    set(
        stack,
        "label",
        &host,
        &[&format!("{RACK}=r1"), &format!("{OWNER}=blue")],
    )?;
    set(stack, "annotate", &cluster, &[&format!("{PREFIXES}=place.example.org")])?;
    shown(env, &node, Some("r1"))?;
    set(stack, "label", &host, &["--overwrite", &format!("{RACK}=r2")])?;
    shown(env, &node, Some("r2"))?;
    // A user of the workload cluster changes the Node.
    let patch = json!({"metadata": {"labels": {RACK: "other"}}}).to_string();
    in_workload(env, &["patch", "node", &node, "--patch", &patch])?;
    shown(env, &node, Some("r2"))?;
    let killed = kill_leader(stack)?;
    set(stack, "label", &host, &[&format!("{RACK}-")])?;
    shown(env, &node, None)?;
    ensure!(
        labels(env, &node)?[OWNER].is_null(),
        "a label that no prefix selects is on the Node"
    );
    set(stack, "annotate", &cluster, &[&format!("{PREFIXES}-")])?;
    set(stack, "label", &host, &[&format!("{OWNER}-")])?;
    Ok(format!("{:.1} s, {killed} killed", watch.elapsed().as_secs_f64()))
}

fn set(stack: &Stack, verb: &str, object: &str, values: &[&str]) -> anyhow::Result<()> {
    let args = ["--namespace", NAMESPACE, verb, object];
    stack.kubectl(&[&args[..], values].concat()).map(drop)
}

/// Waits until the Node has the label of the rack with this value, or not at all.
fn shown(env: &TestEnv<'_>, node: &str, value: Option<&str>) -> anyhow::Result<()> {
    env.while_simulated(|| {
        until(LONG, &format!("the label {value:?} on the Node"), || {
            Ok((labels(env, node)?[RACK].as_str() == value).then_some(()))
        })
    })
}

fn labels(env: &TestEnv<'_>, node: &str) -> anyhow::Result<Value> {
    let text = in_workload(env, &["get", "node", node, "--output=json"])?;
    let node: Value = serde_json::from_str(&text)?;
    Ok(node["metadata"]["labels"].clone())
}

fn in_workload(env: &TestEnv<'_>, args: &[&str]) -> anyhow::Result<String> {
    env.simulator().workload()?.kubectl(env.stack, args, None)
}
