//! Each rule objects to what it is there for, and to nothing of an ordinary life.

use serde_json::json;

use super::*;

const ON: Metal = Metal {
    is_on: true,
    written: 1,
};

fn host(name: &str, consumer: &str, state: &str) -> Object {
    Object(json!({
        "kind": "BareMetalHost", "metadata": { "name": name },
        "spec": { "online": true, "consumerRef": { "name": consumer }, "image": { "url": "x" } },
        "status": { "provisioning": { "state": state }, "poweredOn": true },
    }))
}

fn named(kind: &str, name: &str, spec: &Value) -> Object {
    Object(json!({ "kind": kind, "metadata": { "name": name }, "spec": spec }))
}

/// What the last of these writes breaks; those before it break nothing.
fn broken(writes: &[(Object, bool)]) -> Vec<String> {
    let mut invariants = Invariants::default();
    let (last, before) = writes.split_last().unwrap();
    for (object, gone) in before {
        assert_eq!(invariants.saw(object, *gone, None), Vec::<String>::new());
    }
    invariants.saw(&last.0, last.1, None)
}

fn one_rule(writes: &[(Object, bool)], rule: &str) {
    let found = broken(writes);
    assert!(found.iter().any(|why| why.starts_with(rule)), "{rule}: {found:?}");
}

#[test]
fn an_ordinary_life_breaks_nothing() {
    let machine = named("Metal3Machine", "m", &json!({}));
    let mut going = machine.clone();
    going.0["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let free = Object(json!({ "kind": "BareMetalHost", "metadata": { "name": "h" },
        "status": { "provisioning": { "state": "available" } } }));
    let life = [
        (free.clone(), false),
        (machine, false),
        (host("h", "m", "available"), false),
        (host("h", "m", "provisioned"), false),
        (going.clone(), false),
        (host("h", "m", "deprovisioning"), false),
        (free, false),
        (going, true),
    ];
    assert_eq!(broken(&life), Vec::<String>::new());
}

#[test]
fn a_host_that_changes_hands_is_told() {
    let hands = [
        (host("h", "a", "available"), false),
        (host("h", "b", "available"), false),
    ];
    one_rule(&hands, "a host has one master");
}

#[test]
fn a_machine_with_two_hosts_is_told() {
    let hosts = [
        (host("h", "a", "available"), false),
        (host("i", "a", "available"), false),
    ];
    one_rule(&hosts, "a machine has one host");
}

#[test]
fn a_host_in_use_that_is_torn_down_is_told() {
    for lost in [
        (host("h", "m", "deprovisioning"), false),
        (host("h", "m", "provisioned"), true),
    ] {
        let writes = [
            (named("Metal3Machine", "m", &json!({})), false),
            (host("h", "m", "provisioned"), false),
            lost,
        ];
        one_rule(&writes, "what is in use stays");
    }
}

#[test]
fn a_machine_that_goes_before_its_host_is_free_is_told() {
    let machine = named("Metal3Machine", "m", &json!({}));
    let writes = [
        (machine.clone(), false),
        (host("h", "m", "available"), false),
        (machine, true),
    ];
    one_rule(&writes, "a host is given back");
}

#[test]
fn what_is_given_twice_is_told() {
    let address = |name: &str| (named("IPAddress", name, &json!({ "address": "192.0.2.1" })), false);
    one_rule(&[address("a"), address("b")], "an address is given once");
    let data = |name: &str| {
        let spec = json!({ "index": 0, "template": { "name": "t" } });
        (named("Metal3Data", name, &spec), false)
    };
    one_rule(&[data("a"), data("b")], "an index is given once");
}

#[test]
fn an_id_that_changes_is_told() {
    let machine = |id: &str| (named("Machine", "m", &json!({ "providerID": id })), false);
    one_rule(&[machine("a"), machine("b")], "the ID of a machine");
}

#[test]
fn who_waits_without_a_word_and_who_is_provisioned_without_a_host_is_told() {
    let says = |status: &str, message: &str| {
        let ready = json!({ "type": "Ready", "status": status, "reason": "R", "message": message });
        let mut object = named("Metal3Machine", "m", &json!({}));
        object.0["status"] = json!({ "conditions": [ready] });
        (object, false)
    };
    one_rule(&[says("False", "")], "who is not ready says why");
    assert_eq!(broken(&[says("False", "waits")]), Vec::<String>::new());
    let mut provisioned = named("Metal3Machine", "m", &json!({}));
    provisioned.0["status"] = json!({ "initialization": { "provisioned": true } });
    one_rule(&[(provisioned, false)], "who is provisioned has a host");
}

#[test]
fn a_password_outside_of_secrets_is_told() {
    let message = |kind: &str| (named(kind, "e", &json!({ "message": BMC_PASSWORD })), false);
    one_rule(&[message("Event")], "secrets stay in Secrets");
    assert_eq!(broken(&[message("Secret")]), Vec::<String>::new());
}

#[test]
fn a_disk_that_is_written_twice_and_a_machine_that_is_off_are_told() {
    let mut invariants = Invariants::default();
    let blank = Metal { written: 0, ..ON };
    let twice = Metal { written: 2, ..ON };
    assert!(
        invariants
            .saw(&host("h", "m", "available"), false, Some(blank))
            .is_empty()
    );
    assert!(
        invariants
            .saw(&host("h", "m", "provisioned"), false, Some(ON))
            .is_empty()
    );
    let found = invariants.saw(&host("h", "m", "provisioned"), false, Some(twice));
    assert!(
        found.iter().any(|why| why.starts_with("a disk is written once")),
        "{found:?}"
    );
    let off = Metal { is_on: false, ..ON };
    let found = invariants.saw(&host("h", "m", "provisioned"), false, Some(off));
    assert!(found.iter().any(|why| why.starts_with("what runs is on")), "{found:?}");
    assert_eq!(invariants.checks(), 4);
}
