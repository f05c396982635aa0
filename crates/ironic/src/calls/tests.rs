use super::*;
use crate::model::hardware::NewSubscription;
use crate::model::state::ProvisionState;
use crate::request::{Call, Effect, Method, Request};
use crate::version::{DISABLE_POWER_OFF, LIST_VIRTUAL_MEDIA};
use metal3_domain::mac::MacAddress;
use serde_json::{Map, json};
use std::time::Duration;

const UUID: &str = "30aa2698-e8ec-4373-a5a4-af91b934e08a";

fn uuid() -> NodeUuid {
    NodeUuid::parse(UUID).unwrap()
}

fn node() -> NodeRef {
    NodeRef::from(&uuid())
}

fn line(request: &Request) -> String {
    let path: String = request.path().iter().map(|segment| format!("/{segment}")).collect();
    let query: Vec<_> = request
        .query()
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let body = request.body().map_or_else(String::new, |body| format!(" {body}"));
    format!(
        "{:?} {}?{}{body}",
        request.method(),
        path.replace(UUID, "U"),
        query.join("&")
    )
}

fn request_of<T>(call: Call<T>) -> Request {
    call.request().clone()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn every_request_has_its_method_path_and_body() {
    let mac = MacAddress::parse("AA:BB:CC:00:00:01").unwrap();
    let table: Vec<(Request, &str)> = vec![
        (request_of(service::root()), "Get ?"),
        (request_of(service::drivers()), "Get /drivers?"),
        (request_of(service::conductors()), "Get /conductors?"),
        (request_of(node::get(&NodeRef::Name("ns~h".into()))), "Get /nodes/ns~h?"),
        (
            request_of(node::list::<crate::model::node::Node>(
                node::Order::NewestChange,
                20,
                None,
            )),
            "Get /nodes?detail=true&limit=20&sort_key=updated_at&sort_dir=desc",
        ),
        (
            request_of(node::list::<crate::model::node::Node>(
                node::Order::Created,
                1000,
                Some(&crate::model::page::Marker::behind("M")),
            )),
            "Get /nodes?detail=true&limit=1000&marker=M",
        ),
        (request_of(node::delete(&node())), "Delete /nodes/U?"),
        (
            request_of(node::set_maintenance(&node(), "a\nb")),
            r#"Put /nodes/U/maintenance? {"reason":"a b"}"#,
        ),
        (
            request_of(node::clear_maintenance(&node())),
            "Delete /nodes/U/maintenance?",
        ),
        (request_of(node::validate(&node())), "Get /nodes/U/validate?"),
        (request_of(node::inventory(&node())), "Get /nodes/U/inventory?"),
        (request_of(node::history(&node())), "Get /nodes/U/history?detail=true"),
        (request_of(hardware::bios(&node())), "Get /nodes/U/bios?detail=true"),
        (request_of(hardware::firmware(&node())), "Get /nodes/U/firmware?"),
        (request_of(hardware::traits(&node())), "Get /nodes/U/traits?"),
        (request_of(hardware::virtual_media(&node())), "Get /nodes/U/vmedia?"),
        (
            request_of(hardware::attach_virtual_cd(&node(), "http://i").unwrap()),
            r#"Post /nodes/U/vmedia? {"device_type":"cdrom","image_url":"http://i"}"#,
        ),
        (
            request_of(hardware::detach_virtual_cd(&node())),
            "Delete /nodes/U/vmedia?device_types=cdrom",
        ),
        (
            request_of(hardware::subscriptions(&node())),
            "Get /nodes/U/vendor_passthru?method=get_all_subscriptions",
        ),
        (
            request_of(hardware::subscription(&node(), "abc").unwrap()),
            r#"Get /nodes/U/vendor_passthru?method=get_subscription {"id":"abc"}"#,
        ),
        (
            request_of(hardware::create_subscription(&node(), &subscription(&[("k", "v"), ("l", "w")])).unwrap()),
            r#"Post /nodes/U/vendor_passthru?method=create_subscription {"Context":"c","Destination":"https://e/","HttpHeaders":[{"k":"v"},{"l":"w"}]}"#,
        ),
        (
            request_of(hardware::delete_subscription(&node(), "abc").unwrap()),
            r#"Delete /nodes/U/vendor_passthru?method=delete_subscription {"id":"abc"}"#,
        ),
        (
            request_of(port::of_node(&node(), None)),
            "Get /ports?fields=uuid,node_uuid,address,pxe_enabled&node_uuid=30aa2698-e8ec-4373-a5a4-af91b934e08a",
        ),
        (
            request_of(port::with_address(&mac)),
            "Get /ports?fields=uuid,node_uuid,address,pxe_enabled&address=aa:bb:cc:00:00:01",
        ),
        (
            request_of(port::create(&uuid(), &mac, true)),
            r#"Post /ports? {"address":"aa:bb:cc:00:00:01","node_uuid":"30aa2698-e8ec-4373-a5a4-af91b934e08a","pxe_enabled":true}"#,
        ),
        (request_of(port::groups_of_node(&node())), "Get /nodes/U/portgroups?"),
        (request_of(state::get(&node())), "Get /nodes/U/states?"),
        (
            request_of(state::set_power(
                &node(),
                state::Power::SoftOff(Duration::from_secs(180)),
            )),
            r#"Put /nodes/U/states/power? {"target":"soft power off","timeout":180}"#,
        ),
        (
            request_of(state::set_power(&node(), state::Power::Reboot)),
            r#"Put /nodes/U/states/power? {"target":"rebooting"}"#,
        ),
        (
            request_of(state::set_target_raid(&node(), &[json!({"size_gb": "MAX"})])),
            r#"Put /nodes/U/states/raid? {"logical_disks":[{"size_gb":"MAX"}]}"#,
        ),
        (
            request_of(state::boot_device(&node())),
            "Get /nodes/U/management/boot_device?",
        ),
        (request_of(state::vifs(&node())), "Get /nodes/U/vifs?"),
    ];
    for (request, expected) in table {
        assert_eq!(line(&request), expected);
    }
}

fn step() -> provision::Step {
    provision::Step {
        interface: "bios".into(),
        step: "apply_configuration".into(),
        args: Map::from_iter([("settings".into(), json!([{"name": "N", "value": 1}]))]),
        priority: None,
    }
}

#[test]
fn cleaning_is_harmless_only_if_it_has_steps_of_the_bios_alone() {
    use provision::Transition::Clean;
    let of = |interface: &str| provision::Step {
        interface: interface.to_owned(),
        ..step()
    };
    for (steps, destructive) in [
        (vec![of("bios")], false),
        (vec![], true),
        (vec![of("raid"), of("bios")], true),
        (vec![of("bios"), of("deploy")], true),
        (vec![of("management")], true),
    ] {
        assert_eq!(Clean(steps.clone()).is_destructive(), destructive, "{steps:?}");
    }
}

#[test]
fn every_transition_has_its_verb_and_arguments() {
    use provision::{ConfigDrive, Transition};
    let drive = || ConfigDrive(Map::from_iter([("user_data".into(), json!("#!"))]));
    let bios = r#"[{"args":{"settings":[{"name":"N","value":1}]},"interface":"bios","step":"apply_configuration"}]"#;
    let table = [
        (Transition::Manage, r#"{"target":"manage"}"#.to_owned(), false),
        (Transition::Inspect, r#"{"target":"inspect"}"#.into(), false),
        (Transition::Adopt, r#"{"target":"adopt"}"#.into(), false),
        (Transition::Provide, r#"{"target":"provide"}"#.into(), true),
        (
            Transition::Clean(vec![step()]),
            format!(r#"{{"clean_steps":{bios},"target":"clean"}}"#),
            false,
        ),
        (
            Transition::Deploy {
                config_drive: drive(),
                steps: vec![],
            },
            r##"{"configdrive":{"user_data":"#!"},"target":"active"}"##.into(),
            true,
        ),
        (
            Transition::Rebuild { config_drive: drive() },
            r##"{"configdrive":{"user_data":"#!"},"target":"rebuild"}"##.into(),
            true,
        ),
        (Transition::Delete, r#"{"target":"deleted"}"#.into(), true),
        (Transition::Abort, r#"{"target":"abort"}"#.into(), false),
        (Transition::Unhold, r#"{"target":"unhold"}"#.into(), false),
        (
            Transition::Service(vec![step()]),
            format!(r#"{{"service_steps":{bios},"target":"service"}}"#),
            false,
        ),
    ];
    for (transition, body, destructive) in table {
        assert_eq!(transition.is_destructive(), destructive, "{transition:?}");
        let request = request_of(provision::request(&node(), transition).unwrap());
        assert_eq!(request.body().unwrap().to_string(), body);
        let arguments = request.body().unwrap().as_object().unwrap().len() > 1;
        assert_eq!(request.effect(), Effect::Transition { arguments });
    }
}

#[test]
fn secrets_of_a_deploy_request_do_not_show_in_debug() {
    use provision::{ConfigDrive, Transition};
    let config_drive = ConfigDrive(Map::from_iter([("user_data".into(), json!("hunter2"))]));
    let transition = Transition::Deploy {
        config_drive,
        steps: vec![],
    };
    let shown = format!(
        "{transition:?} {:?}",
        provision::request(&node(), transition.clone()).unwrap()
    );
    assert!(!shown.contains("hunter2"), "{shown}");
}

fn new_node() -> node::NewNode {
    node::NewNode {
        name: "ns~h".into(),
        driver: "redfish".into(),
        driver_info: Map::from_iter([("redfish_password".into(), json!("hunter2"))]),
        properties: Map::new(),
        more: Map::from_iter([("inspect_interface".into(), json!("agent"))]),
        disable_power_off: None,
    }
}

#[test]
fn disable_power_off_is_sent_only_when_set_and_then_requires_its_version() {
    let plain = request_of(node::create(new_node()).unwrap());
    assert_eq!(plain.min_version(), None);
    assert_eq!(plain.body().unwrap().get("disable_power_off"), None);
    let mut new = new_node();
    new.disable_power_off = Some(false);
    assert!(!format!("{new:?}").contains("hunter2"));
    let with_field = request_of(node::create(new).unwrap());
    assert_eq!(with_field.min_version(), Some(DISABLE_POWER_OFF));
    assert_eq!(with_field.body().unwrap()["disable_power_off"], json!(false));
    assert_eq!(
        hardware::virtual_media(&node()).request().min_version(),
        Some(LIST_VIRTUAL_MEDIA)
    );
}

#[test]
fn control_characters_in_fields_of_a_node_are_rejected() {
    let mut new = new_node();
    new.driver_info.insert("deploy_iso".into(), json!("http://x\nrd.break"));
    assert_eq!(node::create(new).unwrap_err().field, "driver_info/deploy_iso");
    for field in ["driver_info", "instance_info"] {
        let patch = patch::Patch::new().set(&[field, "k"], "a\u{7}");
        assert_eq!(node::patch(&node(), patch).unwrap_err().field, format!("{field}/k"));
        let whole = patch::Patch::new().set(&[field], json!({"k": "a\u{7}"}));
        assert_eq!(node::patch(&node(), whole).unwrap_err().field, format!("{field}/k"));
    }
    let other = patch::Patch::new().set(&["network_data"], json!({"note": "two\nlines"}));
    assert!(node::patch(&node(), other).is_ok());
    let mut invalid = step();
    invalid.args.insert("a".into(), json!("\0"));
    assert!(provision::request(&node(), provision::Transition::Clean(vec![invalid])).is_err());
    assert!(hardware::attach_virtual_cd(&node(), "http://x\n").is_err());
}

#[test]
fn a_patch_sets_and_removes_keys_with_escaped_paths() {
    let patch = patch::Patch::new()
        .remove(&["driver_info", "old"])
        .set(&["driver_info", "new"], "x")
        .set(&["extra", "a/b~c"], true);
    assert!(!patch.is_empty());
    assert_eq!(
        patch.into_body().unwrap(),
        json!([
            {"op": "remove", "path": "/driver_info/old"},
            {"op": "add", "path": "/driver_info/new", "value": "x"},
            {"op": "add", "path": "/extra/a~1b~0c", "value": true},
        ])
    );
    assert!(patch::Patch::new().is_empty());
}

#[test]
fn requests_that_must_not_be_repeated_are_marked() {
    let body = patch::Patch::new().set(&["name"], "n");
    for request in [
        request_of(node::create(new_node()).unwrap()),
        request_of(node::patch(&node(), body).unwrap()),
        request_of(node::delete(&node())),
        request_of(provision::request(&node(), provision::Transition::Delete).unwrap()),
        request_of(state::set_power(&node(), state::Power::Off)),
        request_of(hardware::attach_virtual_cd(&node(), "http://i").unwrap()),
    ] {
        assert!(!request.effect().may_repeat(), "{}", request.operation());
        assert_ne!(request.method(), Method::Get);
    }
}

#[test]
fn recorded_responses_are_decoded() {
    let body = br#"{"uuid": "30aa2698-e8ec-4373-a5a4-af91b934e08a", "created_at": "2026-11-21T12:48:15.493578+00:00",
        "updated_at": null, "automated_clean": null, "provision_state": "enroll", "power_state": null, "name": "a~b",
        "driver_info": {"redfish_password": "******"}, "clean_step": {}, "maintenance": false, "fault": "", "extra": {}}"#;
    let read = node::get(&node()).decode(body).unwrap();
    assert_eq!((read.uuid, read.name.as_deref()), (uuid(), Some("a~b")));
    assert_eq!(read.provision_state, ProvisionState::Enroll);
    assert_eq!((read.updated_at, read.fault, read.power_state), (None, None, None));
    assert_eq!(read.driver_info.text("redfish_password"), Some("******"));

    let result = br#"{"boot": {"result": false, "reason": "no image"}, "deploy": {"result": false}, "power": {"result": false}}"#;
    assert_eq!(
        node::validate(&node()).decode(result).unwrap().deploy_errors(),
        ["no image", "deploy"]
    );

    let inventory =
        br#"{"inventory": {"cpu": {"frequency": 2400.5, "flags": null}, "interfaces": null}, "plugin_data": 3}"#;
    let read = node::inventory(&node()).decode(inventory).unwrap();
    assert_eq!(read.inventory.cpu.frequency.unwrap().megahertz(), Some(2400.5));
    let text = br#"{"inventory": {"cpu": {"frequency": " 2000.0000"}}}"#;
    let read = node::inventory(&node()).decode(text).unwrap();
    assert_eq!(read.inventory.cpu.frequency.unwrap().megahertz(), Some(2000.0));

    let traits = hardware::traits(&node())
        .decode(br#"{"traits": ["CUSTOM_A"]}"#)
        .unwrap();
    assert_eq!(traits, ["CUSTOM_A"]);
}

fn subscription(headers: &[(&str, &str)]) -> NewSubscription {
    NewSubscription {
        destination: "https://e/".to_owned(),
        context: "c".to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    }
}

#[test]
fn empty_members_of_a_subscription_are_left_out_and_its_headers_are_never_shown() {
    let mut new = subscription(&[]);
    new.context = String::new();
    assert_eq!(new.body(), json!({ "Destination": "https://e/" }));
    let new = subscription(&[("Authorization", "canary")]);
    let call = hardware::create_subscription(&node(), &new).unwrap();
    assert!(call.request().leaks_secret("payload: {'Authorization': 'canary'}"));
    assert!(!format!("{new:?} {call:?}").contains("canary"));
    let line_break = subscription(&[("a", "canary\n")]);
    let error = hardware::create_subscription(&node(), &line_break).unwrap_err();
    assert!(!error.to_string().contains("canary"), "{error}");
}
