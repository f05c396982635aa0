//! Releases while an object cannot be read.

use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::Metal3DataClaim;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;
use serde_json::json;

use super::case::{Case, FINALIZER, blank, writes};
use super::simulation::read;
use crate::machine::action::{Plan, Reads};
use crate::machine::facts::Facts;
use crate::machine::plan::plan;

fn claim_in_deletion() -> Metal3DataClaim {
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
fn idle_host_is_released_and_data_are_kept_while_another_object_is_unreadable() {
    let mut left = Facts {
        machine: None,
        confirmed: true,
        ..Case::running().host(blank()).facts()
    };
    left.hosts.unreadable = Some("h9".to_owned());
    left.claim = Observed::Present(Arc::new(claim_in_deletion()));
    assert_eq!(writes(&plan(&left)), ["Release h0"]);
    left.hosts.claimed.clear();
    let blocked = plan(&left);
    assert!(blocked.actions.is_empty());
    assert!(
        matches!(&blocked.next, Next::Waiting(on) if on.message.contains("h9") && on.recheck.is_some()),
        "{blocked:?}"
    );
    left.hosts.unreadable = None;
    let clear = plan(&left);
    assert_eq!(
        (writes(&clear), clear.next),
        (vec!["patch claim".to_owned()], Next::Requeue)
    );
    left.confirmed = false;
    assert_eq!(plan(&left), Plan::reading(Reads::Machine));
}

#[test]
fn reconcile_that_provisions_labels_the_secret_once() {
    let own = json!({ "spec": { "dataTemplate": null }, "status": null, "metadata": { "annotations": null } });
    let mut case = Case::running().machine(own).host(blank());
    case.confirmed = true;
    let written = writes(&case.decide());
    let labels = written.iter().filter(|one| one.starts_with("secret")).count();
    assert_eq!(labels, 1, "{written:?}");
}

#[test]
fn host_with_an_unread_saved_status_is_not_idle() {
    let brought = json!({
        "metadata": { "annotations": { "baremetalhost.metal3.io/status": r#"{"provisioning":{"state":"provisioned"}}"# } },
        "spec": { "online": false, "image": null, "userData": null, "metaData": null },
        "status": { "provisioning": { "state": "" } },
    });
    let mut case = Case::running().host(brought).deleting();
    case.confirmed = true;
    let plan = case.decide();
    assert_eq!(writes(&plan), [""; 0]);
    let message = serde_json::to_string(&plan.status.unwrap().status).unwrap();
    assert!(message.contains("to become idle"), "{message}");
}
