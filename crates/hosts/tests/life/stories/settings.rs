//! The invariants of the BIOS settings: a cleaning changes what the user asks for and the machine lacks, and at rest the machine
//! has it or a message says why not.

use std::collections::BTreeMap;

use serde_json::Value;

use super::history::{History, state};
use super::judge::{Order, SLACK};

/// The text of a value. Ironic shows a boolean as a digit.
fn text(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.as_str() {
        "1" => "true".to_owned(),
        "0" => "false".to_owned(),
        _ => text,
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    text(one).eq_ignore_ascii_case(&text(other))
}

/// The violated invariant of a cleaning or a service with settings, if any.
pub(super) fn violated_settings(order: &Order<'_>, asked: &History, bios: &BTreeMap<String, Value>) -> Option<String> {
    let steps = order.steps();
    let steps = steps.filter(|step| step["interface"] == "bios");
    let settings = steps.filter_map(|step| step["args"]["settings"].as_array()).flatten();
    for setting in settings {
        let (name, value) = (setting["name"].as_str().unwrap_or_default(), &setting["value"]);
        if !asked.ever(SLACK, |object| is_same(&object["spec"]["settings"][name], value)) {
            return Some(format!("clean: the user does not ask for {name}={value}"));
        }
        if bios.get(name).is_none_or(|has| is_same(has, value)) {
            return Some(format!("clean: the machine has {name}={value}"));
        }
    }
    None
}

/// `Err`: a setting that the machine lacks and that no message names.
pub(super) fn unexplained_setting(host: &Value, object: &Value, bios: &BTreeMap<String, Value>) -> Result<(), String> {
    let messages = object["status"]["conditions"].as_array().into_iter().flatten();
    let messages = messages.filter(|one| one["observedGeneration"] == object["metadata"]["generation"]);
    let messages: Vec<_> = messages.filter_map(|one| one["message"].as_str()).collect();
    let shown = format!("{} {}", host["status"]["errorMessage"], messages.join(" "));
    for (name, value) in object["spec"]["settings"].as_object().into_iter().flatten() {
        let has_it = bios.get(name).is_some_and(|has| is_same(has, value));
        if !has_it && (state(host) == "available" || !shown.contains(name.as_str())) {
            return Err(format!(
                "nothing says that the machine lacks {name}={value}: {shown}, state {:?}",
                state(host)
            ));
        }
    }
    Ok(())
}
