//! The system: power, boot order, processors, memory, network cards.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Answer, collection};
use crate::{
    firmware::bios_version,
    machine::{At, Machine, Reset},
    profile::Architecture,
};

const TARGETS: [&str; 6] = ["None", "Pxe", "Cd", "Usb", "Hdd", "UefiHttp"];
const ENABLED: [&str; 3] = ["Disabled", "Once", "Continuous"];
const MODES: [&str; 2] = ["UEFI", "Legacy"];
const LED_STATES: [&str; 3] = ["Off", "Lit", "Blinking"];

fn healthy() -> Value {
    json!({ "State": "Enabled", "Health": "OK", "HealthRollup": "OK" })
}

fn path(machine: &Machine) -> String {
    format!("/redfish/v1/Systems/{}", machine.number.uuid())
}

pub(super) fn root(uuid: &str) -> Value {
    let link = |name: &str| json!({ "@odata.id": format!("/redfish/v1/{name}") });
    json!({
        "@odata.id": "/redfish/v1/",
        "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Lab BMC",
        "RedfishVersion": "1.6.0",
        "UUID": uuid,
        "Systems": link("Systems"),
        "Managers": link("Managers"),
        "Chassis": link("Chassis"),
        "SessionService": link("SessionService"),
        "UpdateService": link("UpdateService"),
        "EventService": link("EventService"),
        "Registries": link("Registries"),
        "Tasks": link("TaskService"),
        "Links": { "Sessions": link("SessionService/Sessions") },
    })
}

pub(super) fn system(machine: &Machine) -> Value {
    let path = path(machine);
    let uuid = machine.number.uuid();
    let link = |name: &str| json!({ "@odata.id": format!("{path}/{name}") });
    json!({
        "@odata.id": path,
        "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
        "Id": uuid,
        "UUID": uuid,
        "Name": format!("machine {}", machine.number),
        "SystemType": "Physical",
        "Manufacturer": machine.profile.vendor.manufacturer,
        "Model": machine.profile.vendor.product,
        "SerialNumber": machine.number.serial(),
        "BiosVersion": bios_version(machine),
        "PowerState": machine.power,
        "IndicatorLED": machine.indicator,
        "Status": healthy(),
        "Boot": {
            "BootSourceOverrideTarget": machine.boot.target,
            "BootSourceOverrideTarget@Redfish.AllowableValues": TARGETS,
            "BootSourceOverrideEnabled": machine.boot.enabled,
            "BootSourceOverrideMode": machine.boot.mode,
            "BootSourceOverrideMode@Redfish.AllowableValues": MODES,
        },
        "ProcessorSummary": {
            "Count": machine.profile.cpu.sockets,
            "LogicalProcessorCount": machine.profile.cpu.threads,
            "Status": healthy(),
        },
        "MemorySummary": { "TotalSystemMemoryGiB": machine.profile.memory_mib / 1024, "Status": healthy() },
        "Processors": link("Processors"),
        "EthernetInterfaces": link("EthernetInterfaces"),
        "Bios": link("Bios"),
        "SecureBoot": link("SecureBoot"),
        "Storage": link("Storage"),
        "SimpleStorage": link("SimpleStorage"),
        "VirtualMedia": link("VirtualMedia"),
        "Links": {
            "ManagedBy": [{ "@odata.id": format!("/redfish/v1/Managers/{uuid}") }],
            "Chassis": [{ "@odata.id": format!("/redfish/v1/Chassis/{uuid}") }],
        },
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": format!("{path}/Actions/ComputerSystem.Reset"),
                "ResetType@Redfish.AllowableValues": Reset::NAMES,
            }
        },
    })
}

pub(super) fn reset(machine: &mut Machine, body: &Value, now: At, delay: Duration) -> Answer {
    match body.get("ResetType").and_then(Value::as_str).and_then(Reset::parse) {
        Some(reset) => {
            machine.reset(reset, now, delay);
            Answer::done()
        }
        None => Answer::error(400, &format!("ResetType must be one of {}", Reset::NAMES.join(", "))),
    }
}

/// The value of `field` if it is one of `allowed`; an error leaves the machine unchanged.
fn choice(from: &Map<String, Value>, field: &str, allowed: &[&str]) -> Result<Option<String>, Answer> {
    match from.get(field).map(Value::as_str) {
        None => Ok(None),
        Some(Some(value)) if allowed.contains(&value) => Ok(Some(value.to_owned())),
        Some(_) => Err(Answer::error(
            400,
            &format!("{field} must be one of {}", allowed.join(", ")),
        )),
    }
}

