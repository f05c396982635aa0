//! Work on a node, as a script: what happens one after the other, and how long each takes.
//!
//! A script is made when the work begins and only says what *shall* happen. What a machine makes of it is decided when
//! its time comes, so a fault that is switched on in the middle strikes in the middle. Pure, but for the node it reads.

pub(crate) mod steps;

use std::collections::VecDeque;
use std::time::Duration;

use metal3_ironic::model::state::PowerState;
use serde_json::Value;

use crate::life::Event;
use crate::machine::{Machine, Pace};
use crate::node::Node;

/// Redfish services are asked for several resources where a person would ask one question.
const CALLS_PER_QUESTION: u32 = 6;

/// One thing that happens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    /// The node moves. `Wait` lets go of its lock, `Resume` takes it.
    Move(Event),
    /// The BMC is asked for the power, which proves the credentials.
    Verify,
    /// The machine's power is changed as a part of the work.
    Power(PowerState),
    /// The ramdisk speaks by now, or never.
    Ramdisk,
    /// What the ramdisk found is stored.
    Store,
    /// Steps are checked, before anything is done.
    Check(Vec<Value>),
    /// Steps are carried out.
    Carry(Vec<Value>),
    /// The image is written.
    Write,
    /// The live image is put into the virtual drive.
    Insert,
    /// The machine is taken over as it runs.
    TakeOver,
    /// The instance is forgotten, and cleaning begins.
    Forget,
    /// A change of power that a client asked for.
    Switch(String),
    /// The boot mode or secure boot that a client asked for.
    Boot(&'static str, Value),
    /// What was bound to fail has failed.
    Fail(String),
    /// What was wrong is said after the node is failed already.
    Tell(String),
}

/// An act and how long it takes to come to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Due {
    pub(crate) after: Duration,
    pub(crate) act: Act,
}

/// What the work is for: it decides what a failure does.
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
}

/// Work under way.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) kind: Kind,
    /// Tells it from earlier work of the same node.
    pub(crate) epoch: u64,
    pub(crate) script: VecDeque<Due>,
}

/// A script in the making.
#[derive(Debug, Default)]
pub(crate) struct Script(VecDeque<Due>);

impl Script {
    pub(crate) fn then(mut self, after: Duration, act: Act) -> Self {
        self.0.push_back(Due { after, act });
        self
    }

    fn at_once(self, act: Act) -> Self {
        self.then(Duration::ZERO, act)
    }

    /// Restarts the machine into the ramdisk, and waits for it.
    fn ramdisk(self, pace: &Pace) -> Self {
        self.then(pace.bmc, Act::Power(PowerState::Off))
            .then(pace.bmc, Act::Power(PowerState::On))
            .at_once(Act::Move(Event::Wait))
            .then(pace.boot, Act::Ramdisk)
            .at_once(Act::Move(Event::Resume))
    }

    pub(crate) fn finish(self) -> VecDeque<Due> {
        self.0
    }
}

/// How long a question takes to a BMC that needs so long for each call.
pub(crate) const fn question(call: Duration) -> Duration {
    call.saturating_mul(CALLS_PER_QUESTION)
}

/// How long an act takes beyond the usual because of a slow BMC.
pub(crate) fn extra(machine: Option<&Machine>, act: &Act) -> Duration {
    let asks = matches!(act, Act::Verify | Act::Power(_) | Act::Switch(_) | Act::Boot(..));
    match machine.filter(|_| asks) {
        Some(machine) => question(machine.faults.bmc_delay()),
        None => Duration::ZERO,
    }
}

pub(crate) fn verify(node: &Node, pace: &Pace) -> Script {
    Script::default().then(if node.is_fake() { pace.fake_power } else { pace.bmc }, Act::Verify)
}

pub(crate) fn inspect(node: &Node, pace: &Pace) -> Script {
    if node.is_fake() {
        return Script::default().then(pace.fake_work, Act::Move(Event::Done));
    }
    Script::default()
        .ramdisk(pace)
        .then(pace.work, Act::Store)
        .then(pace.bmc, Act::Power(PowerState::Off))
        .at_once(Act::Move(Event::Done))
}

/// Automated cleaning has no steps of a client's.
pub(crate) fn clean(node: &Node, pace: &Pace, steps: Option<Vec<Value>>) -> Script {
    let done = Act::Move(if steps.is_some() { Event::Manage } else { Event::Done });
    if steps.is_none() && node.field("automated_clean") == &Value::Bool(false) {
        return Script::default().at_once(done);
    }
    let steps = steps.unwrap_or_default();
    if node.is_fake() {
        return Script::default()
            .at_once(Act::Check(steps.clone()))
            .then(pace.fake_work, Act::Carry(steps))
            .at_once(done);
    }
    Script::default()
        .at_once(Act::Check(steps.clone()))
        .ramdisk(pace)
        .then(pace.work, Act::Carry(steps))
        .then(pace.bmc, Act::Power(PowerState::Off))
        .at_once(done)
}

pub(crate) fn deploy(node: &Node, pace: &Pace) -> Script {
    let script = Script::default();
    let script = if node.is_fake() {
        script.then(pace.fake_work, Act::Write)
    } else if node.text("deploy_interface") == Some("ramdisk") {
        // A live image is booted, and nothing is written.
        script
            .then(pace.bmc, Act::Power(PowerState::Off))
            .at_once(Act::Insert)
            .then(pace.bmc, Act::Power(PowerState::On))
    } else {
        script
            .ramdisk(pace)
            .then(pace.work, Act::Write)
            .then(pace.bmc, Act::Power(PowerState::Off))
            .then(pace.bmc, Act::Power(PowerState::On))
    };
    script.at_once(Act::Move(Event::Done))
}

pub(crate) fn tear_down(node: &Node, pace: &Pace) -> Script {
    if node.is_fake() {
        return Script::default().then(pace.fake_work, Act::Forget);
    }
    Script::default()
        .then(pace.bmc, Act::Power(PowerState::Off))
        .at_once(Act::Forget)
}

pub(crate) fn adopt(node: &Node, pace: &Pace) -> Script {
    let takes = if node.is_fake() { pace.fake_work } else { pace.bmc };
    Script::default()
        .then(takes, Act::TakeOver)
        .at_once(Act::Move(Event::Done))
}

pub(crate) fn service(node: &Node, pace: &Pace, steps: Vec<Value>) -> Script {
    let script = if node.is_fake() {
        Script::default().then(pace.fake_work, Act::Carry(steps))
    } else {
        Script::default()
            .ramdisk(pace)
            .then(pace.work, Act::Carry(steps))
            .then(pace.bmc, Act::Power(PowerState::Off))
            .then(pace.bmc, Act::Power(PowerState::On))
    };
    script.at_once(Act::Move(Event::Done))
}

/// What is left to do after work was given up: the machine is switched off.
pub(crate) fn switched_off(node: &Node, pace: &Pace) -> Script {
    if node.is_fake() {
        return Script::default();
    }
    Script::default().then(pace.bmc, Act::Power(PowerState::Off))
}

pub(crate) fn power(node: &Node, pace: &Pace, verb: &str) -> Script {
    // The power is asked for before it is changed.
    let takes = if node.is_fake() { pace.fake_power } else { pace.bmc }.saturating_mul(2);
    Script::default().then(takes, Act::Switch(verb.to_owned()))
}

pub(crate) fn boot(node: &Node, pace: &Pace, field: &'static str, value: Value) -> Script {
    let takes = if node.is_fake() { pace.fake_work } else { pace.bmc };
    Script::default().then(takes, Act::Boot(field, value))
}
