//! Tables of the comparison, the messages and the report.

use metal3_api::meta::ConditionStatus;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostFirmwareSettings};
use metal3_ironic::model::node::Node;
use serde_json::{Value, json};

use super::*;
use crate::tests::fixture::{Fixture, at, node};

fn asked(settings: &Value) -> BTreeMap<String, IntOrString> {
    serde_json::from_value(settings.clone()).unwrap()
}

fn settings(all: Value) -> Vec<BiosSetting> {
    serde_json::from_value(all).unwrap()
}

/// One setting of each type.
fn machine() -> Vec<BiosSetting> {
    settings(json!([
        { "name": "Mode", "value": "Uefi", "attribute_type": "Enumeration", "allowable_values": ["Uefi", "Bios"] },
        { "name": "Case", "value": "on", "attribute_type": "Enumeration", "allowable_values": ["on", "ON"] },
        { "name": "Free", "value": "a", "attribute_type": "Enumeration", "allowable_values": [] },
        { "name": "Cores", "value": "4", "attribute_type": "Integer", "lower_bound": 0, "upper_bound": 8 },
        { "name": "Boot", "value": "True", "attribute_type": "Boolean" },
        { "name": "Switch", "value": "1", "attribute_type": "Boolean" },
        { "name": "Tag", "value": "12", "attribute_type": "String", "min_length": 1, "max_length": 4 },
        { "name": "Plain", "value": "x", "attribute_type": null },
        { "name": "Odd", "value": "x", "attribute_type": "Colour" },
        { "name": "Serial", "value": "7", "attribute_type": "String", "read_only": true, "unique": true },
        { "name": "AdminPassword", "value": "hunter2", "attribute_type": "String" },
        { "name": "Pin", "value": "1234", "attribute_type": "Password" },
        { "name": "Empty", "value": null, "attribute_type": "String" },
    ]))
}

#[test]
fn value_in_force_is_no_change_in_each_spelling_of_its_type() {
    for (name, value) in [
        ("Switch", json!("true")),
        ("Switch", json!("1")),
        ("Boot", json!("1")),
        ("Mode", json!("Uefi")),
        ("Mode", json!("UEFI")),
        ("Case", json!("on")),
        ("Free", json!("a")),
        ("Cores", json!(4)),
        ("Cores", json!("4")),
        ("Cores", json!("04")),
        ("Boot", json!("true")),
        ("Boot", json!("True")),
        ("Tag", json!(12)),
        ("Tag", json!("12")),
        ("Plain", json!("x")),
        ("Serial", json!("7")),
        ("Empty", json!("")),
    ] {
        let change = change(&asked(&json!({ name: value })), &machine());
        assert!(change.is_none(), "{name} {value}: {change:?}");
    }
}

#[test]
fn other_value_is_sent_in_the_spelling_of_the_machine() {
    for (name, value, reported, sent) in [
        ("Mode", json!("bios"), Some("Uefi"), json!("Bios")),
        ("Case", json!("ON"), Some("on"), json!("ON")),
        ("Free", json!("A"), Some("a"), json!("A")),
        ("Cores", json!(8), Some("4"), json!(8)),
        ("Cores", json!("8"), Some("4"), json!(8)),
        ("Cores", json!("08"), Some("4"), json!(8)),
        ("Boot", json!("False"), Some("True"), json!(false)),
        ("Switch", json!("0"), Some("1"), json!(false)),
        ("Tag", json!(34), Some("12"), json!("34")),
        ("Plain", json!(5), Some("x"), json!(5)),
        ("Plain", json!("X"), Some("x"), json!("X")),
        ("Odd", json!("y"), Some("x"), json!("y")),
        ("Empty", json!("y"), None, json!("y")),
    ] {
        let change = change(&asked(&json!({ name: value })), &machine());
        let expected = Difference {
            name: name.to_owned(),
            reported: reported.map(str::to_owned),
            asked: sent,
        };
        assert_eq!((change.differing, change.invalid), (vec![expected], vec![]), "{value}");
    }
}

