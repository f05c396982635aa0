//! One state of the model, and every step from it.

use std::hash::{DefaultHasher, Hash, Hasher};

use metal3_runtime::patch::apply;
use serde_json::{Value, json};

use super::ironic;
use super::program::Program;
use crate::plan::rules::Rules;
use crate::tests::fixture::{Fixture, OTHER_UID, at, image};

/// A change by the user or another system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostChange {
    SetImage(&'static str),
    RemoveImage,
    Pause,
    /// The object is marked and deleted, and removed later: the machine belongs to another cluster.
    Move,
    MoveUnmarked,
    Delete,
    SetExternal,
    LoseSecret,
    LoseNode,
    /// Another user assigns the node to another instance.
    AssignToOther,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) start: &'static str,
    /// The changes, in this order.
    pub(super) changes: &'static [HostChange],
    pub(super) programs: usize,
    pub(super) crashes: u8,
    pub(super) hours: i64,
    pub(super) budget: u32,
    pub(super) refill: u32,
    /// Whether the processes have observed the node.
    pub(super) is_known: bool,
    pub(super) may_fail: bool,
    /// An earlier state of the node, the only observation of the process.
    pub(super) old_node: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub(super) struct ModelState {
    pub(super) bounds: Bounds,
    pub(super) rules: Rules,
    /// The host in the API server.
    pub(super) host: Option<Value>,
    pub(super) versions: u64,
    pub(super) has_secret: bool,
    pub(super) node: Option<Value>,
    pub(super) disk: Option<String>,
    /// The image that the status reported as running.
    pub(super) expected_image: Option<String>,
    /// Whether deprovisioning was withheld, and the request not reverted since.
    pub(super) was_withheld: bool,
    pub(super) is_moved: bool,
    pub(super) hour: i64,
    pub(super) budget: u32,
    pub(super) deployments: u32,
    pub(super) programs: Vec<Program>,
    changes: usize,
    crashes: u8,
    pub(super) violation: Option<String>,
}

fn url(name: &str) -> String {
    image(name)["url"].as_str().unwrap().to_owned()
}

impl ModelState {
    pub(super) fn start(bounds: Bounds, rules: Rules) -> Self {
        let runs = matches!(bounds.start, "provisioned" | "deprovisioning");
        let fixture = match bounds.start {
            "" => Fixture::new(""),
            "unreadable" => Fixture::new("")
                .annotated("baremetalhost.metal3.io/status", "{")
                .spec_image("a"),
            "provisioned" => Fixture::new("provisioned").spec_image("a").status_image("a"),
            "deprovisioning" => Fixture::new("deprovisioning").status_image("a"),
            "renamed" => Fixture::new("available"),
            state => Fixture::new(state),
        };
        let is_lost = bounds.start == "unreadable";
        let has_node = !is_lost && !bounds.start.is_empty();
        let node = has_node.then(|| ironic::known(if runs { "active" } else { "available" }, runs.then_some("a")));
        let node = node.map(|mut node| {
            if bounds.start == "renamed" {
                node["name"] = json!("h");
            }
            node
        });
        let mut model = Self {
            bounds,
            rules,
            host: Some(fixture.host),
            versions: 100,
            has_secret: true,
            node,
            disk: (runs || is_lost).then(|| url("a")),
            expected_image: (runs || is_lost).then(|| url("a")),
            was_withheld: false,
            is_moved: false,
            hour: 0,
            budget: bounds.budget,
            deployments: 0,
            programs: Vec::new(),
            changes: 0,
            crashes: bounds.crashes,
            violation: None,
        };
        let program = Program::start(&model, bounds.is_known, bounds.old_node);
        model.programs = vec![program; bounds.programs];
        model
    }

