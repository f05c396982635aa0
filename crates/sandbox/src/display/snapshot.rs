//! All objects that the display shows or explains, and what it says about them. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use metal3_explain::offline::explain_objects;
use metal3_explain::table::Actor;
use metal3_explain::text::printable_text;
use metal3_explain::{KINDS, Link, ObjectId, SECRET};
use metal3_runtime::cache::Key;
use metal3_sim_capi::kinds::Kind;
use metal3_sim_capi::view::Object;
use metal3_sim_capi::watch::WatchEvent;
use serde_json::Value;

/// Longest shown text of what is waited for.
const LONGEST: usize = 140;

/// All objects of the watched kinds.
#[derive(Debug, Default)]
pub(crate) struct Snapshot(BTreeMap<(&'static str, Key), Object>);

/// Whether objects of a kind are shown, or needed for an explanation.
pub(super) fn is_watched(kind: &Kind) -> bool {
    KINDS
        .iter()
        .chain([&SECRET])
        .any(|known| known.group == kind.group && known.kind == kind.kind)
}

impl Snapshot {
    pub(super) fn take(&mut self, kind: &'static str, events: WatchEvent) {
        match events {
            WatchEvent::Applied(object) => drop(self.0.insert((kind, object.key()), object)),
            WatchEvent::Deleted(object) => drop(self.0.remove(&(kind, object.key()))),
            WatchEvent::Listed(keys) => self.0.retain(|(of, key), _| *of != kind || keys.contains(key)),
        }
    }

    fn all(&self, kind: &'static str) -> impl Iterator<Item = &Object> {
        self.0
            .iter()
            .filter(move |((of, _), _)| *of == kind)
            .map(|(_, object)| object)
    }

    fn named(&self, kind: &'static str, name: &str) -> Option<&Object> {
        self.all(kind).find(|object| object.name() == name)
    }

    /// A Cluster.
    pub(crate) fn cluster(&self, name: &str) -> Option<&Object> {
        self.named("Cluster", name)
    }

    /// One line for each host and machine, if there are no more than `most`. Otherwise machines and the hosts that do something
    /// come first, and the others are counted.
    pub(super) fn summary(&self, most: usize) -> Vec<String> {
        let mut rows = self.rows();
        rows.sort_by_key(|(kind, key, _)| (*kind, number(&key.name)));
        let lines = |rows: Vec<(&str, Key, String)>| rows.into_iter().map(|(.., row)| row).collect();
        if rows.len() <= most {
            return lines(rows);
        }
        // The order of each part stays.
        rows.sort_by_key(|(kind, key, _)| match *kind {
            "BareMetalHost" => 1_u8.saturating_add(u8::from(self.is_idle(key))),
            _ => 0,
        });
        let rest = rows.split_off(most.saturating_sub(1).min(rows.len()));
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (kind, key, _) in &rest {
            let object = self.0.get(&(*kind, key.clone()));
            let state = object.map(|object| state(kind, object)).unwrap_or_default();
            let count = counts.entry(if state.is_empty() { "new" } else { state }).or_default();
            *count = count.saturating_add(1);
        }
        let counts: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let mut lines: Vec<String> = lines(rows);
        lines.extend((most > 0).then(|| format!("and {} more: {}", rest.len(), counts.join(", "))));
        lines
    }

    /// Whether a host only waits to be claimed.
    fn is_idle(&self, key: &Key) -> bool {
        self.0.get(&("BareMetalHost", key.clone())).is_none_or(|host| {
            host.text("/spec/consumerRef/name").is_empty() && host.text("/status/errorMessage").is_empty()
        })
    }

    /// One line for each host and machine.
    pub(super) fn rows(&self) -> Vec<(&'static str, Key, String)> {
        ["BareMetalHost", "Machine"]
            .into_iter()
            .flat_map(|kind| {
                self.all(kind)
                    .map(move |object| (kind, object.key(), row(kind, object)))
            })
            .collect()
    }

    /// Whether the cluster and all its machines are ready.
    pub(crate) fn is_ready(&self, cluster: &str, machines: usize) -> bool {
        let ready = self.all("Machine").filter(|machine| machine.is_true("Ready")).count();
        let rolled = self
            .all("MachineDeployment")
            .all(|deployment| deployment.is_true("Available"));
        ready == machines
            && rolled
            && self
                .cluster(cluster)
                .is_some_and(|cluster| cluster.is_true("Available"))
    }

    /// What each Cluster and each host with an error waits for: the last object of its explanation, with those that wait
    /// for it. The explanation of a Cluster goes through its machines.
    pub(super) fn waits(&self) -> Vec<String> {
        let objects = self.objects();
        let has_error = |host: &&Object| !host.text("/status/errorMessage").is_empty();
        let waiting = self.all("Cluster").chain(self.all("BareMetalHost").filter(has_error));
        let mut waits: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for object in waiting {
            let id = id_of(object);
            if let Some(last) = explain_objects(&id, &objects).chain.last() {
                let who = waits.entry(cause(last)).or_default();
                who.extend((last.object != id).then(|| id.to_string()));
            }
        }
        waits
            .into_iter()
            .map(|(cause, who)| with_waiting(cause, &who))
            .collect()
    }

    /// The trees of all Clusters.
    pub(crate) fn trees(&self) -> String {
        self.all("Cluster").map(|cluster| self.tree(cluster.name())).collect()
    }

    /// The tree of the cluster and its parts.
    pub(crate) fn tree(&self, cluster: &str) -> String {
        let Some(root) = self.cluster(cluster) else {
            return format!("Cluster/{cluster}  does not exist");
        };
        let mut text = format!("Cluster/{cluster}  {}\n", phase(root));
        let kinds = ["Metal3Cluster", "KubeadmControlPlane", "MachineDeployment"];
        let parts: Vec<(&str, &Object)> = kinds
            .into_iter()
            .flat_map(|kind| {
                let of_cluster = move |part: &&Object| part.name() == cluster || belongs(part, cluster);
                self.all(kind).filter(of_cluster).map(move |part| (kind, part))
            })
            .collect();
        for (place, (kind, part)) in parts.iter().enumerate() {
            let (branch, indent) = corner(place.saturating_add(1) == parts.len());
            let _ = writeln!(text, "{branch}{kind}/{}  {}", part.name(), ready(part));
            let machines: Vec<&Object> = self
                .all("Machine")
                .filter(|machine| belongs(machine, cluster) && is_made_by(machine, kind, part.name()))
                .collect();
            for (place, machine) in machines.iter().enumerate() {
                let is_last = place.saturating_add(1) == machines.len();
                self.branch(&mut text, indent, machine, is_last);
            }
        }
        text
    }

    fn branch(&self, text: &mut String, indent: &str, machine: &Object, is_last: bool) {
        let (corner, below) = corner(is_last);
        let name = machine.name();
        let host = self
            .all("BareMetalHost")
            .find(|host| host.text("/spec/consumerRef/name") == name);
        let node = machine.text("/status/nodeRef/name");
        let node = if node.is_empty() {
            String::new()
        } else {
            format!("  Node {node}")
        };
        let _ = writeln!(text, "{indent}{corner}Machine/{name}  {}{node}", phase(machine));
        if let Some(machine) = self.named("Metal3Machine", name) {
            let _ = writeln!(text, "{indent}{below}└─ Metal3Machine  {}", ready(machine));
        }
        if let Some(host) = host {
            let power = if host.flag("/status/poweredOn") { "on" } else { "off" };
            let state = host.text("/status/provisioning/state");
            let _ = writeln!(
                text,
                "{indent}{below}   └─ BareMetalHost/{}  {state}, {power}",
                host.name()
            );
        }
    }

    /// All false conditions and all errors of hosts.
    pub(crate) fn problems(&self) -> String {
        let mut text = String::new();
        for ((kind, _), object) in &self.0 {
            let conditions = object.part("/status/conditions");
            for condition in conditions.as_array().into_iter().flatten() {
                let part = |name: &str| condition.get(name).and_then(|value| value.as_str()).unwrap_or_default();
                // These are false in a healthy state.
                let is_negative = ["Paused", "Deleting", "RollingOut", "HealthCheckDegraded"].contains(&part("type"));
                if part("status") == "False" && !is_negative {
                    let (aspect, reason) = (part("type"), part("reason"));
                    let _ = writeln!(
                        text,
                        "  {kind}/{}  {aspect}: {reason}: {}",
                        object.name(),
                        part("message")
                    );
                }
            }
            let error = object.text("/status/errorMessage");
            if !error.is_empty() {
                let _ = writeln!(
                    text,
                    "  {kind}/{}  {}: {error}",
                    object.name(),
                    object.text("/status/errorType")
                );
            }
        }
        text
    }

    /// All objects, for an explanation.
    pub(crate) fn objects(&self) -> Vec<Value> {
        self.0.values().map(|object| object.0.clone()).collect()
    }
}

/// The object of an explanation.
fn id_of(object: &Object) -> ObjectId {
    let version = object.text("/apiVersion");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    ObjectId::foreign(group, object.kind(), object.name())
}

/// The last object of an explanation in one line. Names and titles may be texts of others.
fn cause(last: &Link) -> String {
    // What passes by itself is no error, even if its reason has the word.
    let reason = last.reason.as_deref().filter(|_| last.who_acts != Actor::System);
    let reason = reason.map(|reason| format!(" ({reason})"));
    let text = format!("{}: {}{}", last.object, last.title, reason.unwrap_or_default());
    let text = printable_text(&text).replace('\n', " ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn with_waiting(cause: String, who: &[String]) -> String {
    match who {
        [] => cause,
        [only] => format!("{cause}: {only} waits for it"),
        [first, rest @ ..] => format!("{cause}: {first} and {} more wait for it", rest.len()),
    }
}

/// One line for a host or a machine.
fn row(kind: &str, object: &Object) -> String {
    let more = match kind {
        "BareMetalHost" => object.text("/spec/consumerRef/name"),
        _ => object.text("/status/nodeRef/name"),
    };
    let state = state(kind, object);
    let short = if kind == "BareMetalHost" { "host" } else { "machine" };
    let error = printable_text(object.text("/status/errorMessage")).replace('\n', " ");
    let line = format!("{short:<8} {:<28} {state:<16} {more} {error}", object.name());
    line.trim_end().to_owned()
}

fn state<'a>(kind: &str, object: &'a Object) -> &'a str {
    match kind {
        "BareMetalHost" => object.text("/status/provisioning/state"),
        _ => phase(object),
    }
}

/// A name with the number at its end, so that `host-2` is before `host-10`.
fn number(name: &str) -> (String, u64) {
    let rest = name.trim_end_matches(|one: char| one.is_ascii_digit());
    let digits = name.strip_prefix(rest).unwrap_or_default();
    (rest.to_owned(), digits.parse().unwrap_or_default())
}

/// Whether an object is of a cluster.
fn belongs(object: &Object, cluster: &str) -> bool {
    object.label("cluster.x-k8s.io/cluster-name") == Some(cluster) || object.text("/spec/clusterName") == cluster
}

fn is_made_by(machine: &Object, kind: &str, name: &str) -> bool {
    match kind {
        "KubeadmControlPlane" => machine.label("cluster.x-k8s.io/control-plane").is_some(),
        "MachineDeployment" => machine.label("cluster.x-k8s.io/deployment-name") == Some(name),
        _ => false,
    }
}

/// The branch of a part, and the indent below it.
const fn corner(is_last: bool) -> (&'static str, &'static str) {
    if is_last {
        ("└─ ", "   ")
    } else {
        ("├─ ", "│  ")
    }
}

fn phase(object: &Object) -> &str {
    object.text("/status/phase")
}

fn ready(object: &Object) -> &'static str {
    let holds = object.is_true("Ready") || object.is_true("Available");
    if holds { "ready" } else { "not ready" }
}

