//! Work on a node as a script: a sequence of actions with delays.
//!
//! A script is created when the work begins. The result of an action is computed when the action runs, so a fault that
//! is set during the work takes effect then. Pure.

pub(crate) mod deploy_steps;
pub(crate) mod steps;

use std::collections::VecDeque;
use std::time::Duration;

use metal3_domain::clock::Monotonic;
use metal3_ironic::model::state::PowerState;
use serde_json::Value;

use crate::life::Event;
use crate::machine::{Machine, Pace};
use crate::node::Node;

/// HTTP requests of one Redfish query.
const CALLS_PER_QUERY: u32 = 6;

/// One action of a script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// A transition. `Wait` releases the lock, `Resume` takes it.
    Move(Event),
    /// Query the power, which verifies the credentials.
    Verify,
    /// Change the power as part of the work.
    Power(PowerState),
    /// Make the machine boot the agent at its next start.
    PrepareAgent,
    /// Check that the ramdisk responds, and that its agent finds the node.
    AwaitRamdisk,
    /// Store the inventory of the agent and create ports.
    StoreInventory,
    /// The same with what the BMC reports.
    StoreInventoryOfBmc,
    /// Validate the steps.
    CheckSteps(Vec<Value>),
    /// Run the steps.
    RunSteps(Vec<Value>),
    /// Poll the update of the firmware that the BMC performs.
    UpdateFirmware,
    /// Validate the deploy steps of the agent.
    CheckDeploySteps(Vec<Value>),
    /// Run deploy steps of the agent.
    RunDeploySteps(Vec<Value>),
    /// Write the image.
    WriteImage,
    /// Make the machine boot its instance at the next start: a live image, or the disk.
    PrepareInstance,
    /// Adopt the running machine.
    TakeOver,
    /// Clear the instance and begin cleaning.
    ClearInstance,
    /// A power change that a client requested.
    Switch(String),
    /// A boot mode or secure boot change that a client requested.
    Boot(&'static str, Value),
    /// A change of the virtual drive that a client requested: the image to insert.
    Media(Option<String>),
    /// Fail the work.
    Fail(String),
    /// Record the error of an already failed node.
    RecordError(String),
}

/// An action and the delay before it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimedAction {
    pub(crate) after: Duration,
    pub(crate) action: Action,
}

/// The kind of work, which determines the effect of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Verify,
    Inspect,
    Clean,
    Deploy,
    TearDown,
    Adopt,
    Service,
    Power,
    Media,
}

/// Work in progress.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) kind: Kind,
    /// Distinguishes it from earlier work of the node.
    pub(crate) epoch: u64,
    pub(crate) script: VecDeque<TimedAction>,
    /// Since when an agent looks for its node.
    pub(crate) looks_since: Option<Monotonic>,
}

/// A script builder.
#[derive(Debug, Default)]
pub(crate) struct Script(VecDeque<TimedAction>);

impl Script {
    pub(crate) fn then(mut self, after: Duration, action: Action) -> Self {
        self.0.push_back(TimedAction { after, action });
        self
    }

    fn at_once(self, action: Action) -> Self {
        self.then(Duration::ZERO, action)
    }

    /// Boots the machine into the ramdisk and waits for it.
    fn ramdisk(self, pace: &Pace) -> Self {
        self.then(pace.bmc, Action::Power(PowerState::Off))
            .at_once(Action::PrepareAgent)
            .then(pace.bmc, Action::Power(PowerState::On))
            .at_once(Action::Move(Event::Wait))
            .then(pace.boot, Action::AwaitRamdisk)
            .at_once(Action::Move(Event::Resume))
    }

    pub(crate) fn finish(self) -> VecDeque<TimedAction> {
        self.0
    }
}

/// The duration of a query, given the duration of a call.
pub(crate) const fn query_time(call: Duration) -> Duration {
    call.saturating_mul(CALLS_PER_QUERY)
}

/// The additional duration of an action on a slow BMC.
pub(crate) fn extra(machine: Option<&Machine>, action: &Action) -> Duration {
    let asks = matches!(
        action,
        Action::Verify | Action::Power(_) | Action::Switch(_) | Action::Boot(..) | Action::Media(_)
    );
    match machine.filter(|_| asks) {
        Some(machine) => query_time(machine.faults.bmc_delay()),
        None => Duration::ZERO,
    }
}

pub(crate) fn verify(node: &Node, pace: &Pace) -> Script {
    Script::default().then(if node.is_fake() { pace.fake_power } else { pace.bmc }, Action::Verify)
}