    /// Identifies the state. Versions are left out: only whether a cache has the newest one counts.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let plain = |host: &Option<Value>| {
            host.as_ref().map(|host| {
                let mut host = host.clone();
                host["metadata"]["resourceVersion"] = Value::Null;
                host.to_string()
            })
        };
        let now = self
            .host
            .as_ref()
            .map(|host| host["metadata"]["resourceVersion"].clone());
        plain(&self.host).hash(&mut hasher);
        self.node.as_ref().map(Value::to_string).hash(&mut hasher);
        (
            &self.disk,
            &self.expected_image,
            self.is_moved,
            self.hour,
            self.has_secret,
        )
            .hash(&mut hasher);
        self.was_withheld.hash(&mut hasher);
        (
            self.budget,
            self.deployments,
            self.changes,
            self.crashes,
            &self.violation,
        )
            .hash(&mut hasher);
        for program in &self.programs {
            plain(&program.host).hash(&mut hasher);
            let is_newest = program
                .host
                .as_ref()
                .map(|host| host["metadata"]["resourceVersion"].clone())
                == now;
            program.node.as_ref().map(Value::to_string).hash(&mut hasher);
            (
                is_newest,
                (program.is_in_state, program.is_stale),
                format!("{:?}", program.erasing),
                program.previous.paused,
                program.previous.moving,
            )
                .hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(super) fn next(&self) -> Vec<(String, Self)> {
        let mut found = Vec::new();
        if self.violation.is_some() {
            return found;
        }
        for which in 0..self.programs.len() {
            self.program_steps(which, &mut found);
        }
        if let Some(node) = &self.node {
            for (node, disk) in ironic::progress(node, self.disk.as_deref(), self.bounds.may_fail) {
                let mut next = self.clone();
                (next.node, next.disk) = (Some(node), disk);
                found.push(("Ironic progresses".to_owned(), next));
            }
        }
        if let Some(change) = self.bounds.changes.get(self.changes) {
            let mut next = self.clone();
            next.changes += 1;
            if next.change(*change) {
                found.push((format!("{change:?}"), next));
            }
        }
        if self.is_moved && self.host.is_some() {
            let mut next = self.clone();
            next.host = None;
            found.push(("the moved object is removed".to_owned(), next));
        }
        // A move takes much less than an hour.
        if self.hour < self.bounds.hours && !(self.is_moved && self.host.is_some()) {
            let mut next = self.clone();
            (next.hour, next.deployments) = (self.hour + 1, 0);
            next.budget = self.budget.max(self.bounds.refill);
            found.push(("an hour passes".to_owned(), next));
        }
        found
    }

    fn program_steps(&self, which: usize, found: &mut Vec<(String, Self)>) {
        let run = |most: Option<usize>| {
            let mut next = self.clone();
            let mut program = next.programs[which].clone();
            let writes = program.reconcile(&mut next, most);
            next.programs[which] = program;
            (writes, next)
        };
        let (writes, done) = run(None);
        found.push((format!("program {which} makes {writes:?}"), done));
        if self.crashes > 0 {
            for most in 0..writes.len() {
                let (_, mut next) = run(Some(most + 1));
                next.crashes -= 1;
                next.programs[which] = Program::start(&next, false, None);
                found.push((
                    format!("program {which} makes {:?} and crashes", &writes[..=most]),
                    next,
                ));
            }
        }
        let mut next = self.clone();
        next.programs[which].observe_host(self.host.as_ref());
        found.push((format!("program {which} observes the host"), next));
        let mut next = self.clone();
        next.programs[which].observe_node(self.node.as_ref());
        found.push((format!("program {which} observes the node"), next));
    }

    pub(super) fn change(&mut self, change: HostChange) -> bool {
        if change == HostChange::AssignToOther {
            // Only an active node can be assigned to another instance.
            let Some(node) = self.node.as_mut().filter(|node| node["provision_state"] == "active") else {
                return false;
            };
            node["instance_uuid"] = json!(OTHER_UID);
            node["instance_info"]["image_source"] = json!(url("other"));
            (self.disk, self.expected_image) = (Some(url("other")), None);
            return true;
        }
        if change == HostChange::LoseNode {
            self.node = None;
            return true;
        }
        if change == HostChange::LoseSecret {
            self.has_secret = false;
            return true;
        }
        // A watch delivers every version, so a pause before a move is observed.
        let is_seen = self.programs.iter().all(|program| program.host == self.host);
        let Some(host) = &mut self.host else { return false };
        if change == HostChange::MoveUnmarked && !is_seen {
            return false;
        }
        let deletion = json!({ "deletionTimestamp": at(self.hour * 3600), "deletionGracePeriodSeconds": 0 });
        match change {
            HostChange::SetImage(name) => host["spec"]["image"] = image(name),
            HostChange::RemoveImage => host["spec"]["image"] = Value::Null,
            HostChange::Pause => host["metadata"]["annotations"]["baremetalhost.metal3.io/paused"] = json!(""),
            HostChange::SetExternal => host["spec"]["externallyProvisioned"] = json!(true),
            HostChange::Delete => apply(&json!({ "metadata": deletion }), host),
            HostChange::Move | HostChange::MoveUnmarked => {
                let mark = json!({ "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
                host["metadata"]["annotations"] = if change == HostChange::Move { mark } else { json!({}) };
                apply(&json!({ "metadata": deletion }), host);
                self.is_moved = true;
            }
            HostChange::LoseNode | HostChange::AssignToOther | HostChange::LoseSecret => {}
        }
        self.versions += 1;
        host["metadata"]["resourceVersion"] = json!(self.versions.to_string());
        if matches!(
            change,
            HostChange::SetImage(_) | HostChange::RemoveImage | HostChange::SetExternal
        ) {
            host["metadata"]["generation"] = json!(host["metadata"]["generation"].as_u64().unwrap() + 1);
        }
        true
    }
}
