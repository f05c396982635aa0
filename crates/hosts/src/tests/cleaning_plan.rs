//! Which disks are erased is recorded before an order erases, and no order erases or overwrites one that is kept.

use metal3_api::meta::Condition;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::fixture::{Fixture, at, requests};
use super::rows::given::{deprovisioning, port, provisioning};
use crate::action::Request;
use crate::names::CLEANING_PLAN;
use crate::node::is_cleaned;

fn disks() -> Value {
    let disk = |number: u32| json!({ "name": format!("/dev/disk/by-path/p-{number}"), "serialNumber": format!("D{number}"), "wwn": format!("0x5{number}") });
    json!([disk(1), disk(2)])
}

/// A host that keeps its second disk, with a node that knows it.
fn keeping(fixture: Fixture, node: &str) -> Fixture {
    let spec =
        json!({ "cleaning": { "keepDisks": [{ "serialNumber": "D2" }] }, "rootDeviceHints": { "serialNumber": "D1" } });
    let own = json!([{ "serial": "s== D2" }, { "wwn": "s== 0x52" }, { "name": "<in> /dev/md" }]);
    let known = json!({ "properties": { "skip_block_devices": own }, "extra": { "metal3-kept-disks": own } });
    fixture
        .spec(spec)
        .status(json!({ "hardware": { "storage": disks() }, "provisioning": { "rootDeviceHints": { "serialNumber": "D1" } } }))
        .node_with(node, known)
        .live()
}

fn plan_of(fixture: &Fixture) -> Option<Condition> {
    let host = fixture.after(&fixture.plan());
    let mut conditions = host.status.conditions.into_iter();
    conditions.find(|one| one.type_ == CLEANING_PLAN)
}

/// The last step of the plan, and the reason of the condition after it.
fn outcome(fixture: &Fixture) -> (String, String) {
    let reason = plan_of(fixture).map(|one| one.reason);
    (fixture.summary(), reason.unwrap_or_default())
}

#[test]
fn order_that_erases_follows_a_written_condition_with_what_it_erases() {
    for (fixture, order) in [
        (keeping(deprovisioning(), "active"), "deleted"),
        (keeping(deprovisioning(), "manageable"), "provide"),
        (keeping(provisioning(), "manageable"), "provide"),
    ] {
        let (summary, reason) = outcome(&fixture);
        assert_eq!((summary.as_str(), reason.as_str()), ("replan", "DisksKept"), "{order}");
        let condition = plan_of(&fixture).unwrap();
        let says = "keeps /dev/disk/by-path/p-2 (D2), and arrays that it finds with their disks; it erases /dev/disk/by-path/p-1 (D1) otherwise";
        assert!(condition.message.contains(says), "{}", condition.message);
        let summary = fixture.performed().summary();
        assert!(summary.starts_with(&format!("requests {order}")), "{order}: {summary}");
    }
}

#[test]
fn record_of_other_disks_is_written_again_before_the_order() {
    let before = keeping(deprovisioning(), "active").performed();
    assert!(before.summary().starts_with("requests deleted"));
    let added = json!({ "storage": [disks()[0], disks()[1], { "name": "/dev/x", "serialNumber": "D3" }] });
    let changed = before.status(json!({ "hardware": added }));
    assert_eq!(changed.summary(), "replan");
    assert!(plan_of(&changed).unwrap().message.contains("(D3)"));
    assert!(changed.performed().summary().starts_with("requests deleted"));
}

