//! One moment of the small world, and every step that leads on from it.

use std::hash::{DefaultHasher, Hash, Hasher};

use metal3_runtime::patch::apply;
use serde_json::{Value, json};

use super::ironic;
use super::program::Program;
use crate::rules::Rules;
use crate::tests::scene::{OTHER_UID, Scene, at, image};

/// What somebody else does, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Ask(&'static str),
    AskNothing,
    Pause,
    /// The object is marked, deleted, and will be taken away: the machine belongs to another cluster.
    Move,
    MoveUnmarked,
    Delete,
    SayExternal,
    LoseSecret,
    /// Ironic loses its database.
    Forget,
    /// Somebody has Ironic run something else on the node.
    GiveToAnother,
}

/// How far a world may go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) start: &'static str,
    pub(super) deeds: &'static [Deed],
    pub(super) programs: usize,
    pub(super) crashes: u8,
    pub(super) hours: i64,
    pub(super) budget: u32,
    /// What the budget is filled up to as time goes by.
    pub(super) refill: u32,
    /// Whether the programs have seen the node.
    pub(super) is_known: bool,
    /// Whether deployments fail.
    pub(super) may_fail: bool,
    /// A state of the node from long ago, which is all that the program remembers.
    pub(super) old_node: Option<&'static str>,
}

/// What is there.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) bounds: Bounds,
    pub(super) rules: Rules,
    /// The host, as the API server has it.
    pub(super) host: Option<Value>,
    pub(super) versions: u64,
    pub(super) has_secret: bool,
    pub(super) node: Option<Value>,
    /// The URL of what is on the disk.
    pub(super) disk: Option<String>,
    /// What the host was said to run, and what is therefore counted on.
    pub(super) promised: Option<String>,
    /// Whether its tear-down was held, and what asked for it was not taken back since.
    pub(super) was_held: bool,
    pub(super) is_moved: bool,
    pub(super) hour: i64,
    pub(super) budget: u32,
    pub(super) deployments: u32,
    pub(super) programs: Vec<Program>,
    deeds: usize,
    crashes: u8,
    pub(super) wrong: Option<String>,
}

fn url(name: &str) -> String {
    image(name)["url"].as_str().unwrap().to_owned()
}

