//! Hosts whose HardwareData was there before their status.

use metal3_api::metal3::v1alpha1::HardwareData;
use serde_json::{Value, json};

use super::fixture::{Fixture, OTHER_UID, UID, image, requests};
use super::rows::given::{details, inspecting, registering};
use crate::action::{Action, Request};

/// With every member.
fn hardware() -> Value {
    json!({
        "hostname": "node-7", "ramMebibytes": 4096,
        "systemVendor": { "manufacturer": "m", "productName": "p", "serialNumber": "s" },
        "firmware": { "bios": { "date": "d", "vendor": "v", "version": "1" } },
        "cpu": { "arch": "aarch64", "model": "c", "clockMegahertz": 2000.5, "flags": ["f"], "count": 4 },
        "nics": [{
            "name": "eth0", "model": "n", "mac": "52:54:00:00:00:09", "ip": "192.0.2.77", "speedGbps": 10,
            "vlans": [{ "id": 7, "name": "v7" }], "vlanId": 7, "pxe": true, "pciAddress": "0000:01:00.0",
            "lldp": { "switchID": "w", "portID": "x", "switchSystemName": "y" },
        }],
        "storage": [{
            "name": "/dev/sda", "alternateNames": ["/dev/a"], "rotational": true, "type": "HDD", "sizeBytes": 1000,
            "vendor": "v", "model": "m", "serialNumber": "s", "wwn": "w", "wwnVendorExtension": "e",
            "wwnWithExtension": "we", "hctl": "0:0:0:0",
        }],
    })
}

fn with_data(fixture: Fixture) -> Fixture {
    let data: HardwareData = serde_json::from_value(json!({
        "metadata": { "name": "h", "namespace": "metal", "resourceVersion": "20" },
        "spec": { "hardware": hardware() },
    }))
    .unwrap();
    fixture.with(|fixture| fixture.hardware_data = Some(Some(data)))
}

/// Its status was restored before the HardwareData, or a user supplies the data before the inspection.
#[test]
fn host_without_hardware_in_its_status_takes_that_of_its_hardware_data() {
    for fixture in [
        Fixture::new("registering"),
        Fixture::new("registering").spec(json!({ "externallyProvisioned": true })),
        // Restored from a saved status, which has no hardware, before the HardwareData was there.
        Fixture::new("available"),
        Fixture::new("provisioned")
            .spec(json!({ "image": image("a") }))
            .status_image("a"),
    ] {
        let bare = fixture
            .status(json!({ "hardware": null }))
            .spec(json!({ "architecture": null }));
        let state = bare.state();
        let imported = with_data(bare).performed();
        assert_eq!(imported.host["status"]["hardware"], hardware(), "{state}");
        assert_eq!(imported.performed().host["spec"]["architecture"], "aarch64", "{state}");
    }
}

/// A host is deleted and created again for another machine, and the garbage collector is late.
#[test]
fn hardware_data_of_a_former_host_of_the_same_name_is_not_taken() {
    let data: HardwareData = serde_json::from_value(json!({
        "metadata": { "name": "h", "namespace": "metal", "resourceVersion": "20", "ownerReferences": [{
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": OTHER_UID, "controller": true }] },
        "spec": { "hardware": { "cpu": { "arch": "aarch64" }, "nics": [{ "name": "eth0", "mac": "52:54:00:00:00:09" }] } },
    }))
    .unwrap();
    for mode in ["agent", "disabled"] {
        let mut fixture = registering()
            .spec(json!({ "architecture": null, "inspectionMode": mode }))
            .node("enroll")
            .with(|fixture| fixture.hardware_data = Some(Some(data.clone())));
        for _ in 0..3 {
            // A port with the address of the former machine is created on the node of the new one.
            for request in requests(&fixture.plan()) {
                assert!(!matches!(request, Request::CreatePort { .. }), "{request:?}");
            }
            fixture = fixture.performed();
        }
        assert!(fixture.host["status"]["hardware"].is_null(), "{mode}");
        assert!(fixture.host["spec"]["architecture"].is_null(), "{mode}");
    }
}

/// Owned by a deleted host of the same name.
fn of_former_host(is_deleted: bool) -> HardwareData {
    let deleted = is_deleted.then_some("2026-01-01T00:00:00Z");
    let owner = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": OTHER_UID, "controller": true });
    serde_json::from_value(json!({
        "metadata": { "name": "h", "namespace": "metal", "resourceVersion": "20", "deletionTimestamp": deleted,
            "finalizers": ["baremetalhost.metal3.io/hardwareData"], "ownerReferences": [owner] },
        "spec": { "hardware": hardware() },
    }))
    .unwrap()
}

/// The patches of the HardwareData in a plan.
fn patches(fixture: &Fixture) -> Vec<Value> {
    let actions = fixture.plan().actions.into_iter();
    let patches = actions.filter_map(|action| match action {
        Action::PatchHardwareData(patch) => Some(patch.into_document()),
        _ => None,
    });
    patches.collect()
}

/// Nothing else removes the finalizer of a host that is gone.
#[test]
fn hardware_data_of_a_former_host_that_only_the_finalizer_keeps_is_released() {
    for is_deleted in [false, true] {
        let disabled = registering()
            .spec(json!({ "inspectionMode": "disabled" }))
            .node("enroll")
            .live();
        let fixture = disabled.with(|fixture| fixture.hardware_data = Some(Some(of_former_host(is_deleted))));
        let released = patches(&fixture)
            .iter()
            .any(|patch| patch["metadata"]["finalizers"] == json!([]));
        assert_eq!(released, is_deleted, "{}", fixture.summary());
    }
}

#[test]
fn hardware_data_of_a_former_host_get_the_new_owner_after_an_inspection_or_are_awaited_until_they_are_gone() {
    let held = inspecting().node("manageable").with(|fixture| {
        let mut data = of_former_host(true);
        let finalizers = data.metadata.finalizers.get_or_insert_default();
        finalizers.push("example.com/backup".to_owned());
        fixture.inventory = Some(Some(details()));
        fixture.hardware_data = Some(Some(data));
    });
    let summary = held.summary();
    assert!(summary.contains("look at its finalizers"), "{summary}");
    for is_deleted in [false, true] {
        let fixture = inspecting().node("manageable").with(|fixture| {
            fixture.inventory = Some(Some(details()));
            fixture.hardware_data = Some(Some(of_former_host(is_deleted)));
        });
        let (summary, patches) = (fixture.summary(), patches(&fixture));
        assert_eq!(patches.len(), 1, "{summary}");
        assert_eq!(summary.contains("to preparing"), !is_deleted, "{summary}");
        let (owner, finalizers) = (
            &patches[0]["metadata"]["ownerReferences"][0]["uid"],
            &patches[0]["metadata"]["finalizers"],
        );
        if is_deleted {
            assert_eq!((owner, finalizers), (&Value::Null, &json!([])), "{summary}");
        } else {
            assert_eq!((owner, finalizers), (&json!(UID), &Value::Null), "{summary}");
        }
    }
}
