//! Compares `clusterctl describe cluster` with the conditions of the objects while a cluster changes.
//!
//! It runs every few seconds, with a list of all objects before and after. For an unchanged object it must print exactly
//! its conditions. For a changed object the matching conditions are counted separately, and differences are no error.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::products::machines::host_simulator::concurrently;
use crate::wait::Stopwatch;

/// The kinds whose conditions are compared.
const KINDS: &str = "clusters,metal3clusters,kubeadmcontrolplanes,machinedeployments,machines,metal3machines";
/// One run costs seconds of processor time: the pause is at least this long, and this multiple of the last run.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_FACTOR: u32 = 4;
/// clusterctl silently omits objects that it cannot read in time, which is frequent on a busy machine: only this many
/// consecutive failures count.
const ATTEMPTS: usize = 3;
/// Timeout of clusterctl in seconds.
const TIMEOUT: &str = "60";

/// Type, status and reason of each condition.
type Conditions = BTreeSet<(String, String, String)>;

/// The numbers of compared conditions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Runs of clusterctl.
    runs: usize,
    /// Conditions of unchanged objects, printed correctly.
    compared: usize,
    /// Conditions of changed objects, printed as before or after the change.
    matched: usize,
    /// The other conditions of changed objects.
    unmatched: usize,
}

impl Figures {
    /// At least one condition was compared.
    pub(crate) fn prove(&self) -> anyhow::Result<()> {
        ensure!(self.compared > 0, "{self}");
        Ok(())
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            runs,
            compared,
            matched,
            unmatched,
        } = self;
        let changed = matched.saturating_add(*unmatched);
        write!(
            f,
            "clusterctl describe ran {runs} times: {compared} conditions match the objects, {matched} of {changed} that changed \
             during a run"
        )
    }
}

/// Does the work, and compares the output for all clusters of a namespace in parallel.
pub(super) fn meanwhile<T>(
    stack: &Stack,
    namespace: &str,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(T, Figures)> {
    let (mut figures, mut last_run) = (Figures::default(), None::<(Stopwatch, Duration)>);
    let describe = || {
        if last_run.is_none_or(|(since, pause)| since.elapsed() >= pause) {
            let watch = Stopwatch::start();
            figures = run(stack, namespace, figures)?;
            let pause = watch.elapsed().saturating_mul(PAUSE_FACTOR).max(PAUSE);
            last_run = Some((Stopwatch::start(), pause));
        }
        Ok(())
    };
    let done = concurrently("the comparison with clusterctl describe", describe, work)?;
    Ok((done, figures))
}

fn run(stack: &Stack, namespace: &str, figures: Figures) -> anyhow::Result<Figures> {
    let mut last = run_once(stack, namespace, figures);
    for _ in 1..ATTEMPTS {
        let Err(why) = &last else { break };
        println!("       clusterctl describe runs again: {why:#}");
        last = run_once(stack, namespace, figures);
    }
    last
}

fn run_once(stack: &Stack, namespace: &str, mut figures: Figures) -> anyhow::Result<Figures> {
    let mut before = list(stack, namespace, KINDS)?;
    let clusters: Vec<Value> = before.iter().filter(|one| one["kind"] == "Cluster").cloned().collect();
    for cluster in clusters {
        let own = name(&cluster);
        let args = [
            TIMEOUT,
            "clusterctl",
            "describe",
            "cluster",
            &own,
            "--namespace",
            namespace,
        ];
        let mut args = args.to_vec();
        args.extend(["--show-conditions=all", "--grouping=false", "--echo", "--color=false"]);
        let text = stack.run("timeout", &args, None);
        let after = list(stack, namespace, KINDS)?;
        let is_this = |one: &&Value| one["kind"] == "Cluster" && name(one) == own;
        let stays = |one: &Value| one["metadata"]["deletionTimestamp"].is_null();
        // The parts of a cluster that is being deleted disappear during the run.
        let stays = after.iter().find(is_this).is_some_and(stays);
        match text {
            Ok(text) => {
                figures.runs = figures.runs.saturating_add(1);
                compare(&text, (namespace, &own), &before, &after, &mut figures).with_context(|| text)?;
            }
            Err(error) if stays => return Err(error),
            Err(_) => {}
        }
        before = after;
    }
    Ok(figures)
}

/// Compares the output for a cluster with its objects before and after.
fn compare(
    text: &str,
    (namespace, cluster): (&str, &str),
    before: &[Value],
    after: &[Value],
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let works = [before, after].iter().all(|objects| has_workers(objects, cluster));
    let (before, after) = (by_name(before, cluster), by_name(after, cluster));
    let printed = read(text, namespace);
    for (object, was) in &before {
        let Some(is) = after.get(object) else { continue };
        let Some(shown) = printed.get(object) else {
            // Machines may be deleted before their infrastructure, which then replaces them in the tree. A MachineDeployment is in
            // it only when the cluster has a worker.
            let may_be_missing =
                object.starts_with("Metal3Machine/") || !works && object.starts_with("MachineDeployment/");
            ensure!(
                may_be_missing || was.version != is.version,
                "no conditions are printed for {object}"
            );
            continue;
        };
        if was.version == is.version {
            ensure!(
                *shown == was.conditions,
                "{object} has {:?}, printed are {shown:?}",
                was.conditions
            );
            figures.compared = figures.compared.saturating_add(shown.len());
            continue;
        }
        let known = shown
            .iter()
            .filter(|one| was.conditions.contains(*one) || is.conditions.contains(*one))
            .count();
        figures.matched = figures.matched.saturating_add(known);
        figures.unmatched = figures.unmatched.saturating_add(shown.len().saturating_sub(known));
    }
    Ok(())
}

/// A version of an object.
struct ObjectState {
    version: String,
    conditions: Conditions,
}

/// Whether the cluster has a Machine outside the control plane.
fn has_workers(objects: &[Value], cluster: &str) -> bool {
    objects.iter().any(|one| {
        let labels = &one["metadata"]["labels"];
        one["kind"] == "Machine"
            && labels["cluster.x-k8s.io/cluster-name"] == cluster
            && labels["cluster.x-k8s.io/control-plane"].is_null()
    })
}

/// The objects of one cluster by `Kind/name`.
fn by_name(objects: &[Value], cluster: &str) -> BTreeMap<String, ObjectState> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_cluster = |one: &&Value| {
        let label = &one["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"];
        // The tree has only objects that the Cluster refers to: no Metal3Cluster of a cluster with another infrastructure.
        *label == cluster && !one["metadata"]["ownerReferences"].is_null() && one["status"]["role"] != "Secondary"
            || one["kind"] == "Cluster" && name(one) == cluster
    };
    let object_state = |one: &Value| {
        let conditions = one["status"]["conditions"].as_array().into_iter().flatten();
        let conditions =
            conditions.map(|condition| ["type", "status", "reason"].map(|member| text(&condition[member])));
        let object_state = ObjectState {
            version: text(&one["metadata"]["resourceVersion"]),
            conditions: conditions
                .map(|[aspect, status, reason]| (aspect, status, reason))
                .collect(),
        };
        (format!("{}/{}", text(&one["kind"]), name(one)), object_state)
    };
    objects.iter().filter(of_cluster).map(object_state).collect()
}

