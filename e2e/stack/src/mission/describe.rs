//! `clusterctl describe cluster` while a cluster lives, held against the conditions of the objects.
//!
//! It is asked every few seconds with all objects before and after. Of an object that stayed as it was, it must print each
//! condition as it is and no other. Of one that changed meanwhile nothing is judged: what fits is counted apart.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::claims::world::World;
use crate::products::load::{list, name};
use crate::products::machines::metal::beside;
use crate::wait::Stopwatch;

/// What is shown of a cluster; of each there may be many.
const KINDS: &str = "clusters,metal3clusters,kubeadmcontrolplanes,machinedeployments,machines,metal3machines";
/// It costs seconds of a processor, which others need: at least so long, and so many times what it took, passes in between.
const PAUSE: Duration = Duration::from_secs(5);
const REST: u32 = 4;
/// What clusterctl cannot get in time it leaves out without a word, and a busy machine has many such moments: what is wrong
/// is wrong as often as this in a row.
const ATTEMPTS: usize = 3;
/// Seconds after which an answer is none.
const LIMIT: &str = "60";

/// An aspect, its status, its reason.
type Said = BTreeSet<(String, String, String)>;

/// How much was held against objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Times that it was asked.
    asked: usize,
    /// Conditions of objects that stayed as they were, printed as they are.
    judged: usize,
    /// Conditions of objects that changed meanwhile, printed as they were before or after.
    fitting: usize,
    /// The others of those.
    fleeting: usize,
}

impl Figures {
    /// Something was said, and held.
    pub(crate) fn prove(&self) -> anyhow::Result<()> {
        ensure!(self.judged > 0, "{self}");
        Ok(())
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            asked,
            judged,
            fitting,
            fleeting,
        } = self;
        let changed = fitting.saturating_add(*fleeting);
        write!(
            f,
            "clusterctl describe was asked {asked} times: {judged} conditions as objects say, {fitting} of {changed} that changed \
             meanwhile"
        )
    }
}

/// Does the work, and asks about all clusters of a namespace meanwhile.
pub(super) fn meanwhile<T>(
    world: &World,
    namespace: &str,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(T, Figures)> {
    let (mut figures, mut rest) = (Figures::default(), None::<(Stopwatch, Duration)>);
    let look = || {
        if rest.is_none_or(|(since, pause)| since.elapsed() >= pause) {
            let watch = Stopwatch::start();
            figures = ask(world, namespace, figures)?;
            let pause = watch.elapsed().saturating_mul(REST).max(PAUSE);
            rest = Some((Stopwatch::start(), pause));
        }
        Ok(())
    };
    let done = beside("what clusterctl describes", look, work)?;
    Ok((done, figures))
}

fn ask(world: &World, namespace: &str, figures: Figures) -> anyhow::Result<Figures> {
    let mut last = once(world, namespace, figures);
    for _ in 1..ATTEMPTS {
        let Err(why) = &last else { break };
        println!("       asked again: {why:#}");
        last = once(world, namespace, figures);
    }
    last
}

fn once(world: &World, namespace: &str, mut figures: Figures) -> anyhow::Result<Figures> {
    let mut before = list(world, namespace, KINDS)?;
    let clusters: Vec<Value> = before.iter().filter(|one| one["kind"] == "Cluster").cloned().collect();
    for cluster in clusters {
        let own = name(&cluster);
        let words = [
            LIMIT,
            "clusterctl",
            "describe",
            "cluster",
            &own,
            "--namespace",
            namespace,
        ];
        let mut words = words.to_vec();
        words.extend(["--show-conditions=all", "--grouping=false", "--echo", "--color=false"]);
        let text = world.run("timeout", &words, None);
        let after = list(world, namespace, KINDS)?;
        let is_it = |one: &&Value| one["kind"] == "Cluster" && name(one) == own;
        let stays = |one: &Value| one["metadata"]["deletionTimestamp"].is_null();
        // What goes takes its parts along, and clusterctl finds some of them no more.
        let stays = after.iter().find(is_it).is_some_and(stays);
        match text {
            Ok(text) => {
                figures.asked = figures.asked.saturating_add(1);
                judge(&text, (namespace, &own), &before, &after, &mut figures).with_context(|| text)?;
            }
            Err(error) if stays => return Err(error),
            Err(_) => {}
        }
        before = after;
    }
    Ok(figures)
}

/// Holds what was printed of a cluster against its objects before and after.
fn judge(
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
        let Some(told) = printed.get(object) else {
            // Machines may go before their infrastructure does, and take its place in the tree. A MachineDeployment is in
            // it only where the cluster has a worker.
            let may_be_missing =
                object.starts_with("Metal3Machine/") || !works && object.starts_with("MachineDeployment/");
            ensure!(
                may_be_missing || was.version != is.version,
                "nothing is said of {object}"
            );
            continue;
        };
        if was.version == is.version {
            ensure!(*told == was.says, "{object} says {:?}, printed is {told:?}", was.says);
            figures.judged = figures.judged.saturating_add(told.len());
            continue;
        }
        let known = told
            .iter()
            .filter(|one| was.says.contains(*one) || is.says.contains(*one))
            .count();
        figures.fitting = figures.fitting.saturating_add(known);
        figures.fleeting = figures.fleeting.saturating_add(told.len().saturating_sub(known));
    }
    Ok(())
}

