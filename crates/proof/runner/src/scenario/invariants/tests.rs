//! Each rule reports its violation, and none reports a normal lifecycle.

use serde_json::json;

use super::*;

const ON: MachineState = MachineState {
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

/// Violations of the last write; the earlier ones have none.
fn violations(writes: &[(Object, bool)]) -> Vec<String> {
    let mut invariants = Invariants::default();
    let (last, before) = writes.split_last().unwrap();
    for (object, deleted) in before {
        assert_eq!(invariants.check_write(object, *deleted, None), Vec::<String>::new());
    }
    invariants.check_write(&last.0, last.1, None)
}

fn one_rule(writes: &[(Object, bool)], rule: &str) {
    let found = violations(writes);
    assert!(found.iter().any(|why| why.starts_with(rule)), "{rule}: {found:?}");
}

#[test]
fn a_normal_lifecycle_violates_no_rule() {
    let machine = named("Metal3Machine", "m", &json!({}));
    let mut deleting = machine.clone();
    deleting.0["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let free = Object(json!({ "kind": "BareMetalHost", "metadata": { "name": "h" },
        "status": { "provisioning": { "state": "available" } } }));
    let life = [
        (free.clone(), false),
        (machine, false),
        (host("h", "m", "available"), false),
        (host("h", "m", "provisioned"), false),
        (deleting.clone(), false),
        (host("h", "m", "deprovisioning"), false),
        (free, false),
        (deleting, true),
    ];
    assert_eq!(violations(&life), Vec::<String>::new());
}

#[test]
fn a_change_of_consumer_is_reported() {
    let hands = [
        (host("h", "a", "available"), false),
        (host("h", "b", "available"), false),
    ];
    one_rule(&hands, "a host has one consumer");
}

#[test]
fn a_machine_with_two_hosts_is_reported() {
    let hosts = [
        (host("h", "a", "available"), false),
        (host("i", "a", "available"), false),
    ];
    one_rule(&hosts, "a machine has one host");
}

#[test]
fn deprovisioning_a_host_in_use_is_reported() {
    for lost in [
        (host("h", "m", "deprovisioning"), false),
        (host("h", "m", "provisioned"), true),
    ] {
        let writes = [
            (named("Metal3Machine", "m", &json!({})), false),
            (host("h", "m", "provisioned"), false),
            lost,
        ];
        one_rule(&writes, "a host in use stays provisioned");
    }
}

#[test]
fn deleting_a_machine_before_its_host_is_released_is_reported() {
    let machine = named("Metal3Machine", "m", &json!({}));
    let writes = [
        (machine.clone(), false),
        (host("h", "m", "available"), false),
        (machine, true),
    ];
    one_rule(&writes, "a host is released");
}

#[test]
fn a_kept_host_that_is_lost_or_goes_to_another_set_is_reported() {
    let of_set = |name: &str, labels: Value| {
        Object(json!({ "kind": "Metal3Machine", "metadata": { "name": name, "labels": labels }, "spec": {} }))
    };
    let kept = |set: &str| {
        let mut host = host("h", "edge", "available");
        host.0["spec"]["consumerRef"]["kind"] = json!("Cluster");
        host.0["metadata"]["labels"] = json!({ NODE_REUSE_LABEL: set });
        host
    };
    let worker = of_set("m", json!({ DEPLOYMENT_NAME_LABEL: "workers" }));
    let plane = of_set("p", json!({ CONTROL_PLANE_LABEL: "" }));
    let taken = |by: &str| (host("h", by, "available"), false);
    let before = [(worker.clone(), false), (plane, false)];
    let write = |last: &[(Object, bool)]| [before.as_slice(), last].concat();
    for (set, by) in [("md-others", "m"), ("cp-edge", "m"), ("md-workers", "p")] {
        one_rule(&write(&[(kept(set), false), taken(by)]), "a kept host goes to its set");
    }
    assert_eq!(violations(&write(&[(kept("md-workers"), false), taken("m")])), [""; 0]);
    let template = named("Metal3MachineTemplate", "t", &json!({ "nodeReuse": true }));
    let cluster = named("Cluster", "edge", &json!({}));
    let mut free = kept("");
    free.0["spec"]["consumerRef"] = Value::Null;
    let released = |last| {
        write(&[
            (template.clone(), false),
            (cluster.clone(), false),
            taken("m"),
            (last, false),
        ])
    };
    one_rule(&released(free), "a released host is kept for its set");
    assert_eq!(violations(&released(kept("md-workers"))), [""; 0]);
}

