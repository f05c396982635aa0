//! Each rule objects to what it is there for, and to nothing of an ordinary life.

use serde_json::json;

use super::*;

const ON: Metal = Metal {
    is_on: true,
    has_image: true,
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
    let claim = |kind: &str, name: &str, status: &Value| {
        let mut claim = named(kind, name, &json!({}));
        claim.0["status"] = status.clone();
        (claim, false)
    };
    for (kind, rule, status) in [
        (
            "IPClaim",
            "an address is given once",
            json!({ "address": { "name": "p-192-0-2-1" } }),
        ),
        (
            "Metal3DataClaim",
            "an index is given once",
            json!({ "renderedData": { "name": "t-0" } }),
        ),
    ] {
        one_rule(&[claim(kind, "a", &status), claim(kind, "b", &status)], rule);
        let mut left = claim(kind, "a", &status);
        left.0.0["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(broken(&[left, claim(kind, "b", &status)]), Vec::<String>::new());
        let none = json!({});
        assert_eq!(
            broken(&[claim(kind, "a", &none), claim(kind, "b", &none)]),
            Vec::<String>::new()
        );
    }
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

/// What is told of a machine that is like this once a host runs on it.
fn worn(change: impl FnOnce(&mut Object, &mut Metal)) -> Vec<String> {
    let mut invariants = Invariants::default();
    let blank = Metal {
        written: 0,
        has_image: false,
        ..ON
    };
    for (state, metal) in [("available", blank), ("provisioned", ON)] {
        let told = invariants.saw(&host("h", "m", state), false, Some(metal));
        assert_eq!(told, Vec::<String>::new());
    }
    let (mut host, mut metal) = (host("h", "m", "provisioned"), ON);
    change(&mut host, &mut metal);
    let told = invariants.saw(&host, false, Some(metal));
    assert_eq!(invariants.checks(), 3);
    told
}

#[test]
fn a_disk_that_is_written_twice_or_wiped_and_a_machine_that_is_off_are_told() {
    let is_told = |rule: &str, found: &[String]| {
        assert!(found.iter().any(|why| why.starts_with(rule)), "{rule}: {found:?}");
    };
    is_told("a disk is written once", &worn(|_, metal| metal.written = 2));
    is_told("what runs has its disk", &worn(|_, metal| metal.has_image = false));
    let off = worn(|host, metal| {
        // As the product writes it that has switched it off.
        host.0["status"]["poweredOn"] = json!(false);
        metal.is_on = false;
    });
    is_told("what runs is on", &off);
    let told_to = worn(|host, metal| {
        host.0["spec"]["online"] = json!(false);
        metal.is_on = false;
    });
    assert_eq!(told_to, Vec::<String>::new());
    let rebooted = worn(|host, metal| {
        host.0["metadata"]["annotations"] = json!({ "reboot.metal3.io/me": "" });
        metal.is_on = false;
    });
    assert_eq!(rebooted, Vec::<String>::new());
}