/// The characters of the tree.
const TREE: [char; 5] = ['│', '├', '└', '─', ' '];

/// The printed conditions of each object of the namespace, by `Kind/name`.
fn read(text: &str, namespace: &str) -> BTreeMap<String, Conditions> {
    let mut printed: BTreeMap<String, Conditions> = BTreeMap::new();
    let mut object = None;
    let mut lines = text.lines();
    let names_end = lines.next().and_then(|header| header.find("REPLICAS"));
    for line in lines {
        let begins = line.chars().take_while(|drawn| TREE.contains(drawn)).count();
        // Messages are wrapped into separate lines, which may look like objects or conditions.
        if names_end.is_some_and(|end| begins >= end) {
            continue;
        }
        let line = line.trim_start_matches(TREE);
        if let Some(condition_row) = condition(line) {
            if let Some(conditions) = object.as_ref().and_then(|object| printed.get_mut(object)) {
                conditions.insert(condition_row);
            }
        } else if let Some(object_name) = object_name(line, namespace) {
            printed.entry(object_name.clone()).or_default();
            object = Some(object_name);
        }
    }
    printed
}

/// `Ready  False  NotReady  3s  * because`
fn condition(line: &str) -> Option<(String, String, String)> {
    let mut args = line.split_whitespace();
    let (aspect, status) = (args.next()?, args.next()?);
    let (reason, age) = (args.next()?, args.next()?);
    let is_age = age.starts_with(|first: char| first.is_ascii_digit()) || age == "<invalid>";
    let is_status = ["True", "False", "Unknown"].contains(&status);
    (is_status && is_age).then(|| (aspect.to_owned(), status.to_owned(), reason.to_owned()))
}

