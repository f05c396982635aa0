//! Each member of a machine, removed alone, changes a plan.

use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_harness::without_effect;
use serde_json::{Value, json};

use super::api_server::CLUSTER;
use super::case::{Case, UID, blank, document};
use super::simulation::{host_document, read};
use crate::machine::action::{Action, Plan};

/// Machines that together have every member.
fn documents() -> [Value; 5] {
    let expression = |operator: &str| json!({ "key": "rack", "operator": operator, "values": ["b"] });
    let image = json!({
        "url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256", "checksumType": "sha256", "diskFormat": "raw",
    });
    let spec = |more: Value| {
        let mut spec = json!({ "image": image });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "spec": spec })
    };
    [
        spec(json!({
            "customDeploy": { "method": "install" }, "userData": { "name": "u" }, "metaData": { "name": "s" }, "networkData": { "name": "t" },
            "hostSelector": { "matchLabels": { "size": "big" }, "matchExpressions": [expression("notin")], "inNamespace": "other" },
            "automatedCleaningMode": "disabled",
        })),
        spec(json!({ "dataTemplate": { "name": "template" }, "failureDomain": "rack1" })),
        spec(json!({ "metal3ClusterRef": { "name": CLUSTER } })),
        spec(json!({ "hostSelector": { "matchExpressions": [expression("in")] } })),
        spec(json!({ "providerID": "metal3://metal/h0/m0" })),
    ]
}

/// The reads, writes and status of a plan, with all values.
fn shown(plan: &Plan) -> String {
    let action = |action: &Action| match action {
        Action::PatchMachine(patch) => patch.clone().into_document().to_string(),
        Action::PatchHost { patch, .. } => patch.clone().into_document().to_string(),
        Action::CreateClaim(claim) => serde_json::to_string(claim).unwrap(),
        other => format!("{other:?}"),
    };
    let actions: Vec<String> = plan.actions.iter().map(action).collect();
    let status = plan
        .status
        .as_ref()
        .map(|status| serde_json::to_string(&status.status).unwrap());
    format!("{:?} {actions:?} {status:?}\n", plan.reads)
}

/// The plans of a machine without host, of one whose host is not provisioned, and of one whose host is. `None` when the machine does
/// not decode.
fn plans(machine: &Value) -> Option<String> {
    let hosts = [
        json!({ "size": "small" }),
        json!({ "rack": "b", "size": "big" }),
        json!({ "size": "big" }),
    ];
    let host = |(position, labels): (usize, &Value)| {
        let labels = json!({ "metadata": { "labels": labels } });
        read(&document(host_document(), &format!("h{position}"), labels))
    };
    let of = |case: Case| {
        let mut document = serde_json::to_value(&case.machine).unwrap();
        document["spec"] = machine["spec"].clone();
        let machine = serde_json::from_value::<Metal3Machine>(document).ok()?;
        let case = case.with(|case| (case.machine, case.confirmed) = (machine, true));
        Some(shown(&case.decide()))
    };
    let choosing = Case::new().with(|case| case.hosts = hosts.iter().enumerate().map(host).collect());
    let claimed = Case::running()
        .machine(json!({ "status": { "renderedData": null } }))
        .host(blank());
    let running = Case::running().with(|case| case.nodes = Some(vec![("node-0", "", UID, "")]));
    [choosing, claimed, running].into_iter().map(of).collect()
}

#[test]
fn each_member_of_a_machine_changes_its_plan() {
    let silent = without_effect(("Metal3Machine", "v1beta2"), &documents(), plans);
    assert_eq!(
        silent,
        [
            "spec.dataTemplate.namespace",
            "spec.identityRef.context",
            "spec.identityRef.name",
            "spec.metaData.namespace",
            "spec.networkData.namespace",
            "spec.userData.name",
            "spec.userData.namespace",
        ]
    );
}