#[test]
fn node_learns_what_is_kept_before_an_order_erases() {
    let lost = json!({ "properties": { "skip_block_devices": null }, "extra": null });
    let fixture = keeping(deprovisioning(), "active")
        .performed()
        .node_with("active", lost)
        .live();
    assert_eq!(fixture.summary(), "requests change node, replan");
    // During a transition Ironic accepts no change. What waits for its agent is aborted, and Ironic accepts it then.
    let busy =
        |to: &str| json!({ "properties": { "skip_block_devices": null }, "extra": null, "target_provision_state": to });
    let deploys = keeping(deprovisioning(), "active")
        .performed()
        .node_with("wait call-back", busy("active"))
        .live();
    assert_eq!(deploys.summary(), "requests abort, waits for the node");
    let old = deploys.with(|fixture| fixture.aborts_deployments = false);
    assert_eq!(old.summary(), "waits for the node");
    // Too late for what cleans already, which the condition says.
    let late = keeping(deprovisioning(), "cleaning").performed();
    assert_eq!(plan_of(&late).unwrap().reason, "DisksKept");
    let late = late.node_with("cleaning", busy("available")).live();
    assert_eq!(
        outcome(&late),
        ("waits for the node".to_owned(), "DisksNotProtected".to_owned())
    );
    for (to, expected) in [
        ("available", "requests abort, waits for the node"),
        // A cleaning with steps of this program erases nothing of a host that keeps disks.
        ("manageable", "waits for the node"),
    ] {
        let cleans = keeping(deprovisioning(), "clean wait").performed();
        assert_eq!(cleans.summary(), "waits for the node", "{to}");
        let cleans = cleans.node_with("clean wait", busy(to)).live();
        assert_eq!(cleans.summary(), expected, "{to}");
    }
}

/// The edit that removes volumes names another root device: the image must not go to the former one.
#[test]
fn image_goes_to_no_kept_disk_that_was_the_root_device_before() {
    let former =
        json!({ "rootDeviceHints": { "serialNumber": "D2" }, "raid": { "hardwareRAIDVolumes": [{ "level": "1" }] } });
    let mut fixture = keeping(provisioning(), "available").status(json!({ "provisioning": former }));
    for _ in 0..6 {
        let planned = fixture.plan();
        if requests(&planned).any(|one| matches!(one, Request::Provision(..))) {
            break;
        }
        fixture = fixture.performed().with_changed_node().live();
    }
    let root = &fixture.host["status"]["provisioning"]["rootDeviceHints"];
    assert_eq!(*root, json!({ "serialNumber": "D1" }), "{}", fixture.summary());
}

#[test]
fn nothing_is_erased_or_written_while_a_kept_disk_is_not_protected() {
    let root = |hints: Value| json!({ "rootDeviceHints": hints });
    for change in [
        json!({ "cleaning": { "keepDisks": [{ "serialNumber": "D9" }] } }),
        json!({ "cleaning": { "keepDisks": [{ "serialNumber": "D2" }, { "serialNumber": "D1" }] } }),
        root(json!({ "serialNumber": "D2" })),
        root(Value::Null),
    ] {
        for (fixture, node) in [
            (deprovisioning(), "active"),
            (deprovisioning(), "manageable"),
            (provisioning(), "manageable"),
            (provisioning(), "available"),
        ] {
            let mut fixture = keeping(fixture, node).spec(change.clone());
            for _ in 0..4 {
                // The node follows the host, and the record of the deployment the spec.
                let planned = fixture.plan();
                let erases = requests(&planned).any(|one| matches!(one, Request::Provision(..)));
                assert!(!erases, "{node} {change}: {}", fixture.summary());
                fixture = fixture.performed().with_changed_node().live();
            }
            assert_eq!(
                plan_of(&fixture).unwrap().reason,
                "DisksNotProtected",
                "{node} {change}"
            );
        }
    }
}

/// A deletion goes on after its attempts, and erases nothing.
#[test]
fn deleted_host_is_given_up_without_cleaning_when_a_kept_disk_is_not_protected() {
    let lost = json!({ "cleaning": { "keepDisks": [{ "serialNumber": "D9" }] } });
    let mut fixture = keeping(deprovisioning(), "active").spec(lost).deleted();
    for _ in 0..12 {
        let planned = fixture.plan();
        assert!(
            !requests(&planned).any(|one| matches!(one, Request::Provision(..))),
            "{}",
            fixture.summary()
        );
        fixture = fixture.performed().with_changed_node().live().hours_later(1);
        if fixture.state().to_string() == "powering off before delete" {
            return;
        }
    }
    panic!("the deletion waits for ever: {}", fixture.summary());
}

#[test]
fn host_without_the_field_has_no_such_condition_and_one_that_lost_it_loses_both() {
    let plain = deprovisioning().node("active").live();
    assert!(plan_of(&plain).is_none());
    assert!(plain.summary().starts_with("requests deleted"));
    let before = keeping(deprovisioning(), "active")
        .performed()
        .spec(json!({ "cleaning": null }));
    assert_eq!(before.summary(), "requests change node, replan");
    assert!(plan_of(&before).is_none());
}

