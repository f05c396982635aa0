//! A deployment follows the spec as it is when it begins, in every field that decides about the disk.

use serde_json::{Value, json};

use super::fixture::{Fixture, requests};
use super::rows::given::provisioning;
use crate::action::Request;

/// What the first change of the instance writes; `None`: no plan writes it, or another request comes before it.
fn written(mut fixture: Fixture) -> Option<(Value, Fixture)> {
    for _ in 0..6 {
        let plan = fixture.plan();
        for request in requests(&plan) {
            match request {
                Request::PatchNode(_, patch) => {
                    let body = patch.clone().into_body().unwrap();
                    if body.to_string().contains("/instance_info/") {
                        return Some((body, fixture));
                    }
                    let capabilities = body
                        .as_array()
                        .unwrap()
                        .iter()
                        .find(|one| one["path"] == "/properties/capabilities");
                    let capabilities = capabilities.unwrap()["value"].clone();
                    let change = json!({ "properties": { "capabilities": capabilities } });
                    metal3_runtime::patch::apply(&change, &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0);
                }
                _ => return None,
            }
        }
        fixture = fixture.performed();
    }
    None
}

fn value<'a>(body: &'a Value, path: &str) -> &'a Value {
    let mut all = body.as_array().unwrap().iter();
    all.find(|one| one["path"] == path)
        .map_or(&Value::Null, |one| &one["value"])
}

#[test]
fn image_of_an_edit_is_written_to_the_root_device_of_the_same_edit() {
    for image in ["a", "b"] {
        let fixture = provisioning()
            .spec(json!({ "rootDeviceHints": { "deviceName": "/dev/sdb" } }))
            .spec_image(image)
            .node("available")
            .live();
        let (body, fixture) = written(fixture).unwrap();
        assert_eq!(
            value(&body, "/instance_info/root_device"),
            &json!({ "name": "s== /dev/sdb" }),
            "{image}"
        );
        let hints = &fixture.host["status"]["provisioning"]["rootDeviceHints"];
        assert_eq!(hints, &json!({ "deviceName": "/dev/sdb" }), "{image}");
    }
}

#[test]
fn image_of_an_edit_is_deployed_in_the_boot_mode_of_the_same_edit() {
    for (mode, capabilities, instance) in [
        ("legacy", "boot_mode:bios", json!({})),
        (
            "UEFISecureBoot",
            "boot_mode:uefi,secure_boot:true",
            json!({ "secure_boot": "true" }),
        ),
    ] {
        let fixture = provisioning()
            .spec(json!({ "bootMode": mode }))
            .spec_image("b")
            .node("available")
            .live();
        let (body, fixture) = written(fixture).unwrap();
        assert_eq!(value(&body, "/instance_info/capabilities"), &instance, "{mode}");
        assert_eq!(fixture.host["status"]["provisioning"]["bootMode"], mode);
        assert_eq!(
            fixture.node.unwrap().unwrap().0["properties"]["capabilities"],
            capabilities
        );
    }
}

#[test]
fn edit_during_a_deployment_does_not_change_what_the_status_says_of_it() {
    for state in ["deploying", "wait call-back", "cleaning"] {
        let fixture = provisioning()
            .spec(json!({ "rootDeviceHints": { "deviceName": "/dev/sdb" }, "bootMode": "legacy" }))
            .node(state)
            .live();
        let before = fixture.host["status"]["provisioning"].clone();
        assert_eq!(fixture.performed().host["status"]["provisioning"], before, "{state}");
    }
}

#[test]
fn root_device_that_ironic_cannot_get_is_reported_and_can_be_corrected() {
    let with = |name: &str| json!({ "rootDeviceHints": { "deviceName": name } });
    let fixture = provisioning().spec(with("/dev/s\u{7}")).node("available").live();
    let fixture = fixture.performed();
    let message = fixture.host["status"]["errorMessage"].as_str().unwrap();
    assert!(message.contains("spec.rootDeviceHints.deviceName"), "{message}");
    let (body, _) = written(fixture.spec(with("/dev/sdb"))).unwrap();
    assert_eq!(
        value(&body, "/instance_info/root_device"),
        &json!({ "name": "s== /dev/sdb" })
    );
}
