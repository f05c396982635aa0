use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::*;
use crate::tests::fixture::{self, UID, at};

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
}

fn with_versions(mut object: HostFirmwareComponents, before: &Value) -> HostFirmwareComponents {
    object.status.components = serde_json::from_value(before.clone()).unwrap();
    object
}

fn ordered_of(object: &HostFirmwareComponents) -> HostFirmwareComponents {
    with_order(object, &due(object), (&node(THEN), &[]), at(0))
}

fn names(updates: &[FirmwareUpdate]) -> Vec<&str> {
    updates.iter().map(|update| update.component.as_str()).collect()
}

/// An order is recorded with what shows later what became of it.
#[test]
fn order_names_its_updates_its_node_and_the_versions_of_before() {
    let found = versions(&json!([{ "component": "bios", "current_version": "1" }]));
    let asked = object(&json!([update("bios", URL)]), &json!([]));
    let ordered = with_order(&asked, &asked.spec.updates, (&node(THEN), &found), at(0));
    assert!(due(&ordered).is_empty() && Order::of(&ordered).is_open());
    assert_eq!(ordered.status.components[0].current_version.as_deref(), Some("1"));
    let begun = with_begun(&ordered, &node(THEN).uuid, at(1));
    assert_eq!(
        Order::of(&begun),
        Order::Begun {
            node: node(THEN).uuid.to_string()
        }
    );
    for open in [&ordered, &begun] {
        assert_eq!(json!(super::ordered(open)), json!([update("bios", URL)]));
        assert!(ordered_at(open).is_some() && of_others(open, &node(THEN)).is_empty());
        assert!(covers(&in_steps(&[step(&asked.spec.updates)]), open));
        let other: Vec<FirmwareUpdate> = serde_json::from_value(json!([update("bios", "http://192.0.2.9/1")])).unwrap();
        assert!(!covers(&in_steps(&[step(&other)]), open));
        assert!(!format!("{:?}", open.status.conditions).contains("192.0.2.9"));
    }
    let Order::Ordered { changed, .. } = Order::of(&ordered) else {
        panic!("{:?}", Order::of(&ordered));
    };
    assert!(!has_changed(&changed, &node(THEN)) && has_changed(&changed, &node(LATER)));
}

/// The version of another component says nothing, and of two updates of one component it cannot be said which was made.
#[test]
fn update_is_proven_by_another_version_of_its_own_component() {
    let before = json!([{ "component": "bios", "initialVersion": "1", "currentVersion": "1" },
        { "component": "bmc", "initialVersion": "1", "currentVersion": "1" }]);
    let (bios, bmc) = (update("bios", URL), update("bmc", URL));
    let now = |bios: &str, bmc: &str| {
        versions(
            &json!([{ "component": "bios", "current_version": bios }, { "component": "bmc", "current_version": bmc }]),
        )
    };
    for (asked, found, expected) in [
        (json!([bios]), now("1", "2"), vec!["bios"]),
        (json!([bios]), now("2", "1"), vec![]),
        (json!([bios, bmc]), now("2", "1"), vec!["bmc"]),
        (json!([bios]), Vec::new(), vec!["bios"]),
        (
            json!([bios, update("bios", "http://192.0.2.9/3")]),
            now("2", "1"),
            vec!["bios", "bios"],
        ),
        (json!([update("nic:a", URL)]), now("2", "2"), vec!["nic:a"]),
    ] {
        let ordered = ordered_of(&with_versions(object(&asked, &json!([])), &before));
        assert_eq!(names(&unproven(&ordered, &found)), expected, "{asked}");
    }
}

#[test]
fn failure_removes_what_was_ordered_and_nothing_else() {
    let (bios, bmc, card) = (update("bios", URL), update("bmc", URL), update("nic:a, b", URL));
    let newer = update("bios", "http://192.0.2.9/3");
    let many: Vec<_> = (0..7).map(|card| update(&format!("nic:{card}"), URL)).collect();
    for (recorded, asked) in [
        (json!([bios]), json!([bios, bmc])),
        (json!([bios]), json!([bios, newer])),
        (json!([bios]), json!([bios, card])),
        (json!([many[0], many[1]]), json!(many)),
    ] {
        let made = object(&asked, &recorded);
        let ordered = ordered_of(&made);
        assert_eq!(json!(ordered.status.updates), asked);
        for begun in [ordered.clone(), with_begun(&ordered, &node(THEN).uuid, at(0))] {
            let lost = super::ordered(&begun);
            let failed = with_failure(&begun, &lost, at(1));
            assert_eq!(json!(failed.status.updates), recorded);
            assert_eq!(Order::of(&failed), Order::Failed(names_text(&lost)));
            assert_eq!(json!(without_order(&begun, &lost, at(1)).status.updates), recorded);
        }
    }
    // What had ended stays made.
    let ordered = ordered_of(&object(&json!([bios, bmc]), &json!([])));
    let left: Vec<FirmwareUpdate> = serde_json::from_value(json!([bmc])).unwrap();
    let lost = not_ended(&ordered, Some(&in_steps(&[step(&left)])));
    assert_eq!(names(&lost), ["bmc"]);
    let failed = with_failure(&ordered, &lost, at(1));
    assert_eq!(json!(failed.status.updates), json!([bios]));
    assert!(of_others(&failed, &node(THEN)).is_empty());
    let other = in_steps(&[step(&serde_json::from_value::<Vec<_>>(json!([card])).unwrap())]);
    assert_eq!(names(&not_ended(&ordered, Some(&other))), ["bios", "bmc"]);
}

