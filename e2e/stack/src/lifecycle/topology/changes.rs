//! Dry runs, and variables that the topology controller rolls out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use metal3_ledger::Log;
use serde_json::{Value, json};

use super::super::audit::MANAGERS;
use super::super::checks;
use super::super::cluster::{LONG, settled};
use super::super::env::TestEnv;
use super::super::fleet::MACHINES;
use super::super::install;
use super::super::phases::PERIODIC;
use super::class::{self, CLASS, VERSIONS};
use super::zones::ALL;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, running};
use crate::products::machines::template::CLUSTER;
use crate::wait::{Stopwatch, until};

const TOPOLOGY_CONTROLLER: &str = "system:serviceaccount:capi-system:capi-manager";
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// Kinds whose objects a dry run must leave as they are.
const KINDS: &str = "clusters,machines,metal3clusters,metal3clustertemplates,metal3machines,metal3machinetemplates,metal3datas,\
                     metal3dataclaims,baremetalhosts,ipclaims.ipam.metal3.io,ipaddresses.ipam.metal3.io,kubeadmcontrolplanes";
/// How long nothing is written after a dry run.
const QUIET: Duration = Duration::from_secs(20);
/// A roll of each machine, one after the other.
const ROLL: Duration = Duration::from_secs(900);
/// With a login whose percent sign is for the proxy, not for systemd.
const PROXY: &str = "http://u:p%40ss@proxy.example:3128";
/// The same for systemd.
const OF_SYSTEMD: &str = "HTTP_PROXY=http://u:p%%40ss@proxy.example:3128";

/// Server-side dry runs of users, and those of the topology controller, write nothing.
pub(in super::super) fn dry_run(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    env.while_simulated(|| {
        settled(env)?;
        quiet(stack)
    })?;
    let mark = fs::metadata(stack.places.log("audit"))?.len();
    // The topology controller remembers what it compared by a dry run, until the object changes.
    let own = format!("--selector=cluster.x-k8s.io/cluster-name={CLUSTER}");
    touch(stack, ["metal3clusters,metal3machinetemplates", &own], 1)?;
    let (versions, generations) = (members(stack, "resourceVersion")?, members(stack, "generation")?);
    let templates = ask(env)?;
    let log = env.while_simulated(|| {
        let mut times: usize = 0;
        until(LONG, "dry runs of the topology controller", || {
            times = times.saturating_add(1);
            touch(stack, ["cluster", CLUSTER], times)?;
            let seen = dry_runs(&since(stack, mark)?)?;
            let has = |resource: &str| seen.keys().any(|what| what.ends_with(resource));
            Ok((has(" metal3clusters") && has(" metal3machinetemplates")).then_some(()))
        })?;
        let watch = Stopwatch::start();
        until(LONG, "the end of the quiet time", || {
            Ok((watch.elapsed() >= QUIET).then_some(()))
        })?;
        since(stack, mark)
    })?;
    let writes = writes(&log)?;
    ensure!(writes.is_empty(), "managers wrote {writes:?}");
    ensure!(
        generations == members(stack, "generation")?,
        "an object has a new generation"
    );
    let (before, after) = (of_others(versions), of_others(members(stack, "resourceVersion")?));
    ensure!(before == after, "objects were written: {before:?}, {after:?}");
    let dry_runs = dry_runs(&log)?;
    let dry_runs: Vec<String> = dry_runs.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let plans = stack
        .run("clusterctl", &["alpha", "--help"], None)?
        .contains("topology");
    let plans = if plans {
        ""
    } else {
        "; clusterctl has no `alpha topology plan`"
    };
    Ok(format!(
        "Cluster and {templates} templates admitted, dry runs of the topology controller: [{}], 0 writes of ours{plans}",
        dry_runs.join(", ")
    ))
}

/// Without the Cluster: the topology controller reports in its status.
pub(super) fn of_others(mut all: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    all.remove(&format!("Cluster {CLUSTER}"));
    all
}

/// Annotates objects; the topology controller reconciles an annotated Cluster.
pub(super) fn touch(stack: &Stack, which: [&str; 2], value: usize) -> anyhow::Result<()> {
    let [kinds, selected] = which;
    let annotation = format!("suite.example.org/touched={value}");
    let args = [
        "--namespace",
        NAMESPACE,
        "annotate",
        "--overwrite",
        kinds,
        selected,
        &annotation,
    ];
    stack.kubectl(&args).map(drop)
}

