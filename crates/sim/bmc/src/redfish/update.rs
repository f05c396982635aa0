//! The update service with the firmware inventory, and the tasks of updates.

use serde_json::{Value, json};

use super::{Answer, Request, Verb, collection};
use crate::{
    firmware::{Progress, bios_version, bmc_version},
    machine::Machine,
};

const SERVICE: &str = "/redfish/v1/UpdateService";
const TASKS: &str = "/redfish/v1/TaskService/Tasks";
/// The supported members of `SimpleUpdate`. The only target is this system: the file says what of it is updated.
const MEMBERS: [&str; 3] = ["ImageURI", "TransferProtocol", "Targets"];

/// Resources below `UpdateService`.
pub(super) fn answer(machine: &mut Machine, request: &Request<'_>, path: &[&str]) -> Answer {
    match (request.verb, path) {
        (Verb::Get, []) => Answer::ok(service()),
        (Verb::Get, ["FirmwareInventory"]) => {
            let members = ["BIOS".to_owned(), "BMC".to_owned()];
            Answer::ok(collection(
                "SoftwareInventory",
                &format!("{SERVICE}/FirmwareInventory"),
                members,
            ))
        }
        (Verb::Get, ["FirmwareInventory", "BIOS"]) => Answer::ok(inventory("BIOS", bios_version(machine))),
        (Verb::Get, ["FirmwareInventory", "BMC"]) => Answer::ok(inventory("BMC", bmc_version(machine))),
        (Verb::Post, ["Actions", "UpdateService.SimpleUpdate"]) => update(machine, request.body),
        _ => Answer::not_found(request.path),
    }
}

/// Resources below `TaskService`.
pub(super) fn tasks(machine: &Machine, path: &[&str]) -> Option<Value> {
    match path {
        [] => Some(json!({
            "@odata.id": "/redfish/v1/TaskService",
            "@odata.type": "#TaskService.v1_1_4.TaskService",
            "Id": "TaskService",
            "Name": "Task service",
            "ServiceEnabled": true,
            "Tasks": { "@odata.id": TASKS },
        })),
        ["Tasks"] => {
            let numbers = 1..=machine.firmware.tasks();
            Some(collection("Task", TASKS, numbers.map(|number| number.to_string())))
        }
        ["Tasks", number] => task(machine, number.parse().ok()?),
        _ => None,
    }
}

fn service() -> Value {
    json!({
        "@odata.id": SERVICE,
        "@odata.type": "#UpdateService.v1_8_0.UpdateService",
        "Id": "UpdateService",
        "Name": "Update service",
        "ServiceEnabled": true,
        "FirmwareInventory": { "@odata.id": format!("{SERVICE}/FirmwareInventory") },
        "Actions": { "#UpdateService.SimpleUpdate": {
            "target": format!("{SERVICE}/Actions/UpdateService.SimpleUpdate"),
            "TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS"],
        } },
    })
}

fn inventory(name: &str, version: &str) -> Value {
    json!({
        "@odata.id": format!("{SERVICE}/FirmwareInventory/{name}"),
        "@odata.type": "#SoftwareInventory.v1_3_0.SoftwareInventory",
        "Id": name,
        "Name": name,
        "Version": version,
        "Updateable": true,
        "Status": { "State": "Enabled", "Health": "OK" },
    })
}

fn update(machine: &mut Machine, body: &Value) -> Answer {
    let mut members = body.as_object().into_iter().flat_map(|body| body.keys());
    if let Some(other) = members.find(|name| !MEMBERS.contains(&name.as_str())) {
        return Answer::unsupported(&format!("{other} of an update"));
    }
    let url = body.get("ImageURI").and_then(Value::as_str).unwrap_or_default();
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Answer::error(400, "ImageURI must begin with http:// or https://");
    }
    let system = format!("/redfish/v1/Systems/{}", machine.number.uuid());
    let targets = body.get("Targets").and_then(Value::as_array);
    if targets.is_some_and(|targets| targets.iter().any(|target| *target != system)) {
        return Answer::unsupported("updates of a part of the system");
    }
    if machine.firmware.is_updating() {
        return Answer::error(503, "an update is in progress");
    }
    let number = machine.firmware.update(url);
    Answer {
        status: 202,
        location: Some(format!("{TASKS}/{number}")),
        ..Answer::ok(task(machine, number).unwrap_or_default())
    }
}

fn task(machine: &Machine, number: u64) -> Option<Value> {
    let (state, health, message) = match machine.firmware.task(number)? {
        Progress::Fetching => ("Running", "OK", "the file is read".to_owned()),
        Progress::Staged(version) => ("Starting", "OK", format!("the next boot writes {version}")),
        Progress::Written => ("Completed", "OK", "the firmware is written".to_owned()),
        Progress::Failed(why) => ("Exception", "Critical", why.clone()),
    };
    Some(json!({
        "@odata.id": format!("{TASKS}/{number}"),
        "@odata.type": "#Task.v1_4_3.Task",
        "Id": number.to_string(),
        "Name": "Update of the firmware",
        "TaskState": state,
        "TaskStatus": health,
        "Messages": [{ "MessageId": "Lab.1.0.Update", "Message": message, "Severity": health }],
    }))
}
