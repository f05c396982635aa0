//! Read-only storage: one controller with all disks, without volumes.

use serde_json::{Value, json};

use super::collection;
use crate::{inventory::disk_serial, machine::Machine};

pub(super) fn answer(machine: &Machine, path: &[&str]) -> Option<Value> {
    let system = format!("/redfish/v1/Systems/{}", machine.number.uuid());
    let storage = format!("{system}/Storage");
    Some(match path {
        ["Storage"] => collection("Storage", &storage, ["1".to_owned()]),
        ["Storage", "1"] => controller(machine, &storage),
        ["Storage", "1", "Volumes"] => collection("Volume", &format!("{storage}/1/Volumes"), []),
        ["Storage", "1", "Drives", drive] => drive_of(machine, &storage, drive)?,
        ["SimpleStorage"] => collection("SimpleStorage", &format!("{system}/SimpleStorage"), ["1".to_owned()]),
        ["SimpleStorage", "1"] => simple(machine, &system),
        _ => return None,
    })
}

fn controller(machine: &Machine, storage: &str) -> Value {
    let drives: Vec<Value> = machine
        .disks
        .iter()
        .map(|disk| json!({ "@odata.id": format!("{storage}/1/Drives/{}", disk.name) }))
        .collect();
    json!({
        "@odata.id": format!("{storage}/1"),
        "@odata.type": "#Storage.v1_8_0.Storage",
        "Id": "1",
        "Name": "Storage controller",
        "Status": { "State": "Enabled", "Health": "OK" },
        "StorageControllers": [{
            "@odata.id": format!("{storage}/1#/StorageControllers/0"),
            "MemberId": "0",
            "Name": "Storage controller",
            "SpeedGbps": 12,
            "Status": { "State": "Enabled", "Health": "OK" },
        }],
        "Drives": drives,
        "Volumes": { "@odata.id": format!("{storage}/1/Volumes") },
    })
}

fn drive_of(machine: &Machine, storage: &str, name: &str) -> Option<Value> {
    let (index, _, group) = machine.profile.each_disk().find(|(_, known, _)| known == name)?;
    Some(json!({
        "@odata.id": format!("{storage}/1/Drives/{name}"),
        "@odata.type": "#Drive.v1_11_0.Drive",
        "Id": name,
        "Name": name,
        "CapacityBytes": group.bytes,
        "Manufacturer": group.vendor,
        "Model": group.model,
        "SerialNumber": disk_serial(machine.number, index),
        "MediaType": if group.rotational { "HDD" } else { "SSD" },
        "Protocol": group.transport.to_uppercase(),
        "Status": { "State": "Enabled", "Health": "OK" },
    }))
}

fn simple(machine: &Machine, system: &str) -> Value {
    let devices: Vec<Value> = machine
        .disks
        .iter()
        .map(|disk| {
            let status = json!({ "State": "Enabled", "Health": "OK" });
            json!({ "Name": disk.name, "CapacityBytes": disk.size, "Status": status })
        })
        .collect();
    json!({
        "@odata.id": format!("{system}/SimpleStorage/1"),
        "@odata.type": "#SimpleStorage.v1_3_0.SimpleStorage",
        "Id": "1",
        "Name": "Simple storage",
        "Devices": devices,
    })
}