pub(crate) fn inspect(node: &Node, pace: &Pace) -> Script {
    if node.is_fake() {
        return Script::default().then(pace.fake_work, Action::Move(Event::Done));
    }
    if node.is_inspected_by_bmc() {
        return Script::default()
            .then(query_time(pace.bmc), Action::StoreInventoryOfBmc)
            .at_once(Action::Move(Event::Done));
    }
    Script::default()
        .ramdisk(pace)
        .then(pace.work, Action::StoreInventory)
        .then(pace.bmc, Action::Power(PowerState::Off))
        .at_once(Action::Move(Event::Done))
}

/// `steps` is `None` for automated cleaning.
pub(crate) fn clean(node: &Node, pace: &Pace, steps: Option<Vec<Value>>) -> Script {
    let done = Action::Move(if steps.is_some() { Event::Manage } else { Event::Done });
    if steps.is_none() && node.field("automated_clean") == &Value::Bool(false) {
        return Script::default().at_once(done);
    }
    let steps = steps.unwrap_or_default();
    if node.is_fake() {
        return Script::default()
            .at_once(Action::CheckSteps(steps.clone()))
            .then(pace.fake_work, Action::RunSteps(steps))
            .at_once(done);
    }
    Script::default()
        .at_once(Action::CheckSteps(steps.clone()))
        .ramdisk(pace)
        .then(pace.work, Action::RunSteps(steps))
        .then(pace.bmc, Action::Power(PowerState::Off))
        .at_once(done)
}

/// `steps` are those of the request.
pub(crate) fn deploy(node: &Node, pace: &Pace, steps: Vec<Value>) -> Script {
    let script = Script::default();
    let script = if node.is_fake() {
        // No agent runs, so steps of an agent never do.
        script.then(pace.fake_work, Action::WriteImage)
    } else if node.text("deploy_interface") == Some("ramdisk") {
        // A live image is booted without writing to the disk.
        script
            .then(pace.bmc, Action::Power(PowerState::Off))
            .at_once(Action::PrepareInstance)
            .then(pace.bmc, Action::Power(PowerState::On))
    } else {
        let script = script.ramdisk(pace).at_once(Action::CheckDeploySteps(steps.clone()));
        // This interface writes nothing itself.
        let script = if node.text("deploy_interface") == Some(deploy_steps::CUSTOM_AGENT) {
            script.then(pace.work, Action::RunDeploySteps(steps))
        } else {
            script
                .then(pace.work, Action::WriteImage)
                .at_once(Action::RunDeploySteps(steps))
        };
        script
            .then(pace.bmc, Action::Power(PowerState::Off))
            .then(pace.bmc, Action::Power(PowerState::On))
    };
    script.at_once(Action::Move(Event::Done))
}

pub(crate) fn tear_down(node: &Node, pace: &Pace) -> Script {
    if node.is_fake() {
        return Script::default().then(pace.fake_work, Action::ClearInstance);
    }
    Script::default()
        .then(pace.bmc, Action::Power(PowerState::Off))
        .at_once(Action::ClearInstance)
}

pub(crate) fn adopt(node: &Node, pace: &Pace) -> Script {
    let takes = if node.is_fake() { pace.fake_work } else { pace.bmc };
    Script::default()
        .then(takes, Action::TakeOver)
        .at_once(Action::Move(Event::Done))
}

pub(crate) fn service(node: &Node, pace: &Pace, steps: Vec<Value>) -> Script {
    let script = if node.is_fake() {
        Script::default().then(pace.fake_work, Action::RunSteps(steps))
    } else if !steps::need_ramdisk(&steps) {
        Script::default().then(pace.bmc, Action::RunSteps(steps))
    } else {
        Script::default()
            .ramdisk(pace)
            .then(pace.work, Action::RunSteps(steps))
            .then(pace.bmc, Action::Power(PowerState::Off))
            .at_once(Action::PrepareInstance)
            .then(pace.bmc, Action::Power(PowerState::On))
    };
    script.at_once(Action::Move(Event::Done))
}

/// Switches the machine off after aborted work.
pub(crate) fn switched_off(node: &Node, pace: &Pace) -> Script {
    if node.is_fake() {
        return Script::default();
    }
    Script::default().then(pace.bmc, Action::Power(PowerState::Off))
}

pub(crate) fn power(node: &Node, pace: &Pace, verb: &str) -> Script {
    // The conductor queries the power before it changes it.
    let takes = if node.is_fake() { pace.fake_power } else { pace.bmc }.saturating_mul(2);
    Script::default().then(takes, Action::Switch(verb.to_owned()))
}

pub(crate) fn media(node: &Node, pace: &Pace, image: Option<String>) -> Script {
    let takes = if node.is_fake() { pace.fake_work } else { pace.bmc };
    Script::default().then(takes, Action::Media(image))
}

pub(crate) fn boot(node: &Node, pace: &Pace, field: &'static str, value: Value) -> Script {
    let takes = if node.is_fake() { pace.fake_work } else { pace.bmc };
    Script::default().then(takes, Action::Boot(field, value))
}
