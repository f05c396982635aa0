//! Steps of cleaning and servicing: which there are, what they need, and what they leave behind.

use metal3_labhosts::fault::Fault;
use serde_json::{Value, json};

use crate::node::Node;

/// The interfaces that steps may name.
const INTERFACES: [&str; 7] = ["vendor", "power", "management", "firmware", "deploy", "bios", "raid"];

/// Why steps cannot even be asked for.
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

/// The argument without which a step cannot run. `Err`: there is no such step.
fn needs(node: &Node, interface: &str, step: &str) -> Result<Option<&'static str>, ()> {
    let empty = node
        .text(&format!("{interface}_interface"))
        .is_some_and(crate::node::interfaces::is_empty);
    if empty {
        return Err(());
    }
    match (node.is_fake(), interface, step) {
        (_, "bios", "apply_configuration") => Ok(Some("settings")),
        (_, "bios", "factory_reset" | "cache_bios_settings") | (true, "vendor", "log_passthrough") => Ok(None),
        (_, "firmware", "update") => Ok(Some("settings")),
        (false, "raid", "create_configuration" | "delete_configuration")
        | (false, "deploy", "erase_devices" | "erase_devices_metadata") => Ok(None),
        _ => Err(()),
    }
}

/// What is wrong with the first step that cannot run.
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

/// The step's interface and name; empty where it has none.
pub(crate) fn names(step: &Value) -> (&str, &str) {
    let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
    (text("interface"), text("step"))
}

/// Carries out a step. `Err`: it ran and failed.
pub(crate) fn carry(node: &mut Node, step: &Value) -> Result<(), String> {
    let (interface, name) = names(step);
    if node
        .machine
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
        ("bios", "apply_configuration") => {
            if node.is_fake() {
                node.bios.clear();
            }
            for setting in settings {
                let name = setting
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                let value = setting.get("value").cloned().unwrap_or_default();
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                node.bios.insert(name, json!(value));
            }
        }
        ("bios", "factory_reset") => {
            node.bios = if node.is_fake() {
                Default::default()
            } else {
                factory_bios()
            };
        }
        ("firmware", "update") => {
            for setting in settings {
                let text = |key: &str| setting.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                node.flashed.insert(text("component"), text("url"));
            }
        }
        ("raid", "create_configuration") => node.raid = node.target_raid.clone(),
        ("raid", "delete_configuration") => node.raid = json!({}),
        _ => {}
    }
    Ok(())
}

/// The settings that a machine leaves its factory with.
pub(crate) fn factory_bios() -> std::collections::BTreeMap<String, Value> {
    [
        ("BootMode", "Uefi"),
        ("NumaGroupSize", "Flat"),
        ("ProcVirtualization", "Enabled"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), json!(value)))
    .collect()
}