/// A Go manager records what it begins with, and does not read the condition.
#[test]
fn updates_that_another_manager_recorded_are_no_proof_that_they_were_made() {
    let (bios, bmc) = (update("bios", URL), update("bmc", URL));
    let ordered = ordered_of(&object(&json!([bios]), &json!([])));
    let mut made = with_success(&ordered, &[], at(1));
    assert!(Order::of(&made) == Order::Made && of_others(&made, &node(THEN)).is_empty());
    made.spec.updates = serde_json::from_value(json!([bios, bmc])).unwrap();
    made.status.updates.clone_from(&made.spec.updates);
    assert_eq!(names(&of_others(&made, &node(THEN))), ["bmc"]);
    let failed = with_failure(&made, &of_others(&made, &node(THEN)), at(2));
    assert_eq!(
        (json!(failed.status.updates), of_others(&failed, &node(THEN))),
        (json!([bios]), Vec::new())
    );
    let recorded = object(&json!([bios]), &json!([bios]));
    assert_eq!(names(&of_others(&recorded, &node(THEN))), ["bios"]);
    // The next order keeps what is known of the last one.
    let next = with_success(&ordered_of(&failed), &[], at(3));
    assert!(of_others(&next, &node(THEN)).is_empty() && next.status.updates.len() == 2);
}

