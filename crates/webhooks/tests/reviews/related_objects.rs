//! Checks that depend on other objects.

use std::sync::Arc;

use metal3_webhooks::related_objects::{NoRelatedObjects, RelatedObjects};
use metal3_webhooks::table::Task;
use serde_json::{Value, json};

use crate::api_server::{KnownObjects, fields, hook, reviewed};

fn attachment(mode: &str) -> Value {
    json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "HostNetworkAttachment",
        "metadata": { "name": "storage", "namespace": "metal" }, "spec": { "mode": mode, "nativeVLAN": 7 },
    })
}

fn used() -> KnownObjects {
    let host = json!({
        "metadata": { "name": "node-0", "namespace": "metal" },
        "spec": {
            "online": true,
            "networkInterfaces": [{ "name": "eno1", "hostNetworkAttachment": { "name": "storage" } }],
        },
    });
    KnownObjects {
        hosts: vec![Arc::new(serde_json::from_value(host).unwrap())],
        ..KnownObjects::default()
    }
}

async fn validate(objects: KnownObjects, operation: &str, old: &Value, new: Option<&Value>) -> Value {
    let hook = hook(Task::Validate, old["kind"].as_str().unwrap());
    reviewed(objects, &hook, operation, (Some(old), new)).await
}

#[tokio::test]
async fn an_attachment_in_use_cannot_be_changed_or_deleted() {
    let (access, trunk) = (attachment("access"), attachment("trunk"));
    let changed = validate(used(), "UPDATE", &access, Some(&trunk)).await;
    assert_eq!(
        (changed["allowed"].clone(), fields(&changed)),
        (false.into(), vec!["spec".to_owned()])
    );
    let deleted = validate(used(), "DELETE", &access, None).await;
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
    assert_eq!(validate(used(), "UPDATE", &old, Some(&new)).await["allowed"], true);
}

#[tokio::test]
async fn an_unused_attachment_can_be_changed_and_deleted() {
    let (access, trunk) = (attachment("access"), attachment("trunk"));
    assert_eq!(
        validate(KnownObjects::default(), "UPDATE", &access, Some(&trunk)).await["allowed"],
        true
    );
    assert_eq!(
        validate(KnownObjects::default(), "DELETE", &access, None).await["allowed"],
        true
    );
}

#[tokio::test]
async fn unknown_hosts_cause_a_rejection() {
    let hook = hook(Task::Validate, "HostNetworkAttachment");
    let response = reviewed(NoRelatedObjects, &hook, "DELETE", (Some(&attachment("access")), None)).await;
    assert_eq!(response["allowed"], false);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("is not known") && message.contains("try again"),
        "{message}"
    );
}

#[tokio::test]
async fn kind_that_a_setting_serves_gets_no_warning() {
    struct Serves(bool);
    impl RelatedObjects for Serves {
        fn serves(&self, kind: &str) -> bool {
            self.0 && kind == "BareMetalSwitch"
        }
    }
    let hook = hook(Task::Validate, "BareMetalSwitch");
    let switch = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalSwitch",
        "metadata": { "name": "one", "namespace": "metal" },
        "spec": { "address": "192.0.2.1", "deviceType": "x", "macAddress": "52:54:00:00:00:01" },
    });
    for (is_served, warnings) in [(false, 1), (true, 0)] {
        let response = reviewed(Serves(is_served), &hook, "CREATE", (None, Some(&switch))).await;
        assert_eq!(response["allowed"], true);
        let found = response["warnings"].as_array().map_or(0, Vec::len);
        assert_eq!(found, warnings, "{response}");
    }
}

fn pool(subnet: &str) -> Value {
    json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool",
        "metadata": { "name": "rack", "namespace": "metal" },
        "spec": { "namePrefix": "rack", "pools": [{ "subnet": subnet }] },
    })
}

fn granted(addresses: impl IntoIterator<Item = String>) -> KnownObjects {
    KnownObjects {
        granted: addresses.into_iter().collect(),
        ..KnownObjects::default()
    }
}

#[tokio::test]
async fn a_pool_keeps_an_address_that_its_status_does_not_list_yet() {
    let (wide, narrow) = (pool("192.0.2.0/24"), pool("192.0.2.0/25"));
    let refused = validate(
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
    let allowed = validate(granted(["192.0.2.7".into()]), "UPDATE", &wide, Some(&narrow)).await;
    assert_eq!(allowed["allowed"], true);
}

#[tokio::test]
async fn an_address_in_the_status_is_reported_once() {
    let mut old = pool("192.0.2.0/24");
    old["status"] = json!({ "indexes": { "claim": "192.0.2.200" } });
    let refused = validate(
        granted(["192.0.2.200".into()]),
        "UPDATE",
        &old,
        Some(&pool("192.0.2.0/25")),
    )
    .await;
    assert_eq!(fields(&refused), ["spec.pools"]);
}

#[tokio::test]
async fn a_message_lists_at_most_ten_addresses() {
    let many = (128..=255).map(|last| format!("192.0.2.{last}"));
    let refused = validate(
        granted(many),
        "UPDATE",
        &pool("192.0.2.0/24"),
        Some(&pool("192.0.2.0/25")),
    )
    .await;
    assert!(refused["status"]["message"].as_str().unwrap().contains("and 118 more"));
}

#[tokio::test]
async fn a_pool_is_relabelled_without_a_check_of_its_addresses() {
    let hook = hook(Task::Validate, "IPPool");
    let old = pool("192.0.2.0/24");
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "a": "b" });
    let response = reviewed(NoRelatedObjects, &hook, "UPDATE", (Some(&old), Some(&new))).await;
    assert_eq!(response["allowed"], true);
    let narrowed = reviewed(
        NoRelatedObjects,
        &hook,
        "UPDATE",
        (Some(&old), Some(&pool("192.0.2.0/25"))),
    )
    .await;
    assert_eq!(narrowed["allowed"], false, "unknown addresses cause a rejection");
}
