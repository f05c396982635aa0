//! The life of a cluster.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::scene::{self, CLUSTER, HOSTS, count};
use super::{MANAGERS, NAMESPACE, Proof, metal};
use crate::claims::world::World;
use crate::products::load::{list, name};
use crate::wait::{Stopwatch, until};

/// A rollout of a few machines, each of which several managers wait for.
const LONG: Duration = Duration::from_secs(480);

pub(super) fn runs(world: &World, _: &Path) -> Proof {
    scene::set(world)?;
    let manifest = scene::manifest(world)?;
    let watch = Stopwatch::start();
    metal::while_it_lives(world, || {
        world.run("kubectl", &["apply", "--filename", "-"], Some(&manifest))?;
        running(world, 3)
    })?;
    let took = watch.elapsed();
    let hosts = list(world, NAMESPACE, "baremetalhosts")?;
    for machine in list(world, NAMESPACE, "metal3machines")? {
        let id = matched(world, &machine, &hosts)?;
        let own = name(&machine);
        let node = world.kubectl(&["get", "node", &own, "--output=jsonpath={.spec.providerID}"])?;
        ensure!(node == id, "Node {own} has the ID {node:?}");
    }
    let addresses = list(world, NAMESPACE, "ipclaims.ipam.metal3.io")?.len();
    ensure!(addresses == 2, "{addresses} claims on the workers' pool");
    Ok(format!("3 machines run after {:.1} s, 2 addresses", took.as_secs_f64()))
}

/// Waits until so many Machines run, and each of their infrastructure says that it is provisioned.
pub(crate) fn running(world: &World, wanted: usize) -> anyhow::Result<()> {
    let mut last = String::new();
    until(LONG, &format!("{wanted} Machines that run"), || {
        let both = list(world, NAMESPACE, "machines,metal3machines")?;
        let (machines, infrastructure): (Vec<Value>, Vec<Value>) =
            both.into_iter().partition(|one| one["kind"] == "Machine");
        let provisioned = count(&infrastructure, |one| {
            one["status"]["initialization"]["provisioned"] == true
        });
        let run = count(&machines, |one| one["status"]["phase"] == "Running");
        last = format!(
            "of {} Machines {run} run, {provisioned} are provisioned",
            machines.len()
        );
        let all = [machines.len(), infrastructure.len(), run, provisioned];
        Ok(all.iter().all(|one| *one == wanted).then_some(()))
    })
    .with_context(|| last)
}

/// A machine and its host name each other, and the host was told what to run with all that belongs to it. The ID that
/// their Node is to carry.
pub(crate) fn matched(world: &World, machine: &Value, hosts: &[Value]) -> anyhow::Result<String> {
    let own = name(machine);
    let mut claimed = hosts
        .iter()
        .filter(|host| host["spec"]["consumerRef"]["name"] == own.as_str());
    let host = claimed.next().with_context(|| format!("no host of {own}"))?;
    ensure!(claimed.next().is_none(), "{own} has two hosts");
    let id = format!("metal3://{NAMESPACE}/{}/{own}", name(host));
    ensure!(
        machine["spec"]["providerID"] == id.as_str(),
        "{own}: {}",
        machine["spec"]["providerID"]
    );
    for member in ["userData", "metaData", "image"] {
        ensure!(host["spec"][member].is_object(), "{} was given no {member}", name(host));
    }
    let bootstrap = host["spec"]["userData"]["name"].as_str().unwrap_or_default();
    world.kubectl(&["--namespace", NAMESPACE, "get", "secret", bootstrap])?;
    Ok(id)
}

pub(super) fn told(world: &World, _: &Path) -> Proof {
    let wanted = [
        "AssociateBareMetalHostSuccess",
        "Metal3DataSecretsReady",
        "Provisioned",
        "Rendered",
    ];
    let told = until(LONG, "the Events", || {
        let events = list(world, NAMESPACE, "events")?;
        let ours = events.iter().filter(|event| {
            let reporter = event["reportingComponent"].as_str().unwrap_or_default();
            reporter == "capm3-controller" || event["source"]["component"] == "capm3-controller"
        });
        let reasons: BTreeSet<String> = ours
            .filter_map(|event| event["reason"].as_str())
            .map(str::to_owned)
            .collect();
        Ok(wanted.iter().all(|reason| reasons.contains(*reason)).then_some(reasons))
    })?;
    Ok(told.into_iter().collect::<Vec<_>>().join(" "))
}

