//! Chains as tables: the objects of a namespace, and the links from the first to the last.

use serde_json::{Value, json};

use super::*;
use crate::object::kind_named;
use crate::offline;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// Explains an object of a namespace that has these objects. `forbidden` is a kind that the viewer may not read.
fn explained(objects: &[Value], start: &str, forbidden: Option<&str>) -> Explanation {
    let (kind, name) = start.split_once('/').unwrap();
    let known = kind_named(kind).unwrap();
    let start = ObjectId::foreign(known.group, known.kind, name);
    let mut snapshot = Snapshot::default();
    for _ in 0..64 {
        let wanted = match explain(&start, &snapshot) {
            Ok(explanation) => return explanation,
            Err(wanted) => wanted,
        };
        for read in wanted {
            let answer = answer(objects, &read, forbidden);
            snapshot.insert(read, answer);
        }
    }
    unreachable!("the explanation of {start} ends")
}

fn answer(objects: &[Value], read: &Read, forbidden: Option<&str>) -> Result<Vec<Value>, Unread> {
    let (id, verb) = match read {
        Read::Object(id) => (id, "get"),
        Read::List { kind, .. } | Read::Events(kind) => (kind, "list"),
    };
    match forbidden == Some(id.kind.as_str()) {
        false => Ok(offline::answer(objects, read)),
        true => Err(Unread::Forbidden {
            verb: verb.to_owned(),
            resource: id.kind.to_lowercase(),
        }),
    }
}

/// The chain as `KIND/NAME REASON`, with the title where a link has no reason.
fn links(explanation: &Explanation) -> Vec<String> {
    let link = |link: &Link| format!("{} {}", link.object, link.reason.as_deref().unwrap_or(&link.title));
    explanation.chain.iter().map(link).collect()
}