/// An object at one moment.
struct Moment {
    version: String,
    says: Said,
}

/// Whether a Machine of the cluster is none of its control plane.
fn has_workers(objects: &[Value], cluster: &str) -> bool {
    objects.iter().any(|one| {
        let labels = &one["metadata"]["labels"];
        one["kind"] == "Machine"
            && labels["cluster.x-k8s.io/cluster-name"] == cluster
            && labels["cluster.x-k8s.io/control-plane"].is_null()
    })
}

/// Of one cluster, by `Kind/name`.
fn by_name(objects: &[Value], cluster: &str) -> BTreeMap<String, Moment> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_cluster = |one: &&Value| {
        let label = &one["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"];
        // What a Cluster does not refer to is not in its tree: a Metal3Cluster beside another infrastructure.
        *label == cluster && !one["metadata"]["ownerReferences"].is_null() && one["status"]["role"] != "Secondary"
            || one["kind"] == "Cluster" && name(one) == cluster
    };
    let moment = |one: &Value| {
        let conditions = one["status"]["conditions"].as_array().into_iter().flatten();
        let says = conditions.map(|condition| ["type", "status", "reason"].map(|member| text(&condition[member])));
        let moment = Moment {
            version: text(&one["metadata"]["resourceVersion"]),
            says: says.map(|[aspect, status, reason]| (aspect, status, reason)).collect(),
        };
        (format!("{}/{}", text(&one["kind"]), name(one)), moment)
    };
    objects.iter().filter(of_cluster).map(moment).collect()
}

/// What the tree is drawn with.
const TREE: [char; 5] = ['│', '├', '└', '─', ' '];

/// What is printed of each object of the namespace, by `Kind/name`.
fn read(text: &str, namespace: &str) -> BTreeMap<String, Said> {
    let mut printed: BTreeMap<String, Said> = BTreeMap::new();
    let mut object = None;
    let mut lines = text.lines();
    let names_end = lines.next().and_then(|header| header.find("REPLICAS"));
    for line in lines {
        let begins = line.chars().take_while(|drawn| TREE.contains(drawn)).count();
        // Messages are broken into lines of their own, and may speak of objects and of conditions, too.
        if names_end.is_some_and(|end| begins >= end) {
            continue;
        }
        let line = line.trim_start_matches(TREE);
        if let Some(said) = condition(line) {
            if let Some(said_of) = object.as_ref().and_then(|object| printed.get_mut(object)) {
                said_of.insert(said);
            }
        } else if let Some(named) = named(line, namespace) {
            printed.entry(named.clone()).or_default();
            object = Some(named);
        }
    }
    printed
}

