//! Deploy steps: which Ironic and the agent know, and their effect.

use metal3_sim_bmc::hints::Purpose;
use serde_json::{Map, Value};

use super::steps::{INTERFACES, names};
use crate::machine::{Image, Machine};
use crate::node::Node;

/// The interface that installs a system by a step of the agent only.
pub(crate) const CUSTOM_AGENT: &str = "custom-agent";
/// Steps of the conductor itself, which these simulations run always and in Ironic's order.
const OWN: [&str; 4] = [
    "boot_instance",
    "prepare_instance_boot",
    "switch_to_tenant_network",
    "tear_down_agent",
];
/// Names that mean the same with each interface.
const RESERVED: [&str; 5] = ["power_on", "power_off", "reboot", "hold", "wait"];

/// The schema error of invalid deploy steps: unlike other steps they have arguments and a priority, and nothing else.
pub(crate) fn malformed(steps: &[Value]) -> Option<String> {
    steps.iter().find_map(|step| {
        let (interface, name) = names(step);
        let is_known = |key: &String| ["interface", "step", "args", "priority"].contains(&key.as_str());
        let priority = step.get("priority");
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let has_priority =
            priority.is_some_and(|priority| priority.is_u64() || priority.as_str().is_some_and(is_number));
        let is_valid = INTERFACES.contains(&interface)
            && !name.is_empty()
            && step.get("args").is_some_and(Value::is_object)
            && has_priority
            && step.as_object().is_some_and(|step| step.keys().all(is_known));
        (!is_valid).then(|| format!("Invalid deploy_steps: {step} is not valid under the schema of a deploy step"))
    })
}

/// What these simulations do not perform.
pub(crate) fn beyond(node: &Node, steps: &[Value]) -> Option<&'static str> {
    let mut named = steps.iter().map(names);
    if steps.is_empty() {
        None
    } else if node.is_live() {
        Some("a deploy step of a live image")
    } else if named.any(|(interface, name)| interface != "deploy" || OWN.contains(&name) || RESERVED.contains(&name)) {
        Some("a deploy step of Ironic itself")
    } else {
        None
    }
}

/// The conductor's error before the agent runs. Steps that it does not know may be the agent's.
pub(crate) fn refused(steps: &[Value]) -> Option<String> {
    let is_core = |step: &&Value| names(step) == ("deploy", "deploy") && !is_disabled(step);
    steps.iter().find(is_core).map(|_| {
        "deploy step deploy on interface deploy is a core step and cannot be overridden by user steps. It may be disabled by \
         setting the priority to 0"
            .to_owned()
    })
}

/// The error of the first step that the agent does not know, or that lacks an argument.
pub(crate) fn unknown(machine: &Machine, steps: &[Value]) -> Option<String> {
    steps.iter().find_map(|step| {
        let (_, name) = names(step);
        match name {
            "write_image" if !is_disabled(step) => Some(format!(
                "deploy step {step} is missing these required arguments: image_info"
            )),
            "deploy" | "write_image" | "erase_devices_metadata" => None,
            name if machine.deploy_steps.contains(name) => None,
            _ => Some(format!("node does not support this deploy step: {step}")),
        }
    })
}

/// Runs the steps on a machine. `Err` when one fails.
pub(crate) fn run(node: &Node, machine: &mut Machine, steps: &[Value]) -> Result<(), String> {
    for step in steps.iter().filter(|step| !is_disabled(step)) {
        match names(step).1 {
            "erase_devices_metadata" => machine.erase(Purpose::EraseMetadata, &node.disk_choice())?,
            name => {
                let image = Image {
                    step: Some(name.to_owned()),
                    ..image(node)
                };
                let written = machine.write(image, &node.disk_choice());
                written
                    .map_err(|message| format!("Deploy step deploy.{name} failed on node {}. {message}", node.uuid))?;
            }
        }
    }
    Ok(())
}

/// The image in the record of the node, which no step has written.
pub(crate) fn image(node: &Node) -> Image {
    let text = |key: &str| node.image(key).map(str::to_owned);
    Image {
        source: text("image_source").unwrap_or_default(),
        checksum: text("image_os_hash_value").or_else(|| text("image_checksum")),
        config_drive: node.field("instance_info").as_object().and_then(drive),
        step: None,
    }
}

fn drive(info: &Map<String, Value>) -> Option<Value> {
    info.get("configdrive").cloned()
}

fn is_disabled(step: &Value) -> bool {
    let priority = step.get("priority");
    priority.is_some_and(|priority| priority.as_u64() == Some(0) || priority.as_str() == Some("0"))
}
