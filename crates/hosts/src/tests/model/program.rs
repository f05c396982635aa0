//! One run of the program: what it believes, and a pass over the host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use metal3_runtime::patch::apply;
use serde_json::{Value, json};

use super::ironic;
use super::world::World;
use crate::action::{Harm, Order, Plan, Request, Step, Wait};
use crate::facts::{HostSeen, LastView, NodeSeen, Read};
use crate::rules::Rules;
use crate::tests::scene::{MAC, NODE, Scene, at, secret, without_version};
use metal3_ironic::model::inventory::Inspection;

/// Most rounds of one pass. More is a program that does not come to an end.
const ROUNDS: usize = 24;

#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) host: Option<Value>,
    pub(super) node: Option<Value>,
    /// Whether the node was seen since the host was in its state.
    pub(super) is_abreast: bool,
    /// Whether the node was asked for something since it was seen.
    pub(super) is_stale: bool,
    pub(super) before: LastView,
    /// What it looked at, for those who count.
    pub(super) looks: Vec<Read>,
}

impl Program {
    /// A program that starts now: it lists the hosts.
    pub(super) fn start(world: &World, is_known: bool, old_node: Option<&str>) -> Self {
        Self {
            host: world.host.clone(),
            node: match old_node {
                Some(state) => Some(ironic::known(state, None)),
                None => world.node.clone().filter(|_| is_known),
            },
            is_abreast: is_known && old_node.is_none(),
            is_stale: false,
            before: LastView::default(),
            looks: Vec::new(),
        }
    }

    pub(super) fn see_host(&mut self, host: Option<&Value>) {
        if self.host.as_ref() == host {
            return;
        }
        let has = |host: &Value, name: &str| host["metadata"]["annotations"].get(name).is_some();
        if let Some(old) = &self.host {
            self.before = LastView {
                paused: has(old, "baremetalhost.metal3.io/paused"),
                moving: has(old, "clusterctl.cluster.x-k8s.io/delete-for-move"),
            };
        }
        let state = |host: Option<&Value>| host.map(|host| host["status"]["provisioning"]["state"].clone());
        self.is_abreast &= state(self.host.as_ref()) == state(host);
        self.host = host.cloned();
    }

    pub(super) fn see_node(&mut self, node: Option<&Value>) {
        self.node = node.cloned();
        (self.is_abreast, self.is_stale) = (true, false);
    }

    /// One pass. Stops after `most` writes, if that is given. Answers with the writes it made.
    pub(super) fn pass(&mut self, world: &mut World, most: Option<usize>) -> Vec<String> {
        let mut writes = Vec::new();
        let Some(host) = self.host.clone() else { return writes };
        let mut scene = Scene::new("available");
        scene.host = host;
        scene.before = self.before;
        scene.credentials =
            Some(Some(secret("bmc", &[("username", "u"), ("password", "p")])).filter(|_| world.has_secret));
        scene.node = self.node.clone().map(|node| {
            Some((
                node,
                match (self.is_stale, self.is_abreast) {
                    (true, _) => NodeSeen::Stale,
                    (false, false) => NodeSeen::Current,
                    (false, true) => NodeSeen::Abreast,
                },
            ))
        });
        scene.left = world.budget;
        scene.now = at(world.hour * 3600);
        for _ in 0..ROUNDS {
            let plan = planned(&scene, &world.rules);
            if !plan.reads.is_empty() {
                if !self.answer(world, &mut scene, &plan) {
                    return writes;
                }
                continue;
            }
            for step in &plan.steps {
                if most == Some(writes.len()) {
                    return writes;
                }
                let Some(word) = self.carry_out(world, &mut scene, step) else {
                    return writes;
                };
                writes.push(word);
            }
            if plan.wait != Wait::Again || self.host.is_none() {
                return writes;
            }
        }
        world.wrong = Some(format!("a pass does not come to an end: {writes:?}"));
        writes
    }

    fn answer(&mut self, world: &World, scene: &mut Scene, plan: &Plan) -> bool {
        for read in &plan.reads {
            self.looks.push(*read);
            match read {
                Read::Host => {
                    self.see_host(world.host.as_ref());
                    let Some(host) = world.host.clone() else { return false };
                    scene.host = host;
                    scene.before = self.before;
                    scene.host_seen = HostSeen::Live;
                }
                Read::Node => {
                    self.see_node(world.node.as_ref());
                    scene.node = Some(world.node.clone().map(|node| (node, NodeSeen::Live)));
                }
                Read::Ports => {
                    let port = json!({ "uuid": "p", "node_uuid": NODE, "address": MAC, "pxe_enabled": true });
                    scene.ports = Some(vec![serde_json::from_value(port).unwrap()]);
                }
                Read::Inventory => {
                    let is_there = world.node.as_ref().is_some_and(|node| node["inspected"] == json!(true));
                    scene.inventory = Some(is_there.then(Inspection::default));
                }
                Read::Validation => scene.validation = serde_json::from_value(json!({})).ok(),
                Read::History => scene.history = Some(None),
                other => panic!("{other:?} is not in this world"),
            }
        }
        true
    }

