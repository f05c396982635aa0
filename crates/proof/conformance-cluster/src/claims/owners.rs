//! Claims about field managers of creates and updates.

use serde_json::{Value, json};

use super::{GROUP, rows, widget_with};
use crate::outcome::{CheckResult, expect};
use crate::{Claim, Reply, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "owners", "create", "a creator owns all fields including defaults, with its user agent as manager" => created;
        "owners", "update", "an update takes over the changed fields and no others" => changed;
        "owners", "update", "a removed field has no manager" => removed;
        "owners", "status", "a status has a separate manager entry" => status;
        "owners", "reset", "managed fields can be set, and one empty entry resets them" => reset;
        "owners", "reset", "an update without managed fields keeps them" => kept;
        "owners", "first apply", "fields from before the first apply have a manager of their own" => before;
        "owners", "number", "more than ten update entries are merged" => capped;
        "owners", "watch", "watches, lists and metadata have managed fields" => shown;
    }
}

/// The fields of a manager; null when it has none.
fn fields(reply: &Reply, manager: &str) -> Value {
    let owners = reply.at("/metadata/managedFields");
    let named = |owner: &&Value| owner.get("manager").and_then(Value::as_str) == Some(manager);
    let found = owners.as_array().into_iter().flatten().find(named);
    found
        .and_then(|owner| owner.get("fieldsV1"))
        .cloned()
        .unwrap_or_default()
}

async fn created(s: Subject) -> CheckResult {
    let reply = s.make_with(&widget_with("a", json!({"labels": {"x": "y"}}))).await?;
    let labels = json!({"f:labels": {".": {}, "f:x": {}}});
    let spec = json!({".": {}, "f:size": {}, "f:colour": {}});
    let expected = json!({"f:metadata": labels, "f:spec": spec});
    expect("fields", fields(&reply, "conformance"), expected)?;
    let owner = reply.at("/metadata/managedFields/0");
    let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    expect(
        "owner",
        (text("operation"), text("apiVersion")),
        ("Update".into(), format!("{GROUP}/v1")),
    )
}

async fn changed(s: Subject) -> CheckResult {
    s.make("a").await?;
    let patch = json!({"spec": {"size": 2, "colour": "red"}});
    let reply = s.merge(&s.widget("a?fieldManager=other"), &patch).await?;
    expect("other", fields(&reply, "other"), json!({"f:spec": {"f:size": {}}}))?;
    expect(
        "creator",
        fields(&reply, "conformance"),
        json!({"f:spec": {".": {}, "f:colour": {}}}),
    )?;
    let reply = s.put(&s.widget("a?fieldManager=third"), &reply.body).await?;
    expect("third", fields(&reply, "third"), Value::Null)
}

async fn removed(s: Subject) -> CheckResult {
    s.make_with(&widget_with("a", json!({"labels": {"x": "y"}}))).await?;
    let patch = json!({"metadata": {"labels": null}});
    let reply = s.merge(&s.widget("a?fieldManager=other"), &patch).await?;
    expect("other", fields(&reply, "other"), Value::Null)?;
    let left = json!({"f:spec": {".": {}, "f:size": {}, "f:colour": {}}});
    expect("creator", fields(&reply, "conformance"), left)
}

async fn status(s: Subject) -> CheckResult {
    s.make("a").await?;
    let patch = json!({"status": {"ready": true}, "spec": {"size": 5}});
    let reply = s.merge(&s.widget("a/status?fieldManager=other"), &patch).await?;
    expect(
        "other",
        fields(&reply, "other"),
        json!({"f:status": {".": {}, "f:ready": {}}}),
    )?;
    let owners = reply.at("/metadata/managedFields");
    let of_status = |owner: &Value| owner.get("subresource").and_then(Value::as_str) == Some("status");
    let count = owners
        .as_array()
        .map(|owners| owners.iter().filter(|owner| of_status(owner)).count());
    expect("of the status", count, Some(1))?;
    let patch = json!({"status": {"ready": false}, "spec": {"size": 6}});
    let reply = s.merge(&s.widget("a?fieldManager=third"), &patch).await?;
    expect("third", fields(&reply, "third"), json!({"f:spec": {"f:size": {}}}))
}

async fn reset(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let mut owners = made.at("/metadata/managedFields");
    if let Some(manager) = owners.pointer_mut("/0/manager") {
        *manager = "renamed".into();
    }
    let reply = s
        .merge(&s.widget("a"), &json!({"metadata": {"managedFields": owners}}))
        .await?;
    expect("renamed", fields(&reply, "renamed"), fields(&made, "conformance"))?;
    let step = json!([{"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "again"}]);
    let reply = s.json_patch(&s.widget("a"), &step).await?;
    expect("again", fields(&reply, "again"), fields(&made, "conformance"))?;
    let empty = json!({"metadata": {"managedFields": [{}]}, "spec": {"size": 3}});
    let reply = s.merge(&s.widget("a"), &empty).await?;
    reply.holds("forgotten", "/metadata/managedFields", Value::Null)?;
    let reply = s.merge(&s.widget("a"), &json!({"spec": {"size": 4}})).await?;
    reply.holds("still", "/metadata/managedFields", Value::Null)
}

async fn kept(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let mut sent = made.body.clone();
    if let Some(Value::Object(metadata)) = sent.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    let reply = s.put(&s.widget("a"), &sent).await?;
    reply.holds("owners", "/metadata/managedFields", made.at("/metadata/managedFields"))?;
    let version = |reply: &Reply| reply.text("/metadata/resourceVersion");
    expect("version", version(&reply), version(&made))
}

async fn before(s: Subject) -> CheckResult {
    s.make("a").await?;
    s.merge(&s.widget("a"), &json!({"metadata": {"managedFields": [{}]}}))
        .await?;
    let config = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1},
    });
    let reply = s.apply(&s.widget("a"), "one", &config).await?;
    let expected = json!({"f:spec": {".": {}, "f:size": {}, "f:colour": {}}});
    expect(
        "before",
        (reply.code, fields(&reply, "before-first-apply")),
        (200, expected),
    )?;
    expect("one", fields(&reply, "one"), json!({"f:spec": {"f:size": {}}}))
}

async fn capped(s: Subject) -> CheckResult {
    s.make("a").await?;
    for number in 0..12 {
        let note = format!("n{number}");
        let patch = json!({"spec": {"notes": {note: "x"}}});
        s.merge(&s.widget(&format!("a?fieldManager=m{number}")), &patch).await?;
    }
    let reply = s.get(&s.widget("a")).await?;
    let owners = reply.at("/metadata/managedFields");
    expect("owners", owners.as_array().map(Vec::len), Some(10))?;
    expect("ancient", fields(&reply, "ancient-changes").is_object(), true)
}

async fn shown(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let owners = made.at("/metadata/managedFields");
    expect(
        "list",
        s.get(&s.widget("")).await?.at("/items/0/metadata/managedFields"),
        owners.clone(),
    )?;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let reply = s.get_as(&s.widget("a"), accept).await?;
    reply.holds("metadata", "/metadata/managedFields", owners.clone())?;
    let events = s.watch(&s.widget("?watch=1"), "application/json", 1).await?;
    let seen = events
        .first()
        .and_then(|event| event.pointer("/object/metadata/managedFields"));
    expect("watch", seen.cloned(), Some(owners))
}
