//! A machine that runs or is being deleted, and what its host says about it.

use super::*;

/// A Machine with its host and without its Node.
fn without_node() -> Value {
    machine(
        "m0",
        json!({ "status": { "initialization": { "infrastructureProvisioned": true } } }),
    )
}

fn provisioned(bad: (&str, &str, &str)) -> Value {
    let mut machine = metal3_machine("m0", bad);
    machine["status"]["initialization"] = json!({ "provisioned": true });
    machine
}

const READY: (&str, &str, &str) = ("Ready", "True", "Ready");
const PAUSED_HOST: &str = "baremetalhost.metal3.io/paused";

#[test]
fn machine_without_node_leads_to_a_host_with_a_problem() {
    let on = |metal3_machine: Value, host: Value| [cluster(json!({})), without_node(), metal3_machine, host];
    let silent = json!({ "status": { "conditions": conditions(&[("Manageable", "False", "PowerFailure")]) } });
    let off = json!({ "status": { "poweredOn": false } });
    let paused = json!({ "metadata": { "annotations": { PAUSED_HOST: "" } } });
    for bad in [READY, NODE_AWAITED] {
        for (change, end) in [
            (&silent, ("BareMetalHost/h0 PowerFailure", State::Blocked)),
            (&off, ("BareMetalHost/h0 is off, and is to be on", State::Waiting)),
            (&paused, ("BareMetalHost/h0 Paused", State::Blocked)),
        ] {
            assert_end("machine/m0", &on(provisioned(bad), host("h0", change.clone())), end);
        }
        let end = ("Machine/m0 waits for its Node", State::Waiting);
        assert_end("machine/m0", &on(provisioned(bad), host("h0", json!({}))), end);
        assert_end("machine/m0", &[without_node(), provisioned(bad)], end);
    }
}

#[test]
fn machine_without_node_says_what_its_metal3_machine_says_about_the_node() {
    let objects = [without_node(), provisioned(NODE_AWAITED), host("h0", json!({}))];
    let explanation = explained(&objects, "machine/m0", None);
    assert!(explanation.names_a_cause());
    assert_eq!(explanation.chain[0].message, "message of CreateError");
    let paused = ("Paused", "True", "Paused");
    let objects = [without_node(), provisioned(paused), host("h0", json!({}))];
    assert_end("machine/m0", &objects, ("Metal3Machine/m0 Paused", State::Blocked));
}

#[test]
fn machine_without_node_is_unknown_when_its_host_may_not_be_read() {
    let objects = [without_node(), provisioned(READY), host("h0", json!({}))];
    let explanation = explained(&objects, "machine/m0", Some("BareMetalHost"));
    assert_eq!(explanation.state, State::Unknown);
    assert_eq!(links(&explanation), ["Machine/m0 waits for its Node"]);
}

#[test]
fn problem_of_the_host_hides_no_fault_of_the_data_request() {
    let with = |reason: &str| {
        let machine = metal3_machine("m0", ("AssociateMetal3MachineMetaData", "False", reason));
        let paused = json!({ "metadata": { "annotations": { PAUSED_HOST: "" } } });
        [machine, host("h0", paused)]
    };
    for reason in [
        "AssociateMetal3MachineMetaDataFailed",
        "UpdateError",
        "NodeReuseUndecided",
    ] {
        let end = format!("Metal3Machine/m0 {reason}");
        assert_end("m3m/m0", &with(reason), (&end, State::Blocked));
    }
    for reason in ["CreateError", "DeletionFailed"] {
        assert_end("m3m/m0", &with(reason), ("BareMetalHost/h0 Paused", State::Blocked));
    }
}

fn deleting(mut object: Value) -> Value {
    let deletion = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/hold"] });
    merge(&mut object["metadata"], deletion);
    object
}

#[test]
fn object_in_deletion_whose_conditions_are_true_waits_for_its_finalizers() {
    let foreign = object("example.com/v1", "Other", "o", json!({}));
    let machine_of_other_infrastructure = machine(
        "m0",
        json!({ "spec": { "infrastructureRef":
        { "apiGroup": "example.com", "kind": "Other", "name": "o" } } }),
    );
    let remediation = object(
        &format!("{INFRASTRUCTURE}/v1beta2"),
        "Metal3Remediation",
        "r",
        json!({ "status": { "conditions": conditions(&[("Remediated", "True", "NodeRestored")]) } }),
    );
    let pool = owned(
        "IPPool",
        "lan",
        "t",
        json!({ "spec": { "namePrefix": "lan", "pools": [] } }),
    );
    for (start, last, objects) in [
        ("m3m/m0", "Metal3Machine/m0", vec![deleting(provisioned(READY))]),
        ("bmh/h0", "BareMetalHost/h0", vec![deleting(host("h0", json!({})))]),
        ("m3r/r", "Metal3Remediation/r", vec![deleting(remediation)]),
        ("ipp/lan", "IPPool/lan", vec![deleting(pool)]),
        (
            "machine/m0",
            "Other/o",
            vec![machine_of_other_infrastructure, deleting(foreign)],
        ),
    ] {
        assert_end(start, &objects, (&format!("{last} Deleting"), State::Waiting));
        let explanation = explained(&objects, start, None);
        let message = &explanation.chain.last().unwrap().message;
        assert!(message.contains("example.com/hold"), "{last}: {message}");
    }
}

/// The condition is older than the deletion: no host is needed any more.
#[test]
fn machine_in_deletion_does_not_wait_for_what_its_creation_needed() {
    let free = host("h1", failed("registration error"));
    let objects = [deleting(metal3_machine("m0", NO_HOST)), free, secret()];
    assert_end("m3m/m0", &objects, ("Metal3Machine/m0 Deleting", State::Waiting));
    let mut own = host("h0", json!({ "spec": { "online": false } }));
    own["spec"]["consumerRef"] = json!({ "kind": "Metal3Machine", "name": "m0" });
    own["status"]["provisioning"]["state"] = json!("deprovisioning");
    let objects = [deleting(metal3_machine("m0", NODE_AWAITED)), own];
    let explanation = explained(&objects, "m3m/m0", None);
    assert_eq!(
        links(&explanation),
        ["Metal3Machine/m0 Deleting", "BareMetalHost/h0 Deprovisioning"]
    );
}
