//! The release is replaced by the next version, taken away, and installed again, while a cluster runs: nobody touches its
//! metal meanwhile, by Ironic's own count.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::audit::MANAGERS;
use super::life::{LONG, settled};
use super::{Scene, install, judge};
use crate::claims::world::World;
use crate::products::Proof;
use crate::products::load::{list, name};
use crate::products::machines::{NAMESPACE, init, publish};
use crate::products::release::NEXT;
use crate::wait::{Stopwatch, until};

/// How often the manager of hosts asks what changed before it is said to have looked.
const LOOKS: usize = 3;

/// `clusterctl upgrade apply`, and the manager of hosts as the page says.
pub(super) fn applied(scene: &Scene<'_>) -> Proof {
    let world = scene.world;
    publish(world, scene.release, NEXT)?;
    let plan = world.run("clusterctl", &["upgrade", "plan"], None)?;
    for provider in ["infrastructure-metal3", "ipam-metal3"] {
        let offers = |line: &str| line.contains(provider) && line.contains(NEXT);
        ensure!(plan.lines().any(offers), "the plan offers no upgrade: {plan}");
    }
    untouched(scene, 3, || {
        let words = ["upgrade", "apply", "--contract", "v1beta2", "--wait-providers"];
        world.run("clusterctl", &words, None)?;
        install::manager_of_hosts(scene, NEXT)?;
        for manager in &MANAGERS {
            let image = image(world, manager.namespace)?;
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
pub(super) fn taken_away_and_back(scene: &Scene<'_>) -> Proof {
    let world = scene.world;
    untouched(scene, 2, || {
        let words = ["delete", "--infrastructure", "metal3", "--ipam", "metal3"];
        world.run("clusterctl", &words, None)?;
        for namespace in ["capm3-system", "metal3-ipam-system"] {
            until(LONG, "the managers to be gone", || {
                Ok(list(world, namespace, "pods")?.is_empty().then_some(()))
            })?;
        }
        judge::metal(scene)?;
        init(world, "--infrastructure metal3 --ipam metal3")
    })
}

/// Every host names the version of its BMC's Secret: who leads next sends no login again.
fn logins_recorded(world: &World) -> anyhow::Result<()> {
    until(LONG, "hosts to name the versions of their logins", || {
        let secrets = list(world, NAMESPACE, "secrets")?;
        let version = |host: &Value| {
            let secret = secrets
                .iter()
                .find(|secret| secret["metadata"]["name"] == host["spec"]["bmc"]["credentialsName"]);
            secret.map_or(Value::Null, |secret| secret["metadata"]["resourceVersion"].clone())
        };
        let hosts = list(world, NAMESPACE, "baremetalhosts")?;
        let is_named = |host: &Value| host["status"]["goodCredentials"]["credentialsVersion"] == version(host);
        Ok(hosts.iter().all(is_named).then_some(()))
    })
}

/// Does the work while a cluster runs; then so many products have other leaders, the one of hosts has looked, everything is
/// settled as before, and nobody with Ironic's login has ordered anything.
fn untouched(scene: &Scene<'_>, leaders: usize, work: impl FnOnce() -> anyhow::Result<()>) -> Proof {
    logins_recorded(scene.world)?;
    let (watch, mark, before) = (Stopwatch::start(), scene.fleet.mark()?, ordered(scene.world)?);
    let holders = holders(scene.world)?;
    let metal = judge::metal(scene)?;
    scene.while_machines_live(|| {
        work()?;
        let took_over = |now: &[String]| now.iter().zip(&holders).filter(|(now, then)| now != then).count();
        until(LONG, "other managers to lead", || {
            Ok((took_over(&self::holders(scene.world)?) == leaders).then_some(()))
        })?;
        let lead = scene.fleet.mark()?;
        until(LONG, "the manager of hosts to look", || {
            let looks = scene
                .fleet
                .since(lead)?
                .iter()
                .filter(|request| request.is_feed())
                .count();
            Ok((looks >= LOOKS).then_some(()))
        })?;
        settled(scene)
    })?;
    let asked = scene.fleet.since(mark)?;
    let orders: Vec<String> = asked
        .iter()
        .filter(|one| one.is_order())
        .map(ToString::to_string)
        .collect();
    ensure!(orders.is_empty(), "Ironic was ordered {orders:?}");
    let after = ordered(scene.world)?;
    ensure!(before == after, "hosts were ordered {before:?}, now {after:?}");
    ensure!(judge::metal(scene)? == metal, "other hosts are taken");
    let nodes = judge::nodes(scene)?;
    let by_login = asked.iter().filter(|one| one.by_login).count();
    Ok(format!(
        "{nodes} Nodes, 0 of {by_login} requests to Ironic were orders, {:.1} s",
        watch.elapsed().as_secs_f64()
    ))
}

/// What hosts are told, and what became of it.
fn ordered(world: &World) -> anyhow::Result<Vec<Value>> {
    let hosts = list(world, NAMESPACE, "baremetalhosts")?;
    let told = |host: &Value| {
        json!([
            name(host),
            host["metadata"]["uid"],
            host["spec"],
            host["status"]["provisioning"]
        ])
    };
    Ok(hosts.iter().map(told).collect())
}

/// Who leads, of each product.
fn holders(world: &World) -> anyhow::Result<Vec<String>> {
    let holder = |manager: &super::audit::Manager| {
        let words = ["--namespace", manager.namespace, "get", "lease", manager.lease];
        world.kubectl(&[&words[..], &["--output=jsonpath={.spec.holderIdentity}"]].concat())
    };
    MANAGERS.iter().map(holder).collect()
}

fn image(world: &World, namespace: &str) -> anyhow::Result<String> {
    let deployments = list(world, namespace, "deployments")?;
    let deployment = deployments.first().context("no Deployment")?;
    let containers = &deployment["spec"]["template"]["spec"]["containers"];
    Ok(containers[0]["image"].as_str().unwrap_or_default().to_owned())
}