    /// Carries out a step. Nothing: it was refused.
    fn carry_out(&mut self, world: &mut World, scene: &mut Scene, step: &Step) -> Option<String> {
        match step {
            Step::PatchHost(patch) | Step::PatchStatus(patch) => {
                let relies_on = patch.clone().into_document()["metadata"]["resourceVersion"].clone();
                let host = world.host.as_mut()?;
                if host["metadata"]["resourceVersion"] != relies_on {
                    return None;
                }
                let generation = host["metadata"]["generation"].as_u64()?;
                let spec = host["spec"].clone();
                apply(&without_version(patch), host);
                if host["spec"] != spec {
                    host["metadata"]["generation"] = json!(generation + 1);
                }
                world.versions += 1;
                host["metadata"]["resourceVersion"] = json!(world.versions.to_string());
                let is_free = host["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
                if is_free && host["metadata"].get("deletionTimestamp").is_some() {
                    world.host = None;
                }
                world.judge_status();
                let before = self.before;
                self.see_host(world.host.as_ref());
                self.before = before;
                if let (false, Some(Some((_, seen @ NodeSeen::Abreast)))) = (self.is_abreast, &mut scene.node) {
                    *seen = NodeSeen::Current;
                }
                scene.host = world.host.clone().unwrap_or_default();
                scene.host_seen = HostSeen::Live;
                let what = if matches!(step, Step::PatchHost(_)) {
                    "host"
                } else {
                    "status"
                };
                let state = scene.host["status"]["provisioning"]["state"]
                    .as_str()
                    .unwrap_or_default();
                Some(format!("{what} ({state})"))
            }
            Step::CreateHardwareData(_) | Step::PatchHardwareData(_) | Step::PatchSecret { .. } => {
                if let Step::CreateHardwareData(data) = step {
                    scene.hardware_data = Some(Some((**data).clone()));
                }
                Some("another object".to_owned())
            }
            Step::Ironic(order) => self.ask(world, scene, order),
        }
    }

    fn ask(&mut self, world: &mut World, scene: &mut Scene, order: &Order) -> Option<String> {
        let request = &order.request;
        if let Request::CreateNode(new) = request {
            if let Some(node) = &world.node {
                if node["name"] != json!(new.name) {
                    world.wrong = Some("one machine has two nodes".to_owned());
                }
                scene.node = None;
                return None;
            }
            let mut node = ironic::known("enroll", None);
            node["deploy_interface"] = new.more.get("deploy_interface").cloned().unwrap_or_default();
            world.node = Some(node.clone());
            self.see_node(world.node.as_ref());
            scene.node = Some(Some((node, NodeSeen::Created)));
            return Some(request.verb().to_owned());
        }
        if request.harm() == Harm::Erases {
            let mut tried = world.node.clone()?;
            if let Request::Provision(_, to) = request
                && ironic::transition(&mut tried, to)
            {
                world.judge_erasure(request.verb());
            }
        } else if request.harm() == Harm::Interrupts {
            world.judge_interruption(request.verb());
        } else if request.harm() == Harm::Forgets {
            world.judge_forgetting();
        }
        if let Request::PatchNode(_, patch) = request {
            ironic::change(world.node.as_mut()?, patch.clone());
            self.see_node(world.node.as_ref());
            scene.node = world.node.clone().map(|node| Some((node, NodeSeen::Live)));
            scene.validation = None;
            return Some(request.verb().to_owned());
        }
        let is_taken = is_taken(world, request)?;
        if let Request::Provision(_, metal3_ironic::calls::provision::Transition::Deploy { .. }) = request
            && is_taken
        {
            world.deployments += 1;
            if world.deployments > 1 && world.bounds.may_fail {
                world.wrong = Some("a deployment is tried twice within the hour".to_owned());
            }
        }
        self.is_stale = true;
        if world.node.is_none() {
            scene.node = Some(None);
            return Some(request.verb().to_owned());
        }
        if let Some(Some((_, seen))) = &mut scene.node {
            *seen = NodeSeen::Stale;
        }
        is_taken.then(|| request.verb().to_owned())
    }
}

thread_local! {
    /// Plans are made of facts alone, so one that was made is made.
    static PLANS: RefCell<HashMap<String, Arc<Plan>>> = RefCell::default();
}

fn planned(scene: &Scene, rules: &Rules) -> Arc<Plan> {
    let facts = format!(
        "{} {:?} {:?} {:?} {:?} {:?} {:?} {} {:?} {rules:?}",
        scene.host,
        scene.host_seen,
        scene.before,
        scene.node,
        (scene.credentials.as_ref().map(Option::is_some), scene.ports.is_some()),
        (
            scene.inventory.as_ref().map(Option::is_some),
            scene.validation.is_some()
        ),
        (
            scene.history.is_some(),
            scene.hardware_data.as_ref().map(Option::is_some)
        ),
        scene.left,
        scene.now,
    );
    PLANS.with_borrow_mut(|plans| {
        let plan = plans.entry(facts).or_insert_with(|| Arc::new(scene.plan_under(rules)));
        Arc::clone(plan)
    })
}

/// Has Ironic do what is asked, if it takes it.
fn is_taken(world: &mut World, request: &Request) -> Option<bool> {
    let node = world.node.as_mut()?;
    let is_taken = match request {
        Request::Provision(_, to) => ironic::transition(node, to),
        Request::Power(_, power) => {
            ironic::power(node, *power);
            true
        }
        Request::SetMaintenance(..) => {
            node["maintenance"] = json!(true);
            true
        }
        Request::ClearMaintenance(_) => {
            node["maintenance"] = json!(false);
            true
        }
        Request::DeleteNode(_) => {
            let state = node["provision_state"].as_str()?;
            let is_idle = matches!(state, "enroll" | "manageable" | "available" | "adopt failed");
            let is_let_go = is_idle || node["maintenance"] == json!(true);
            if is_let_go {
                world.node = None;
            }
            is_let_go
        }
        Request::CreateNode(_) | Request::PatchNode(..) | Request::CreatePort { .. } => true,
    };
    Some(is_taken)
}
