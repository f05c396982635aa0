//! Clean and service steps: which exist, their arguments and their effect.

use metal3_sim_bmc::fault::Fault;
use metal3_sim_bmc::hints::Purpose;
use serde_json::{Value, json};

use crate::bios;
use crate::machine::Machine;
use crate::node::Node;
use crate::work::Kind;

/// Valid interfaces of steps.
pub(crate) const INTERFACES: [&str; 7] = ["vendor", "power", "management", "firmware", "deploy", "bios", "raid"];

/// The schema error of invalid steps.
pub(crate) fn malformed(kind: &str, steps: &[Value]) -> Option<String> {
    steps.iter().find_map(|step| {
        let text = |key: &str| step.get(key).and_then(Value::as_str);
        match (text("interface"), text("step")) {
            (Some(interface), Some(_)) if INTERFACES.contains(&interface) => None,
            (Some(interface), Some(_)) => Some(format!(
                "Invalid {kind}_steps: '{interface}' is not one of {INTERFACES:?}"
            )),
            _ => Some(format!("Invalid {kind}_steps: a step needs an interface and a name")),
        }
    })
}

/// The place of a step in the list of its kind: `left` of these are not done, and it is the one at `at` of them. The list of an
/// automated cleaning is not simulated.
pub(crate) fn place_of(node: &Node, kind: Kind, left: usize, at: usize) -> Option<usize> {
    let all = match kind {
        Kind::Service => &node.service_steps,
        _ => &node.clean_steps,
    };
    let done = all.as_ref()?.len().checked_sub(left)?;
    done.checked_add(at)
}

/// The required argument of a step. `Err` when the step does not exist.
fn needs(node: &Node, interface: &str, step: &str) -> Result<Option<&'static str>, ()> {
    let empty = node
        .text(&format!("{interface}_interface"))
        .is_some_and(crate::node::interfaces::is_empty);
    if empty {
        return Err(());
    }
    match (node.is_fake(), interface, step) {
        (_, "bios", "apply_configuration") | (_, "firmware", "update") => Ok(Some("settings")),
        (_, "bios", "factory_reset" | "cache_bios_settings") | (true, "vendor", "log_passthrough") => Ok(None),
        (false, "raid", "create_configuration" | "delete_configuration")
        | (false, "deploy", "erase_devices" | "erase_devices_metadata") => Ok(None),
        _ => Err(()),
    }
}

/// The error of the first step that cannot run.
pub(crate) fn refused(node: &Node, steps: &[Value]) -> Option<String> {
    steps.iter().find_map(|step| {
        let (interface, name) = names(step);
        match needs(node, interface, name) {
            Err(()) => Some(format!("node does not support this clean step: {interface}.{name}")),
            Ok(Some(argument)) if step.pointer(&format!("/args/{argument}")).is_none() => Some(format!(
                "clean step {interface}.{name} is missing these required arguments: {argument}"
            )),
            Ok(_) => None,
        }
    })
}

/// Whether a service with these steps boots the ramdisk: updates of the firmware alone need none.
pub(crate) fn need_ramdisk(steps: &[Value]) -> bool {
    !steps.iter().all(is_update)
}

/// Whether this is the step that updates the firmware.
pub(crate) fn is_update(step: &Value) -> bool {
    names(step) == ("firmware", "update")
}

/// The step's interface and name; empty when missing.
pub(crate) fn names(step: &Value) -> (&str, &str) {
    let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
    (text("interface"), text("step"))
}

/// A setting of the fake driver, which accepts each.
fn untyped(setting: &Value) -> (String, Value) {
    let name = setting.get("name").and_then(Value::as_str).unwrap_or_default();
    let value = setting.get("value").cloned().unwrap_or_default();
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (name.to_owned(), json!(value))
}

/// Runs a step. `Err` when it fails.
pub(crate) fn run(node: &mut Node, machine: Option<&mut Machine>, step: &Value) -> Result<(), String> {
    let (interface, name) = names(step);
    if machine
        .as_ref()
        .is_some_and(|machine| machine.faults.has(Fault::CleanStepFails))
    {
        return Err(format!("step {interface}.{name} failed: the disk does not answer"));
    }
    let settings = step
        .pointer("/args/settings")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    match (interface, name) {
        ("bios", "apply_configuration") => match machine {
            None => node.bios = settings.iter().map(untyped).collect(),
            Some(machine) => {
                let changed = bios::applied(&settings, &machine.bios, machine.bios_reports)?;
                machine.bios.extend(changed);
                node.record_bmc(machine);
            }
        },
        ("bios", "factory_reset") => match machine {
            None => node.bios.clear(),
            Some(machine) => {
                machine.bios = bios::factory();
                node.record_bmc(machine);
            }
        },
        ("deploy", "erase_devices" | "erase_devices_metadata") => {
            let purpose = if name == "erase_devices" {
                Purpose::Erase
            } else {
                Purpose::EraseMetadata
            };
            if let Some(machine) = machine {
                let erased = machine.erase(purpose, &node.disk_choice());
                erased.map_err(|problem| format!("step {interface}.{name} failed: {problem}"))?;
            }
        }
        ("raid", "create_configuration") => node.raid = node.target_raid.clone(),
        ("raid", "delete_configuration") => node.raid = json!({}),
        _ => {}
    }
    Ok(())
}
