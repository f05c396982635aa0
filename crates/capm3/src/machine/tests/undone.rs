//! What is reported after an action that was not performed.

use metal3_capi::workload::LabelDigest;
use serde_json::json;

use super::case::{Case, condition_of};
use crate::label_sync::CopiedLabels;
use crate::machine::action::{Action, Plan};
use crate::machine::plan::{Undone, after_failure};

fn after(action: &Action, why: Undone<'_>) -> Plan {
    let case = Case::running().machine(json!({ "status": { "initialization": { "provisioned": true } } }));
    after_failure(&case.facts(), action, why)
}

/// Severity and message of the older condition of the Node.
fn node_ready(plan: &Plan) -> (String, String) {
    let status = serde_json::to_value(&plan.status.as_ref().unwrap().status).unwrap();
    let conditions = status["deprecated"]["v1beta1"]["conditions"].as_array().unwrap();
    let found = conditions
        .iter()
        .find(|one| one["type"] == "KubernetesNodeReady")
        .unwrap();
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    (text("severity"), text("message"))
}

#[test]
fn provider_id_whose_request_waits_for_others_is_no_failure() {
    let adopt = Action::AdoptNode {
        node: "node-0".to_owned(),
        provider_id: "metal3://metal/h0/m0".to_owned(),
    };
    let (severity, message) = node_ready(&after(&adopt, Undone::Busy));
    assert_eq!(severity, "Info");
    assert!(message.contains("other requests to workload clusters"), "{message}");
    let failed = node_ready(&after(&adopt, Undone::Failed("the API server answered 403")));
    assert_eq!(failed, ("Warning".to_owned(), "the API server answered 403".to_owned()));
}

#[test]
fn labels_whose_request_waits_for_others_are_no_failure() {
    let none = LabelDigest::of(std::iter::empty());
    let copied = CopiedLabels {
        node: "node-0".to_owned(),
        prefixes: "a.io".to_owned(),
        wanted: none,
        found: none,
    };
    let copy = Action::CopyLabels { patch: None, copied };
    let reason = |why| condition_of(&after(&copy, why), "NodeLabelsSynced").0;
    assert_eq!(reason(Undone::Busy), "WaitingForNode");
    assert_eq!(
        reason(Undone::Failed("the API server answered 403")),
        "NodeLabelsFailed"
    );
}
