use std::sync::Arc;

use super::*;
use crate::{
    fault::Faults,
    identity::Number,
    machine::{Effect, Power, Running},
    profile::{BUILT_IN, parse},
};

const BASIC: &str = "Basic YWRtaW46c2VjcmV0";

struct Lab {
    credentials: Credentials,
    sessions: Sessions,
    machine: Machine,
}

/// A read without login.
fn get(path: &str) -> Request<'_> {
    Request {
        verb: Verb::Get,
        path,
        authorization: None,
        token: None,
        body: &Value::Null,
    }
}

fn lab() -> Lab {
    let profile = parse(BUILT_IN).unwrap().remove("large").unwrap();
    Lab {
        credentials: Credentials {
            username: "admin".into(),
            password: "secret".into(),
        },
        sessions: Sessions::default(),
        machine: Machine::new(Number(1), "large", Arc::new(profile)),
    }
}

impl Lab {
    fn reply(&mut self, request: &Request<'_>) -> Reply {
        let Self {
            credentials,
            sessions,
            machine,
        } = self;
        Bmc {
            credentials,
            sessions,
            machine,
            power_delay: Duration::ZERO,
        }
        .reply(request, At::ZERO)
    }

    /// The status of a request; 0 when the BMC hangs up.
    fn status(&mut self, request: &Request<'_>) -> u16 {
        match self.reply(request) {
            Reply::Answer(_, answer) => answer.status,
            Reply::HangUp => 0,
        }
    }

    fn ask(&mut self, verb: Verb, path: &str, body: &Value) -> Answer {
        let path = path.replace("{id}", &Number(1).uuid());
        let request = Request {
            verb,
            path: &path,
            authorization: Some(BASIC),
            token: None,
            body,
        };
        match self.reply(&request) {
            Reply::Answer(_, answer) => answer,
            Reply::HangUp => panic!("the BMC hung up"),
        }
    }

    fn get(&mut self, path: &str) -> Value {
        let answer = self.ask(Verb::Get, path, &Value::Null);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body.unwrap()
    }
}

