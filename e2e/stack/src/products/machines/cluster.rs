//! The life cycle of a cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::template::{self, CLUSTER, HOSTS, count};
use super::{Candidate, MANAGERS, NAMESPACE, host_simulator};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::wait::{Stopwatch, until};

/// A rollout of a few machines, which involves several managers.
const LONG: Duration = Duration::from_secs(480);

pub(super) fn runs(stack: &Stack, candidate: &Candidate<'_>) -> Proof {
    template::set(stack)?;
    let manifest = template::manifest(stack, &candidate.written)?;
    let watch = Stopwatch::start();
    host_simulator::while_simulated(stack, || {
        stack.run("kubectl", &["apply", "--filename", "-"], Some(&manifest))?;
        running(stack, 3)
    })?;
    let took = watch.elapsed();
    let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
    for machine in list(stack, NAMESPACE, "metal3machines")? {
        let id = matched(stack, &machine, &hosts)?;
        let own = name(&machine);
        let node = stack.kubectl(&["get", "node", &own, "--output=jsonpath={.spec.providerID}"])?;
        ensure!(node == id, "Node {own} has the ID {node:?}");
    }
    let addresses = list(stack, NAMESPACE, "ipclaims.ipam.metal3.io")?.len();
    ensure!(addresses == 2, "{addresses} claims on the workers' pool");
    Ok(format!("3 machines run after {:.1} s, 2 addresses", took.as_secs_f64()))
}