#[test]
fn end_says_when_the_versions_are_those_of_before() {
    let before = json!([{ "component": "bios", "initialVersion": "1", "currentVersion": "1" }]);
    let asked = with_versions(object(&json!([update("bios", URL)]), &json!([])), &before);
    let ordered = ordered_of(&asked);
    for (version, is_said) in [("1", true), ("2", false)] {
        let found = versions(&json!([{ "component": "bios", "current_version": version }]));
        let made = with_success(&ordered, &found, at(1));
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
    let found = report(json!([]), json!([update("bmc", URL)]), When::Now);
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
    let found = report(json!([update("bmc", URL)]), json!([]), When::Now);
    assert_eq!(
        shown(&found)[0],
        "ChangeDetected True OK bmc: made while the host is prepared"
    );
    let found = report(json!([update("bmc", URL)]), json!([]), When::Prepared);
    assert!(shown(&found)[0].contains("after it is deprovisioned"));
    let found = report(
        json!([update("bios", "http://u:canary@h/x?canary")]),
        json!([]),
        When::Now,
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

/// Some BMCs list no network cards while no system runs.
#[test]
fn component_is_refused_when_ironic_lists_others_of_its_kind() {
    let node = node(THEN);
    let many: Vec<_> = (0..500).map(|card| format!("nic:{}{card}", "x".repeat(80))).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for (known, asked, is_refused) in [
        (vec![], "bios", false),
        (vec!["bios", "bmc"], "nic:NIC.1", false),
        (vec!["bios", "nic:NIC.1"], "nic:NIC.1", false),
        (vec!["bios", "nic:NIC.1"], "nic:NIC.7", true),
        (vec!["bios"], "bmc", true),
        (many, "nic:NIC.7", true),
    ] {
        let components = known
            .iter()
            .map(|name| json!({ "component": name, "current_version": "1" }));
        let components = versions(&components.collect());
        let machine = Machine {
            node: &node,
            components: &components,
            hosts: &Allowed::default(),
        };
        let updates = object(&json!([update(asked, URL)]), &json!([])).spec.updates;
        let found = invalid(&updates, machine);
        assert_eq!(!found.is_empty(), is_refused, "{asked} {found:?}");
        assert!(found.iter().all(|one| one.problem.len() < 2_000));
    }
}

/// Ironic fails after it has booted the machine.
#[test]
fn url_that_ironic_fetches_no_update_from_is_refused() {
    let node = node(THEN);
    let machine = Machine {
        node: &node,
        components: &[],
        hosts: &Allowed::default(),
    };
    for (url, is_refused) in [
        ("http://f/1", false),
        ("HTTPS://f/1", false),
        ("swift://container/1", false),
        ("ftp://f/1", true),
        ("gopher://f/1", true),
        ("oci://f/1", true),
        ("file:///etc/ironic/1", true),
    ] {
        let updates = object(&json!([update("bios", url)]), &json!([])).spec.updates;
        let found = invalid(&updates, machine);
        assert_eq!(found.len(), usize::from(is_refused), "{url}");
        assert!(found.iter().all(|one| one.problem.contains("use http or https")));
    }
}

fn list(updates: &[Value]) -> Vec<FirmwareUpdate> {
    serde_json::from_value(json!(updates)).unwrap()
}

/// Ironic shows neither a secret in the query nor what follows it.
#[test]
fn update_is_recognised_in_a_node_that_masks_its_url() {
    let of = |url: &str| of_all(&list(&[update("bios", url)]));
    let asked = of("https://u:p@f/a/1?token=abc&x=1");
    assert_eq!(asked, of("https://u:p@f/a/1?token=******"));
    assert_eq!(asked, of("https://f/a/1"));
    for other in [
        "https://f/a/2?token=******",
        "https://g/a/1",
        "http://f/a/1",
        "https://f/a/1?file=1",
    ] {
        assert_ne!(asked, of(other), "{other}");
    }
    let by_query = of("https://f/get?file=1&X-Amz-Security-Token=abc&part=2");
    assert_eq!(by_query, of("https://f/get?file=1&X-Amz-Security-Token=******"));
    assert_ne!(by_query, of("https://f/get?file=2&X-Amz-Security-Token=******"));
}

/// The names of a user or a BMC are in the message of the record.
#[test]
fn name_that_separates_in_a_record_is_refused() {
    let node = node(THEN);
    for (name, is_refused) in [
        ("nic:NIC.Integrated.1-1", false),
        ("nic:a; made files: x", true),
        ("nic:a, b", true),
        ("nic:a\nb", true),
    ] {
        let machine = Machine {
            node: &node,
            components: &[],
            hosts: &Allowed::default(),
        };
        assert_eq!(
            !invalid(&list(&[update(name, URL)]), machine).is_empty(),
            is_refused,
            "{name:?}"
        );
    }
}

#[test]
fn updates_that_are_left_are_named_in_one_short_line() {
    let left: Vec<_> = (0..500)
        .map(|card| update(&format!("nic:{card}\n{}", "x".repeat(80)), URL))
        .collect();
    let mut node = fixture::node("manageable");
    node["driver_internal_info"] = json!({ "redfish_fw_updates": left });
    let text = left_text(&serde_json::from_value(node).unwrap());
    assert!(text.len() < 1_000 && !text.contains('\n'), "{text}");
}

/// A Go manager may be asked for the former file once more.
#[test]
fn only_recorded_updates_count_as_made() {
    let (first, second) = (update("bios", "http://f/1"), update("bios", "http://f/2"));
    let made = with_success(&ordered_of(&object(&json!([first]), &json!([]))), &[], at(1));
    let mut next = made.clone();
    next.spec.updates = list(std::slice::from_ref(&second));
    let made = with_success(&ordered_of(&next), &[], at(2));
    assert_eq!(made.status.updates, list(&[second]));
    let mut again = made;
    again.status.updates = list(std::slice::from_ref(&first));
    assert_eq!(of_others(&again, &node(THEN)), list(&[first]));
}

/// Ironic keeps the steps of a cleaning that failed: those of a Go manager say what it had begun with.
#[test]
fn failed_cleaning_of_another_manager_leaves_doubt_about_its_own_updates() {
    let (first, second) = (update("bios", "http://f/1"), update("bios", "http://f/2"));
    let object = object(&json!([first, second]), &json!([first, second]));
    let failed_with = |steps: Value| -> Node {
        let mut node = fixture::node("clean failed");
        node["driver_internal_info"] = json!({ "clean_steps": steps });
        serde_json::from_value(node).unwrap()
    };
    let of_update = json!({ "interface": "firmware", "step": "update", "args": { "settings": [second] } });
    let of_volumes = json!({ "interface": "raid", "step": "create_configuration" });
    for (steps, expected) in [
        (json!([]), vec![first.clone(), second.clone()]),
        (json!([of_volumes, of_update]), vec![second.clone()]),
        (json!([of_volumes]), vec![]),
    ] {
        assert_eq!(
            of_others(&object, &failed_with(steps.clone())),
            list(&expected),
            "{steps}"
        );
    }
}