/// Collects each link of a resource.
fn links(of: &Value, found: &mut Vec<String>) {
    match of {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str().filter(|_| key == "@odata.id") {
                    Some(link) if !link.contains('#') => found.push(link.to_owned()),
                    _ => links(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| links(item, found)),
        _ => {}
    }
}

#[test]
fn each_link_leads_to_a_resource_with_its_address() {
    let (mut lab, mut todo, mut seen) = (lab(), vec!["/redfish/v1/".to_owned()], Vec::new());
    while let Some(path) = todo.pop() {
        if seen.contains(&path) {
            continue;
        }
        let body = lab.get(&path);
        assert_eq!(body["@odata.id"], path.as_str());
        links(&body, &mut todo);
        seen.push(path);
    }
    assert!(seen.len() > 60, "only {} resources", seen.len());
}

#[test]
fn only_the_root_requires_no_login() {
    let mut lab = lab();
    assert_eq!(lab.status(&get("/redfish/v1/")), 200);
    assert_eq!(lab.status(&get("/redfish/v1/Systems")), 401);
}

#[test]
fn session_token_is_valid_until_the_session_is_deleted() {
    let mut lab = lab();
    let login = json!({ "UserName": "admin", "Password": "secret" });
    let opened = lab.ask(Verb::Post, "/redfish/v1/SessionService/Sessions", &login);
    let (location, token) = (opened.location.unwrap(), opened.token.unwrap());
    let mut request = get("/redfish/v1/Systems");
    request.token = Some(token.as_str());
    let mut delete = get(&location);
    (delete.verb, delete.token) = (Verb::Delete, Some(token.as_str()));
    assert_eq!(lab.status(&request), 200);
    assert_eq!(lab.status(&delete), 204);
    assert_eq!(lab.status(&request), 401);
}

#[test]
fn wrong_password_fault_rejects_even_an_open_session() {
    let mut lab = lab();
    let login = json!({ "UserName": "admin", "Password": "secret" });
    let sessions = "/redfish/v1/SessionService/Sessions";
    let token = lab.ask(Verb::Post, sessions, &login).token.unwrap();
    lab.machine.faults = [Fault::WrongPassword].into_iter().collect();
    let mut request = get(sessions);
    request.token = Some(token.as_str());
    assert_eq!(lab.status(&request), 401);
    assert_eq!(lab.ask(Verb::Post, sessions, &login).status, 401);
}

#[test]
fn reset_is_accepted_by_name_and_rejected_otherwise() {
    let mut lab = lab();
    let reset = "/redfish/v1/Systems/{id}/Actions/ComputerSystem.Reset";
    let named = |name: &str| json!({ "ResetType": name });
    assert_eq!(lab.ask(Verb::Post, reset, &named("ForceOn")).status, 204);
    lab.machine.settle(At::ZERO);
    assert_eq!(lab.machine.power, Power::On);
    assert_eq!(lab.machine.running, Running::Nothing);
    assert_eq!(lab.ask(Verb::Post, reset, &named("Explode")).status, 400);
}

#[test]
fn rejected_boot_change_changes_nothing() {
    let mut lab = lab();
    let before = lab.machine.boot.clone();
    let body = json!({ "Boot": { "BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Twice" } });
    assert_eq!(lab.ask(Verb::Patch, "/redfish/v1/Systems/{id}", &body).status, 400);
    assert_eq!(lab.machine.boot, before);
}

#[test]
fn inserted_image_is_shown_until_ejected() {
    let mut lab = lab();
    let drive = "/redfish/v1/Systems/{id}/VirtualMedia/Cd";
    let body = json!({ "Image": "http://files/boot.iso" });
    let action = |name: &str| format!("{drive}/Actions/VirtualMedia.{name}Media");
    assert_eq!(lab.ask(Verb::Post, &action("Insert"), &body).status, 204);
    assert_eq!(lab.get(drive)["Image"], "http://files/boot.iso");
    assert_eq!(lab.ask(Verb::Post, &action("Eject"), &json!({})).status, 204);
    assert_eq!(lab.get(drive)["Inserted"], false);
}

#[test]
fn event_subscriptions_are_stored_and_deleted() {
    let mut lab = lab();
    let all = "/redfish/v1/EventService/Subscriptions";
    let wanted = json!({ "Destination": "https://events.example/", "Context": "c", "HttpHeaders": [{ "k": "v" }] });
    assert_eq!(lab.ask(Verb::Post, all, &json!({})).status, 400);
    let created = lab.ask(Verb::Post, all, &wanted);
    let path = created.location.unwrap();
    assert_eq!((created.status, created.token), (201, None));
    let subscription = lab.get(&path);
    assert_eq!(
        (&subscription["Context"], &subscription["HttpHeaders"]),
        (&json!("c"), &Value::Null)
    );
    assert_eq!(created.body.unwrap(), subscription);
    let kept: Vec<_> = lab.machine.subscriptions.values().collect();
    assert_eq!(kept[0]["HttpHeaders"], wanted["HttpHeaders"], "tests read it");
    assert_eq!(lab.get(all)["Members"], json!([{ "@odata.id": path }]));
    assert_eq!(lab.ask(Verb::Delete, &path, &Value::Null).status, 204);
    assert_eq!(lab.ask(Verb::Delete, &path, &Value::Null).status, 404);
    assert_eq!(lab.get(all)["Members"], json!([]));
}

#[test]
fn unsupported_features_answer_501() {
    let mut lab = lab();
    for (verb, path) in [
        (Verb::Post, "/redfish/v1/Systems/{id}/Bios/Actions/Bios.ChangePassword"),
        (Verb::Patch, "/redfish/v1/Systems/{id}/SecureBoot"),
        (Verb::Post, "/redfish/v1/Systems/{id}/Storage/1/Volumes"),
    ] {
        assert_eq!(lab.ask(verb, path, &json!({})).status, 501, "{path}");
    }
}

#[test]
fn update_is_a_task_that_the_next_boot_ends() {
    const UPDATE: &str = "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate";
    let mut lab = lab();
    for body in [json!({}), json!({ "ImageURI": "ftp://files/bios" })] {
        assert_eq!(lab.ask(Verb::Post, UPDATE, &body).status, 400, "{body}");
    }
    let made = lab.ask(
        Verb::Post,
        UPDATE,
        &json!({ "ImageURI": "http://files/bios", "TransferProtocol": "HTTP" }),
    );
    assert_eq!(made.status, 202);
    let task = made.location.unwrap();
    let update = json!({ "ImageURI": "http://files/bios" });
    assert_eq!(lab.ask(Verb::Post, UPDATE, &update).status, 503);
    let part =
        json!({ "ImageURI": "http://files/bios", "Targets": ["/redfish/v1/UpdateService/FirmwareInventory/BMC"] });
    assert_eq!(lab.ask(Verb::Post, UPDATE, &part).status, 501);
    assert_eq!(lab.get(&task)["TaskState"], "Running");
    let fetch = Effect::Fetch {
        task: 1,
        url: "http://files/bios".to_owned(),
    };
    assert_eq!(lab.machine.settle(Duration::ZERO), [fetch]);
    lab.machine.firmware.read(1, Ok("lab-firmware bios 9.9".to_owned()));
    assert_eq!(lab.get(&task)["TaskState"], "Starting");
    lab.machine.firmware.boot();
    assert_eq!(lab.get(&task)["TaskState"], "Completed");
    let system = format!("/redfish/v1/Systems/{}", Number(1).uuid());
    for (path, member) in [
        (system.as_str(), "BiosVersion"),
        ("/redfish/v1/UpdateService/FirmwareInventory/BIOS", "Version"),
    ] {
        assert_eq!(lab.get(path)[member], "9.9", "{path}");
    }
    assert_eq!(lab.get("/redfish/v1/TaskService/Tasks")["Members@odata.count"], 1);
}

#[test]
fn unsupported_method_answers_405_and_an_unknown_path_404() {
    let mut lab = lab();
    let status = |lab: &mut Lab, path| lab.ask(Verb::Delete, path, &Value::Null).status;
    for path in [
        "/redfish/v1/Systems",
        "/redfish/v1/Systems/{id}",
        "/redfish/v1/Chassis/{id}",
    ] {
        assert_eq!(status(&mut lab, path), 405, "{path}");
    }
    assert_eq!(status(&mut lab, "/redfish/v1/Systems/missing"), 404);
}

#[test]
fn empty_change_answers_400() {
    assert_eq!(
        lab().ask(Verb::Patch, "/redfish/v1/Systems/{id}", &json!({})).status,
        400
    );
}

#[test]
fn dead_bmc_drops_connections_and_slow_one_delays_responses() {
    let mut lab = lab();
    let request = get("/redfish/v1/");
    lab.machine.faults = [Fault::DeadBmc].into_iter().collect();
    assert_eq!(lab.reply(&request), Reply::HangUp);
    lab.machine.faults = [Fault::SlowBmc(30)].into_iter().collect();
    assert!(matches!(lab.reply(&request), Reply::Answer(delay, _) if delay == Duration::from_secs(30)));
}

const BIOS: &str = "/redfish/v1/Systems/{id}/Bios";
const PENDING: &str = "/redfish/v1/Systems/{id}/Bios/Settings";

fn attributes(lab: &mut Lab, path: &str) -> Value {
    lab.get(&path.replace("{id}", &Number(1).uuid()))["Attributes"].clone()
}

fn start(lab: &mut Lab) {
    let reset = json!({ "ResetType": "ForceRestart" });
    let path = "/redfish/v1/Systems/{id}/Actions/ComputerSystem.Reset";
    assert_eq!(lab.ask(Verb::Post, path, &reset).status, 204);
    lab.machine.settle(At::ZERO);
}

#[test]
fn settings_are_pending_until_the_next_boot() {
    let mut lab = lab();
    let wanted = json!({ "Attributes": { "ProcTurboMode": "Disabled", "PowerOnDelay": 7 },
        "@Redfish.SettingsApplyTime": { "@odata.type": "#Settings.v1_0_0.PreferredApplyTime", "ApplyTime": "OnReset" } });
    assert_eq!(lab.ask(Verb::Patch, PENDING, &wanted).status, 204);
    assert_eq!(attributes(&mut lab, BIOS)["ProcTurboMode"], "Enabled");
    assert_eq!(attributes(&mut lab, PENDING), wanted["Attributes"]);
    start(&mut lab);
    let now = attributes(&mut lab, BIOS);
    assert_eq!(
        (&now["ProcTurboMode"], &now["PowerOnDelay"]),
        (&json!("Disabled"), &json!(7))
    );
    assert_eq!(attributes(&mut lab, PENDING), json!({}));

    lab.machine.faults = [Fault::SettingsStuck].into_iter().collect();
    let reset = format!("{BIOS}/Actions/Bios.ResetBios");
    assert_eq!(lab.ask(Verb::Post, &reset, &json!({})).status, 204);
    start(&mut lab);
    assert_eq!(attributes(&mut lab, BIOS), now, "no boot applies them");
    lab.machine.faults = Faults::default();
    start(&mut lab);
    assert_eq!(attributes(&mut lab, BIOS)["PowerOnDelay"], 0);
}

#[test]
fn setting_that_the_registry_does_not_allow_is_refused_by_name_and_changes_nothing() {
    let mut lab = lab();
    for (name, value) in [
        ("ProcTurboMode", json!("enabled")),
        ("PowerOnDelay", json!("7")),
        ("PowerOnDelay", json!(241)),
        ("AssetTag", json!("a text of seventeen")),
        ("NumCores", json!("1")),
        ("Missing", json!("x")),
    ] {
        let wanted = json!({ "Attributes": { "AssetTag": "a", name: value } });
        let answer = lab.ask(Verb::Patch, PENDING, &wanted);
        assert_eq!(answer.status, 400, "{name} {value}");
        assert!(answer.body.unwrap().to_string().contains(name));
    }
    for wrong in [
        json!({}),
        json!({ "Attributes": {} }),
        json!({ "Attributes": { "AssetTag": "a" }, "Id": "b" }),
    ] {
        assert_eq!(lab.ask(Verb::Patch, PENDING, &wrong).status, 400, "{wrong}");
    }
    assert_eq!(attributes(&mut lab, PENDING), json!({}));
    assert_eq!(
        lab.ask(Verb::Patch, BIOS, &json!({ "Attributes": { "AssetTag": "a" } }))
            .status,
        405
    );
}

#[test]
fn registry_describes_each_setting() {
    let mut lab = lab();
    let settings = lab.get(&BIOS.replace("{id}", &Number(1).uuid()));
    let file = lab.get(&format!(
        "/redfish/v1/Registries/{}",
        settings["AttributeRegistry"].as_str().unwrap()
    ));
    let registry = lab.get(file["Location"][0]["Uri"].as_str().unwrap());
    let entries = registry["RegistryEntries"]["Attributes"].as_array().unwrap();
    let names: Vec<&Value> = entries.iter().map(|entry| &entry["AttributeName"]).collect();
    let set: Vec<&String> = settings["Attributes"].as_object().unwrap().keys().collect();
    assert_eq!(names, set);
    let delay = entries
        .iter()
        .find(|entry| entry["AttributeName"] == "PowerOnDelay")
        .unwrap();
    assert_eq!((&delay["Type"], &delay["UpperBound"]), (&json!("Integer"), &json!(240)));
}
