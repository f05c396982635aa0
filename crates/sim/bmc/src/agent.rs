//! The deploy agent of one booted machine, as a state machine: what it sends next, and what it answers to commands.
//!
//! Life: post inspection data where the kernel line asks for it, look the node up, then beat until the power goes. The
//! list of commands lives as long as the machine is on: an empty list means "freshly booted" to Ironic. Times and
//! answers are parameters; [`crate::lab`] sends, waits and works.

mod commands;
mod kernel;
mod order;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

pub use commands::{Failure, Work, WorkKind};
pub use kernel::{Parameters, parameters};
pub use order::{Algorithm, Checksum, ImageOrder, OrderError};

use crate::{
    fault::{Fault, Faults},
    identity::Number,
    inventory,
    machine::{At, Machine},
};
use commands::Commands;

/// The release whose protocol this is.
pub const VERSION: &str = "13.0.0";

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// After a command ends, so that several endings make one heartbeat.
const AFTER_WORK: Duration = Duration::from_millis(200);

/// A request to Ironic.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Post what was found on the machine.
    Inspection {
        /// Where to.
        url: String,
        /// The data.
        body: Value,
    },
    /// Which node am I?
    Lookup {
        /// With the addresses in its query.
        url: String,
    },
    /// I am here.
    Heartbeat {
        /// The node's.
        url: String,
        /// Callback, token, certificate.
        body: Value,
    },
}

/// What the agent does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Want {
    /// Send this and report the answer.
    Send(Request),
    /// Nothing before this time, unless something happens.
    Until(At),
    /// Nothing at all, unless something happens.
    Idle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Inspect,
    Lookup,
    Beat,
    Done,
}

/// One agent, from boot to power off.
#[derive(Debug)]
pub struct Agent {
    parameters: Parameters,
    phase: Phase,
    next: At,
    pause: Duration,
    inspection: Value,
    macs: Vec<String>,
    callback: String,
    certificate: Arc<str>,
    node: Option<String>,
    token: Option<String>,
    takes_md5: bool,
    commands: Commands,
}

impl Agent {
    /// An agent that has just come up on `machine`.
    #[must_use]
    pub fn new(machine: &Machine, parameters: Parameters, callback: String, certificate: Arc<str>, now: At) -> Self {
        let macs = machine
            .profile
            .each_nic()
            .map(|(index, _)| seen_mac(machine.number, index, &machine.faults))
            .collect();
        let phase = match (&parameters.inspection_url, &parameters.api_url) {
            (Some(_), _) => Phase::Inspect,
            (None, Some(_)) => Phase::Lookup,
            (None, None) => Phase::Done,
        };
        Self {
            token: parameters.token.clone(),
            inspection: inspection_data(machine),
            parameters,
            phase,
            next: now,
            pause: FIRST_PAUSE,
            macs,
            callback,
            certificate,
            node: None,
            takes_md5: false,
            commands: Commands::new(machine.number),
        }
    }

    /// What to do now.
    #[must_use]
    pub fn want(&self, now: At, faults: &Faults) -> Want {
        if self.phase == Phase::Done || (self.phase == Phase::Beat && faults.has(Fault::NoHeartbeat)) {
            return Want::Idle;
        }
        if now < self.next {
            return Want::Until(self.next);
        }
        self.request().map_or(Want::Idle, Want::Send)
    }

    fn request(&self) -> Option<Request> {
        let api = self.parameters.api_url.as_deref();
        match self.phase {
            Phase::Inspect => {
                let url = self.parameters.inspection_url.clone()?;
                Some(Request::Inspection {
                    url,
                    body: self.inspection.clone(),
                })
            }
            Phase::Lookup => {
                let node = self
                    .node
                    .as_ref()
                    .map(|node| format!("&node_uuid={node}"))
                    .unwrap_or_default();
                Some(Request::Lookup {
                    url: format!("{}/v1/lookup?addresses={}{node}", api?, self.macs.join(",")),
                })
            }
            Phase::Beat => {
                let url = format!("{}/v1/heartbeat/{}", api?, self.node.as_ref()?);
                let body = json!({
                    "callback_url": self.callback,
                    "agent_token": self.token,
                    "agent_version": VERSION,
                    "agent_verify_ca": &*self.certificate,
                });
                Some(Request::Heartbeat { url, body })
            }
            Phase::Done => None,
        }
    }

