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
    was_held: bool,
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

    /// What somebody asks for now.
    fn asked(&self) -> Option<String> {
        let host = self.host.as_ref()?;
        host["spec"]["image"]["url"].as_str().map(str::to_owned)
    }

    /// Called before Ironic erases something.
    pub(super) fn judge_erasure(&mut self, verb: &str) {
        let Some(host) = &self.host else {
            return self.wrong = Some(format!("{verb} for a host that is gone"));
        };
        let has = |name: &str| host["metadata"]["annotations"].get(name).is_some();
        let is_wanted = self.promised.is_some() && self.disk == self.promised && self.asked() == self.promised;
        let is_deleted = host["metadata"].get("deletionTimestamp").is_some();
        let why = if has("baremetalhost.metal3.io/paused") {
            Some("a paused host")
        } else if self.is_moved {
            Some("a host that moved")
        } else if host["spec"]["externallyProvisioned"] == json!(true) {
            Some("what something else deployed")
        } else if self.is_given_away() {
            Some("what somebody else runs")
        } else if is_wanted && !is_deleted {
            Some("what is wanted")
        } else {
            None
        };
        if let Some(why) = why {
            self.wrong = Some(format!("{verb} wipes {why}"));
        }
        if verb == "deleted" && self.promised.is_some() {
            if self.was_held {
                self.wrong = Some("what was held is torn down without a word from anybody".to_owned());
            }
            if self.budget == 0 {
                self.wrong = Some("more hosts are torn down than the budget has".to_owned());
            }
            self.budget = self.budget.saturating_sub(1);
            self.promised = None;
        }
    }

    /// Called before a machine that runs is switched.
    pub(super) fn judge_interruption(&mut self, verb: &str) {
        if self.is_moved {
            self.wrong = Some(format!("{verb} interrupts a host that moved"));
        }
        if self.is_given_away() {
            self.wrong = Some(format!("{verb} interrupts what somebody else runs"));
        }
    }

    /// Called before Ironic forgets the node.
    pub(super) fn judge_forgetting(&mut self) {
        if self.is_given_away() {
            self.wrong = Some("the node of somebody else is forgotten".to_owned());
        }
    }

    fn is_given_away(&self) -> bool {
        let node = self.node.as_ref();
        node.is_some_and(|node| node["instance_uuid"] == OTHER_UID)
    }

    /// Called when the status was written.
    pub(super) fn judge_status(&mut self) {
        let Some(host) = &self.host else { return };
        let provisioning = &host["status"]["provisioning"];
        if provisioning["state"] == "provisioned" {
            let mut conditions = host["status"]["conditions"].as_array().into_iter().flatten();
            self.was_held = conditions.any(|condition| condition["type"] == "Held");
        }
        if provisioning["state"] == "provisioned" && self.promised.is_none() {
            self.promised = provisioning["image"]["url"].as_str().map(str::to_owned);
        }
    }

    /// What must hold when nothing moves any more.
    pub(super) fn check_at_rest(&self) -> Result<(), String> {
        let Some(host) = &self.host else {
            let is_left = self.node.is_some() && !self.is_moved && !self.is_given_away();
            return if is_left {
                Err("the host is gone and its node is not".to_owned())
            } else {
                Ok(())
            };
        };
        let status = &host["status"];
        let (state, error) = (
            status["provisioning"]["state"].as_str().unwrap_or_default(),
            &status["errorType"],
        );
        let still = |name: &str| host["metadata"]["annotations"].get(name).is_some();
        let node_state = self
            .node
            .as_ref()
            .map_or("none", |node| node["provision_state"].as_str().unwrap());
        if still("baremetalhost.metal3.io/paused")
            || self.bounds.start == "unreadable"
            || self.bounds.may_fail
            || self.is_moved
        {
            return Ok(());
        }
        if self.is_given_away() {
            return if error.is_null() {
                Err("the node serves another and nobody is told".to_owned())
            } else {
                Ok(())
            };
        }
        if host["metadata"].get("deletionTimestamp").is_some() {
            return Err(format!(
                "the host is deleted and stays, in state {state:?}, node {node_state}: {error}"
            ));
        }
        self.check_deployed(status, node_state)
    }

    /// That what runs is what is said, and what is asked.
    fn check_deployed(&self, status: &Value, node_state: &str) -> Result<(), String> {
        let (state, error) = (
            status["provisioning"]["state"].as_str().unwrap_or_default(),
            &status["errorType"],
        );
        let runs = status["provisioning"]["image"]["url"]
            .as_str()
            .filter(|url| !url.is_empty());
        if runs != self.disk.as_deref() {
            return Err(format!(
                "the host says it runs {runs:?}, and it runs {:?}; state {state:?}, node {node_state}",
                self.disk
            ));
        }
        let is_held = self.bounds.budget == 0;
        if self.asked() != self.disk && !is_held {
            return Err(format!(
                "the host runs {:?} and is asked for {:?}; state {state:?}, {error}",
                self.disk,
                self.asked()
            ));
        }
        if state == "provisioned" && node_state != "active" {
            return Err(format!("the host is provisioned and its node {node_state}"));
        }
        Ok(())
    }
}
