//! The BMC, and the chassis with its network adapters.

use serde_json::{Value, json};

use super::collection;
use crate::{firmware::bmc_version, machine::Machine};

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
        _ => return None,
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
        "FirmwareVersion": bmc_version(machine),
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