pub(super) fn scaled(world: &World, _: &Path) -> Proof {
    let scale = |replicas: &str| {
        let words = ["--namespace", NAMESPACE, "scale", "machinedeployment", CLUSTER];
        let mut words = words.to_vec();
        words.push(replicas);
        world.kubectl(&words).map(drop)
    };
    let killed = metal::while_it_lives(world, || {
        scale("--replicas=4")?;
        let killed = kill_leader(world)?;
        running(world, 5)?;
        scale("--replicas=1")?;
        running(world, 2)?;
        freed(world, HOSTS - 2)?;
        Ok(killed)
    })?;
    Ok(format!("2 -> 4 -> 1, {killed} killed"))
}

/// `kill -9` of the container that leads machines.
pub(crate) fn kill_leader(world: &World) -> anyhow::Result<String> {
    let Leader { pod, process, .. } = leader(world, MANAGERS, "controller-leader-election-capm3")?;
    let process = process.context("the container runs in no process")?;
    world.run("kill", &["-9", &process], None)?;
    Ok(pod)
}

/// Who holds a lease.
pub(crate) struct Leader {
    /// As the lease names it: another for each process.
    pub(crate) holder: String,
    pub(crate) pod: String,
    /// The process of the Pod's container, unless that is not running. Right after the leader died it is another's, which
    /// leads nothing.
    pub(crate) process: Option<String>,
}

pub(crate) fn leader(world: &World, namespace: &str, lease: &str) -> anyhow::Result<Leader> {
    let words = [
        "--namespace",
        namespace,
        "get",
        "lease",
        lease,
        "--output=jsonpath={.spec.holderIdentity}",
    ];
    let holder = world.kubectl(&words)?;
    let pods = list(world, namespace, "pods")?;
    let mut leading = pods.iter().filter(|pod| holder.starts_with(&name(pod)));
    let pod = leading.next().with_context(|| format!("no Pod of {holder}"))?;
    let id = pod["status"]["containerStatuses"][0]["containerID"]
        .as_str()
        .unwrap_or_default();
    let process = id.strip_prefix("process://").map(str::to_owned);
    let pod = name(pod);
    Ok(Leader { holder, pod, process })
}

/// Waits until so many hosts belong to nobody, and run and hold nothing of anybody.
pub(crate) fn freed(world: &World, wanted: usize) -> anyhow::Result<()> {
    until(LONG, &format!("{wanted} free hosts"), || {
        let hosts = list(world, NAMESPACE, "baremetalhosts")?;
        let is_free = |host: &Value| {
            let spec = &host["spec"];
            ["consumerRef", "image", "userData", "metaData", "networkData"]
                .iter()
                .all(|member| spec[*member].is_null())
                && host["status"]["provisioning"]["state"] == "available"
        };
        Ok((count(&hosts, is_free) == wanted).then_some(()))
    })
}

/// What users put there stays: the logins of hosts, and the way into the cluster.
fn is_of_users(secret: &Value) -> bool {
    let name = name(secret);
    name.ends_with("-bmc") || name == format!("{CLUSTER}-kubeconfig")
}

pub(super) fn deleted(world: &World, _: &Path) -> Proof {
    let watch = Stopwatch::start();
    metal::while_it_lives(world, || {
        world.kubectl(&["--namespace", NAMESPACE, "delete", "cluster", CLUSTER, "--wait=false"])?;
        gone(world, "clusters,machines")?;
        freed(world, HOSTS)
    })?;
    nothing_is_left(world)?;
    until(LONG, "the end of the Secrets that were made", || {
        let left = list(world, NAMESPACE, "secrets")?;
        Ok((count(&left, |secret| !is_of_users(secret)) == 0).then_some(()))
    })?;
    Ok(format!(
        "{HOSTS} hosts are available again after {:.1} s",
        watch.elapsed().as_secs_f64()
    ))
}

/// Waits until there is no object of these kinds.
pub(crate) fn gone(world: &World, kinds: &str) -> anyhow::Result<()> {
    until(LONG, &format!("the end of all {kinds}"), || {
        let left = world.kubectl(&["--namespace", NAMESPACE, "get", kinds, "--output=name"])?;
        Ok(left.trim().is_empty().then_some(()))
    })
}

/// Waits until all is gone that a deleted cluster owned and that was made for it.
pub(crate) fn nothing_is_left(world: &World) -> anyhow::Result<()> {
    let kinds = "metal3clusters,metal3machines,metal3dataclaims,metal3datas,ipclaims.ipam.metal3.io,\
                 ipaddresses.ipam.metal3.io,metal3machinetemplates";
    gone(world, kinds)
}
