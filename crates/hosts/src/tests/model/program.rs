//! One process of the controller: its observations, and a reconcile.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use metal3_runtime::patch::{MergePatch, apply};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use super::ironic;
use super::state::ModelState;
use crate::action::{Action, Impact, Order, Plan, Request};
use crate::facts::{FoundNode, HostFreshness, LoginAnswer, NodeFreshness, PreviousView, Read};
use crate::plan::rules::Rules;
use crate::reconciler::shows_removal;
use crate::tests::fixture::{Fixture, at, secret, without_version};
use crate::tests::rows::given::port;
use metal3_ironic::model::inventory::Inspection;

/// Rounds of one reconcile; more is an endless loop.
const ROUNDS: usize = 24;

#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) host: Option<Value>,
    pub(super) node: Option<Value>,
    /// Whether the node was observed since the host entered its state.
    pub(super) is_in_state: bool,
    /// Whether a request went to the node since its observation.
    pub(super) is_stale: bool,
    /// What it knows of requests that erase, in the present state of the host.
    pub(super) erasing: Observed<()>,
    pub(super) previous: PreviousView,
    pub(super) reads: Vec<Read>,
}

/// A write of a plan.
#[derive(Clone, Copy)]
enum Write<'a> {
    Action(&'a Action),
    Status(&'a MergePatch),
}

impl Program {
    /// A process that starts now: it lists the hosts.
    pub(super) fn start(model: &ModelState, is_known: bool, old_node: Option<&str>) -> Self {
        Self {
            host: model.host.clone(),
            node: match old_node {
                Some(state) => Some(ironic::known(state, None)),
                None => model.node.clone().filter(|_| is_known),
            },
            is_in_state: is_known && old_node.is_none(),
            is_stale: false,
            erasing: Observed::Unknown(UnknownReason::NotRead),
            previous: PreviousView::default(),
            reads: Vec::new(),
        }
    }

    pub(super) fn observe_host(&mut self, host: Option<&Value>) {
        if self.host.as_ref() == host {
            return;
        }
        let has = |host: &Value, name: &str| host["metadata"]["annotations"].get(name).is_some();
        if let Some(old) = &self.host {
            self.previous = PreviousView {
                paused: has(old, "baremetalhost.metal3.io/paused"),
                moving: has(old, "clusterctl.cluster.x-k8s.io/delete-for-move"),
            };
        }
        let state = |host: Option<&Value>| host.map(|host| host["status"]["provisioning"]["state"].clone());
        if state(self.host.as_ref()) != state(host) {
            (self.is_in_state, self.erasing) = (false, Observed::Absent);
        }
        self.host = host.cloned();
    }

    pub(super) fn observe_node(&mut self, node: Option<&Value>) {
        self.node = node.cloned();
        (self.is_in_state, self.is_stale) = (true, false);
    }

    /// One reconcile. Stops after `most` writes, if given. Returns its writes.
    pub(super) fn reconcile(&mut self, model: &mut ModelState, most: Option<usize>) -> Vec<String> {
        let mut writes = Vec::new();
        let Some(host) = self.host.clone() else { return writes };
        let mut fixture = Fixture::new("available");
        fixture.host = host;
        fixture.previous = self.previous;
        fixture.credentials =
            Some(Some(secret("bmc", &[("username", "u"), ("password", "p")])).filter(|_| model.has_secret));
        fixture.node = self.node.clone().map(|node| {
            Some((
                node,
                match (self.is_stale, self.is_in_state) {
                    (true, _) => NodeFreshness::Stale,
                    (false, false) => NodeFreshness::Current,
                    (false, true) => NodeFreshness::InState,
                },
            ))
        });
        fixture.left = model.budget;
        fixture.now = at(model.hour * 3600);
        for _ in 0..ROUNDS {
            self.observe_removal(&fixture);
            fixture.erasing = self.erasing.clone();
            let plan = planned(&fixture, &model.rules);
            if !plan.reads.is_empty() {
                if !self.read_live(model, &mut fixture, &plan) {
                    return writes;
                }
                continue;
            }
            let actions = plan.actions.iter().filter_map(|action| match action {
                Action::ReserveBudget
                | Action::Count(_)
                | Action::EndPowerRequest
                | Action::EndRefusal
                | Action::ReleaseSlot => None,
                write => Some(Write::Action(write)),
            });
            for write in actions.chain(plan.status.iter().map(Write::Status)) {
                if most == Some(writes.len()) {
                    return writes;
                }
                let Some(name) = self.perform(model, &mut fixture, write) else {
                    return writes;
                };
                writes.push(name);
            }
            if plan.next != Next::Requeue || self.host.is_none() {
                return writes;
            }
        }
        model.violation = Some(format!("a reconcile does not end: {writes:?}"));
        writes
    }

    fn observe_removal(&mut self, fixture: &Fixture) {
        let Some(Some((node, freshness))) = &fixture.node else {
            return;
        };
        let node = FoundNode::Own(Arc::new(serde_json::from_value(node.clone()).unwrap()), *freshness);
        if fixture.host["status"]["provisioning"]["state"] == "deprovisioning"
            && shows_removal(&Observed::Present(node))
        {
            self.erasing = Observed::Present(());
        }
    }

    fn read_live(&mut self, model: &ModelState, fixture: &mut Fixture, plan: &Plan) -> bool {
        for read in &plan.reads {
            self.reads.push(*read);
            match read {
                Read::Host => {
                    self.observe_host(model.host.as_ref());
                    let Some(host) = model.host.clone() else { return false };
                    fixture.host = host;
                    fixture.previous = self.previous;
                    fixture.host_freshness = HostFreshness::Live;
                }
                Read::Node => {
                    self.observe_node(model.node.as_ref());
                    fixture.node = Some(model.node.clone().map(|node| (node, NodeFreshness::Live)));
                }
                Read::Ports => {
                    fixture.ports = Some(vec![port()]);
                }
                Read::Inventory => {
                    let is_there = model.node.as_ref().is_some_and(|node| node["inspected"] == json!(true));
                    fixture.inventory = Some(is_there.then(Inspection::default));
                }
                Read::Validation => fixture.validation = serde_json::from_value(json!({})).ok(),
                Read::History => fixture.history = Some(None),
                // The BMC of the model accepts each login.
                Read::Login => fixture.login_answer = Some(LoginAnswer::Accepted),
                other => panic!("{other:?} is not part of the model"),
            }
        }
        true
    }

    /// Performs a write. `None`: rejected.
    fn perform(&mut self, model: &mut ModelState, fixture: &mut Fixture, write: Write<'_>) -> Option<String> {
        match write {
            Write::Action(Action::PatchHost(patch)) | Write::Status(patch) => {
                let relies_on = patch.clone().into_document()["metadata"]["resourceVersion"].clone();
                let host = model.host.as_mut()?;
                if host["metadata"]["resourceVersion"] != relies_on {
                    return None;
                }
                let generation = host["metadata"]["generation"].as_u64()?;
                let spec = host["spec"].clone();
                apply(&without_version(patch), host);
                if host["spec"] != spec {
                    host["metadata"]["generation"] = json!(generation + 1);
                }
                model.versions += 1;
                host["metadata"]["resourceVersion"] = json!(model.versions.to_string());
                let is_free = host["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
                if is_free && host["metadata"].get("deletionTimestamp").is_some() {
                    model.host = None;
                }
                model.check_status();
                let previous = self.previous;
                self.observe_host(model.host.as_ref());
                self.previous = previous;
                if let (false, Some(Some((_, freshness @ NodeFreshness::InState)))) =
                    (self.is_in_state, &mut fixture.node)
                {
                    *freshness = NodeFreshness::Current;
                }
                fixture.host = model.host.clone().unwrap_or_default();
                fixture.host_freshness = HostFreshness::Live;
                let what = match write {
                    Write::Action(_) => "host",
                    Write::Status(_) => "status",
                };
                let state = fixture.host["status"]["provisioning"]["state"]
                    .as_str()
                    .unwrap_or_default();
                Some(format!("{what} ({state})"))
            }
            Write::Action(Action::Ironic(order)) => self.ask(model, fixture, order),
            Write::Action(action) => {
                if let Action::CreateHardwareData(data) = action {
                    fixture.hardware_data = Some(Some((**data).clone()));
                }
                Some("another object".to_owned())
            }
        }
    }

    fn ask(&mut self, model: &mut ModelState, fixture: &mut Fixture, order: &Order) -> Option<String> {
        let request = &order.request;
        if let Request::CreateNode(new) = request {
            if let Some(node) = &model.node {
                if node["name"] != json!(new.name) {
                    model.violation = Some("one machine has two nodes".to_owned());
                }
                fixture.node = None;
                return None;
            }
            let mut node = ironic::known("enroll", None);
            node["deploy_interface"] = new.more.get("deploy_interface").cloned().unwrap_or_default();
            model.node = Some(node.clone());
            self.observe_node(model.node.as_ref());
            fixture.node = Some(Some((node, NodeFreshness::Created)));
            // Ports are not part of the model.
            fixture.ports = Some(vec![port()]);
            return Some(request.verb().to_owned());
        }
        if request.impact() == Impact::Erases {
            let mut attempted = model.node.clone()?;
            if let Request::Provision(_, to) = request
                && ironic::transition(&mut attempted, to)
            {
                model.check_erasure(request.verb());
            }
        } else if request.impact() == Impact::Interrupts {
            model.check_interruption(request.verb());
        } else if request.impact() == Impact::RemovesRecord {
            model.check_node_deletion();
        }
        if let Request::PatchNode(_, patch) = request {
            ironic::change(model.node.as_mut()?, patch.clone());
            self.observe_node(model.node.as_ref());
            fixture.node = model.node.clone().map(|node| Some((node, NodeFreshness::Live)));
            fixture.validation = None;
            fixture.login_answer = None;
            return Some(request.verb().to_owned());
        }
        let is_taken = is_taken(model, request)?;
        if is_taken && request.impact() == Impact::Erases {
            self.erasing = Observed::Present(());
        }
        if let Request::Provision(_, metal3_ironic::calls::provision::Transition::Deploy { .. }) = request
            && is_taken
        {
            model.deployments += 1;
            if model.deployments > 1 && model.bounds.may_fail {
                model.violation = Some("a deployment is attempted twice within the hour".to_owned());
            }
        }
        self.is_stale = true;
        if model.node.is_none() {
            fixture.node = Some(None);
            return Some(request.verb().to_owned());
        }
        if let Some(Some((_, freshness))) = &mut fixture.node {
            *freshness = NodeFreshness::Stale;
        }
        is_taken.then(|| request.verb().to_owned())
    }
}

thread_local! {
    /// Plans depend on facts alone, so they are cached.
    static PLANS: RefCell<HashMap<String, Arc<Plan>>> = RefCell::default();
}

fn planned(fixture: &Fixture, rules: &Rules) -> Arc<Plan> {
    let facts = format!(
        "{} {:?} {:?} {:?} {:?} {:?} {:?} {} {:?} {rules:?}",
        fixture.host,
        fixture.host_freshness,
        fixture.previous,
        fixture.node,
        (
            fixture.credentials.as_ref().map(Option::is_some),
            fixture.ports.is_some(),
            fixture.login_answer.is_some()
        ),
        (
            fixture.inventory.as_ref().map(Option::is_some),
            fixture.validation.is_some()
        ),
        (
            fixture.history.is_some(),
            fixture.hardware_data.as_ref().map(Option::is_some)
        ),
        fixture.left,
        (fixture.now, &fixture.erasing),
    );
    PLANS.with_borrow_mut(|plans| {
        let plan = plans
            .entry(facts)
            .or_insert_with(|| Arc::new(fixture.plan_under(rules)));
        Arc::clone(plan)
    })
}

/// Whether Ironic accepts the request, and its effect.
fn is_taken(model: &mut ModelState, request: &Request) -> Option<bool> {
    let node = model.node.as_mut()?;
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
                model.node = None;
            }
            is_let_go
        }
        Request::SetRaid(_, disks) => {
            node["target_raid_config"] = json!({ "logical_disks": disks });
            true
        }
        Request::CreateNode(_)
        | Request::PatchNode(..)
        | Request::CreatePort { .. }
        | Request::InsertDisc(..)
        | Request::EjectDiscs(_) => true,
    };
    Some(is_taken)
}