    /// Takes Ironic's answer to the last request; no status means that there was none.
    pub fn answered(&mut self, status: Option<u16>, body: &Value, now: At, beat: Duration) {
        match (self.phase, status) {
            (Phase::Inspect, Some(200..=299)) => {
                self.node = text(body, "/uuid");
                self.enter(
                    if self.parameters.api_url.is_some() {
                        Phase::Lookup
                    } else {
                        Phase::Done
                    },
                    now,
                );
            }
            // Before "inspect wait" the node is not found: a simulated machine is faster than Ironic expects.
            (Phase::Inspect, Some(404 | 409 | 500..) | None) => self.retry(now),
            (Phase::Inspect, Some(_)) => self.enter(Phase::Done, now),
            (Phase::Lookup, Some(200)) => {
                self.node = text(body, "/node/uuid");
                // Stars stand for a token that the kernel line already brought.
                if let Some(token) = text(body, "/config/agent_token").filter(|token| !token.starts_with('*')) {
                    self.token = Some(token);
                }
                self.takes_md5 = body.pointer("/config/agent_md5_checksum_enable") == Some(&Value::Bool(true));
                self.enter(Phase::Beat, now);
            }
            (Phase::Lookup, _) => self.retry(now),
            (Phase::Beat, Some(202)) => {
                self.next = now.saturating_add(beat);
                self.pause = FIRST_PAUSE;
            }
            // Whoever is refused because the node is locked comes again the later the longer it is: a hundred that insist keep
            // Ironic from the work that locks it.
            (Phase::Beat, _) => self.retry(now),
            (Phase::Done, _) => {}
        }
    }

    fn enter(&mut self, phase: Phase, now: At) {
        self.phase = phase;
        self.next = now;
        self.pause = FIRST_PAUSE;
    }

    fn retry(&mut self, now: At) {
        self.next = now.saturating_add(self.pause);
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
    }

    /// Takes a command: the answer to send, and work to do behind it.
    pub fn command(&mut self, token: Option<&str>, body: &Value, faults: &Faults) -> (u16, Value, Option<Work>) {
        if let Some(refusal) = self.refuse(token) {
            return (refusal.0, refusal.1, None);
        }
        self.commands.take(body, faults)
    }

    /// Whether an image may be proved by MD5, which is for Ironic to say.
    #[must_use]
    pub const fn takes_md5(&self) -> bool {
        self.takes_md5
    }

    /// The list of commands, or one of them.
    #[must_use]
    pub fn results(&self, token: Option<&str>, id: Option<&str>) -> (u16, Value) {
        self.refuse(token).unwrap_or_else(|| self.commands.results(id))
    }

    fn refuse(&self, token: Option<&str>) -> Option<(u16, Value)> {
        let known = self.token.is_some() && token == self.token.as_deref();
        (!known).then(|| (401, commands::fault("the agent token is missing or wrong")))
    }

    /// Work has ended; Ironic hears of it with the next heartbeat, which comes soon.
    pub fn finished(&mut self, id: &str, outcome: Result<Value, Failure>, now: At) {
        self.commands.finish(id, outcome);
        self.next = self.next.min(now.saturating_add(AFTER_WORK));
    }
}

fn text(body: &Value, pointer: &str) -> Option<String> {
    body.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

fn seen_mac(number: Number, index: usize, faults: &Faults) -> String {
    let mac = number.mac(index);
    if faults.has(Fault::ForeignMac) {
        mac.replacen("52:54:01", "52:54:ee", 1)
    } else {
        mac
    }
}

fn inspection_data(machine: &Machine) -> Value {
    let mut inventory = inventory::inventory(&machine.profile, machine.number);
    if let Some(cards) = inventory.pointer_mut("/interfaces").and_then(Value::as_array_mut) {
        for (index, card) in cards.iter_mut().enumerate() {
            if let Some(mac) = card.get_mut("mac_address") {
                *mac = Value::String(seen_mac(machine.number, index, &machine.faults));
            }
        }
    }
    let root = inventory::root_disk(&machine.profile)
        .filter(|_| !machine.faults.has(Fault::DiskTooSmall))
        .and_then(|(index, ..)| inventory.pointer(&format!("/disks/{index}")).cloned());
    let error = machine
        .faults
        .has(Fault::InspectionError)
        .then_some("the collector of the default inventory failed");
    json!({
        "inventory": inventory,
        "root_disk": root,
        "boot_interface": null,
        "configuration": {
            "collectors": ["default"],
            "managers": [{ "name": "generic_hardware_manager", "version": commands::HARDWARE_MANAGER }],
        },
        "error": error,
    })
}

#[cfg(test)]
mod tests;
