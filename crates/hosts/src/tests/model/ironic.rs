//! The model of a node and the disk of its machine.

use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::calls::state::Power;
use serde_json::{Value, json};

use crate::tests::fixture::node;
use crate::tests::rows::given::{with, written};

pub(super) fn known(state: &str, runs: Option<&str>) -> Value {
    match runs {
        Some(name) => with(node(state), written(name)),
        None => node(state),
    }
}

/// Applies a patch. Passwords are masked, as in Ironic.
pub(super) fn change(node: &mut Value, patch: Patch) {
    for operation in patch.into_body().unwrap().as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        let (parent, key) = path.rsplit_once('/').unwrap();
        if !parent.is_empty() && node.pointer(parent).is_none_or(Value::is_null) {
            node[parent.trim_start_matches('/')] = json!({});
        }
        let parent = node.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match operation["op"].as_str() {
            Some("add") if key.ends_with("password") => parent.insert(key.to_owned(), json!("******")),
            Some("add") => parent.insert(key.to_owned(), operation["value"].clone()),
            _ => parent.remove(key),
        };
    }
}

/// The next state after a transition, if Ironic accepts it.
pub(super) fn transition(node: &mut Value, asked: &Transition) -> bool {
    let state = node["provision_state"].as_str().unwrap().to_owned();
    let next = match (state.as_str(), asked) {
        ("enroll", Transition::Manage) => "verifying",
        ("available" | "clean failed" | "inspect failed" | "adopt failed", Transition::Manage) => "manageable",
        ("manageable" | "inspect failed", Transition::Inspect) => "inspecting",
        ("manageable", Transition::Provide) => "cleaning",
        ("manageable" | "adopt failed", Transition::Adopt) => "adopting",
        ("available" | "deploy failed", Transition::Deploy { .. }) => "deploying",
        ("active" | "deploy failed" | "wait call-back" | "error", Transition::Delete) => "deleting",
        ("inspect wait" | "clean wait", Transition::Abort) => "clean failed",
        _ => return false,
    };
    node["provision_state"] = json!(next);
    node["last_error"] = Value::Null;
    true
}

/// The progress of Ironic without requests: the possible next states of node and disk.
pub(super) fn progress(node: &Value, disk: Option<&str>, may_fail: bool) -> Vec<(Value, Option<String>)> {
    let mut found = Vec::new();
    let mut to = |state: &str, disk: Option<String>, change: Value| {
        let mut next = node.clone();
        metal3_runtime::patch::apply(&change, &mut next);
        next["provision_state"] = json!(state);
        found.push((next, disk));
    };
    let disk = disk.map(str::to_owned);
    match node["provision_state"].as_str().unwrap() {
        "verifying" => to("manageable", disk, json!({})),
        "inspecting" => to("manageable", disk, json!({ "inspected": true })),
        "cleaning" => to("available", None, json!({ "power_state": "power off" })),
        "deleting" => to(
            "cleaning",
            disk,
            json!({ "instance_uuid": null, "instance_info": null, "power_state": "power off" }),
        ),
        "adopting" => to("active", disk, json!({ "power_state": "power on" })),
        "deploying" => {
            let source = node["instance_info"]["image_source"].as_str().map(str::to_owned);
            if may_fail {
                to("deploy failed", None, json!({ "last_error": "checksum" }));
            } else {
                to("active", source, json!({ "power_state": "power on" }));
            }
        }
        _ => {}
    }
    found
}

pub(super) fn power(node: &mut Value, power: Power) {
    let state = match power {
        Power::On | Power::Reboot | Power::SoftReboot => "power on",
        Power::Off | Power::SoftOff(_) => "power off",
    };
    node["power_state"] = json!(state);
}