#[cfg(test)]
mod tests {
    use metal3_explain::table::Severity;
    use serde_json::json;

    use super::*;

    fn snapshot(objects: &[Value]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for object in objects {
            let object = Object(object.clone());
            let kind = KINDS.iter().find(|kind| kind.kind == object.kind()).unwrap().kind;
            snapshot.take(kind, WatchEvent::Applied(object));
        }
        snapshot
    }

    fn cluster(name: &str) -> Value {
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": name },
            "status": { "phase": "Provisioned", "conditions": [{ "type": "Available", "status": "True" }] } })
    }

    fn machine(name: &str, labels: &Value, phase: &str) -> Value {
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": { "name": name, "labels": labels },
            "spec": { "clusterName": "demo" }, "status": { "phase": phase } })
    }

    fn host(name: &str, machine: &str, error: &str) -> Value {
        json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": name },
            "spec": { "online": true, "consumerRef": { "kind": "Metal3Machine", "name": machine } },
            "status": { "operationalStatus": if error.is_empty() { "OK" } else { "error" }, "errorType": "registration error",
                "errorMessage": error, "errorCount": 1, "poweredOn": true,
                "provisioning": { "state": "registering", "ID": "", "image": { "url": "" } } } })
    }

    #[test]
    fn tree_has_the_machines_of_each_part_with_their_hosts() {
        let control_plane = json!({ "cluster.x-k8s.io/control-plane": "" });
        let worker = json!({ "cluster.x-k8s.io/deployment-name": "pool" });
        let part = |kind: &str, name: &str| json!({ "apiVersion": "x/v1", "kind": kind, "metadata": { "name": name }, "spec": { "clusterName": "demo" } });
        let snapshot = snapshot(&[
            cluster("demo"),
            part("KubeadmControlPlane", "demo"),
            part("MachineDeployment", "pool"),
            machine("cp", &control_plane, "Running"),
            machine("w1", &worker, "Provisioning"),
            host("host-1", "cp", ""),
        ]);
        assert_eq!(
            snapshot.tree("demo"),
            "Cluster/demo  Provisioned
├─ KubeadmControlPlane/demo  not ready
│  └─ Machine/cp  Running
│        └─ BareMetalHost/host-1  registering, on
└─ MachineDeployment/pool  not ready
   └─ Machine/w1  Provisioning
"
        );
        assert_eq!(snapshot.trees(), snapshot.tree("demo"));
        assert!(snapshot.tree("other").contains("does not exist"));
    }

    #[test]
    fn host_is_among_the_waits_only_with_an_error() {
        let healthy = snapshot(&[host("host-1", "", "")]);
        assert_eq!(healthy.waits(), Vec::<String>::new());
        let broken = snapshot(&[host("host-1", "", "no\nlogin\u{1b}[2J")]);
        let waits = broken.waits();
        assert!(
            waits.len() == 1 && waits[0].starts_with("BareMetalHost/host-1: "),
            "{waits:?}"
        );
        assert!(broken.problems().contains("registration error"));
        // What Ironic wrote does not control the terminal.
        let rows = broken.rows();
        assert!(rows.iter().all(|(.., row)| !row.contains(['\n', '\u{1b}'])), "{rows:?}");
    }

    #[test]
    fn busy_hosts_and_machines_are_shown_and_the_others_counted() {
        let mut all: Vec<Value> = (1..=20).map(|number| host(&format!("host-{number}"), "", "")).collect();
        all.push(host("host-21", "cp", ""));
        all.push(machine("cp", &json!({}), "Running"));
        let snapshot = snapshot(&all);
        let lines = snapshot.summary(5);
        assert_eq!(lines.len(), 5);
        for (line, start) in lines.iter().zip([
            "machine  cp ",
            "host     host-21 ",
            "host     host-1 ",
            "host     host-2 ",
        ]) {
            assert!(line.starts_with(start), "{lines:?}");
        }
        assert_eq!(lines[4], "and 18 more: 18 registering");
        assert_eq!(snapshot.summary(22).len(), 22);
        assert_eq!(snapshot.summary(0), Vec::<String>::new());
        assert!(number("host-2") < number("host-10"));
    }

    #[test]
    fn what_passes_by_itself_is_shown_without_the_word_error() {
        let link = |who_acts| Link {
            object: ObjectId::foreign("g", "Metal3Machine", "a"),
            title: "awaits its Node".to_owned(),
            reason: Some("CreateError".to_owned()),
            message: String::new(),
            since: None,
            at_most: false,
            usual_seconds: None,
            who_acts,
            severity: Severity::Info,
            cure: String::new(),
            runbook: None,
        };
        assert_eq!(cause(&link(Actor::System)), "Metal3Machine/a: awaits its Node");
        assert_eq!(
            cause(&link(Actor::User)),
            "Metal3Machine/a: awaits its Node (CreateError)"
        );
    }

    #[test]
    fn objects_that_a_list_does_not_have_are_gone() {
        let mut snapshot = snapshot(&[host("host-1", "", ""), host("host-2", "", "")]);
        let rest = Key {
            namespace: String::new(),
            name: "host-2".to_owned(),
        };
        snapshot.take("BareMetalHost", WatchEvent::Listed(vec![rest]));
        assert_eq!(snapshot.rows().len(), 1);
    }
}
