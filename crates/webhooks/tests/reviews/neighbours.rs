//! Verdicts that look at other objects.

use std::sync::Arc;

use metal3_webhooks::neighbours::Nobody;
use metal3_webhooks::table::Task;
use serde_json::{Value, json};

use crate::api_server::{Seen, ask, fields, hook, review};

fn attachment(mode: &str) -> Value {
    json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "HostNetworkAttachment",
        "metadata": { "name": "storage", "namespace": "metal" }, "spec": { "mode": mode, "nativeVLAN": 7 },
    })
}

fn used() -> Seen {
    let host = json!({
        "metadata": { "name": "node-0", "namespace": "metal" },
        "spec": {
            "online": true,
            "networkInterfaces": [{ "name": "eno1", "hostNetworkAttachment": { "name": "storage" } }],
        },
    });
    Seen {
        hosts: vec![Arc::new(serde_json::from_value(host).unwrap())],
        ..Seen::default()
    }
}

async fn judge(seen: Seen, operation: &str, old: &Value, new: Option<&Value>) -> Value {
    let hook = hook(Task::Judge, old["kind"].as_str().unwrap());
    ask(seen, &hook.path(), &review(&hook, operation, Some(old), new)).await
}

#[tokio::test]
async fn an_attachment_in_use_keeps_its_spec_and_stays() {
    let (access, trunk) = (attachment("access"), attachment("trunk"));
    let changed = judge(used(), "UPDATE", &access, Some(&trunk)).await;
    assert_eq!(
        (changed["allowed"].clone(), fields(&changed)),
        (false.into(), vec!["spec".to_owned()])
    );
    let deleted = judge(used(), "DELETE", &access, None).await;
    assert_eq!(
        (deleted["allowed"].clone(), fields(&deleted)),
        (false.into(), vec!["metadata.name".to_owned()])
    );
    let message = deleted["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("metal/node-0[eno1]") && message.contains("networkInterfaces"),
        "{message}"
    );
}

#[tokio::test]
async fn an_attachment_in_use_can_be_relabelled() {
    let old = attachment("access");
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "a": "b" });
    assert_eq!(judge(used(), "UPDATE", &old, Some(&new)).await["allowed"], true);
}

#[tokio::test]
async fn an_attachment_that_nobody_uses_can_be_changed_and_deleted() {
    let (access, trunk) = (attachment("access"), attachment("trunk"));
    assert_eq!(
        judge(Seen::default(), "UPDATE", &access, Some(&trunk)).await["allowed"],
        true
    );
    assert_eq!(judge(Seen::default(), "DELETE", &access, None).await["allowed"], true);
}

#[tokio::test]
async fn hosts_that_were_not_seen_are_not_taken_for_none() {
    let hook = hook(Task::Judge, "HostNetworkAttachment");
    let response = ask(
        Nobody,
        &hook.path(),
        &review(&hook, "DELETE", Some(&attachment("access")), None),
    )
    .await;
    assert_eq!(response["allowed"], false);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("is not known") && message.contains("try again"),
        "{message}"
    );
}

fn pool(subnet: &str) -> Value {
    json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool",
        "metadata": { "name": "rack", "namespace": "metal" },
        "spec": { "namePrefix": "rack", "pools": [{ "subnet": subnet }] },
    })
}

fn granted(addresses: impl IntoIterator<Item = String>) -> Seen {
    Seen {
        granted: addresses.into_iter().collect(),
        ..Seen::default()
    }
}

#[tokio::test]
async fn a_pool_keeps_an_address_that_its_status_does_not_list_yet() {
    let (wide, narrow) = (pool("192.0.2.0/24"), pool("192.0.2.0/25"));
    let refused = judge(
        granted(["192.0.2.200".into(), "192.0.2.7".into()]),
        "UPDATE",
        &wide,
        Some(&narrow),
    )
    .await;
    assert_eq!(
        (refused["allowed"].clone(), fields(&refused)),
        (false.into(), vec!["spec.pools".to_owned()])
    );
    let message = refused["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("192.0.2.200") && !message.contains("192.0.2.7,"),
        "{message}"
    );
    let allowed = judge(granted(["192.0.2.7".into()]), "UPDATE", &wide, Some(&narrow)).await;
    assert_eq!(allowed["allowed"], true);
}

#[tokio::test]
async fn an_address_that_the_status_lists_is_objected_to_once() {
    let mut old = pool("192.0.2.0/24");
    old["status"] = json!({ "indexes": { "claim": "192.0.2.200" } });
    let refused = judge(
        granted(["192.0.2.200".into()]),
        "UPDATE",
        &old,
        Some(&pool("192.0.2.0/25")),
    )
    .await;
    assert_eq!(fields(&refused), ["spec.pools"]);
}

#[tokio::test]
async fn of_many_addresses_a_few_are_named() {
    let many = (128..=255).map(|last| format!("192.0.2.{last}"));
    let refused = judge(
        granted(many),
        "UPDATE",
        &pool("192.0.2.0/24"),
        Some(&pool("192.0.2.0/25")),
    )
    .await;
    assert!(refused["status"]["message"].as_str().unwrap().contains("and 118 more"));
}

#[tokio::test]
async fn a_pool_is_relabelled_without_a_look_at_its_addresses() {
    let hook = hook(Task::Judge, "IPPool");
    let old = pool("192.0.2.0/24");
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "a": "b" });
    let response = ask(Nobody, &hook.path(), &review(&hook, "UPDATE", Some(&old), Some(&new))).await;
    assert_eq!(response["allowed"], true);
    let narrowed = ask(
        Nobody,
        &hook.path(),
        &review(&hook, "UPDATE", Some(&old), Some(&pool("192.0.2.0/25"))),
    )
    .await;
    assert_eq!(
        narrowed["allowed"], false,
        "addresses that were not seen are not taken for none"
    );
}