/// The dry runs of a user: the Cluster with another version and other variables, and a new class. Returns the number of
/// objects of the class.
fn ask(env: &TestEnv<'_>) -> anyhow::Result<usize> {
    let stack = env.stack;
    let [_, next, ..] = VERSIONS;
    let mut topology = class::with_variables(&class::topology(stack)?, &changes(env)?);
    topology["version"] = next.into();
    let patch = json!({"spec": {"topology": topology}}).to_string();
    let dry = ["--namespace", NAMESPACE, "--dry-run=server", "--output=json"];
    let cluster = ["patch", "cluster", CLUSTER, "--type=merge", "--patch", &patch];
    let admitted: Value = serde_json::from_str(&stack.kubectl(&[&dry[..], &cluster].concat())?)?;
    let version = &admitted["spec"]["topology"]["version"];
    ensure!(*version == next, "the dry run shows version {version}");
    // Cluster API would write its two lines into the cloud-config as they are.
    let key = [(
        "sshAuthorizedKeys",
        json!(["ssh-ed25519 AAAA one\nssh-ed25519 BBBB two"]),
    )];
    let patch = json!({"spec": {"topology": class::with_variables(&class::topology(stack)?, &key)}}).to_string();
    let cluster = ["patch", "cluster", CLUSTER, "--type=merge", "--patch", &patch];
    let refused = stack.kubectl(&[&dry[..], &cluster].concat()).err();
    let refused = format!("{:#}", refused.context("a key of two lines was admitted")?);
    ensure!(refused.contains("sshAuthorizedKeys"), "{refused}");
    let copies = copies(stack)?;
    stack.send(&[&dry[..], &["create"]].concat(), &copies)?;
    Ok(copies.len())
}

/// Waits until each host is on or off as it says.
fn until_powered(stack: &Stack) -> anyhow::Result<()> {
    until(LONG, "the power of each host", || {
        let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
        let is_powered = |host: &Value| host["spec"]["online"] == host["status"]["poweredOn"];
        Ok(hosts.iter().all(is_powered).then_some(()))
    })
}

/// Waits until no manager of ours writes.
pub(super) fn quiet(stack: &Stack) -> anyhow::Result<()> {
    // The host of the lost zone is off, and Ironic reports that a minute later.
    until_powered(stack)?;
    let end = || anyhow::Ok(fs::metadata(stack.places.log("audit"))?.len());
    let mut since_then = (end()?, Stopwatch::start());
    until(LONG, "managers that write nothing", || {
        if writes(&since(stack, since_then.0)?)?.is_empty() {
            return Ok((since_then.1.elapsed() >= QUIET).then_some(()));
        }
        since_then = (end()?, Stopwatch::start());
        Ok(None)
    })
}

/// A member of the metadata of each object.
pub(super) fn members(stack: &Stack, member: &str) -> anyhow::Result<BTreeMap<String, Value>> {
    let member = |one: &Value| {
        let kind = one["kind"].as_str().unwrap_or_default();
        (format!("{kind} {}", name(one)), one["metadata"][member].clone())
    };
    Ok(list(stack, NAMESPACE, KINDS)?.iter().map(member).collect())
}

/// Copies of the class and of its templates, under other names.
pub(super) fn copies(stack: &Stack) -> anyhow::Result<Vec<Value>> {
    let kinds = "clusterclasses,metal3clustertemplates,metal3machinetemplates,kubeadmcontrolplanetemplates,kubeadmconfigtemplates";
    let mut all = list(stack, NAMESPACE, kinds)?;
    all.retain(|one| name(one).starts_with(CLASS));
    for one in &mut all {
        one["metadata"] = json!({"name": format!("next-{}", name(one))});
        if let Some(object) = one.as_object_mut() {
            object.remove("status");
        }
    }
    Ok(all)
}

/// Whole lines of the audit log since the mark.
pub(super) fn since(stack: &Stack, mark: u64) -> anyhow::Result<String> {
    let log = fs::read_to_string(stack.places.log("audit"))?;
    let part = log.get(usize::try_from(mark)?..).unwrap_or_default();
    let begin = part.find("{\"kind\":\"Event\"").unwrap_or(part.len());
    let end = part.rfind('\n').unwrap_or_default();
    Ok(part.get(begin..end).unwrap_or_default().to_owned())
}