/// `Ready  False  NotReady  3s  * because`
fn condition(line: &str) -> Option<(String, String, String)> {
    let mut words = line.split_whitespace();
    let (aspect, status) = (words.next()?, words.next()?);
    let (reason, age) = (words.next()?, words.next()?);
    let is_age = age.starts_with(|first: char| first.is_ascii_digit()) || age == "<invalid>";
    let is_status = ["True", "False", "Unknown"].contains(&status);
    (is_status && is_age).then(|| (aspect.to_owned(), status.to_owned(), reason.to_owned()))
}

/// `Machine metal/edge-1, v1.35.0  ...`, where the namespace is `metal`. What has no namespace, as `Workers`, is a heading.
fn named(line: &str, namespace: &str) -> Option<String> {
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

    // As clusterctl 1.14.2 prints it.
    const PRINTED: &str = "\
NAME                                        REPLICAS AVAILABLE READY UP TO DATE STATUS   REASON        SINCE MESSAGE
Cluster n/edge
│           ├─Available                                                         False    NotAvailable  2m5s  * RemoteConnectionProbe: Remote connection not established yet
│           │                                                                                                * WorkersAvailable: Metal3Machine n/one is what we wait for, and that takes a long time until it is
│           │                                                                                                  there, as everybody knows
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

    fn judged(before: &[Value], after: &[Value]) -> anyhow::Result<(usize, usize, usize)> {
        let mut figures = Figures::default();
        judge(PRINTED, ("n", "edge"), before, after, &mut figures)?;
        Ok((figures.judged, figures.fitting, figures.fleeting))
    }

    #[test]
    fn what_is_printed_is_read_by_object() {
        // A line of a message may look like a row.
        let printed = PRINTED.replace("there, as everybody knows", "Metal3Machine n/two");
        let read = read(&printed, "n");
        let found: Vec<(&str, usize)> = read.iter().map(|(name, said)| (name.as_str(), said.len())).collect();
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
    fn what_is_printed_is_what_objects_say() {
        let now = objects(CONNECTING, "3");
        assert_eq!(judged(&now, &now).unwrap(), (5, 0, 0));
        let told = judged(&objects(READY, "3"), &objects(READY, "3")).unwrap_err();
        assert!(format!("{told:#}").contains("Machine/one says"), "{told:#}");
    }

    #[test]
    fn what_changed_meanwhile_is_as_it_was_or_became_or_not_judged() {
        let (was, is) = (objects(READY, "3"), objects(CONNECTING, "4"));
        assert_eq!(judged(&was, &is).unwrap(), (3, 2, 0));
        assert_eq!(judged(&was, &objects(READY, "5")).unwrap(), (3, 1, 1));
    }

    #[test]
    fn a_condition_or_an_object_that_is_not_printed_is_missed() {
        let mut more = objects(CONNECTING, "3");
        more.push(object("Machine", "two", "4", &[READY]));
        assert!(judged(&more, &more).is_err());
        let mut more = objects(CONNECTING, "3");
        more[1] = object("Metal3Cluster", "edge", "2", &[READY, ["Paused", "False", "NotPaused"]]);
        assert!(judged(&more, &more).is_err());
    }

    #[test]
    fn a_machine_deployment_may_be_missing_where_there_is_no_worker() {
        let deployment = object("MachineDeployment", "other", "4", &[]);
        let mut now = objects(CONNECTING, "3");
        now.push(deployment);
        let told = judged(&now, &now).unwrap_err();
        assert!(format!("{told:#}").contains("MachineDeployment/other"), "{told:#}");
        now[2]["metadata"]["labels"]["cluster.x-k8s.io/control-plane"] = "".into();
        assert_eq!(judged(&now, &now).unwrap(), (5, 0, 0));
    }
}