/// `Machine metal/edge-1, v1.35.0  ...`, where the namespace is `metal`. A row without namespace, like `Workers`, is a heading.
fn object_name(line: &str, namespace: &str) -> Option<String> {
    let row = line.split("  ").next()?;
    let row = row.strip_prefix("!! DELETED !! ").unwrap_or(row);
    let (kind, place) = row.split_once(' ')?;
    let (within, name) = place.split(',').next()?.trim_end().split_once('/')?;
    let is_kind = kind.chars().all(char::is_alphanumeric);
    (is_kind && within == namespace).then(|| format!("{kind}/{name}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // The output of clusterctl 1.14.2.
    const PRINTED: &str = "\
NAME                                        REPLICAS AVAILABLE READY UP TO DATE STATUS   REASON        SINCE MESSAGE
Cluster n/edge
│           ├─Available                                                         False    NotAvailable  2m5s  * RemoteConnectionProbe: Remote connection not established yet
│           │                                                                                                * WorkersAvailable: Metal3Machine n/one is what we wait for, and that takes a long time until it is
│           │                                                                                                  there, as expected here
│           │                                                                                                  * MachineDeployment edge: 0 available
│           └─Paused                                                            False    NotPaused     2m5s
├─KubeadmControlPlane n/edge, v1.35.0
│             └─Ready                                                           True     Ready         3s
├─Metal3Cluster n/edge
│             └─Ready                                                           True     Ready         3s
└─Workers
  └─MachineDeployment n/edge, v1.35.0
    └─!! DELETED !! Machine n/one, v1.35.0  1        0         0     0
      │           ├─Ready                                                       Unknown  Connecting    2m5s
      │           └─Available                                                   False    NotAvailable  2m5s  * Ready: not yet
      ├─KubeadmConfig n/one
      │             └─Ready                                                     True     Ready         3s
      └─Metal3Machine n/one
                    └─Ready                                                     True     Ready         3s
";

    fn object(kind: &str, name: &str, version: &str, conditions: &[[&str; 3]]) -> Value {
        let conditions = conditions
            .iter()
            .map(|[aspect, status, reason]| json!({"type": aspect, "status": status, "reason": reason}));
        json!({"kind": kind, "metadata": {"name": name, "resourceVersion": version, "ownerReferences": [{}],
                "labels": {"cluster.x-k8s.io/cluster-name": "edge"}},
            "status": {"conditions": conditions.collect::<Vec<_>>()}})
    }

    fn objects(ready: [&str; 3], version: &str) -> Vec<Value> {
        vec![
            object(
                "Cluster",
                "edge",
                "1",
                &[["Available", "False", "NotAvailable"], ["Paused", "False", "NotPaused"]],
            ),
            object("Metal3Cluster", "edge", "2", &[["Ready", "True", "Ready"]]),
            object(
                "Machine",
                "one",
                version,
                &[ready, ["Available", "False", "NotAvailable"]],
            ),
        ]
    }

    const CONNECTING: [&str; 3] = ["Ready", "Unknown", "Connecting"];
    const READY: [&str; 3] = ["Ready", "True", "Ready"];

    fn compared(before: &[Value], after: &[Value]) -> anyhow::Result<(usize, usize, usize)> {
        let mut figures = Figures::default();
        compare(PRINTED, ("n", "edge"), before, after, &mut figures)?;
        Ok((figures.compared, figures.matched, figures.unmatched))
    }

    #[test]
    fn output_is_read_by_object() {
        // A line of a message may look like a row.
        let printed = PRINTED.replace("there, as expected here", "Metal3Machine n/two");
        let read = read(&printed, "n");
        let found: Vec<(&str, usize)> = read
            .iter()
            .map(|(name, condition_row)| (name.as_str(), condition_row.len()))
            .collect();
        let wanted = [
            ("Cluster/edge", 2),
            ("KubeadmConfig/one", 1),
            ("KubeadmControlPlane/edge", 1),
            ("Machine/one", 2),
            ("MachineDeployment/edge", 0),
            ("Metal3Cluster/edge", 1),
            ("Metal3Machine/one", 1),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn output_of_an_unchanged_object_must_match_it() {
        let now = objects(CONNECTING, "3");
        assert_eq!(compared(&now, &now).unwrap(), (5, 0, 0));
        let shown = compared(&objects(READY, "3"), &objects(READY, "3")).unwrap_err();
        assert!(format!("{shown:#}").contains("Machine/one has"), "{shown:#}");
    }

    #[test]
    fn conditions_of_a_changed_object_are_counted_and_never_wrong() {
        let (was, is) = (objects(READY, "3"), objects(CONNECTING, "4"));
        assert_eq!(compared(&was, &is).unwrap(), (3, 2, 0));
        assert_eq!(compared(&was, &objects(READY, "5")).unwrap(), (3, 1, 1));
    }

    #[test]
    fn missing_condition_or_object_is_an_error() {
        let mut more = objects(CONNECTING, "3");
        more.push(object("Machine", "two", "4", &[READY]));
        assert!(compared(&more, &more).is_err());
        let mut more = objects(CONNECTING, "3");
        more[1] = object("Metal3Cluster", "edge", "2", &[READY, ["Paused", "False", "NotPaused"]]);
        assert!(compared(&more, &more).is_err());
    }

    #[test]
    fn machine_deployment_may_be_missing_without_a_worker() {
        let deployment = object("MachineDeployment", "other", "4", &[]);
        let mut now = objects(CONNECTING, "3");
        now.push(deployment);
        let shown = compared(&now, &now).unwrap_err();
        assert!(format!("{shown:#}").contains("MachineDeployment/other"), "{shown:#}");
        now[2]["metadata"]["labels"]["cluster.x-k8s.io/control-plane"] = "".into();
        assert_eq!(compared(&now, &now).unwrap(), (5, 0, 0));
    }
}
