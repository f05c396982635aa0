//! Upgrades the release, deletes it and installs it again while a cluster runs: according to Ironic's log, nothing changes.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::audit::MANAGERS;
use super::cluster::{LONG, settled};
use super::env::TestEnv;
use super::fleet::Fleet;
use super::{checks, install, upgrade_plan};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::products::machines::{NAMESPACE, init, publish};
use crate::products::written::NEXT;
use crate::wait::{Stopwatch, until};

/// The number of change feed listings after which the host manager has read all nodes.
const LISTINGS: usize = 3;

/// `clusterctl upgrade apply`, and the host manager as documented.
pub(super) fn applied(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    publish(stack, env.release, NEXT)?;
    let plan = stack.run("clusterctl", &["upgrade", "plan"], None)?;
    upgrade_plan::offers(&plan, NEXT)?;
    untouched(env, 3, || {
        let args = ["upgrade", "apply", "--contract", "v1beta2", "--wait-providers"];
        stack.run("clusterctl", &args, None)?;
        install::manager_of_hosts(env, NEXT)?;
        for manager in &MANAGERS {
            let image = image(stack, manager.namespace)?;
            ensure!(
                image.ends_with(&format!(":{NEXT}")),
                "{} runs {image}",
                manager.namespace
            );
        }
        Ok(())
    })
}

/// `clusterctl delete` of both providers, then `clusterctl init`.
pub(super) fn deleted_and_reinstalled(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    untouched(env, 2, || {
        let args = ["delete", "--infrastructure", "metal3", "--ipam", "metal3"];
        stack.run("clusterctl", &args, None)?;
        for namespace in ["capm3-system", "metal3-ipam-system"] {
            until(LONG, "the end of the managers", || {
                Ok(list(stack, namespace, "pods")?.is_empty().then_some(()))
            })?;
        }
        checks::hosts(env)?;
        init(stack, "--infrastructure metal3 --ipam metal3")
    })
}

/// Waits until each host records the version of its BMC Secret, so that the next leader sends no login.
pub(super) fn logins_recorded(stack: &Stack) -> anyhow::Result<()> {
    until(LONG, "hosts to name the versions of their logins", || {
        let secrets = list(stack, NAMESPACE, "secrets")?;
        let version = |host: &Value| {
            let secret = secrets
                .iter()
                .find(|secret| secret["metadata"]["name"] == host["spec"]["bmc"]["credentialsName"]);
            secret.map_or(Value::Null, |secret| secret["metadata"]["resourceVersion"].clone())
        };
        let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
        let is_named = |host: &Value| host["status"]["goodCredentials"]["credentialsVersion"] == version(host);
        Ok(hosts.iter().all(is_named).then_some(()))
    })
}

/// Does the work while a cluster runs. Afterwards this many managers have new leaders, the host manager has read all nodes,
/// the cluster is settled, and no client changed anything in Ironic.
fn untouched(env: &TestEnv<'_>, leaders: usize, work: impl FnOnce() -> anyhow::Result<()>) -> Proof {
    logins_recorded(env.stack)?;
    let (watch, mark, before) = (Stopwatch::start(), env.fleet.mark()?, ordered(env.stack)?);
    let holders = holders(env.stack)?;
    let hosts = checks::hosts(env)?;
    env.while_simulated(|| {
        work()?;
        let took_over = |now: &[String]| now.iter().zip(&holders).filter(|(now, then)| now != then).count();
        until(LONG, "other managers to lead", || {
            Ok((took_over(&self::holders(env.stack)?) == leaders).then_some(()))
        })?;
        nodes_listed(env.fleet)?;
        settled(env)
    })?;
    let by_login = unchanged_since(env.fleet, mark)?;
    let after = ordered(env.stack)?;
    ensure!(before == after, "hosts were {before:?}, are {after:?}");
    ensure!(checks::hosts(env)? == hosts, "the hosts in use differ");
    let nodes = checks::nodes(env)?;
    Ok(format!(
        "{nodes} Nodes, 0 of {by_login} requests to Ironic were changes, {:.1} s",
        watch.elapsed().as_secs_f64()
    ))
}

/// No client has changed anything in Ironic since the mark. Returns the number of requests with a login.
pub(super) fn unchanged_since(fleet: &Fleet, mark: usize) -> anyhow::Result<usize> {
    let asked = fleet.since(mark)?;
    let orders = asked.iter().filter(|one| one.is_order());
    let orders: Vec<String> = orders.map(ToString::to_string).collect();
    ensure!(orders.is_empty(), "Ironic received {orders:?}");
    Ok(asked.iter().filter(|one| one.by_login).count())
}

/// Waits until the host manager has read all nodes.
pub(super) fn nodes_listed(fleet: &Fleet) -> anyhow::Result<()> {
    let begin = fleet.mark()?;
    until(LONG, "the host manager to list nodes", || {
        let since = fleet.since(begin)?;
        let listings = since.iter().filter(|request| request.is_feed()).count();
        Ok((listings >= LISTINGS).then_some(()))
    })
}

/// Spec and provisioning status of each host.
pub(super) fn ordered(stack: &Stack) -> anyhow::Result<Vec<Value>> {
    let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
    let summary = |host: &Value| {
        json!([
            name(host),
            host["metadata"]["uid"],
            host["spec"],
            host["status"]["provisioning"]
        ])
    };
    Ok(hosts.iter().map(summary).collect())
}

/// The lease holder of each manager.
fn holders(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let holder = |manager: &super::audit::Manager| {
        let args = ["--namespace", manager.namespace, "get", "lease", manager.lease];
        stack.kubectl(&[&args[..], &["--output=jsonpath={.spec.holderIdentity}"]].concat())
    };
    MANAGERS.iter().map(holder).collect()
}

fn image(stack: &Stack, namespace: &str) -> anyhow::Result<String> {
    let deployments = list(stack, namespace, "deployments")?;
    let deployment = deployments.first().context("no Deployment")?;
    let containers = &deployment["spec"]["template"]["spec"]["containers"];
    Ok(containers[0]["image"].as_str().unwrap_or_default().to_owned())
}
