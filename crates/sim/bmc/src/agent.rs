//! The deploy agent of one booted machine, as a state machine: its requests to Ironic and its responses to commands.
//!
//! It posts inspection data if the kernel command line has a URL for it, looks up the node, then sends heartbeats until
//! power off. The list of commands is empty after each boot, which Ironic relies on. Times and responses are
//! parameters; [`crate::lab`] does the I/O.

mod commands;
mod kernel;
mod order;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

pub use commands::{Failure, INSTALLED, Work, WorkKind};
pub use kernel::{Parameters, parameters};
pub use order::{Algorithm, Authorization, Checksum, ImageOrder, OrderError};

use crate::{
    fault::{Fault, Faults},
    identity::Number,
    inventory,
    machine::{At, Machine},
};
use commands::Commands;

/// The implemented release of ironic-python-agent.
pub const VERSION: &str = "13.0.0";

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Heartbeat delay after the end of a command, so that several ends share a heartbeat.
const AFTER_COMMAND: Duration = Duration::from_millis(200);

/// A request to Ironic.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Post the inspection data.
    Inspection {
        /// The address.
        url: String,
        /// The data.
        body: Value,
    },
    /// Look up the node.
    Lookup {
        /// The address with the MAC addresses in the query.
        url: String,
    },
    /// Send a heartbeat.
    Heartbeat {
        /// The address of the node's heartbeats.
        url: String,
        /// Callback, token, certificate.
        body: Value,
    },
}

/// The next action of the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send this request and pass the response to [`Agent::answered`].
    Send(Request),
    /// Wait until this time or a change.
    Until(At),
    /// Wait for a change.
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
    accepts_md5: bool,
    commands: Commands,
}

impl Agent {
    /// The agent of a machine that has just booted.
    #[must_use]
    pub fn new(machine: &Machine, parameters: Parameters, callback: String, certificate: Arc<str>, now: At) -> Self {
        let macs = machine
            .profile
            .each_nic()
            .map(|(index, _)| reported_mac(machine.number, index, &machine.faults))
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
            accepts_md5: false,
            commands: Commands::new(machine.number),
        }
    }

    /// The next action.
    #[must_use]
    pub fn next_action(&self, now: At, faults: &Faults) -> Action {
        if self.phase == Phase::Done || (self.phase == Phase::Beat && faults.has(Fault::NoHeartbeat)) {
            return Action::Idle;
        }
        if now < self.next {
            return Action::Until(self.next);
        }
        self.request().map_or(Action::Idle, Action::Send)
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

    /// Processes the response to the last request; `None` when there was none.
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
            // Ironic finds the node only in "inspect wait". A simulated machine may send its data before that.
            (Phase::Inspect, Some(404 | 409 | 500..) | None) => self.retry(now),
            (Phase::Inspect, Some(_)) => self.enter(Phase::Done, now),
            (Phase::Lookup, Some(200)) => {
                self.node = text(body, "/node/uuid");
                // Ironic masks a pre-generated token with asterisks.
                if let Some(token) = text(body, "/config/agent_token").filter(|token| !token.starts_with('*')) {
                    self.token = Some(token);
                }
                self.accepts_md5 = body.pointer("/config/agent_md5_checksum_enable") == Some(&Value::Bool(true));
                self.enter(Phase::Beat, now);
            }
            (Phase::Lookup, _) => self.retry(now),
            (Phase::Beat, Some(202)) => {
                self.next = now.saturating_add(beat);
                self.pause = FIRST_PAUSE;
            }
            // The retry delay grows while the node is locked: a hundred agents without delay would slow down the work
            // that holds the lock.
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

    /// Processes a command: returns the response, and work to run in the background.
    pub fn command(&mut self, token: Option<&str>, body: &Value, faults: &Faults) -> (u16, Value, Option<Work>) {
        if let Some(refusal) = self.refuse(token) {
            return (refusal.0, refusal.1, None);
        }
        self.commands.take(body, faults)
    }

    /// Whether Ironic allows MD5 checksums.
    #[must_use]
    pub const fn accepts_md5(&self) -> bool {
        self.accepts_md5
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

    /// Records the end of work; the next heartbeat follows soon.
    pub fn finished(&mut self, id: &str, outcome: Result<Value, Failure>, now: At) {
        self.commands.finish(id, outcome);
        self.next = self.next.min(now.saturating_add(AFTER_COMMAND));
    }
}

fn text(body: &Value, pointer: &str) -> Option<String> {
    body.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

fn reported_mac(number: Number, index: usize, faults: &Faults) -> String {
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
                *mac = Value::String(reported_mac(machine.number, index, &machine.faults));
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
