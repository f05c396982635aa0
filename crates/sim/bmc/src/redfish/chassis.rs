//! The BMC, the chassis with its network adapters, and the firmware inventory.

use serde_json::{Value, json};

use super::collection;
use crate::machine::Machine;

pub(super) fn answer(machine: &Machine, path: &[&str]) -> Option<Value> {
    let id = machine.number.uuid();
    let own = |candidate: &str| candidate == id;
    Some(match path {
        ["Managers"] => collection("Manager", "/redfish/v1/Managers", [id]),
        ["Managers", manager] if own(manager) => bmc(machine, &id),
        ["Chassis"] => collection("Chassis", "/redfish/v1/Chassis", [id]),
        ["Chassis", chassis] if own(chassis) => chassis_resource(machine, &id),
        ["Chassis", chassis, "NetworkAdapters"] if own(chassis) => collection(
            "NetworkAdapter",
            &format!("/redfish/v1/Chassis/{id}/NetworkAdapters"),
            [],
        ),
        ["UpdateService"] => json!({
            "@odata.id": "/redfish/v1/UpdateService",
            "@odata.type": "#UpdateService.v1_8_0.UpdateService",
            "Id": "UpdateService",
            "Name": "Update service",
            "ServiceEnabled": false,
            "FirmwareInventory": { "@odata.id": "/redfish/v1/UpdateService/FirmwareInventory" },
        }),
        ["UpdateService", "FirmwareInventory"] => {
            let members = ["BIOS".to_owned(), "BMC".to_owned()];
            collection(
                "SoftwareInventory",
                "/redfish/v1/UpdateService/FirmwareInventory",
                members,
            )
        }
        ["UpdateService", "FirmwareInventory", "BIOS"] => firmware("BIOS", &machine.profile.vendor.firmware.version),
        ["UpdateService", "FirmwareInventory", "BMC"] => firmware("BMC", &machine.profile.bmc_version),
        _ => return None,
    })
}

fn firmware(name: &str, version: &str) -> Value {
    json!({
        "@odata.id": format!("/redfish/v1/UpdateService/FirmwareInventory/{name}"),
        "@odata.type": "#SoftwareInventory.v1_3_0.SoftwareInventory",
        "Id": name,
        "Name": name,
        "Version": version,
        "Updateable": false,
        "Status": { "State": "Enabled", "Health": "OK" },
    })
}

fn bmc(machine: &Machine, id: &str) -> Value {
    json!({
        "@odata.id": format!("/redfish/v1/Managers/{id}"),
        "@odata.type": "#Manager.v1_10_0.Manager",
        "Id": id,
        "UUID": id,
        "Name": "Lab BMC",
        "ManagerType": "BMC",
        "Model": "Lab BMC",
        "FirmwareVersion": machine.profile.bmc_version,
        "PowerState": "On",
        "Status": { "State": "Enabled", "Health": "OK" },
        "VirtualMedia": { "@odata.id": format!("/redfish/v1/Systems/{id}/VirtualMedia") },
        "Links": {
            "ManagerForServers": [{ "@odata.id": format!("/redfish/v1/Systems/{id}") }],
            "ManagerForChassis": [{ "@odata.id": format!("/redfish/v1/Chassis/{id}") }],
        },
    })
}

fn chassis_resource(machine: &Machine, id: &str) -> Value {
    json!({
        "@odata.id": format!("/redfish/v1/Chassis/{id}"),
        "@odata.type": "#Chassis.v1_14_0.Chassis",
        "Id": id,
        "UUID": id,
        "Name": "Chassis",
        "ChassisType": "RackMount",
        "Manufacturer": machine.profile.vendor.manufacturer,
        "Model": machine.profile.vendor.product,
        "SerialNumber": machine.number.serial(),
        "PowerState": machine.power,
        "Status": { "State": "Enabled", "Health": "OK" },
        "NetworkAdapters": { "@odata.id": format!("/redfish/v1/Chassis/{id}/NetworkAdapters") },
        "Links": {
            "ComputerSystems": [{ "@odata.id": format!("/redfish/v1/Systems/{id}") }],
            "ManagedBy": [{ "@odata.id": format!("/redfish/v1/Managers/{id}") }],
        },
    })
}
