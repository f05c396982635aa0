//! The agent's command interface: commands, their results, and the supported steps.

use std::io::Write as _;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Map, Value, json};

use super::order::ImageOrder;
use crate::{
    fault::{Fault, Faults},
    hints::Purpose,
    identity::Number,
};

pub(super) const HARDWARE_MANAGER: &str = "1.2";

/// The in-band steps: name, the agent's priority, interface.
const CLEAN: [(&str, u8, &str); 5] = [
    ("erase_devices", 10, "deploy"),
    ("erase_devices_metadata", 99, "deploy"),
    ("erase_pstore", 0, "deploy"),
    ("create_configuration", 0, "raid"),
    ("delete_configuration", 0, "raid"),
];
const DEPLOY: [(&str, u8, &str); 3] = [
    ("write_image", 0, "deploy"),
    ("erase_devices_metadata", 0, "deploy"),
    (INSTALL, 0, "deploy"),
];
/// Installs [`INSTALLED`]: a step as agents of users have, which needs no image.
const INSTALL: &str = "install_system";
/// What that step writes to the root disk.
pub const INSTALLED: &[u8] = b"the system of the deploy step install_system\n";
const SERVICE: [(&str, u8, &str); 1] = [("burnin_cpu", 0, "deploy")];

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error class of the agent.
    pub kind: &'static str,
    /// The error message.
    pub message: &'static str,
    /// The error details.
    pub details: String,
}

impl Failure {
    pub(crate) fn new(kind: &'static str, message: &'static str, details: impl std::fmt::Display) -> Self {
        Self {
            kind,
            message,
            details: details.to_string(),
        }
    }
}

/// Background work of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The id of the command.
    pub id: String,
    /// The work.
    pub kind: WorkKind,
    /// The command's result after success.
    pub result: Value,
}

/// The kinds of work.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkKind {
    /// Download, check and write an image.
    WriteImage(Box<ImageOrder>),
    /// Install a system without an image.
    Install,
    /// Erase the disks, but for those that these hints of the node match.
    Erase(Purpose, Vec<Value>),
    /// No effect.
    Pass,
    /// Fail with this error.
    Fail(Failure),
    /// Power off the machine.
    PowerOff,
    /// Restart the machine.
    Reboot,
}

#[derive(Debug, Clone)]
struct Command {
    id: String,
    name: String,
    outcome: Option<Result<Value, Failure>>,
}

impl Command {
    fn view(&self) -> Value {
        let (status, error, result) = match &self.outcome {
            None => ("RUNNING", Value::Null, Value::Null),
            Some(Ok(result)) => ("SUCCEEDED", Value::Null, result.clone()),
            Some(Err(failure)) => {
                let Failure { kind, message, details } = failure;
                let error = json!({ "type": kind, "code": 500, "message": message, "details": details });
                ("FAILED", error, Value::Null)
            }
        };
        json!({
            "id": self.id,
            "command_name": self.name,
            "command_status": status,
            "command_error": error,
            "command_result": result,
        })
    }
}

/// The commands since boot, oldest first.
#[derive(Debug)]
pub(super) struct Commands {
    machine: Number,
    list: Vec<Command>,
}

/// The body of an error; Ironic reads `faultstring`.
pub(super) fn fault(message: &str) -> Value {
    json!({ "faultcode": "Client", "faultstring": message })
}

impl Commands {
    pub(super) const fn new(machine: Number) -> Self {
        Self {
            machine,
            list: Vec::new(),
        }
    }

    pub(super) fn results(&self, id: Option<&str>) -> (u16, Value) {
        match id {
            None => (
                200,
                json!({ "commands": self.list.iter().map(Command::view).collect::<Vec<_>>() }),
            ),
            Some(id) => match self.list.iter().find(|command| command.id == id) {
                Some(command) => (200, command.view()),
                None => (404, fault("no such command")),
            },
        }
    }

    pub(super) fn finish(&mut self, id: &str, outcome: Result<Value, Failure>) {
        if let Some(command) = self.list.iter_mut().find(|command| command.id == id) {
            command.outcome = Some(outcome);
        }
    }