#[test]
fn machine_that_is_cleaned_first_is_not_cleaned_any_more_once_something_was_deployed() {
    let first = json!({ "cleaning": { "when": "first" } });
    let ended = json!({ "operationHistory": { "deprovision": { "start": at(0), "end": at(1) } } });
    let used = |state: &str| Fixture::new(state).status(ended.clone());
    for (fixture, expected) in [
        (Fixture::new("registering"), true),
        (Fixture::new("preparing"), true),
        (provisioning(), true),
        (Fixture::new("provisioned"), false),
        (Fixture::new("externally provisioned"), false),
        (deprovisioning(), false),
        (used("available"), false),
        (used("provisioning"), false),
        (used("inspecting").status_image("a"), false),
    ] {
        let fixture = fixture.spec(first.clone());
        let host = serde_json::from_value(fixture.host.clone()).unwrap();
        assert_eq!(is_cleaned(&host), expected, "{}", fixture.host);
        let always = fixture.spec(json!({ "cleaning": { "when": "always" } }));
        let host = serde_json::from_value(always.host.clone()).unwrap();
        assert!(is_cleaned(&host));
        let disabled = always.spec(json!({ "automatedCleaningMode": "disabled" }));
        let host = serde_json::from_value(disabled.host).unwrap();
        assert!(!is_cleaned(&host));
    }
}

#[test]
fn what_is_erased_is_named_for_each_choice() {
    for (spec, reason, says) in [
        (
            json!({ "cleaning": {} }),
            "AllDisksErased",
            "all disks of the machine: /dev/disk/by-path/p-1 (D1), ",
        ),
        (json!({ "cleaning": { "when": "first" } }), "AllDisksErased", "p-2 (D2)"),
        (
            json!({ "cleaning": {}, "automatedCleaningMode": "disabled" }),
            "NoDiskErased",
            "automatedCleaningMode",
        ),
    ] {
        let fixture = Fixture::new("preparing").with(|fixture| fixture.ports = Some(vec![port()]));
        let fixture = fixture
            .spec(spec.clone())
            .status(json!({ "hardware": { "storage": disks() } }));
        let clean = spec["automatedCleaningMode"].is_null();
        let condition = plan_of(&fixture.node_with("manageable", json!({ "automated_clean": clean }))).unwrap();
        assert_eq!(condition.reason, reason, "{spec}");
        assert!(condition.message.contains(says), "{spec}: {}", condition.message);
    }
    let spent = super::rows::given::provisioned()
        .spec(json!({ "image": null, "cleaning": {} }))
        .status(json!({ "hardware": { "storage": disks() } }))
        .node("active")
        .live()
        .with(|fixture| fixture.left = 0);
    let host = spent.after(&spent.plan());
    let held = host.status.conditions.iter().find(|one| one.type_ == "Held").unwrap();
    assert!(
        held.message.contains("the next cleaning by Ironic erases all disks"),
        "{}",
        held.message
    );
}

/// Whatever `automatedCleaningMode` says.
#[test]
fn volumes_are_made_once_the_status_says_that_this_erases_all_disks() {
    let volumes = json!({ "softwareRAIDVolumes": [{ "level": "1" }] });
    let mut fixture = Fixture::new("preparing")
        .with(|fixture| fixture.ports = Some(vec![port()]))
        .spec(json!({ "cleaning": {}, "automatedCleaningMode": "disabled", "raid": volumes }))
        .status(json!({ "hardware": { "storage": disks() } }))
        .node_with("manageable", json!({ "automated_clean": false }))
        .live();
    for _ in 0..8 {
        let planned = fixture.plan();
        if requests(&planned).any(|one| matches!(one, Request::Provision(..))) {
            let host: BareMetalHost = serde_json::from_value(fixture.host.clone()).unwrap();
            let mut conditions = host.status.conditions.into_iter();
            let condition = conditions.find(|one| one.type_ == CLEANING_PLAN).unwrap();
            assert_eq!(condition.reason, "AllDisksErased");
            assert!(condition.message.contains("RAID volumes"), "{}", condition.message);
            return;
        }
        fixture = fixture.performed().with_changed_node().live();
    }
    panic!("no cleaning is ordered: {}", fixture.summary());
}