/// What the managers of the release wrote, without Leases and Events.
pub(super) fn writes(log: &str) -> anyhow::Result<BTreeSet<String>> {
    let log = Log::read(log)?;
    let mut writes = BTreeSet::new();
    for manager in &MANAGERS {
        let counts = log.counts_of(manager.account.user);
        let targets = counts.requests.keys().filter(|target| {
            !["get", "list", "watch"].contains(&target.verb.as_str()) && !PERIODIC.contains(&target.resource.as_str())
        });
        writes.extend(targets.map(|target| format!("{}: {target}", manager.namespace)));
    }
    Ok(writes)
}

/// The successful dry runs of the topology controller on kinds of ours, by verb and resource.
fn dry_runs(log: &str) -> anyhow::Result<BTreeMap<String, usize>> {
    let mut count = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains("dryRun=All")) {
        let event: Value = serde_json::from_str(line).context("a line of the audit log")?;
        let object = &event["objectRef"];
        if event["user"]["username"] != TOPOLOGY_CONTROLLER || object["apiGroup"] != GROUP {
            continue;
        }
        let what = [&event["verb"], &object["resource"]].map(|text| text.as_str().unwrap_or_default());
        let code = &event["responseStatus"]["code"];
        ensure!(
            [200, 201].map(Value::from).contains(code),
            "{} is answered by {code}",
            what.join(" ")
        );
        *count.entry(what.join(" ")).or_default() += 1;
    }
    Ok(count)
}

/// Another image, a proxy, and a key.
fn changes(env: &TestEnv<'_>) -> anyhow::Result<[(&'static str, Value); 3]> {
    let image = env.fleet.other_image(&[env.fleet.image_url()?.to_owned()])?;
    let image =
        json!({"url": image, "checksum": format!("{image}.sha256"), "checksumType": "sha256", "diskFormat": "raw"});
    let proxy = json!({"http": PROXY, "https": PROXY, "noProxy": ["10.0.0.0/8", ".cluster.local"]});
    Ok([
        ("image", image),
        ("proxy", proxy),
        ("sshAuthorizedKeys", json!(["ssh-ed25519 AAAA suite"])),
    ])
}

/// All machines get another image, a proxy and a key.
pub(in super::super) fn changed(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let changes = changes(env)?;
    let watch = Stopwatch::start();
    env.while_simulated(|| {
        let before = machines(stack)?;
        class::set_variables(stack, &changes)?;
        replaced(stack, &before, ALL)?;
        freed(stack, MACHINES - ALL)?;
        settled(env)
    })?;
    let took = watch.elapsed().as_secs_f64();
    let (taken, nodes) = (checks::hosts(env)?.0, checks::nodes(env)?);
    ensure!((taken, nodes) == (ALL, ALL), "{taken} hosts taken, {nodes} Nodes");
    let [(_, image), ..] = &changes;
    for host in list(stack, NAMESPACE, "baremetalhosts")? {
        if host["spec"]["consumerRef"].is_null() {
            continue;
        }
        let own = name(&host);
        ensure!(host["spec"]["image"]["url"] == image["url"], "{own} has another image");
        let data = env.fleet.drive(stack, install::machine(&own)?, "user_data")?;
        let data = String::from_utf8(data.with_context(|| format!("{own} has no config-drive"))?)?;
        for part in [PROXY, OF_SYSTEMD, "ssh-ed25519 AAAA suite", "10-proxy.conf"] {
            ensure!(data.contains(part), "the config-drive of {own} has no {part}");
        }
    }
    let templates = list(stack, NAMESPACE, "metal3machinetemplates")?;
    let templates: Vec<String> = templates
        .iter()
        .map(name)
        .filter(|name| !name.starts_with(CLASS))
        .collect();
    ensure!(templates.len() == 2, "templates of the Cluster: {templates:?}");
    Ok(format!(
        "{nodes} machines in {took:.1} s, {} templates left",
        templates.len()
    ))
}

/// The names of the Machines.
pub(super) fn machines(stack: &Stack) -> anyhow::Result<Vec<String>> {
    Ok(list(stack, NAMESPACE, "machines")?.iter().map(name).collect())
}

/// Waits until this number of other Machines run in the place of these.
pub(super) fn replaced(stack: &Stack, before: &[String], number: usize) -> anyhow::Result<()> {
    let mut last = String::new();
    until(ROLL, "other machines in the place of all", || {
        let machines = machines(stack)?;
        let old = machines.iter().filter(|one| before.contains(one)).count();
        last = format!("{old} of {} Machines are old", machines.len());
        Ok((old == 0 && machines.len() == number).then_some(()))
    })
    .context(last)?;
    running(stack, number)
}