    pub(super) fn take(&mut self, body: &Value, faults: &Faults) -> (u16, Value, Option<Work>) {
        let refusal = |status, message: &str| (status, fault(message), None);
        let Some((_, name)) = body
            .get("name")
            .and_then(Value::as_str)
            .and_then(|name| name.split_once('.'))
        else {
            return refusal(400, "a command has the form extension.command");
        };
        if let Some(busy) = self.list.last().filter(|command| command.outcome.is_none()) {
            return refusal(409, &format!("Agent is busy: {} is still running", busy.name));
        }
        let none = Value::Null;
        let Some(execution) = Execution::of(name, body.get("params").unwrap_or(&none), faults) else {
            return refusal(404, &format!("unknown command: {name}"));
        };
        let id = format!("00000000-0000-4000-{:04x}-{:012x}", self.machine.0, self.list.len() + 1);
        let (outcome, work) = match execution {
            Execution::Now(result) => (Some(Ok(result)), None),
            Execution::Later(kind, result) => (
                None,
                Some(Work {
                    id: id.clone(),
                    kind,
                    result,
                }),
            ),
        };
        let command = Command {
            id,
            name: name.to_owned(),
            outcome,
        };
        let view = command.view();
        self.list.push(command);
        (200, view, work)
    }
}

enum Execution {
    /// Completed immediately.
    Now(Value),
    /// Running; the result is set if the work succeeds.
    Later(WorkKind, Value),
}

impl Execution {
    fn of(command: &str, params: &Value, faults: &Faults) -> Option<Self> {
        Some(match command {
            "get_clean_steps" => Self::Now(steps_response("clean_steps", &CLEAN)),
            "get_deploy_steps" => Self::Now(steps_response("deploy_steps", &DEPLOY)),
            "get_service_steps" => Self::Now(steps_response("service_steps", &SERVICE)),
            "execute_clean_step" => step("clean", params, faults),
            "execute_deploy_step" => step("deploy", params, faults),
            "execute_service_step" => step("service", params, faults),
            // The agent finds no partitions in a whole-disk image.
            "get_partition_uuids" => Self::Now(json!({})),
            "sync" | "finalize_rescue" => Self::Now(Value::Null),
            "collect_system_logs" => Self::Now(json!({ "system_logs": empty_archive() })),
            "install_bootloader" => Self::Later(WorkKind::Pass, Value::Null),
            "power_off" => Self::Later(WorkKind::PowerOff, Value::Null),
            "run_image" => Self::Later(WorkKind::Reboot, Value::Null),
            _ => return None,
        })
    }
}

fn steps_response(kind: &str, steps: &[(&str, u8, &str)]) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|(step, priority, interface)| {
            let abortable = kind == "clean_steps";
            json!({
                "step": step,
                "priority": priority,
                "interface": interface,
                "reboot_requested": false,
                "abortable": abortable,
            })
        })
        .collect();
    json!({
        kind: { "GenericHardwareManager": steps },
        "hardware_manager_version": { "generic_hardware_manager": HARDWARE_MANAGER },
    })
}

/// The result must contain the received step unchanged, or Ironic ignores it.
fn step(kind: &str, params: &Value, faults: &Faults) -> Execution {
    let step = params.get("step").cloned().unwrap_or_default();
    let name = step.get("step").and_then(Value::as_str).unwrap_or_default();
    let work = match name {
        "write_image" => match ImageOrder::parse(step.get("args").unwrap_or(&Value::Null)) {
            Ok(order) => WorkKind::WriteImage(Box::new(order)),
            Err(error) => {
                let message = "Invalid command parameters";
                WorkKind::Fail(Failure::new("InvalidCommandParamsError", message, error))
            }
        },
        _ if kind == "clean" && faults.has(Fault::CleanStepFails) => {
            let details = format!("{name}: the disk does not answer");
            WorkKind::Fail(Failure::new("CleaningError", "Clean step failed", details))
        }
        INSTALL if kind == "deploy" => WorkKind::Install,
        _ if name.starts_with("erase_devices") => {
            let purpose = if name == "erase_devices" {
                Purpose::Erase
            } else {
                Purpose::EraseMetadata
            };
            let hints = params
                .pointer("/node/properties/skip_block_devices")
                .and_then(Value::as_array);
            WorkKind::Erase(purpose, hints.cloned().unwrap_or_default())
        }
        _ => WorkKind::Pass,
    };
    // Ironic records the volumes that the agent reports. They are not simulated on the disks.
    let made = match name {
        "create_configuration" => params.pointer("/node/target_raid_config").cloned(),
        _ => None,
    };
    let mut result = Map::new();
    result.insert(format!("{kind}_result"), made.unwrap_or_default());
    result.insert(format!("{kind}_step"), step);
    Execution::Later(work, Value::Object(result))
}

/// A gzipped tar archive without members: two zero blocks.
fn empty_archive() -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let written = gzip.write_all(&[0; 1024]).and_then(|()| gzip.finish());
    STANDARD.encode(written.unwrap_or_default())
}