fn object(group_version: &str, kind: &str, name: &str, change: Value) -> Value {
    let mut object = json!({ "apiVersion": group_version, "kind": kind, "metadata": { "name": name, "namespace": "lab",
        "uid": format!("uid-{name}"), "labels": { "cluster.x-k8s.io/cluster-name": "edge" } } });
    merge(&mut object, change);
    object
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

fn conditions(all: &[(&str, &str, &str)]) -> Value {
    let one = |(kind, status, reason): &(&str, &str, &str)| {
        json!({ "type": kind, "status": status, "reason": reason, "message": format!("message of {reason}"),
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    Value::Array(all.iter().map(one).collect())
}

fn cluster(change: Value) -> Value {
    let mut cluster = object(
        "cluster.x-k8s.io/v1beta2",
        "Cluster",
        "edge",
        json!({
        "spec": { "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": "Metal3Cluster", "name": "edge" },
            "controlPlaneRef": { "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "edge" } },
        "status": { "initialization": { "infrastructureProvisioned": true, "controlPlaneInitialized": true } } }),
    );
    merge(&mut cluster, change);
    cluster
}

/// The infrastructure and the control plane of that Cluster.
fn parts() -> [Value; 2] {
    let infrastructure = object(&format!("{INFRASTRUCTURE}/v1beta2"), "Metal3Cluster", "edge", json!({}));
    let control_plane = object(
        "controlplane.cluster.x-k8s.io/v1beta2",
        "KubeadmControlPlane",
        "edge",
        json!({}),
    );
    [infrastructure, control_plane]
}

fn machine(name: &str, change: Value) -> Value {
    let mut machine = object(
        "cluster.x-k8s.io/v1beta2",
        "Machine",
        name,
        json!({
        "spec": { "clusterName": "edge", "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": "Metal3Machine", "name": name } } }),
    );
    merge(&mut machine, change);
    machine
}

fn metal3_machine(name: &str, bad: (&str, &str, &str)) -> Value {
    object(
        &format!("{INFRASTRUCTURE}/v1beta2"),
        "Metal3Machine",
        name,
        json!({
        "metadata": { "annotations": { "metal3.io/BareMetalHost": "lab/h0" },
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": "u" }] },
        "status": { "conditions": conditions(&[bad]) } }),
    )
}

fn host(name: &str, change: Value) -> Value {
    let mut host = object(
        "metal3.io/v1alpha1",
        "BareMetalHost",
        name,
        json!({
        "spec": { "online": true, "bmc": { "address": "redfish://192.0.2.1", "credentialsName": "bmc" } },
        "status": { "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": true,
            "provisioning": { "state": "provisioned", "ID": "", "image": { "url": "" } } } }),
    );
    merge(&mut host, change);
    host
}

fn failed(error: &str) -> Value {
    json!({ "status": { "operationalStatus": "error", "errorType": error, "errorMessage": "the BMC says no",
        "provisioning": { "state": "registering" } } })
}

fn secret() -> Value {
    object("v1", "Secret", "bmc", json!({}))
}

fn owned(kind: &str, name: &str, by: &str, change: Value) -> Value {
    let mut object = object(
        "ipam.metal3.io/v1alpha1",
        kind,
        name,
        json!({ "metadata": { "ownerReferences": [
        { "apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "Metal3Data", "name": by, "uid": format!("uid-{by}") }] } }),
    );
    merge(&mut object, change);
    object
}

const NO_HOST: (&str, &str, &str) = ("AssociateBareMetalHost", "False", "AssociateBareMetalHostFailed");
const NODE_AWAITED: (&str, &str, &str) = ("AssociateMetal3MachineMetaData", "False", "CreateError");
const NO_DATA: (&str, &str, &str) = ("Metal3DataReady", "False", "WaitingForMetal3Data");

#[test]
fn cluster_leads_to_the_answer_of_the_bmc_of_the_only_free_host() {
    let objects = [
        cluster(json!({})),
        machine("m0", json!({})),
        metal3_machine("m0", NO_HOST),
        host("h0", failed("registration error")),
        host(
            "h1",
            json!({ "spec": { "consumerRef": { "kind": "Metal3Machine", "name": "other" } } }),
        ),
        secret(),
    ];
    let explanation = explained(&objects, "cluster/edge", None);
    assert_eq!(
        links(&explanation),
        [
            "Cluster/edge 1 of 1 machines are not ready",
            "Machine/m0 waits for its infrastructure",
            "Metal3Machine/m0 AssociateBareMetalHostFailed",
            "BareMetalHost/h0 RegistrationError",
        ]
    );
    let last = explanation.chain.last().unwrap();
    assert_eq!(
        (last.message.as_str(), last.who_acts),
        ("the BMC says no", Actor::Hardware)
    );
    assert_eq!(explanation.state, State::Blocked);
    assert_eq!(
        last.runbook.as_deref(),
        Some("docs/runbooks/hosts.md#registrationerror")
    );
}

#[test]
fn machine_without_address_leads_to_the_exhausted_pool() {
    let group = format!("{INFRASTRUCTURE}/v1beta2");
    let objects = [
        machine("m0", json!({})),
        metal3_machine("m0", NO_DATA),
        object(
            &group,
            "Metal3DataClaim",
            "m0",
            json!({ "status": { "renderedData": { "name": "t-0" } } }),
        ),
        object(
            &group,
            "Metal3Data",
            "t-0",
            json!({ "spec": { "template": { "name": "t" } } }),
        ),
        owned(
            "IPClaim",
            "t-0-lan",
            "t-0",
            json!({ "spec": { "pool": { "name": "lan" } },
            "status": { "conditions": conditions(&[("Ready", "False", "PoolExhausted")]) } }),
        ),
        owned(
            "IPPool",
            "lan",
            "t-9",
            json!({ "spec": { "namePrefix": "lan", "pools": [] },
            "status": { "conditions": conditions(&[("Ready", "True", "Ready"), ("Exhausted", "True", "NoFreeAddress")]) } }),
        ),
    ];
    let explanation = explained(&objects, "m3m/m0", None);
    assert_eq!(
        links(&explanation),
        [
            "Metal3Machine/m0 WaitingForMetal3Data",
            "Metal3DataClaim/m0 waits for its Metal3Data",
            "Metal3Data/t-0 WaitingForInput",
            "IPClaim/t-0-lan PoolExhausted",
            "IPPool/lan NoFreeAddress",
        ]
    );
    assert_eq!(explanation.state, State::Blocked);
}

/// Explains `start`, and compares the last link and the state.
fn assert_end(start: &str, objects: &[Value], (last, state): (&str, State)) {
    let explanation = explained(objects, start, None);
    assert_eq!(links(&explanation).last().map(String::as_str), Some(last));
    assert_eq!(explanation.state, state, "{last}");
}

#[test]
fn chain_of_a_host_ends_at_its_state() {
    let with = |status: Value| [host("h0", json!({ "status": status }))];
    let held = conditions(&[("Held", "True", "DeprovisionBudgetSpent")]);
    let silent = conditions(&[("Manageable", "False", "PowerFailure")]);
    let registering = json!({ "operationalStatus": "delayed", "provisioning": { "state": "registering" } });
    let inspecting = json!({ "provisioning": { "state": "inspecting" } });
    for (status, reason, state) in [
        (json!({ "conditions": held }), "DeprovisionBudgetSpent", State::Blocked),
        (json!({ "conditions": silent }), "PowerFailure", State::Blocked),
        (json!({ "operationalStatus": "detached" }), "Detached", State::Blocked),
        (inspecting, "Inspecting", State::Waiting),
        (registering, "WaitingForSlot", State::Waiting),
    ] {
        assert_end("bmh/h0", &with(status), (&format!("BareMetalHost/h0 {reason}"), state));
    }
    let failed = [host("h0", failed("registration error"))];
    assert_end("bmh/h0", &failed, ("Secret/bmc does not exist", State::Blocked));
}

#[test]
fn chain_of_a_cluster_ends_at_its_infrastructure_or_its_pause() {
    let paused = [cluster(json!({ "spec": { "paused": true } }))];
    assert_end("cluster/edge", &paused, ("Cluster/edge Paused", State::Blocked));
    let waiting = cluster(json!({ "status": { "initialization": { "infrastructureProvisioned": false } } }));
    let absent = ("Metal3Cluster/edge does not exist", State::Blocked);
    assert_end("cluster/edge", std::slice::from_ref(&waiting), absent);
    let endpoint = conditions(&[("ControlPlaneEndpointReady", "False", "WaitingForSpec")]);
    let status = json!({ "status": { "conditions": endpoint } });
    let metal3_cluster = object(&format!("{INFRASTRUCTURE}/v1beta2"), "Metal3Cluster", "edge", status);
    let without_endpoint = ("Metal3Cluster/edge WaitingForSpec", State::Blocked);
    assert_end("cluster/edge", &[waiting, metal3_cluster], without_endpoint);
}

#[test]
fn chain_of_a_machine_ends_at_its_bootstrap_data_its_host_or_its_node() {
    assert_end("machine/m0", &[], ("Machine/m0 does not exist", State::Absent));
    let awaited = |host: Value| {
        [
            cluster(json!({})),
            machine("m0", json!({})),
            metal3_machine("m0", NODE_AWAITED),
            host,
        ]
    };
    let deploying = host(
        "h0",
        json!({ "status": { "provisioning": { "state": "provisioning" } } }),
    );
    let end = ("BareMetalHost/h0 Provisioning", State::Waiting);
    assert_end("machine/m0", &awaited(deploying), end);
    let end = ("Metal3Machine/m0 CreateError", State::Waiting);
    assert_end("machine/m0", &awaited(host("h0", json!({}))), end);
    let without_data = json!({ "spec": { "bootstrap": { "dataSecretName": null, "configRef": {
        "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m0" } } } });
    let failed = conditions(&[("DataSecretAvailable", "False", "DataSecretGenerationFailed")]);
    let failed = json!({ "status": { "conditions": failed } });
    let kubeadm = object("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", "m0", failed);
    let objects = [cluster(json!({})), machine("m0", without_data), kubeadm];
    let end = ("KubeadmConfig/m0 DataSecretGenerationFailed", State::Waiting);
    assert_end("machine/m0", &objects, end);
    let provisioned = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
    let objects = [cluster(json!({})), machine("m0", provisioned)];
    assert_end(
        "machine/m0",
        &objects,
        ("Machine/m0 waits for its Node", State::Waiting),
    );
}

#[test]
fn object_that_is_done_has_no_chain() {
    let running = json!({ "status": { "nodeRef": { "name": "n0" }, "initialization": { "infrastructureProvisioned": true },
        "conditions": conditions(&[("Ready", "True", "Ready")]) } });
    let [infrastructure, control_plane] = parts();
    let objects = [
        cluster(json!({})),
        infrastructure,
        control_plane,
        machine("m0", running),
        host("h0", json!({})),
    ];
    for start in ["cluster/edge", "machine/m0", "bmh/h0"] {
        let explanation = explained(&objects, start, None);
        assert_eq!(
            (links(&explanation).as_slice(), explanation.state),
            ([].as_slice(), State::Ready),
            "{start}"
        );
    }
}

#[test]
fn object_that_may_not_be_read_is_unknown_and_never_absent() {
    let objects = [cluster(json!({})), machine("m0", json!({}))];
    let explanation = explained(&objects, "cluster/edge", Some("Metal3Machine"));
    assert_eq!(explanation.state, State::Unknown);
    assert_eq!(
        links(&explanation).last().unwrap(),
        "Machine/m0 waits for its infrastructure"
    );
    assert_eq!(explanation.not_read.len(), 1);
    let why = explanation.not_read[0].why.to_string();
    assert_eq!(why, "you may not get metal3machine");
    // Secrets are often forbidden: then the error of the host itself is the last link.
    let explanation = explained(&[host("h0", failed("registration error"))], "bmh/h0", Some("Secret"));
    assert_eq!(explanation.state, State::Blocked);
    assert_eq!(
        (links(&explanation), explanation.not_read.len()),
        (vec!["BareMetalHost/h0 RegistrationError".to_owned()], 1)
    );
}

#[test]
fn objects_that_wait_for_each_other_end_the_chain() {
    let waiting = ("AssociateBareMetalHost", "False", "WaitingForBootstrapData");
    let objects = [
        cluster(json!({})),
        machine("m0", json!({})),
        metal3_machine("m0", waiting),
    ];
    let explanation = explained(&objects, "m3m/m0", None);
    assert_eq!(
        links(&explanation),
        [
            "Metal3Machine/m0 WaitingForBootstrapData",
            "Machine/m0 waits for its infrastructure"
        ]
    );
    assert!(explanation.chain[1].cure.contains("wait for each other"));
}

#[test]
fn reason_of_another_version_is_shown_as_it_is() {
    let objects = [metal3_machine(
        "m0",
        ("AssociateBareMetalHost", "False", "FutureReason"),
    )];
    let explanation = explained(&objects, "m3m/m0", None);
    let last = &explanation.chain[0];
    assert_eq!(
        (last.title.as_str(), last.message.as_str()),
        ("is not done: FutureReason", "message of FutureReason")
    );
}

mod actors;
mod causes;
mod claimable;
mod cures;
mod data;
mod ends;
mod foreign;
mod hosts;
mod lists;
mod machine;
mod running;
mod stated;
mod usual;