pub(super) fn patch(machine: &mut Machine, body: &Value) -> Answer {
    let Some(body) = body.as_object() else {
        return Answer::error(400, "the body must be a JSON object");
    };
    if body.is_empty() {
        return Answer::error(400, "the body contains no change");
    }
    if let Some(unknown) = body.keys().find(|key| !matches!(key.as_str(), "Boot" | "IndicatorLED")) {
        return Answer::unsupported(&format!("changes of {unknown}"));
    }
    let none = Map::new();
    let boot = body.get("Boot").and_then(Value::as_object).unwrap_or(&none);
    let chosen = (|| {
        Ok((
            choice(boot, "BootSourceOverrideTarget", &TARGETS)?,
            choice(boot, "BootSourceOverrideEnabled", &ENABLED)?,
            choice(boot, "BootSourceOverrideMode", &MODES)?,
            choice(body, "IndicatorLED", &LED_STATES)?,
        ))
    })();
    let (target, enabled, mode, led) = match chosen {
        Ok(chosen) => chosen,
        Err(answer) => return answer,
    };
    if boot.contains_key("HttpBootUri") {
        return Answer::unsupported("UEFI HTTP boot");
    }
    let set = |place: &mut String, value: Option<String>| {
        if let Some(value) = value {
            *place = value;
        }
    };
    set(&mut machine.boot.target, target);
    set(&mut machine.boot.enabled, enabled);
    set(&mut machine.boot.mode, mode);
    set(&mut machine.indicator, led);
    Answer::done()
}

pub(super) fn processors(machine: &Machine, rest: &[&str]) -> Option<Value> {
    let path = format!("{}/Processors", path(machine));
    let cpu = &machine.profile.cpu;
    let members = (0..cpu.sockets).map(|socket| format!("CPU{socket}"));
    let [member] = rest else {
        return rest.is_empty().then(|| collection("Processor", &path, members));
    };
    members.into_iter().find(|known| known == member)?;
    let (architecture, instructions) = match machine.profile.architecture {
        Architecture::X86 => ("x86", "x86-64"),
        Architecture::Arm => ("ARM", "ARM-A64"),
    };
    Some(json!({
        "@odata.id": format!("{path}/{member}"),
        "@odata.type": "#Processor.v1_7_0.Processor",
        "Id": member,
        "Name": "Processor",
        "Socket": member,
        "ProcessorType": "CPU",
        "ProcessorArchitecture": architecture,
        "InstructionSet": instructions,
        "Model": cpu.model,
        "MaxSpeedMHz": cpu.mhz,
        "TotalCores": cpu.cores / cpu.sockets,
        "TotalThreads": cpu.threads / cpu.sockets,
        "Status": healthy(),
    }))
}

pub(super) fn interfaces(machine: &Machine, rest: &[&str]) -> Option<Value> {
    let path = format!("{}/EthernetInterfaces", path(machine));
    let mut cards = machine
        .profile
        .each_nic()
        .map(|(index, nic)| (index, format!("NIC{}", index + 1), nic));
    let [member] = rest else {
        let names = cards.map(|(_, name, _)| name);
        return rest.is_empty().then(|| collection("EthernetInterface", &path, names));
    };
    let (index, name, nic) = cards.find(|(_, name, _)| name == member)?;
    let mac = machine.number.mac(index);
    Some(json!({
        "@odata.id": format!("{path}/{name}"),
        "@odata.type": "#EthernetInterface.v1_5_0.EthernetInterface",
        "Id": name,
        "Name": name,
        "MACAddress": mac,
        "PermanentMACAddress": mac,
        "SpeedMbps": nic.speed_mbps,
        "LinkStatus": if nic.carrier { "LinkUp" } else { "LinkDown" },
        "Status": healthy(),
    }))
}

pub(super) fn secure_boot(machine: &Machine) -> Value {
    json!({
        "@odata.id": format!("{}/SecureBoot", path(machine)),
        "@odata.type": "#SecureBoot.v1_1_0.SecureBoot",
        "Id": "SecureBoot",
        "Name": "UEFI secure boot",
        "SecureBootEnable": false,
        "SecureBootCurrentBoot": "Disabled",
        "SecureBootMode": "DeployedMode",
    })
}
