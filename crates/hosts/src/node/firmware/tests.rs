use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::*;
use crate::tests::fixture::{self, OTHER_UID, UID, at};

const URL: &str = "http://192.0.2.9/2";

fn object(asked: &Value, recorded: &Value) -> HostFirmwareComponents {
    serde_json::from_value(json!({
        "metadata": { "name": "h", "namespace": "metal", "generation": 3 },
        "spec": { "updates": asked }, "status": { "updates": recorded },
    }))
    .unwrap()
}

fn update(component: &str, url: &str) -> Value {
    json!({ "component": component, "url": url })
}

fn node(changed: &str) -> Node {
    let mut node = fixture::node("manageable");
    node["provision_updated_at"] = json!(changed);
    serde_json::from_value(node).unwrap()
}

fn versions(found: &Value) -> Vec<FirmwareComponent> {
    serde_json::from_value(found.clone()).unwrap()
}

fn host() -> BareMetalHost {
    serde_json::from_value(fixture::Fixture::new("preparing").host).unwrap()
}

const THEN: &str = "2026-01-31T12:00:00.123456Z";
const LATER: &str = "2026-01-31T12:10:00Z";

#[test]
fn update_is_due_until_it_is_recorded_with_its_url() {
    let (bios, other, bmc) = (
        update("bios", URL),
        update("bios", "http://192.0.2.9/1"),
        update("bmc", URL),
    );
    for (asked, recorded, expected) in [
        (json!([]), json!([]), 0),
        (json!([bios]), json!([]), 1),
        (json!([bios]), json!([bios]), 0),
        (json!([bios]), json!([other]), 1),
        (json!([bmc, bios]), json!([bios]), 1),
    ] {
        assert_eq!(due(&object(&asked, &recorded)).len(), expected, "{asked} {recorded}");
    }
    let mut deleted = object(&json!([bios]), &json!([]));
    deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert!(due(&deleted).is_empty());
}

#[test]
fn step_has_the_updates_in_their_order() {
    let asked = json!([update("bmc", URL), update("nic:NIC.1", URL)]);
    let step = step(&due(&object(&asked, &json!([]))));
    assert_eq!((step.interface.as_str(), step.step.as_str()), ("firmware", "update"));
    assert_eq!(json!(step.args), json!({ "settings": asked }));
    assert!(is_in(&[step]) && !is_in(&[]));
}

/// An order is recorded with what shows later whether Ironic began with it.
#[test]
fn order_counts_as_made_only_when_it_ended() {
    let mut asked = object(&json!([update("bios", URL)]), &json!([]));
    let before = json!([{ "component": "bios", "initialVersion": "1", "currentVersion": "1" }]);
    asked.status.components = serde_json::from_value(before).unwrap();
    let ordered = with_order(&asked, &asked.spec.updates, &node(THEN), at(0));
    assert!(due(&ordered).is_empty() && Order::of(&ordered).is_open());
    let begun = with_begun(&ordered, &node(THEN).uuid, at(1));
    let mut lost = node(LATER);
    lost.uuid = metal3_domain::ids::NodeUuid::parse(OTHER_UID).unwrap();
    let (same, new) = (
        versions(&json!([{ "component": "bios", "current_version": "1" }])),
        versions(&json!([{ "component": "bios", "current_version": "2" }])),
    );
    let (same, new) = (Observed::Present(same.as_slice()), Observed::Present(new.as_slice()));
    let unread = Observed::Unknown(UnknownReason::NotRead);
    for (object, node, is_accepted, versions, expected) in [
        (&ordered, node(THEN), false, &unread, Outcome::NotMade),
        (&ordered, node(LATER), false, &unread, Outcome::Unknown),
        // Ironic found no worker, and went back to the state of before.
        (&ordered, node(LATER), false, &same, Outcome::NotMade),
        (&ordered, node(LATER), false, &new, Outcome::Made),
        (&ordered, node(LATER), true, &same, Outcome::Made),
        (&begun, node(LATER), false, &same, Outcome::Made),
        (&begun, lost.clone(), false, &new, Outcome::NotMade),
        (&ordered, lost, true, &new, Outcome::NotMade),
    ] {
        let found = outcome(object, &node, is_accepted, versions);
        assert_eq!(
            found,
            expected,
            "{:?} {:?}",
            Order::of(object),
            node.provision_updated_at
        );
    }
}

