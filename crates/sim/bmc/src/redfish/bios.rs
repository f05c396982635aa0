//! The settings of the BIOS, their pending changes, and the registry that describes them.

use serde_json::{Value, json};

use super::{Answer, Request, Verb, collection};
use crate::{bios, machine::Machine};

const REGISTRIES: &str = "/redfish/v1/Registries";
const REGISTRY: &str = "LabBios.v1_0_0";
const APPLY_TIME: &str = "@Redfish.SettingsApplyTime";

/// Resources below `Bios` of the system.
pub(super) fn answer(machine: &mut Machine, request: &Request<'_>, path: &[&str]) -> Answer {
    let system = format!("/redfish/v1/Systems/{}", machine.number.uuid());
    match (request.verb, path) {
        (Verb::Get, []) => Answer::ok(settings_in_force(machine, &system)),
        (Verb::Get, ["Settings"]) => Answer::ok(json!({
            "@odata.id": format!("{system}/Bios/Settings"),
            "@odata.type": "#Bios.v1_1_0.Bios",
            "Id": "Settings",
            "Name": "Pending BIOS settings",
            "AttributeRegistry": REGISTRY,
            "Attributes": bios::pending(machine),
        })),
        (Verb::Patch, ["Settings"]) => change(machine, request.body),
        (Verb::Post, ["Actions", "Bios.ResetBios"]) => {
            bios::reset(machine);
            Answer::done()
        }
        (Verb::Post, ["Actions", "Bios.ChangePassword"]) => Answer::unsupported("passwords of the BIOS"),
        _ => Answer::not_found(request.path),
    }
}

fn settings_in_force(machine: &Machine, system: &str) -> Value {
    json!({
        "@odata.id": format!("{system}/Bios"),
        "@odata.type": "#Bios.v1_1_0.Bios",
        "Id": "Bios",
        "Name": "BIOS settings",
        "AttributeRegistry": REGISTRY,
        "Attributes": bios::in_force(machine),
        "@Redfish.Settings": {
            "@odata.type": "#Settings.v1_3_0.Settings",
            "SettingsObject": { "@odata.id": format!("{system}/Bios/Settings") },
            "SupportedApplyTimes": ["OnReset"],
        },
        "Actions": { "#Bios.ResetBios": { "target": format!("{system}/Bios/Actions/Bios.ResetBios") } },
    })
}

fn change(machine: &mut Machine, body: &Value) -> Answer {
    let members = body.as_object().into_iter().flatten();
    if let Some((other, _)) = members
        .clone()
        .find(|(name, _)| !["Attributes", APPLY_TIME].contains(&name.as_str()))
    {
        return Answer::error(400, &format!("{other} is not a member of pending settings"));
    }
    let time = body.get(APPLY_TIME).and_then(|time| time.get("ApplyTime"));
    if time.is_some_and(|time| time != "OnReset") {
        return Answer::error(400, "ApplyTime must be OnReset");
    }
    let wanted = body.get("Attributes").and_then(Value::as_object);
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
        return Answer::error(400, "Attributes contains no change");
    };
    match bios::set(machine, wanted) {
        Ok(()) => Answer::done(),
        Err(message) => Answer::error(400, &message),
    }
}

/// The registries of the service: the one of these settings.
pub(super) fn registries(machine: &Machine, path: &[&str]) -> Option<Value> {
    let file = format!("{REGISTRIES}/{REGISTRY}");
    Some(match path {
        [] => collection("MessageRegistryFile", REGISTRIES, [REGISTRY.to_owned()]),
        [REGISTRY] => json!({
            "@odata.id": file,
            "@odata.type": "#MessageRegistryFile.v1_1_0.MessageRegistryFile",
            "Id": REGISTRY,
            "Name": "BIOS attributes",
            "Registry": REGISTRY,
            "Languages": ["en"],
            "Location": [{ "Language": "en", "Uri": format!("{file}/en") }],
        }),
        [REGISTRY, "en"] => json!({
            "@odata.id": format!("{file}/en"),
            "@odata.type": "#AttributeRegistry.v1_3_0.AttributeRegistry",
            "Id": REGISTRY,
            "Name": "BIOS attributes",
            "Language": "en",
            "OwningEntity": "Lab",
            "RegistryVersion": "1.0.0",
            "RegistryEntries": { "Attributes": bios::registry(machine) },
        }),
        _ => return None,
    })
}
