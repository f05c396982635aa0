//! The examples of all rules, sent through the routes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use metal3_api::catalog;
use metal3_webhooks::table::Task;
use serde_json::{Value, json};

use crate::api_server::{KnownObjects, fields, hook, patched, reviewed};

fn examples(kind: &str) -> Vec<(PathBuf, Value)> {
    let folder = Path::new("../../api/tests/rules").join(kind);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        (
            path.clone(),
            serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
        )
    };
    files.map(read).collect()
}

fn operation(example: &Value) -> String {
    example
        .get("operation")
        .and_then(Value::as_str)
        .unwrap_or("create")
        .to_uppercase()
}

#[tokio::test]
async fn each_rejecting_row_rejects_through_its_route_and_names_its_fields() {
    let mut refused = 0;
    for reviewer in catalog::reviewers() {
        for (path, example) in examples(reviewer.kind) {
            let Some(expected) = example.get("fields").and_then(Value::as_array) else {
                continue;
            };
            let hook = hook(Task::Validate, reviewer.kind);
            let documents = (example.get("oldObject"), example.get("object"));
            let response = reviewed(KnownObjects::default(), &hook, &operation(&example), documents).await;
            if example["warns"] == true {
                assert_eq!(response["allowed"], true, "{}", path.display());
                assert!(
                    !response["warnings"].as_array().unwrap().is_empty(),
                    "{}",
                    path.display()
                );
                continue;
            }
            refused += 1;
            assert_eq!(response["allowed"], false, "{}", path.display());
            let found: BTreeSet<String> = fields(&response).into_iter().collect();
            let expected: BTreeSet<String> = expected.iter().map(|field| field.as_str().unwrap().into()).collect();
            assert_eq!(found, expected, "{}", path.display());
            let status = &response["status"];
            assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
            let message = status["message"].as_str().unwrap();
            assert!(expected.iter().all(|field| message.contains(field)), "{message}");
        }
    }
    assert!(refused >= 100, "only {refused} examples refuse");
}

#[tokio::test]
async fn each_defaulting_row_sets_its_default_through_its_route() {
    let mut defaulted = 0;
    for reviewer in catalog::reviewers() {
        for (path, example) in examples(reviewer.kind) {
            let Some(expected) = example.get("defaulted") else {
                continue;
            };
            defaulted += 1;
            let hook = hook(Task::Mutate, reviewer.kind);
            let response = reviewed(KnownObjects::default(), &hook, "CREATE", (None, example.get("object"))).await;
            assert_eq!(response["allowed"], true, "{}", path.display());
            assert_eq!(&patched(&example["object"], &response), expected, "{}", path.display());
        }
    }
    assert!(defaulted > 0);
}