#[test]
fn a_double_allocation_is_reported() {
    let claim = |kind: &str, name: &str, status: &Value| {
        let mut claim = named(kind, name, &json!({}));
        claim.0["status"] = status.clone();
        (claim, false)
    };
    for (kind, rule, status) in [
        (
            "IPClaim",
            "an address is allocated once",
            json!({ "address": { "name": "p-192-0-2-1" } }),
        ),
        (
            "Metal3DataClaim",
            "an index is allocated once",
            json!({ "renderedData": { "name": "t-0" } }),
        ),
    ] {
        one_rule(&[claim(kind, "a", &status), claim(kind, "b", &status)], rule);
        let mut left = claim(kind, "a", &status);
        left.0.0["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(violations(&[left, claim(kind, "b", &status)]), Vec::<String>::new());
        let none = json!({});
        assert_eq!(
            violations(&[claim(kind, "a", &none), claim(kind, "b", &none)]),
            Vec::<String>::new()
        );
    }
}

#[test]
fn a_change_of_provider_id_is_reported() {
    let machine = |id: &str| (named("Machine", "m", &json!({ "providerID": id })), false);
    one_rule(&[machine("a"), machine("b")], "the provider ID of a machine");
}

#[test]
fn a_condition_without_message_and_a_provisioned_machine_without_host_are_reported() {
    let says = |status: &str, message: &str| {
        let ready = json!({ "type": "Ready", "status": status, "reason": "R", "message": message });
        let mut object = named("Metal3Machine", "m", &json!({}));
        object.0["status"] = json!({ "conditions": [ready] });
        (object, false)
    };
    one_rule(&[says("False", "")], "a condition that is not True");
    assert_eq!(violations(&[says("False", "waits")]), Vec::<String>::new());
    let mut provisioned = named("Metal3Machine", "m", &json!({}));
    provisioned.0["status"] = json!({ "initialization": { "provisioned": true } });
    one_rule(&[(provisioned, false)], "a provisioned machine has a provisioned host");
}

#[test]
fn a_password_outside_of_secrets_is_reported() {
    let message = |kind: &str| (named(kind, "e", &json!({ "message": BMC_PASSWORD })), false);
    one_rule(&[message("Event")], "secrets appear only in Secrets");
    assert_eq!(violations(&[message("Secret")]), Vec::<String>::new());
}

/// Violations after this change of a machine with a provisioned host.
fn check_machine(change: impl FnOnce(&mut Object, &mut MachineState)) -> Vec<String> {
    let mut invariants = Invariants::default();
    let blank = MachineState {
        written: 0,
        has_image: false,
        ..ON
    };
    for (phase, state) in [("available", blank), ("provisioned", ON)] {
        let violations = invariants.check_write(&host("h", "m", phase), false, Some(state));
        assert_eq!(violations, Vec::<String>::new());
    }
    let (mut host, mut state) = (host("h", "m", "provisioned"), ON);
    change(&mut host, &mut state);
    let violations = invariants.check_write(&host, false, Some(state));
    assert_eq!(invariants.checks(), 3);
    violations
}

#[test]
fn a_rewritten_or_wiped_disk_and_a_machine_that_is_off_are_reported() {
    let assert_reported = |rule: &str, found: &[String]| {
        assert!(found.iter().any(|why| why.starts_with(rule)), "{rule}: {found:?}");
    };
    assert_reported("a disk is written once", &check_machine(|_, state| state.written = 2));
    assert_reported(
        "a provisioned machine keeps its image",
        &check_machine(|_, state| state.has_image = false),
    );
    let off = check_machine(|host, state| {
        // The product reports a machine that it has powered off.
        host.0["status"]["poweredOn"] = json!(false);
        state.is_on = false;
    });
    assert_reported("a provisioned machine stays on", &off);
    let powered_off_by_user = check_machine(|host, state| {
        host.0["spec"]["online"] = json!(false);
        state.is_on = false;
    });
    assert_eq!(powered_off_by_user, Vec::<String>::new());
    let rebooted = check_machine(|host, state| {
        host.0["metadata"]["annotations"] = json!({ "reboot.metal3.io/me": "" });
        state.is_on = false;
    });
    assert_eq!(rebooted, Vec::<String>::new());
}

#[test]
fn a_machine_that_is_written_without_the_data_of_a_zone_or_outside_of_its_own_is_reported() {
    let zone =
        |name: &str, rack: Value| json!({ "name": name, "hostSelector": rack, "dataTemplate": { "name": "net" } });
    let rack = json!({ "matchLabels": { "rack": "7" } });
    let zones = json!([zone("a", rack), zone("b", Value::Null)]);
    let written = |policy: &str, domain: &str, labels: Value, data: Value| {
        let spec = json!({ "deploymentZones": zones, "failureDomainPolicy": policy });
        let mut machine = named("Metal3Machine", "m", &json!({ "failureDomain": domain }));
        machine.0["status"] = json!({ "metal3Cluster": "edge" });
        let mut claimed = host("h", "m", "available");
        claimed.0["metadata"]["labels"] = labels;
        claimed.0["spec"].as_object_mut().unwrap().remove("image");
        let mut imaged = claimed.clone();
        imaged.0["spec"]["image"] = json!({ "url": "x" });
        imaged.0["spec"]["metaData"] = data;
        let cluster = named("Metal3Cluster", "edge", &spec);
        [(cluster, false), (machine, false), (claimed, false), (imaged, false)]
    };
    let by_label = || json!({ "infrastructure.cluster.x-k8s.io/failure-domain": "b" });
    let data = || json!({ "name": "d" });
    let rule = "a machine is written in its zone";
    one_rule(&written("Preferred", "a", by_label(), Value::Null), rule);
    one_rule(&written("Required", "a", by_label(), data()), rule);
    for (policy, domain, labels) in [
        ("Preferred", "a", by_label()),
        ("Required", "b", by_label()),
        ("Required", "a", json!({ "rack": "7" })),
        ("Required", "", by_label()),
    ] {
        assert_eq!(
            violations(&written(policy, domain, labels, data())),
            [""; 0],
            "{policy} {domain}"
        );
    }
}