/// Waits until this number of Machines run and their infrastructure is provisioned.
pub(crate) fn running(stack: &Stack, wanted: usize) -> anyhow::Result<()> {
    let mut last = String::new();
    until(LONG, &format!("{wanted} Machines that run"), || {
        let both = list(stack, NAMESPACE, "machines,metal3machines")?;
        let (machines, infrastructure): (Vec<Value>, Vec<Value>) =
            both.into_iter().partition(|one| one["kind"] == "Machine");
        let provisioned = count(&infrastructure, |one| {
            // The older version has the second member.
            one["status"]["initialization"]["provisioned"] == true || one["status"]["ready"] == true
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

/// Checks that a machine and its host refer to each other and that the host has image, user data and metadata. Returns the
/// provider ID of their Node.
pub(crate) fn matched(stack: &Stack, machine: &Value, hosts: &[Value]) -> anyhow::Result<String> {
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
        ensure!(host["spec"][member].is_object(), "{} has no {member}", name(host));
    }
    let bootstrap = host["spec"]["userData"]["name"].as_str().unwrap_or_default();
    stack.kubectl(&["--namespace", NAMESPACE, "get", "secret", bootstrap])?;
    Ok(id)
}

pub(super) fn events_reported(stack: &Stack, _: &Candidate<'_>) -> Proof {
    let wanted = [
        "AssociateBareMetalHostSuccess",
        "Metal3DataSecretsReady",
        "Provisioned",
        "Rendered",
    ];
    let reasons = until(LONG, "the Events", || {
        let events = list(stack, NAMESPACE, "events")?;
        let reported = events.iter().filter(|event| {
            let reporter = event["reportingComponent"].as_str().unwrap_or_default();
            reporter == "capm3-controller" || event["source"]["component"] == "capm3-controller"
        });
        let reasons: BTreeSet<String> = reported
            .filter_map(|event| event["reason"].as_str())
            .map(str::to_owned)
            .collect();
        Ok(wanted.iter().all(|reason| reasons.contains(*reason)).then_some(reasons))
    })?;
    Ok(reasons.into_iter().collect::<Vec<_>>().join(" "))
}

pub(super) fn scaled(stack: &Stack, _: &Candidate<'_>) -> Proof {
    let scale = |replicas: &str| {
        let args = ["--namespace", NAMESPACE, "scale", "machinedeployment", CLUSTER];
        let mut args = args.to_vec();
        args.push(replicas);
        stack.kubectl(&args).map(drop)
    };
    let killed = host_simulator::while_simulated(stack, || {
        scale("--replicas=4")?;
        let killed = kill_leader(stack)?;
        running(stack, 5)?;
        scale("--replicas=1")?;
        running(stack, 2)?;
        freed(stack, HOSTS - 2)?;
        Ok(killed)
    })?;
    Ok(format!("2 -> 4 -> 1, {killed} killed"))
}

/// `kill -9` of the leader of the machine controllers.
pub(crate) fn kill_leader(stack: &Stack) -> anyhow::Result<String> {
    let Leader { pod, process, .. } = leader(stack, MANAGERS, "controller-leader-election-capm3")?;
    let process = process.context("the container runs in no process")?;
    stack.run("kill", &["-9", &process], None)?;
    Ok(pod)
}

/// The holder of a lease.
pub(crate) struct Leader {
    /// The identity in the lease, unique per process.
    pub(crate) holder: String,
    pub(crate) pod: String,
    /// The process of the Pod's container, if it runs. Right after the leader ended it is its replacement, which does not lead.
    pub(crate) process: Option<String>,
}

pub(crate) fn leader(stack: &Stack, namespace: &str, lease: &str) -> anyhow::Result<Leader> {
    let args = [
        "--namespace",
        namespace,
        "get",
        "lease",
        lease,
        "--output=jsonpath={.spec.holderIdentity}",
    ];
    let holder = stack.kubectl(&args)?;
    let pods = list(stack, namespace, "pods")?;
    let mut leading = pods.iter().filter(|pod| holder.starts_with(&name(pod)));
    let pod = leading.next().with_context(|| format!("no Pod of {holder}"))?;
    Ok(leader_in(pod, holder))
}

/// The Pod that is ready, of a Deployment of one replica without a lease.
pub(crate) fn working(stack: &Stack, namespace: &str, deployment: &str) -> anyhow::Result<Leader> {
    let pods = list(stack, namespace, "pods")?;
    let prefix = format!("{deployment}-");
    let is_ready = |pod: &&Value| pod["status"]["containerStatuses"][0]["ready"] == true;
    let mut working = pods
        .iter()
        .filter(|pod| name(pod).starts_with(&prefix))
        .filter(is_ready);
    let pod = working
        .next()
        .with_context(|| format!("no Pod of {deployment} is ready"))?;
    Ok(leader_in(pod, String::new()))
}

fn leader_in(pod: &Value, holder: String) -> Leader {
    let id = pod["status"]["containerStatuses"][0]["containerID"]
        .as_str()
        .unwrap_or_default();
    Leader {
        holder,
        pod: name(pod),
        process: id.strip_prefix("process://").map(str::to_owned),
    }
}

/// Waits until this number of hosts have no consumer and are available and empty.
pub(crate) fn freed(stack: &Stack, wanted: usize) -> anyhow::Result<()> {
    until(LONG, &format!("{wanted} free hosts"), || {
        let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
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

/// Secrets of users are kept: the logins of hosts, and the kubeconfig of the cluster.
fn is_of_users(secret: &Value) -> bool {
    let name = name(secret);
    name.ends_with("-bmc") || name == format!("{CLUSTER}-kubeconfig")
}

pub(super) fn deleted(stack: &Stack, _: &Candidate<'_>) -> Proof {
    let watch = Stopwatch::start();
    host_simulator::while_simulated(stack, || {
        stack.kubectl(&["--namespace", NAMESPACE, "delete", "cluster", CLUSTER, "--wait=false"])?;
        until_deleted(stack, "clusters,machines")?;
        freed(stack, HOSTS)
    })?;
    nothing_is_left(stack)?;
    until(LONG, "the deletion of generated Secrets", || {
        let left = list(stack, NAMESPACE, "secrets")?;
        Ok((count(&left, |secret| !is_of_users(secret)) == 0).then_some(()))
    })?;
    Ok(format!(
        "{HOSTS} hosts are available again after {:.1} s",
        watch.elapsed().as_secs_f64()
    ))
}

/// Waits until no object of these kinds exists.
pub(crate) fn until_deleted(stack: &Stack, kinds: &str) -> anyhow::Result<()> {
    until(LONG, &format!("the end of all {kinds}"), || {
        let left = stack.kubectl(&["--namespace", NAMESPACE, "get", kinds, "--output=name"])?;
        Ok(left.trim().is_empty().then_some(()))
    })
}

/// Waits until all objects are deleted that a cluster owned or that were created for it.
pub(crate) fn nothing_is_left(stack: &Stack) -> anyhow::Result<()> {
    let kinds = "metal3clusters,metal3machines,metal3dataclaims,metal3datas,ipclaims.ipam.metal3.io,\
                 ipaddresses.ipam.metal3.io,metal3machinetemplates";
    until_deleted(stack, kinds)
}
