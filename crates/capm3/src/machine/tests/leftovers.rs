//! What is given back, while something cannot be seen.

use metal3_api::infrastructure::v1beta2::Metal3DataClaim;
use metal3_runtime::plan::Observed;
use serde_json::json;

use super::case::{Case, FINALIZER, writes};
use super::world::read;
use crate::machine::cleanup::{Orphans, plan};

fn going() -> Metal3DataClaim {
    read(&json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3DataClaim",
        "metadata": {
            "name": "m0", "namespace": "metal", "uid": "c0", "resourceVersion": "9",
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER],
        },
        "spec": { "template": { "name": "edge" } },
    }))
}

#[test]
fn a_host_at_rest_is_freed_whatever_else_cannot_be_read_and_the_data_are_kept() {
    let blank = json!({ "spec": { "online": false, "image": null, "userData": null, "metaData": null }, "status": { "provisioning": { "state": "available" } } });
    let (case, claim) = (Case::running().host(blank), going());
    let host = &case.hosts[0];
    let left = Orphans {
        confirmed: true,
        hosts: &[host],
        unreadable: Some("h9"),
        claim: Observed::Present(&claim),
    };
    assert_eq!(writes(&plan(&left)), ["Release h0"]);
    let nothing = Orphans { hosts: &[], ..left };
    assert!(plan(&nothing).actions.is_empty());
    assert_eq!(nothing.blocking_host(), Some("h9"));
    let clear = Orphans {
        unreadable: None,
        ..nothing
    };
    assert_eq!(
        (writes(&plan(&clear)), clear.blocking_host()),
        (vec!["patch claim".to_owned()], None)
    );
}

#[test]
fn a_pass_that_provisions_labels_the_secret_once() {
    let own = json!({ "spec": { "dataTemplate": null }, "status": null, "metadata": { "annotations": null } });
    let blank = json!({ "spec": { "online": false, "image": null, "userData": null, "metaData": null }, "status": { "provisioning": { "state": "available" } } });
    let mut case = Case::running().machine(own).host(blank);
    case.confirmed = true;
    let written = writes(&case.decide());
    let labels = written.iter().filter(|one| one.starts_with("secret")).count();
    assert_eq!(labels, 1, "{written:?}");
}

#[test]
fn a_host_whose_saved_status_nobody_has_read_yet_is_not_at_rest() {
    let brought = json!({
        "metadata": { "annotations": { "baremetalhost.metal3.io/status": r#"{"provisioning":{"state":"provisioned"}}"# } },
        "spec": { "online": false, "image": null, "userData": null, "metaData": null },
        "status": { "provisioning": { "state": "" } },
    });
    let mut case = Case::running().host(brought).deleting();
    case.confirmed = true;
    let plan = case.decide();
    assert_eq!(writes(&plan), [""; 0]);
    let said = serde_json::to_string(&plan.status).unwrap();
    assert!(said.contains("to come to rest"), "{said}");
}
