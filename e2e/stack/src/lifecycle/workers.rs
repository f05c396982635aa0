//! The workers of the cluster, and waiting for them.

use anyhow::{Context, ensure};
use serde_json::Value;

use super::cluster::{LONG, settled};
use super::env::TestEnv;
use super::fleet::MACHINES;
use crate::claims::stack::{Stack, condition};
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, running};
use crate::products::machines::template::CLUSTER;
use crate::wait::until;

/// A worker, its Node and its host.
pub(super) struct Worker {
    pub(super) uid: String,
    pub(super) node: String,
    pub(super) host: String,
}

/// The Machines of the workers, also those in deletion.
pub(super) fn workers(stack: &Stack) -> anyhow::Result<Vec<Value>> {
    let is_worker = |one: &Value| one["metadata"]["labels"]["cluster.x-k8s.io/deployment-name"] == CLUSTER;
    let mut machines = list(stack, NAMESPACE, "machines")?;
    machines.retain(is_worker);
    Ok(machines)
}

/// The hosts of the workers.
pub(super) fn hosts(stack: &Stack) -> anyhow::Result<Vec<Value>> {
    let workers = workers(stack)?;
    let machines: Vec<&Value> = workers
        .iter()
        .map(|one| &one["spec"]["infrastructureRef"]["name"])
        .collect();
    let mut hosts = list(stack, NAMESPACE, "baremetalhosts")?;
    hosts.retain(|host| machines.contains(&&host["spec"]["consumerRef"]["name"]));
    Ok(hosts)
}

fn is_staying(worker: &Value) -> bool {
    worker["metadata"]["deletionTimestamp"].is_null()
}

/// The first worker that is not in deletion.
pub(super) fn worker(stack: &Stack) -> anyhow::Result<Worker> {
    let workers = workers(stack)?;
    let worker = workers.iter().find(|one| is_staying(one)).context("no worker")?;
    described(stack, worker)
}

/// The oldest of them that has a Node and stays: a new one may have been deployed a moment ago.
pub(super) fn running_worker(stack: &Stack) -> anyhow::Result<Worker> {
    let workers = workers(stack)?;
    described(stack, oldest_running(&workers).context("no worker with a Node")?)
}

fn oldest_running(workers: &[Value]) -> Option<&Value> {
    let is_running = |one: &&Value| is_staying(one) && one["status"]["nodeRef"]["name"].is_string();
    let created = |one: &&Value| one["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    workers.iter().filter(is_running).min_by_key(created)
}

fn described(stack: &Stack, worker: &Value) -> anyhow::Result<Worker> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let machine = &worker["spec"]["infrastructureRef"]["name"];
    let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
    let host = hosts
        .iter()
        .find(|host| host["spec"]["consumerRef"]["name"] == *machine);
    let node = text(&worker["status"]["nodeRef"]["name"]);
    ensure!(!node.is_empty(), "{} has no Node yet", name(worker));
    Ok(Worker {
        uid: text(&worker["metadata"]["uid"]),
        node,
        host: host.map(name).context("the worker has no host")?,
    })
}

/// Orders that many workers.
pub(super) fn scale(stack: &Stack, workers: usize) -> anyhow::Result<()> {
    let (what, replicas) = ("machinedeployment", format!("--replicas={workers}"));
    let args = ["--namespace", NAMESPACE, "scale", what, CLUSTER, &replicas];
    stack.kubectl(&args).map(drop)
}

/// The same, and waits for the result. There is one control plane machine.
pub(super) fn scale_to(env: &TestEnv<'_>, workers: usize) -> anyhow::Result<()> {
    scale(env.stack, workers)?;
    at_rest(env, workers.saturating_add(1))
}

/// Waits until that many machines run, all other hosts are free, and all conditions are settled.
pub(super) fn at_rest(env: &TestEnv<'_>, machines: usize) -> anyhow::Result<()> {
    running(env.stack, machines)?;
    freed(env.stack, MACHINES.saturating_sub(machines))?;
    settled(env)
}

/// Waits until that many other workers are available in the place of these. `seen` gets the workers at each look.
pub(super) fn until_replaced(
    stack: &Stack,
    before: &[String],
    number: usize,
    mut seen: impl FnMut(&[Value]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    until(LONG, "new workers in the place of all", || {
        let workers = workers(stack)?;
        seen(&workers)?;
        let is_new = workers.iter().all(|one| !before.contains(&name(one)));
        Ok((is_new && available(&workers) == number).then_some(()))
    })
}

/// How many workers stay.
pub(super) fn staying(workers: &[Value]) -> usize {
    workers.iter().filter(|one| is_staying(one)).count()
}

/// How many of them are available.
pub(super) fn available(workers: &[Value]) -> usize {
    let is_available = |one: &&Value| is_staying(one) && condition(one, "Available") == Some("True");
    workers.iter().filter(is_available).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn worker_that_runs_longest_is_found() {
        let worker = |name: &str, created: &str, node: Value, deleted: Value| {
            json!({"metadata": {"name": name, "creationTimestamp": created, "deletionTimestamp": deleted},
                "status": {"nodeRef": {"name": node}}})
        };
        let all = [
            worker("new", "2026-01-01T00:03:00Z", json!("n"), Value::Null),
            worker("old", "2026-01-01T00:02:00Z", json!("n"), Value::Null),
            worker("without-node", "2026-01-01T00:01:00Z", Value::Null, Value::Null),
            worker(
                "leaving",
                "2026-01-01T00:00:00Z",
                json!("n"),
                json!("2026-01-01T00:04:00Z"),
            ),
        ];
        assert_eq!(oldest_running(&all).map(name).as_deref(), Some("old"));
        assert!(oldest_running(&all[2..]).is_none());
    }
}