impl World {
    pub(super) fn start(bounds: Bounds, rules: Rules) -> Self {
        let runs = matches!(bounds.start, "provisioned" | "deprovisioning");
        let scene = match bounds.start {
            "" => Scene::new(""),
            "unreadable" => Scene::new("")
                .annotated("baremetalhost.metal3.io/status", "{")
                .asks("a"),
            "provisioned" => Scene::new("provisioned").asks("a").runs("a"),
            "deprovisioning" => Scene::new("deprovisioning").runs("a"),
            "renamed" => Scene::new("available"),
            state => Scene::new(state),
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
        let mut world = Self {
            bounds,
            rules,
            host: Some(scene.host),
            versions: 100,
            has_secret: true,
            node,
            disk: (runs || is_lost).then(|| url("a")),
            promised: (runs || is_lost).then(|| url("a")),
            was_held: false,
            is_moved: false,
            hour: 0,
            budget: bounds.budget,
            deployments: 0,
            programs: Vec::new(),
            deeds: 0,
            crashes: bounds.crashes,
            wrong: None,
        };
        let program = Program::start(&world, bounds.is_known, bounds.old_node);
        world.programs = vec![program; bounds.programs];
        world
    }

    /// What tells this moment from others. Versions are left out: only whether a cache has the newest one counts.
    pub(super) fn figure(&self) -> u64 {
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
        (&self.disk, &self.promised, self.is_moved, self.hour, self.has_secret).hash(&mut hasher);
        self.was_held.hash(&mut hasher);
        (self.budget, self.deployments, self.deeds, self.crashes, &self.wrong).hash(&mut hasher);
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
                (program.is_abreast, program.is_stale),
                program.before.paused,
                program.before.moving,
            )
                .hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Every step from here.
    pub(super) fn next(&self) -> Vec<(String, Self)> {
        let mut found = Vec::new();
        if self.wrong.is_some() {
            return found;
        }
        for which in 0..self.programs.len() {
            self.program_steps(which, &mut found);
        }
        if let Some(node) = &self.node {
            for (node, disk) in ironic::progress(node, self.disk.as_deref(), self.bounds.may_fail) {
                let mut next = self.clone();
                (next.node, next.disk) = (Some(node), disk);
                found.push(("Ironic goes on".to_owned(), next));
            }
        }
        if let Some(deed) = self.bounds.deeds.get(self.deeds) {
            let mut next = self.clone();
            next.deeds += 1;
            if next.deed(*deed) {
                found.push((format!("{deed:?}"), next));
            }
        }
        if self.is_moved && self.host.is_some() {
            let mut next = self.clone();
            next.host = None;
            found.push(("the moved object is taken away".to_owned(), next));
        }
        // Whoever moves an object is done long before an hour is over.
        if self.hour < self.bounds.hours && !(self.is_moved && self.host.is_some()) {
            let mut next = self.clone();
            (next.hour, next.deployments) = (self.hour + 1, 0);
            next.budget = self.budget.max(self.bounds.refill);
            found.push(("an hour goes by".to_owned(), next));
        }
        found
    }

    fn program_steps(&self, which: usize, found: &mut Vec<(String, Self)>) {
        let run = |most: Option<usize>| {
            let mut next = self.clone();
            let mut program = next.programs[which].clone();
            let writes = program.pass(&mut next, most);
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
        next.programs[which].see_host(self.host.as_ref());
        found.push((format!("program {which} sees the host"), next));
        let mut next = self.clone();
        next.programs[which].see_node(self.node.as_ref());
        found.push((format!("program {which} sees the node"), next));
    }

    pub(super) fn deed(&mut self, deed: Deed) -> bool {
        if deed == Deed::GiveToAnother {
            // Only a node that is at rest can be given away.
            let Some(node) = self.node.as_mut().filter(|node| node["provision_state"] == "active") else {
                return false;
            };
            node["instance_uuid"] = json!(OTHER_UID);
            node["instance_info"]["image_source"] = json!(url("theirs"));
            (self.disk, self.promised) = (Some(url("theirs")), None);
            return true;
        }
        if deed == Deed::Forget {
            self.node = None;
            return true;
        }
        if deed == Deed::LoseSecret {
            self.has_secret = false;
            return true;
        }
        // A watch leaves no version out, so whoever pauses before he moves is seen to pause.
        let is_seen = self.programs.iter().all(|program| program.host == self.host);
        let Some(host) = &mut self.host else { return false };
        if deed == Deed::MoveUnmarked && !is_seen {
            return false;
        }
        let deletion = json!({ "deletionTimestamp": at(self.hour * 3600), "deletionGracePeriodSeconds": 0 });
        match deed {
            Deed::Ask(name) => host["spec"]["image"] = image(name),
            Deed::AskNothing => host["spec"]["image"] = Value::Null,
            Deed::Pause => host["metadata"]["annotations"]["baremetalhost.metal3.io/paused"] = json!(""),
            Deed::SayExternal => host["spec"]["externallyProvisioned"] = json!(true),
            Deed::Delete => apply(&json!({ "metadata": deletion }), host),
            Deed::Move | Deed::MoveUnmarked => {
                let mark = json!({ "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
                host["metadata"]["annotations"] = if deed == Deed::Move { mark } else { json!({}) };
                apply(&json!({ "metadata": deletion }), host);
                self.is_moved = true;
            }
            Deed::Forget | Deed::GiveToAnother | Deed::LoseSecret => {}
        }
        self.versions += 1;
        host["metadata"]["resourceVersion"] = json!(self.versions.to_string());
        if matches!(deed, Deed::Ask(_) | Deed::AskNothing | Deed::SayExternal) {
            host["metadata"]["generation"] = json!(host["metadata"]["generation"].as_u64().unwrap() + 1);
        }
        true
    }
}
