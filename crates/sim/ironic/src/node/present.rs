//! The JSON of a node for a microversion, with masked secrets.

use chrono::{DateTime, Utc};
use metal3_ironic::version::{DISABLE_POWER_OFF, HEALTH, Microversion};
use serde_json::{Map, Value, json};

use super::Node;
use super::fields::INSTANCE_NAME;

/// The mask of a secret.
const MASK: &str = "******";

/// A time as Ironic writes it.
pub(crate) fn stamp(time: DateTime<Utc>) -> Value {
    json!(time.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string())
}

fn stamped(time: Option<DateTime<Utc>>) -> Value {
    time.map_or(Value::Null, stamp)
}

/// A link to a resource and its bookmark.
pub(crate) fn links(base: &str, path: &str) -> Value {
    json!([
        {"href": format!("{base}/v1/{path}"), "rel": "self"},
        {"href": format!("{base}/{path}"), "rel": "bookmark"},
    ])
}

/// All fields.
pub(crate) fn whole(node: &Node, microversion: Microversion, base: &str, host: &str) -> Map<String, Value> {
    let mut shown = node.fields.clone();
    mask(shown.get_mut("driver_info"), &["password", "secret", "token"]);
    mask(shown.get_mut("instance_info"), &["configdrive", "secret", "password"]);
    for part in ["driver_info", "instance_info"] {
        if let Some(value) = shown.get_mut(part) {
            *value = masked(value.take());
        }
    }
    let uuid = &node.uuid;
    let own = json!({
        "uuid": uuid,
        "created_at": stamp(node.times.created),
        "updated_at": stamped(node.times.updated),
        "provision_updated_at": stamped(node.times.provisioned),
        "inspection_started_at": stamped(node.times.inspection_began),
        "inspection_finished_at": stamped(node.times.inspection_ended),
        "provision_state": node.provision.state,
        "target_provision_state": node.provision.target,
        "power_state": node.power,
        "target_power_state": node.target_power,
        "last_error": node.last_error,
        "maintenance_reason": node.maintenance_reason,
        "fault": node.fault,
        "reservation": node.lock.map(|_| host),
        "clean_step": node.step("clean_step"),
        "deploy_step": node.step("deploy_step"),
        "service_step": node.step("service_step"),
        "raid_config": node.raid,
        "target_raid_config": node.target_raid,
        "boot_mode": node.boot_mode,
        "secure_boot": node.secure_boot,
        "traits": node.traits,
        "conductor": host,
        "console_enabled": false,
        "driver_internal_info": internal(node),
        "allocation_uuid": null,
        "health": null,
        "links": links(base, &format!("nodes/{uuid}")),
        "ports": links(base, &format!("nodes/{uuid}/ports")),
        "portgroups": links(base, &format!("nodes/{uuid}/portgroups")),
        "states": links(base, &format!("nodes/{uuid}/states")),
        "volume": links(base, &format!("nodes/{uuid}/volume")),
    });
    if let Value::Object(own) = own {
        shown.extend(own);
    }
    for (field, since) in [
        ("disable_power_off", DISABLE_POWER_OFF),
        ("instance_name", INSTANCE_NAME),
        ("health", HEALTH),
    ] {
        if microversion < since {
            shown.remove(field);
        }
    }
    shown
}

/// What Ironic keeps for itself. It keeps the steps of a cleaning or a service that failed.
fn internal(node: &Node) -> Value {
    let mut internal = Map::from_iter([("clean_steps".to_owned(), json!(node.clean_steps))]);
    if let Some(steps) = &node.service_steps {
        internal.insert("service_steps".to_owned(), json!(steps));
    }
    if let Some(steps) = &node.deploy_steps {
        internal.insert("deploy_steps".to_owned(), json!(steps));
    }
    if let (Some(kind), Some(index)) = (node.steps.keys().next(), node.step_index) {
        internal.insert(format!("{kind}_index"), json!(index));
    }
    if !node.fw_updates.is_empty() {
        internal.insert("redfish_fw_updates".to_owned(), json!(node.fw_updates));
    }
    masked(internal.into())
}

/// Some of the names whose values Ironic masks in any text, also when they are only the end of one. What follows is lost with it.
const SECRET: [&str; 3] = ["password=", "secret=", "token="];

fn masked(value: Value) -> Value {
    match value {
        Value::String(text) => {
            let lower = text.to_ascii_lowercase();
            let ends = SECRET
                .iter()
                .filter_map(|name| Some(lower.find(name)?.saturating_add(name.len())));
            match ends.min().and_then(|end| text.get(..end)) {
                Some(shown) => format!("{shown}******").into(),
                None => text.into(),
            }
        }
        Value::Array(list) => list.into_iter().map(masked).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, masked(value))).collect(),
        other => other,
    }
}

/// Fields of a list without `detail` and `fields`.
pub(crate) const SHORT: [&str; 7] = [
    "uuid",
    "instance_uuid",
    "maintenance",
    "power_state",
    "provision_state",
    "name",
    "links",
];

/// The `states` document.
pub(crate) fn states(node: &Node) -> Value {
    json!({
        "console_enabled": false,
        "last_error": node.last_error,
        "power_state": node.power,
        "provision_state": node.provision.state,
        "target_power_state": node.target_power,
        "target_provision_state": node.provision.target,
        "provision_updated_at": stamped(node.times.provisioned),
        "raid_config": node.raid,
        "target_raid_config": node.target_raid,
        "boot_mode": node.boot_mode,
        "secure_boot": node.secure_boot,
    })
}

fn mask(map: Option<&mut Value>, secret: &[&str]) {
    let Some(Value::Object(map)) = map else { return };
    for (key, value) in map.iter_mut() {
        if secret.iter().any(|word| key.contains(word)) {
            *value = MASK.into();
        }
    }
}
