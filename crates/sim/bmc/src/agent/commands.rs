//! The agent's command interface: what it is asked, the list of what it did, the steps it offers.

use std::io::Write as _;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Map, Value, json};

use super::order::ImageOrder;
use crate::{
    fault::{Fault, Faults},
    identity::Number,
};

pub(super) const HARDWARE_MANAGER: &str = "1.2";

/// The in-band steps: name, the agent's own priority, interface.
const CLEAN: [(&str, u8, &str); 4] = [
    ("erase_devices", 10, "deploy"),
    ("erase_devices_metadata", 99, "deploy"),
    ("erase_pstore", 0, "deploy"),
    ("delete_configuration", 0, "raid"),
];
const DEPLOY: [(&str, u8, &str); 2] = [("write_image", 0, "deploy"), ("erase_devices_metadata", 0, "deploy")];
const SERVICE: [(&str, u8, &str); 1] = [("burnin_cpu", 0, "deploy")];

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The class of the error, as the agent names its own.
    pub kind: &'static str,
    /// What was attempted.
    pub message: &'static str,
    /// What went wrong.
    pub details: String,
}

/// Something to do behind a command's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The command's id, to report the end.
    pub id: String,
    /// What to do.
    pub kind: WorkKind,
    /// What the command answers when it succeeds.
    pub result: Value,
}

/// The kinds of work.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkKind {
    /// Fetch, check and write an image.
    WriteImage(Box<ImageOrder>),
    /// Make the disks forget.
    Erase,
    /// Nothing that leaves a trace.
    Pass,
    /// Fail with this reason.
    Fail(Failure),
    /// Switch the machine off.
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

/// All commands since the boot, oldest first.
#[derive(Debug)]
pub(super) struct Commands {
    machine: Number,
    list: Vec<Command>,
}

/// The body of a refusal; Ironic reads `faultstring`.
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
            return refusal(400, "a command is named extension.command");
        };
        if let Some(busy) = self.list.last().filter(|command| command.outcome.is_none()) {
            return refusal(409, &format!("Agent is busy: {} is still running", busy.name));
        }
        let none = Value::Null;
        let Some(meaning) = Meaning::of(name, body.get("params").unwrap_or(&none), faults) else {
            return refusal(404, &format!("unknown command: {name}"));
        };
        let id = format!("00000000-0000-4000-{:04x}-{:012x}", self.machine.0, self.list.len() + 1);
        let (outcome, work) = match meaning {
            Meaning::Now(result) => (Some(Ok(result)), None),
            Meaning::Later(kind, result) => (
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

enum Meaning {
    /// Answered at once.
    Now(Value),
    /// Answered as running; the result comes if the work succeeds.
    Later(WorkKind, Value),
}

impl Meaning {
    fn of(command: &str, params: &Value, faults: &Faults) -> Option<Self> {
        Some(match command {
            "get_clean_steps" => Self::Now(offer("clean_steps", &CLEAN)),
            "get_deploy_steps" => Self::Now(offer("deploy_steps", &DEPLOY)),
            "get_service_steps" => Self::Now(offer("service_steps", &SERVICE)),
            "execute_clean_step" => step("clean", params, faults),
            "execute_deploy_step" => step("deploy", params, faults),
            "execute_service_step" => step("service", params, faults),
            // A whole-disk image has no partitions that the agent would know.
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

fn offer(kind: &str, steps: &[(&str, u8, &str)]) -> Value {
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

/// The echoed step must equal the one received, or Ironic ignores the result.
fn step(kind: &str, params: &Value, faults: &Faults) -> Meaning {
    let step = params.get("step").cloned().unwrap_or_default();
    let name = step.get("step").and_then(Value::as_str).unwrap_or_default();
    let work = match name {
        "write_image" => match ImageOrder::parse(step.get("args").unwrap_or(&Value::Null)) {
            Ok(order) => WorkKind::WriteImage(Box::new(order)),
            Err(error) => WorkKind::Fail(Failure {
                kind: "InvalidCommandParamsError",
                message: "Invalid command parameters",
                details: error.to_string(),
            }),
        },
        _ if kind == "clean" && faults.has(Fault::CleanStepFails) => WorkKind::Fail(Failure {
            kind: "CleaningError",
            message: "Clean step failed",
            details: format!("{name}: the disk does not answer"),
        }),
        _ if name.starts_with("erase_devices") => WorkKind::Erase,
        _ => WorkKind::Pass,
    };
    let mut result = Map::new();
    result.insert(format!("{kind}_result"), Value::Null);
    result.insert(format!("{kind}_step"), step);
    Meaning::Later(work, Value::Object(result))
}

/// A gzipped tar without members: two blocks of zeros.
fn empty_archive() -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let written = gzip.write_all(&[0; 1024]).and_then(|()| gzip.finish());
    STANDARD.encode(written.unwrap_or_default())
}