#[test]
fn value_that_the_machine_cannot_have_is_named_with_what_is_allowed() {
    for (name, value, problem) in [
        (
            "Mode",
            json!("Legacy"),
            "\"Legacy\" is none of its values; use one of Uefi, Bios",
        ),
        ("Case", json!("On"), "\"On\" is none of its values; use one of on, ON"),
        ("Cores", json!(9), "9 is out of bounds; stay between 0 and 8"),
        ("Cores", json!("many"), "\"many\" is not an integer; write an integer"),
        (
            "Boot",
            json!("yes"),
            "\"yes\" is not true or false; write true or false",
        ),
        ("Tag", json!("12345"), "5 is out of bounds; stay between 1 and 4"),
        ("Tag", json!(""), "0 is out of bounds; stay between 1 and 4"),
        ("Plain", json!("a\nb"), "its value has a control character; remove that"),
        ("Serial", json!("8"), "it is read-only; remove it"),
        (
            "Turbo",
            json!("On"),
            "it is not in the schema of the machine; remove it or correct its name",
        ),
    ] {
        let change = change(&asked(&json!({ name: value })), &machine());
        let invalid = Invalid {
            name: name.to_owned(),
            problem: problem.to_owned(),
        };
        assert_eq!((change.differing, change.invalid), (vec![], vec![invalid]), "{value}");
    }
}

