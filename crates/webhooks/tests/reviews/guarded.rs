//! Annotations of hosts that require a right of their own.

use std::sync::Arc;

use metal3_webhooks::guarded::AccessQuestion;
use metal3_webhooks::related_objects::{Decision, RelatedObjects};
use metal3_webhooks::table::Task;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::api_server::{hook, review, send_review};

const STATUS: &str = "baremetalhost.metal3.io/status";
const FORMER: &str = "baremetalhost.metal3.io/former-instance";
const RECORD: &str = "baremetalhost.metal3.io/registered-in";

/// The rights of users, and the questions about them.
#[derive(Clone)]
struct Rights {
    decision: Result<bool, String>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl RelatedObjects for Rights {
    fn may<'a>(&'a self, question: &'a AccessQuestion) -> Decision<'a> {
        let asked = json!({ "user": question.user, "right": question.right });
        self.asked.lock().push(asked);
        let decision = self.decision.clone();
        Box::pin(async { decision })
    }
}

fn host(annotations: &Value, status: &Value) -> Value {
    let mut host = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": "node-0", "namespace": "metal", "annotations": annotations },
        "spec": { "online": true },
    });
    if !status.is_null() {
        host["status"] = status.clone();
    }
    host
}

fn status(state: &str) -> Value {
    json!({ "operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "lastUpdated": "2026-01-01T00:00:00Z",
        "provisioning": { "state": state, "ID": "11111111-2222-4333-8444-555555555555", "image": { "url": "" } } })
}

async fn reviewed(decision: Result<bool, String>, old: Option<&Value>, new: &Value) -> (Value, Vec<Value>) {
    let rights = Rights {
        decision,
        asked: Arc::default(),
    };
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let hook = hook(Task::Validate, "BareMetalHost");
    let response = send_review(rights.clone(), &hook.path(), &review(&hook, operation, old, Some(new))).await;
    let asked = rights.asked.lock().clone();
    (response, asked)
}

#[tokio::test]
async fn status_is_restored_and_former_instance_set_only_by_users_with_the_right() {
    let saved = status("provisioned").to_string();
    for annotations in [json!({ STATUS: saved }), json!({ FORMER: "1234" })] {
        let new = host(&annotations, &Value::Null);
        let (response, asked) = reviewed(Ok(true), None, &new).await;
        assert_eq!(response["allowed"], true, "{response}");
        let right = json!({ "group": "metal3.io", "resource": "baremetalhosts", "subresource": "restore", "verb": "update",
            "namespace": "metal", "name": "node-0" });
        assert_eq!(asked, [json!({ "user": { "username": "alice" }, "right": right })]);
        for decision in [Ok(false), Err("timeout".to_owned())] {
            let (response, _) = reviewed(decision.clone(), None, &new).await;
            assert_eq!(
                (&response["allowed"], &response["status"]["code"]),
                (&json!(false), &json!(403))
            );
            let message = response["status"]["message"].as_str().unwrap();
            assert!(message.contains("baremetal-operator-host-restore"), "{message}");
            assert_eq!(message.contains("timeout"), decision.is_err(), "{message}");
        }
        // Also on a host that exists, and has no status yet.
        let old = host(&json!({}), &Value::Null);
        assert_eq!(reviewed(Ok(false), Some(&old), &new).await.0["allowed"], false);
    }
}

#[tokio::test]
async fn former_instance_of_a_registered_host_is_changed_only_with_the_right() {
    let old = host(&json!({ FORMER: "1234" }), &status("provisioned"));
    let new = host(&json!({ FORMER: "5678" }), &status("provisioned"));
    let (response, asked) = reviewed(Ok(false), Some(&old), &new).await;
    assert_eq!((&response["allowed"], asked.len()), (&json!(false), 1));
}

/// Without it the controller would look for the node elsewhere.
#[tokio::test]
async fn record_of_the_ironic_is_set_changed_and_removed_only_with_the_right() {
    let registered = |annotations: Value| host(&annotations, &status("provisioned"));
    for (old, new) in [
        (None, json!({ RECORD: "a" })),
        (Some(json!({})), json!({ RECORD: "a" })),
        (Some(json!({ RECORD: "a" })), json!({ RECORD: "b" })),
        (Some(json!({ RECORD: "a" })), json!({})),
    ] {
        let (old, new) = (old.map(registered), registered(new));
        for (decision, allowed) in [(Ok(true), true), (Ok(false), false), (Err("timeout".to_owned()), false)] {
            let (response, asked) = reviewed(decision, old.as_ref(), &new).await;
            assert_eq!(
                (&response["allowed"], asked.len()),
                (&json!(allowed), 1),
                "{old:?} {new}"
            );
        }
    }
}

#[tokio::test]
async fn requests_that_restore_nothing_ask_for_no_right() {
    let saved = status("provisioned").to_string();
    let both = json!({ STATUS: saved, FORMER: "1234" });
    let registered = status("available");
    let rows = [
        ("no annotation", None, host(&json!({}), &Value::Null)),
        (
            "the same Ironic",
            Some(host(&json!({ RECORD: "a" }), &registered)),
            host(&json!({ RECORD: "a", "b": "c" }), &registered),
        ),
        ("unchanged", Some(host(&both, &Value::Null)), host(&both, &Value::Null)),
        (
            "removed",
            Some(host(&both, &Value::Null)),
            host(&json!({}), &Value::Null),
        ),
        (
            "saved before a move, as Go managers do",
            Some(host(&json!({}), &registered)),
            host(&json!({ STATUS: saved }), &registered),
        ),
        (
            "a status without a state",
            None,
            host(&json!({ STATUS: status("").to_string() }), &Value::Null),
        ),
    ];
    for (name, old, new) in rows {
        let (response, asked) = reviewed(Ok(false), old.as_ref(), &new).await;
        assert_eq!(
            (&response["allowed"], asked.len()),
            (&json!(true), 0),
            "{name}: {response}"
        );
    }
}