#[test]
fn failure_removes_what_was_ordered_and_nothing_else() {
    let (bios, bmc, card) = (update("bios", URL), update("bmc", URL), update("nic:a, b", URL));
    let made = object(&json!([bios, bmc]), &json!([bios]));
    let ordered = with_order(&made, &due(&made), &node(THEN), at(0));
    assert_eq!(json!(ordered.status.updates), json!([bios, bmc]));
    for begun in [ordered.clone(), with_begun(&ordered, &node(THEN).uuid, at(0))] {
        let failed = with_failure(&begun, at(1));
        assert_eq!(json!(failed.status.updates), json!([bios]));
        assert_eq!(Order::of(&failed), Order::Failed("bmc".to_owned()));
        assert_eq!(json!(without_order(&begun).status.updates), json!([bios]));
    }
    // A name with the separator in it: all are made again.
    let made = object(&json!([bios, card]), &json!([bios]));
    let ordered = with_order(&made, &due(&made), &node(THEN), at(0));
    assert!(with_failure(&ordered, at(1)).status.updates.is_empty());
    // The record of a Go manager.
    let recorded = object(&json!([bios]), &json!([bios]));
    assert!(with_failure(&recorded, at(1)).status.updates.is_empty());
}

#[test]
fn end_says_when_the_versions_are_those_of_before() {
    let mut asked = object(&json!([update("bios", URL)]), &json!([]));
    let before = json!([{ "component": "bios", "initialVersion": "1", "currentVersion": "1" }]);
    asked.status.components = serde_json::from_value(before).unwrap();
    let ordered = with_order(&asked, &asked.spec.updates, &node(THEN), at(0));
    for (version, is_said) in [("1", true), ("2", false)] {
        let made = with_success(
            &ordered,
            &versions(&json!([{ "component": "bios", "current_version": version }])),
            at(1),
        );
        assert_eq!(Order::of(&made), Order::Made);
        let message = &made.status.conditions[0].message;
        assert_eq!(message.contains("the versions of before"), is_said, "{message}");
    }
}

#[test]
fn status_has_the_components_and_says_when_updates_are_made() {
    let components = json!([{ "component": "bmc", "initial_version": "1", "current_version": "2", "last_version_flashed": "2",
        "updated_at": "2026-01-31T12:00:00.5+00:00" }]);
    let components = versions(&components);
    let node = node(THEN);
    let machine = Machine {
        node: &node,
        components: &components,
        hosts: &Allowed::default(),
    };
    let report = |asked: Value, recorded: Value, state| status(&object(&asked, &recorded), machine, state, at(0));
    let found = report(json!([]), json!([update("bmc", URL)]), State::Prepared);
    assert_eq!(
        json!(found.status.components),
        json!([{ "component": "bmc", "initialVersion": "1", "currentVersion": "2", "lastVersionFlashed": "2",
            "updatedAt": "2026-01-31T12:00:00Z" }])
    );
    assert!(found.status.updates.is_empty(), "a later request is a new one");
    let shown = |report: &Report| -> Vec<String> {
        let all = report.status.conditions.iter();
        all.map(|one| format!("{} {:?} {} {}", one.type_, one.status, one.reason, one.message))
            .collect()
    };
    assert_eq!(shown(&found), ["ChangeDetected False OK ", "Valid True OK "]);
    let found = report(json!([update("bmc", URL)]), json!([]), State::Prepared);
    assert_eq!(
        shown(&found)[0],
        "ChangeDetected True OK bmc: made while the host is prepared"
    );
    let found = report(json!([update("bmc", URL)]), json!([]), State::InUse);
    assert!(shown(&found)[0].contains("after it is deprovisioned"));
    let found = report(
        json!([update("bios", "http://u:canary@h/x?canary")]),
        json!([]),
        State::Prepared,
    );
    assert!(
        shown(&found)[1].starts_with("Valid False InvalidComponent Invalid Firmware Components: bios: Ironic knows no")
    );
    assert!(found.warning.is_some());
    assert!(!format!("{:?}", shown(&found)).contains("canary"));
}

#[test]
fn host_becomes_the_controller_of_its_components_or_a_plain_owner() {
    let mut asked = object(&json!([]), &json!([]));
    let owner = |found: &HostFirmwareComponents| {
        let owners = found.metadata.owner_references.clone().unwrap();
        let of_host = owners.into_iter().find(|owner| owner.kind == "BareMetalHost").unwrap();
        (of_host.uid, of_host.controller)
    };
    let found = owned(&asked, &host()).unwrap();
    assert_eq!(owner(&found), (UID.to_owned(), Some(true)));
    assert_eq!(owned(&found, &host()), None);
    let other = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c", "controller": true },
        { "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": "former" }]);
    asked.metadata.owner_references = serde_json::from_value(other).unwrap();
    assert_eq!(owner(&owned(&asked, &host()).unwrap()), (UID.to_owned(), None));
}