#[test]
fn no_text_contains_the_value_of_a_password() {
    let asked = asked(&json!({ "AdminPassword": "hunter2", "Pin": "1234", "OtherPassword": "calvin", "Cores": 9 }));
    let change = change(&asked, &machine());
    assert!(change.differing.is_empty());
    assert_eq!(change.invalid.len(), 4);
    let (object, report) = reported(
        &json!({ "AdminPassword": "hunter2", "Pin": "1234", "OtherPassword": "calvin" }),
        machine(),
    );
    drop(object);
    let schema = firmware_schema(&host(), &machine());
    let texts = [
        format!("{change:?}"),
        unusable_text(&change.invalid),
        serde_json::to_string(&report.status).unwrap(),
        serde_json::to_string(&schema).unwrap(),
    ];
    for text in texts {
        for secret in ["hunter2", "1234", "calvin"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    assert!(!schema.spec.schema.contains_key("Pin") && !schema.spec.schema.contains_key("AdminPassword"));
}

#[test]
fn messages_name_some_settings_and_what_to_do() {
    let many: Vec<_> = (0..7)
        .map(|number| Invalid {
            name: format!("s{number}"),
            problem: "it is read-only; remove it".to_owned(),
        })
        .collect();
    let text = unusable_text(&many);
    assert!(
        is_of_settings(&text) && text.contains("s4: it is read-only; remove it and 2 more"),
        "{text}"
    );
    assert!(!text.contains("s5"), "{text}");
    let differing = [
        Difference {
            name: "A\nB".to_owned(),
            reported: Some("x".repeat(200)),
            asked: json!(5),
        },
        Difference {
            name: "C".to_owned(),
            reported: None,
            asked: json!("on"),
        },
    ];
    let text = still_reported_text(&differing);
    assert!(is_of_settings(&text) && is_still_reported(&text), "{text}");
    let pairs = format!("A\\nB={}... (asked: 5), C=nothing (asked: on);", "x".repeat(80));
    assert!(text.contains(&pairs), "{text}");
}

#[test]
fn step_has_the_differing_settings_only() {
    let change = change(
        &asked(&json!({ "Mode": "Uefi", "Cores": 8, "Boot": "false" })),
        &machine(),
    );
    let steps = vec![step(&change.differing)];
    assert_eq!(
        serde_json::to_value(&steps).unwrap(),
        json!([{ "interface": "bios", "step": "apply_configuration", "args": { "settings": [
            { "name": "Boot", "value": false }, { "name": "Cores", "value": 8 }] } }])
    );
    let values = settings_of(&steps).unwrap();
    assert_eq!(
        values,
        BTreeMap::from([("Boot".to_owned(), json!(false)), ("Cores".to_owned(), json!(8))])
    );
    assert_eq!(settings_of(&[]), None);
}

fn host() -> BareMetalHost {
    let vendor = json!({ "hardware": { "systemVendor": { "manufacturer": "Acme", "productName": "R1" } } });
    serde_json::from_value(Fixture::new("available").status(vendor).host).unwrap()
}

fn object(asked: &Value) -> HostFirmwareSettings {
    serde_json::from_value(
        json!({ "metadata": { "name": "h", "namespace": "metal", "generation": 3 },
        "spec": { "settings": asked } }),
    )
    .unwrap()
}

fn inspected(seconds: Option<i64>) -> Node {
    let mut node = node("available");
    node["inspection_finished_at"] = json!(seconds.map(at));
    serde_json::from_value(node).unwrap()
}

fn reported(asked: &Value, page: Vec<BiosSetting>) -> (HostFirmwareSettings, Report) {
    let object = object(asked);
    let report = status((&object, &host(), &inspected(None)), &page, When::Prepared, at(60));
    (object, report)
}

/// The status, the reason and the message of the two conditions.
fn conditions(report: &Report) -> Vec<(ConditionStatus, &str, &str)> {
    let mut conditions = report.status.conditions.iter();
    ["ChangeDetected", "Valid"]
        .map(|name| {
            let condition = conditions.find(|condition| condition.type_ == name).unwrap();
            assert_eq!(condition.observed_generation, Some(3));
            (condition.status, condition.reason.as_str(), condition.message.as_str())
        })
        .to_vec()
}

#[test]
fn report_has_the_settings_the_schema_and_what_differs() {
    use ConditionStatus::{False, True};
    let (_, report) = reported(&json!({ "Cores": 4 }), machine());
    assert_eq!(conditions(&report), [(False, "Success", ""), (True, "Success", "")]);
    assert_eq!(report.warning, None);
    assert_eq!(report.status.last_updated, Some(at(60)));
    let shown: Vec<_> = report.status.settings.keys().map(String::as_str).collect();
    assert_eq!(
        shown,
        [
            "Boot", "Case", "Cores", "Empty", "Free", "Mode", "Odd", "Plain", "Serial", "Switch", "Tag"
        ]
    );
    let schema = firmware_schema(&host(), &machine());
    let reference = report.status.schema.unwrap();
    assert_eq!(
        (reference.namespace.as_str(), Some(&reference.name)),
        ("metal", schema.metadata.name.as_ref())
    );
    assert_eq!(schema.metadata.owner_references, None);
    assert_eq!(schema.spec.hardware_vendor.as_deref(), Some("Acme"));
    assert_eq!(schema.spec.hardware_model.as_deref(), Some("R1"));

    let (_, report) = reported(&json!({ "Cores": 5, "Mode": "bios" }), machine());
    let later = "Cores, Mode: applied when the host is prepared the next time";
    assert_eq!(conditions(&report), [(True, "Success", later), (True, "Success", "")]);

    let (_, report) = reported(&json!({ "Cores": 5, "Turbo": 1 }), machine());
    let invalid = "Invalid BIOS setting: Turbo: it is not in the schema of the machine; remove it or correct its name";
    let waits = "Cores, Turbo: applied when all settings are valid";
    assert_eq!(
        conditions(&report),
        [(True, "Success", waits), (False, "ConfigurationError", invalid)]
    );
    assert_eq!(report.warning.as_deref(), Some(invalid));
    let (_, report) = reported(&json!({ "Cores": 5 }), vec![]);
    let (valid, _, why) = conditions(&report)[1];
    assert!(
        valid == False && why.starts_with("Ironic has no BIOS settings of this machine"),
        "{why}"
    );
    let (_, report) = reported(&json!({}), vec![]);
    assert_eq!((report.status.schema, report.status.settings.len()), (None, 0));
}

#[test]
fn report_is_written_and_warned_of_once() {
    let (mut object, first) = reported(&json!({ "Cores": 9 }), machine());
    assert!(first.warning.is_some());
    object.status = first.status;
    let again = |object: &HostFirmwareSettings, seconds, node: &Node| {
        status((object, &host(), node), &machine(), When::Prepared, at(seconds))
    };
    let second = again(&object, 900, &inspected(None));
    assert_eq!((second.status, second.warning), (object.status.clone(), None));
    // Another problem is one more warning.
    object.spec.settings = asked(&json!({ "Cores": 10 }));
    let third = again(&object, 900, &inspected(None));
    assert!(
        third
            .warning
            .is_some_and(|warning| warning.contains("10 is out of bounds"))
    );
}

/// Ironic reads the settings when it cleans a machine: a person may have changed them while it was in use.
#[test]
fn report_of_asked_settings_is_current_until_the_node_is_at_rest_again() {
    let moved = |state: &str, seconds: i64| -> Node {
        let mut node = node(state);
        node["provision_updated_at"] = json!(at(seconds));
        serde_json::from_value(node).unwrap()
    };
    for (asked, state, seconds, current) in [
        (json!({ "Cores": 4 }), "available", 60, true),
        (json!({ "Cores": 4 }), "available", 61, false),
        (json!({ "Cores": 4 }), "manageable", 61, false),
        (json!({ "Cores": 4 }), "active", 61, false),
        (json!({ "Cores": 4 }), "cleaning", 61, true),
        (json!({}), "available", 61, true),
    ] {
        let (mut object, report) = reported(&asked, machine());
        object.status = report.status;
        assert_eq!(
            is_current(&object, &moved(state, seconds)),
            current,
            "{asked} {state} {seconds}"
        );
        object.status = status(
            (&object, &host(), &moved(state, 3_700)),
            &machine(),
            When::Prepared,
            at(100),
        )
        .status;
        assert!(
            is_current(&object, &moved(state, 3_700)),
            "{asked} {state}: the clock of Ironic is ahead"
        );
    }
}

#[test]
fn report_is_current_until_the_spec_or_the_inspection_is_newer() {
    let (mut object, report) = reported(&json!({ "Cores": 5 }), machine());
    assert!(!is_current(&object, &inspected(None)), "never reported");
    object.status = report.status;
    assert!(is_current(&object, &inspected(None)) && is_current(&object, &inspected(Some(60))));
    assert!(is_change_reported(&object));
    assert!(!is_current(&object, &inspected(Some(61))), "inspected later");
    // The clock of Ironic is an hour ahead: the next report is current all the same.
    let ahead = inspected(Some(3_700));
    object.status = status((&object, &host(), &ahead), &machine(), When::Prepared, at(100)).status;
    assert!(is_current(&object, &ahead));
    object.metadata.generation = Some(4);
    assert!(!is_current(&object, &inspected(None)) && !is_change_reported(&object));
}

/// Computed with the function of the Go manager.
#[test]
fn schema_has_the_name_that_the_go_manager_gives_it() {
    let page = settings(json!([
        { "name": "NetworkBootRetryCount", "value": "10", "attribute_type": "Integer", "lower_bound": 0, "upper_bound": 20,
            "read_only": false },
        { "name": "ProcTurboMode", "value": "Enabled", "attribute_type": "Enumeration",
            "allowable_values": ["Enabled", "Disabled"], "read_only": false, "unique": false },
    ]));
    assert_eq!(schema::name(&page), "schema-bfacb86d");
    let mut other = page.clone();
    other.reverse();
    assert_eq!(schema::name(&other), schema::name(&page));
    assert_eq!(schema::name(&[]), "schema-4f53cda1");
}

#[test]
fn settings_of_a_deleted_host_of_the_same_name_get_the_present_owner() {
    let host = host();
    let uid = host.metadata.uid.clone().unwrap();
    let owner =
        |kind: &str, uid: &str| json!({ "apiVersion": "metal3.io/v1alpha1", "kind": kind, "name": "h", "uid": uid });
    for (owners, expected) in [
        (json!([]), Some(vec![uid.as_str()])),
        (json!([owner("BareMetalHost", &uid)]), None),
        (json!([owner("BareMetalHost", "former")]), Some(vec![uid.as_str()])),
        (json!([owner("Other", "kept")]), Some(vec!["kept", uid.as_str()])),
    ] {
        let mut object = object(&json!({}));
        object.metadata.owner_references = serde_json::from_value(owners.clone()).unwrap();
        let owned = owned(&object, &host);
        let owners = owned
            .as_ref()
            .map(|owned| owned.metadata.owner_references.iter().flatten());
        let uids = owners.map(|owners| owners.map(|owner| owner.uid.as_str()).collect::<Vec<_>>());
        assert_eq!(uids, expected);
    }
}
