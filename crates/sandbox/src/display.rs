//! Terminal output: hosts and machines while they change, then the tree of the cluster.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use metal3_runtime::cache::Key;
use metal3_sim_capi::view::Object;
use metal3_sim_capi::watch::{WatchEvent, follow};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use super::world::{World, all_kinds};

/// The watched kinds.
const SHOWN: [&str; 8] = [
    "Cluster",
    "Metal3Cluster",
    "KubeadmControlPlane",
    "MachineDeployment",
    "Machine",
    "Metal3Machine",
    "BareMetalHost",
    "IPPool",
];

/// All objects of the watched kinds.
#[derive(Debug, Default)]
pub(super) struct Snapshot(BTreeMap<(&'static str, Key), Object>);

/// A snapshot that follows the world through watches.
pub(super) struct Display {
    snapshot: Snapshot,
    events: UnboundedReceiver<(&'static str, WatchEvent)>,
    /// Number of terminal lines that the next table overwrites; `None` without a terminal.
    drawn: Option<usize>,
    /// The last printed line of each object.
    printed: BTreeMap<(&'static str, Key), String>,
    _tasks: JoinSet<()>,
}

impl Display {
    pub(super) fn of(world: &World, is_terminal: bool) -> Self {
        let (to, events) = unbounded_channel();
        let mut tasks = JoinSet::new();
        for kind in all_kinds().iter().filter(|kind| SHOWN.contains(&kind.kind)) {
            let (kind, name) = (kind.clone(), kind.kind);
            tasks.spawn(follow(
                world.cluster.client("display"),
                kind,
                None,
                to.clone(),
                move |events| (name, events),
            ));
        }
        Self {
            snapshot: Snapshot::default(),
            events,
            drawn: is_terminal.then_some(0),
            printed: BTreeMap::new(),
            _tasks: tasks,
        }
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Prints changes until the condition holds.
    pub(super) async fn until(&mut self, condition: impl Fn(&Snapshot) -> bool, since: &impl Fn() -> Duration) {
        while !condition(&self.snapshot) {
            let Some((kind, events)) = self.events.recv().await else {
                return;
            };
            self.take(kind, events);
            while let Ok((kind, events)) = self.events.try_recv() {
                self.take(kind, events);
            }
            self.show(since());
        }
    }

    fn take(&mut self, kind: &'static str, events: WatchEvent) {
        match events {
            WatchEvent::Applied(object) => drop(self.snapshot.0.insert((kind, object.key()), object)),
            WatchEvent::Deleted(object) => drop(self.snapshot.0.remove(&(kind, object.key()))),
            WatchEvent::Listed(_) => {}
        }
    }

    fn show(&mut self, since: Duration) {
        let seconds = since.as_secs_f64();
        let rows: Vec<_> = ["BareMetalHost", "Machine"]
            .into_iter()
            .flat_map(|kind| self.snapshot.all(kind).map(move |object| (kind, object)))
            .map(|(kind, object)| ((kind, object.key()), row(kind, object)))
            .collect();
        if rows.iter().all(|(place, row)| self.printed.get(place) == Some(row)) {
            return;
        }
        match &mut self.drawn {
            Some(drawn) => {
                let mut table = if *drawn > 0 {
                    format!("\x1b[{drawn}A\x1b[J")
                } else {
                    String::new()
                };
                let _ = writeln!(table, "{seconds:6.1} s");
                rows.iter().for_each(|(_, row)| table.extend(["  ", row, "\n"]));
                print!("{table}");
                *drawn = rows.len().saturating_add(1);
            }
            None => {
                let is_new = |(place, row): &&(_, String)| self.printed.get(place) != Some(row);
                rows.iter()
                    .filter(is_new)
                    .for_each(|(_, row)| println!("{seconds:6.1} s  {row}"));
            }
        }
        self.printed = rows.into_iter().collect();
    }
}

/// One line for a host or a machine.
fn row(kind: &str, object: &Object) -> String {
    let (state, more) = match kind {
        "BareMetalHost" => (
            object.text("/status/provisioning/state"),
            object.text("/spec/consumerRef/name"),
        ),
        _ => (object.text("/status/phase"), object.text("/status/nodeRef/name")),
    };
    let short = if kind == "BareMetalHost" { "host" } else { "machine" };
    let error = object.text("/status/errorMessage");
    let line = format!("{short:<8} {:<28} {state:<16} {more} {error}", object.name());
    line.trim_end().to_owned()
}

impl Snapshot {
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
    pub(super) fn cluster(&self, name: &str) -> Option<&Object> {
        self.named("Cluster", name)
    }

    /// Whether the cluster and all its machines are ready.
    pub(super) fn is_ready(&self, cluster: &str, machines: usize) -> bool {
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

    /// The tree of the cluster and its parts.
    pub(super) fn tree(&self, cluster: &str) -> String {
        let Some(root) = self.cluster(cluster) else {
            return format!("Cluster/{cluster}  does not exist");
        };
        let mut text = format!("Cluster/{cluster}  {}\n", phase(root));
        let parts = [
            ("├─ ", "Metal3Cluster", "│  "),
            ("├─ ", "KubeadmControlPlane", "│  "),
            ("└─ ", "MachineDeployment", "   "),
        ];
        for (branch, kind, indent) in parts {
            let Some(part) = self.named(kind, cluster) else {
                continue;
            };
            let _ = writeln!(text, "{branch}{kind}/{cluster}  {}", ready(part));
            let machines: Vec<&Object> = self
                .all("Machine")
                .filter(|machine| is_made_by(machine, kind))
                .collect();
            for (place, machine) in machines.iter().enumerate() {
                let is_last = place.saturating_add(1) == machines.len();
                self.branch(&mut text, indent, machine, is_last);
            }
        }
        text
    }

    fn branch(&self, text: &mut String, indent: &str, machine: &Object, is_last: bool) {
        let (corner, below) = if is_last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        let name = machine.name();
        let host = self
            .all("BareMetalHost")
            .find(|host| host.text("/spec/consumerRef/name") == name);
        let _ = writeln!(
            text,
            "{indent}{corner}Machine/{name}  {}  Node {}",
            phase(machine),
            machine.text("/status/nodeRef/name")
        );
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
    pub(super) fn problems(&self) -> String {
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
}

fn is_made_by(machine: &Object, kind: &str) -> bool {
    let is_control_plane = machine.label("cluster.x-k8s.io/control-plane").is_some();
    match kind {
        "KubeadmControlPlane" => is_control_plane,
        "MachineDeployment" => !is_control_plane,
        _ => false,
    }
}

fn phase(object: &Object) -> &str {
    object.text("/status/phase")
}

fn ready(object: &Object) -> &'static str {
    let holds = object.is_true("Ready") || object.is_true("Available");
    if holds { "ready" } else { "not ready" }
}
