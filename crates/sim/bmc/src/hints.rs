//! How an agent matches hints with disks: those that it skips, and the root device.
//!
//! As in ironic-python-agent: what any hint matches is skipped, a hint matches when all its members do, and comparison ignores
//! case. The metadata of partitions is erased apart from their disk, so a disk is spared by that step only if its partitions are,
//! too. For an image, releases up to 11.2 do not skip by serial number or world wide name; so does this agent.

use serde_json::{Map, Value};

/// What an agent does with the disks that it does not skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It erases them.
    Erase,
    /// It erases their metadata, and that of their partitions.
    EraseMetadata,
    /// It writes an image to one.
    Image,
}

const NAMES: [&str; 12] = [
    "size",
    "model",
    "wwn",
    "serial",
    "vendor",
    "wwn_with_extension",
    "wwn_vendor_extension",
    "name",
    "rotational",
    "hctl",
    "by_path",
    "tran",
];
const GIBIBYTE: f64 = 1_073_741_824.0;

/// Whether a disk of the inventory is skipped.
///
/// # Errors
/// When a hint is invalid: the step of the agent fails.
pub fn is_skipped(disk: &Value, hints: &[Value], purpose: Purpose) -> Result<bool, String> {
    let any = |device: &Value| {
        hints
            .iter()
            .try_fold(false, |found, hint| Ok::<_, String>(found | matches(device, hint)?))
    };
    match purpose {
        Purpose::Erase => any(disk),
        Purpose::EraseMetadata => Ok(any(disk)? && any(&partition(disk))?),
        Purpose::Image => any(&without(disk, &["serial", "wwn"])),
    }
}

/// A partition of a disk, as an agent reports it.
fn partition(disk: &Value) -> Value {
    let mut partition = without(disk, &["model", "vendor", "hctl", "tran"]);
    for key in ["name", "by_path"] {
        if let Some(Value::String(path)) = partition.get_mut(key) {
            path.push('1');
        }
    }
    if let Some(size) = partition.get_mut("size") {
        *size = Value::from(size.as_u64().unwrap_or_default() / 2);
    }
    partition
}

fn without(device: &Value, keys: &[&str]) -> Value {
    let mut device = device.clone();
    if let Value::Object(members) = &mut device {
        members.retain(|key, _| !keys.contains(&key.as_str()));
    }
    device
}

/// Whether a device has all that a hint names.
///
/// # Errors
/// When the hint is invalid.
pub fn matches(device: &Value, hint: &Value) -> Result<bool, String> {
    let members: &Map<String, Value> = match hint {
        Value::Object(members) if !members.is_empty() => members,
        _ => return Err(format!("the hint {hint} is invalid")),
    };
    if let Some(unknown) = members.keys().find(|key| !NAMES.contains(&key.as_str())) {
        return Err(format!("The hints {unknown:?} are invalid"));
    }
    members.iter().try_fold(true, |all, (name, wanted)| {
        Ok(all & member_matches(device.get(name).unwrap_or(&Value::Null), name, wanted)?)
    })
}

fn member_matches(own: &Value, name: &str, wanted: &Value) -> Result<bool, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    let wanted_text = text(wanted);
    let (operator, operand) = match wanted_text.split_once(' ') {
        Some((operator @ ("s==" | "<in>" | ">=" | "=="), operand)) => (operator, operand.trim()),
        _ => ("", wanted_text.as_str()),
    };
    if own.is_null() {
        return Ok(false);
    }
    let own_text = text(own);
    match (name, operator) {
        ("rotational", "") => Ok(own_text == operand),
        ("size", ">=" | "==" | "") => {
            let wanted: f64 = operand.parse().map_err(|_| format!("the hint {wanted} is no size"))?;
            let own = own.as_f64().unwrap_or_default() / GIBIBYTE;
            Ok(if operator == ">=" {
                own >= wanted
            } else {
                own.trunc() == wanted.trunc()
            })
        }
        ("rotational" | "size", _) | (_, ">=") => Err(format!("the hint {wanted} is invalid")),
        (_, "<in>") => Ok(own_text.contains(operand)),
        _ => Ok(own_text == operand),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn disk() -> Value {
        json!({ "name": "/dev/sdb", "serial": "D 1", "wwn": "0x5A", "wwn_with_extension": "0x5A", "hctl": "1:0:0:0", "model": "LAB HDD",
            "vendor": "ATA", "size": 2_u64 << 30, "rotational": true, "by_path": "/dev/disk/by-path/p" })
    }

    #[test]
    fn disk_is_skipped_with_its_partitions_only_by_what_both_have() {
        for (hint, erase, metadata, image) in [
            (json!({ "serial": "s== d 1" }), true, true, false),
            (json!({ "wwn": "s== 0x5a" }), true, true, false),
            (json!({ "wwn_with_extension": "s== 0x5a" }), true, true, true),
            (json!({ "rotational": "true" }), true, true, true),
            (json!({ "name": "s== /dev/sdb" }), true, false, true),
            (json!({ "name": "<in> /dev/sd" }), true, true, true),
            (json!({ "hctl": "s== 1:0:0:0" }), true, false, true),
            (json!({ "model": "<in> hdd" }), true, false, true),
            (json!({ "size": ">= 2" }), true, false, true),
            (json!({ "by_path": "s== /dev/disk/by-path/p" }), true, false, true),
            (
                json!({ "serial": "s== d 1", "hctl": "s== 2:0:0:0" }),
                false,
                false,
                false,
            ),
            (json!({ "serial": "s== d" }), false, false, false),
        ] {
            let skipped = |purpose| is_skipped(&disk(), std::slice::from_ref(&hint), purpose).unwrap();
            assert_eq!(
                (
                    skipped(Purpose::Erase),
                    skipped(Purpose::EraseMetadata),
                    skipped(Purpose::Image)
                ),
                (erase, metadata, image),
                "{hint}"
            );
        }
    }

    #[test]
    fn invalid_hint_is_an_error_and_skips_nothing_in_silence() {
        for hint in [
            json!({}),
            json!("sdb"),
            json!({ "colour": "blue" }),
            json!({ "size": "s== 2" }),
        ] {
            assert!(
                is_skipped(&disk(), std::slice::from_ref(&hint), Purpose::Erase).is_err(),
                "{hint}"
            );
        }
    }
}
