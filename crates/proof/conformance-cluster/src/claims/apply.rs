//! Claims about server-side apply.

use serde_json::{Value, json};

use super::{GROUP, rows};
use crate::outcome::{CheckResult, Violation, expect};
use crate::{Claim, Reply, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "apply", "create", "an apply creates a missing object when the namespace exists" => creates;
        "apply", "create", "an apply to the status of a missing object is not found" => creates_no_status;
        "apply", "ownership", "an applier owns the applied fields, not the defaults" => owns;
        "apply", "ownership", "entries of keyed lists, sets and maps have managers of their own, other lists have one" => owns_entries;
        "apply", "ownership", "two appliers of the same value share it; the second has no time" => shares;
        "apply", "merge", "entries of other appliers stay, in the order of the last apply" => merges_lists;
        "apply", "merge", "an atomic map is replaced as a whole" => replaces_atomic;
        "apply", "removal", "a field that is no longer applied is removed" => removes;
        "apply", "removal", "a field that is no longer applied stays while it has another manager" => hands_over;
        "apply", "conflict", "a conflict with another applier is rejected with each manager and field" => conflicts;
        "apply", "conflict", "a conflict with an updater is rejected with the version, too" => conflicts_with_updater;
        "apply", "force", "force takes over the field" => forces;
        "apply", "status", "the status path applies only the status, as a separate manager entry" => status;
        "apply", "no-op", "a repeated apply keeps the version" => no_op;
        "apply", "dry-run", "a dry run returns managed fields and stores nothing" => dry_run;
        "apply", "type", "YAML is accepted" => yaml;
        "apply", "endpoint", "a provider sets an endpoint that a topology leaves unset, and conflicts when the topology sets it" => endpoint;
    }
}

/// A widget with this spec.
pub(super) fn config(spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})
}

pub(super) async fn apply(s: &Subject, manager: &str, spec: Value) -> Result<Reply, Violation> {
    s.apply(&s.widget("a"), manager, &config(spec)).await
}

/// The fields of a manager; null when it has none.
fn fields(reply: &Reply, manager: &str) -> Value {
    owner(reply, manager).get("fieldsV1").cloned().unwrap_or_default()
}

fn owner(reply: &Reply, manager: &str) -> Value {
    let owners = reply.at("/metadata/managedFields");
    let found = owners
        .as_array()
        .into_iter()
        .flatten()
        .find(|owner| owner.get("manager").and_then(Value::as_str) == Some(manager));
    found.cloned().unwrap_or_default()
}

async fn creates(s: Subject) -> CheckResult {
    let reply = apply(&s, "one", json!({"size": 2})).await?;
    reply.expect("code", 201, "/metadata/generation", 1)?;
    expect("again", apply(&s, "one", json!({"size": 2})).await?.code, 200)?;
    let missing = s.in_namespace("is-not-there");
    let reply = apply(&missing, "one", json!({"size": 2})).await?;
    let message = "namespaces \"is-not-there\" not found";
    reply.expect("no namespace", 404, "/message", message)
}

async fn creates_no_status(s: Subject) -> CheckResult {
    let reply = s
        .apply(&s.widget("a/status"), "one", &config(json!({"size": 2})))
        .await?;
    reply.expect("answer", 404, "/reason", "NotFound")
}

async fn owns(s: Subject) -> CheckResult {
    let reply = apply(&s, "one", json!({"size": 2})).await?;
    reply.holds("spec", "/spec", json!({"size": 2, "colour": "red"}))?;
    let mut owners = reply.at("/metadata/managedFields");
    let time = owners.pointer("/0/time").and_then(Value::as_str).map(str::len);
    expect("time length", time, Some(20))?;
    if let Some(Value::Object(owner)) = owners.pointer_mut("/0") {
        owner.remove("time");
    }
    let owner = json!({
        "manager": "one", "operation": "Apply", "apiVersion": format!("{GROUP}/v1"), "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:size": {}}},
    });
    expect("owners", owners, json!([owner]))
}

async fn owns_entries(s: Subject) -> CheckResult {
    let mut config = config(json!({
        "size": 1, "tags": ["t"], "roles": ["r"], "ports": [{"name": "p", "port": 1}],
        "notes": {"n": "m"}, "pair": {"left": "l"},
    }));
    if let Some(Value::Object(metadata)) = config.get_mut("metadata") {
        metadata.insert("labels".into(), json!({"x": "y"}));
        metadata.insert("finalizers".into(), json!(["example.org/hold"]));
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
        metadata.insert("ownerReferences".into(), json!([owner]));
    }
    let reply = s.apply(&s.widget("a"), "one", &config).await?;
    expect("code", reply.code, 201)?;
    let expected = json!({
        "f:metadata": {
            "f:labels": {"f:x": {}},
            "f:finalizers": {"v:\"example.org/hold\"": {}},
            "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}},
        },
        "f:spec": {
            "f:size": {}, "f:tags": {}, "f:roles": {"v:\"r\"": {}}, "f:notes": {"f:n": {}}, "f:pair": {},
            "f:ports": {"k:{\"name\":\"p\"}": {".": {}, "f:name": {}, "f:port": {}}},
        },
    });
    expect("fields", fields(&reply, "one"), expected)
}

async fn shares(s: Subject) -> CheckResult {
    apply(&s, "one", json!({"size": 2})).await?;
    let reply = apply(&s, "two", json!({"size": 2})).await?;
    expect("code", reply.code, 200)?;
    for manager in ["one", "two"] {
        expect(manager, fields(&reply, manager), json!({"f:spec": {"f:size": {}}}))?;
    }
    let timed = ["one", "two"].map(|manager| owner(&reply, manager).get("time").is_some());
    expect("times", timed, [true, false])
}

async fn merges_lists(s: Subject) -> CheckResult {
    apply(
        &s,
        "one",
        json!({"size": 1, "roles": ["a", "b"], "ports": [{"name": "p", "port": 1}]}),
    )
    .await?;
    let other = json!({"size": 1, "roles": ["c", "b"], "ports": [{"name": "q"}, {"name": "p"}]});
    let reply = apply(&s, "two", other).await?;
    reply.holds("set", "/spec/roles", json!(["a", "c", "b"]))?;
    reply.holds("keyed", "/spec/ports", json!([{"name": "q"}, {"name": "p", "port": 1}]))
}

async fn replaces_atomic(s: Subject) -> CheckResult {
    apply(&s, "one", json!({"size": 1, "pair": {"left": "l"}})).await?;
    let reply = apply(&s, "one", json!({"size": 1, "pair": {"right": "r"}})).await?;
    reply.holds("pair", "/spec/pair", json!({"right": "r"}))
}

async fn removes(s: Subject) -> CheckResult {
    let first = json!({"size": 1, "notes": {"a": "b", "c": "d"}, "ports": [{"name": "p", "port": 1}, {"name": "q"}]});
    apply(&s, "one", first).await?;
    let reply = apply(
        &s,
        "one",
        json!({"size": 1, "notes": {"c": "d"}, "ports": [{"name": "p"}]}),
    )
    .await?;
    let spec = json!({"size": 1, "colour": "red", "notes": {"c": "d"}, "ports": [{"name": "p"}]});
    reply.holds("spec", "/spec", spec)?;
    let reply = apply(&s, "one", json!({"size": 1})).await?;
    reply.holds("emptied", "/spec", json!({"size": 1, "colour": "red"}))
}

async fn hands_over(s: Subject) -> CheckResult {
    apply(&s, "one", json!({"size": 1, "notes": {"a": "b"}})).await?;
    apply(&s, "two", json!({"size": 1, "notes": {"a": "b"}})).await?;
    let reply = apply(&s, "one", json!({"size": 1})).await?;
    reply.holds("kept", "/spec/notes", json!({"a": "b"}))?;
    expect("of one", fields(&reply, "one"), json!({"f:spec": {"f:size": {}}}))?;
    let reply = apply(&s, "two", json!({"size": 1})).await?;
    reply.holds("gone", "/spec/notes", Value::Null)
}

async fn conflicts(s: Subject) -> CheckResult {
    apply(&s, "one", json!({"size": 1, "notes": {"a": "b"}})).await?;
    let reply = apply(&s, "two", json!({"size": 2})).await?;
    let message = "Apply failed with 1 conflict: conflict with \"one\": .spec.size";
    reply.expect("one", 409, "/message", message)?;
    let cause =
        |field: &str| json!({"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": field});
    reply.holds("details", "/details", json!({"causes": [cause(".spec.size")]}))?;
    reply.holds("reason", "/reason", "Conflict")?;
    let reply = apply(&s, "two", json!({"size": 2, "notes": {"a": "c"}})).await?;
    let message = "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.size\n- .spec.notes.a";
    reply.holds("two", "/message", message)?;
    let causes = json!([cause(".spec.size"), cause(".spec.notes.a")]);
    reply.holds("causes", "/details/causes", causes)
}

async fn conflicts_with_updater(s: Subject) -> CheckResult {
    s.make("a").await?;
    let body = json!({"status": {"ready": true}});
    s.merge(&s.widget("a/status?fieldManager=watcher"), &body).await?;
    let reply = apply(&s, "two", json!({"size": 2})).await?;
    let message = format!("Apply failed with 1 conflict: conflict with \"conformance\" using {GROUP}/v1: .spec.size");
    reply.expect("spec", 409, "/message", message)?;
    let mut status = config(Value::Null);
    if let Some(map) = status.as_object_mut() {
        map.remove("spec");
        map.insert("status".into(), json!({"ready": false}));
    }
    let reply = s.apply(&s.widget("a/status"), "two", &status).await?;
    let message = format!(
        "Apply failed with 1 conflict: conflict with \"watcher\" with subresource \"status\" using {GROUP}/v1: .status.ready"
    );
    reply.expect("status", 409, "/message", message)
}

async fn forces(s: Subject) -> CheckResult {
    apply(&s, "one", json!({"size": 1, "colour": "blue"})).await?;
    let path = s.widget("a?force=true");
    let reply = s.apply(&path, "two", &config(json!({"size": 2}))).await?;
    reply.expect("value", 200, "/spec/size", 2)?;
    expect("of one", fields(&reply, "one"), json!({"f:spec": {"f:colour": {}}}))?;
    expect("of two", fields(&reply, "two"), json!({"f:spec": {"f:size": {}}}))?;
    // The field has another manager, so it is not removed.
    let reply = apply(&s, "one", json!({"colour": "blue"})).await?;
    reply.holds("kept", "/spec/size", 2)
}

async fn status(s: Subject) -> CheckResult {
    apply(&s, "one", json!({"size": 1})).await?;
    let mut desired = config(json!({"size": 5}));
    if let Some(map) = desired.as_object_mut() {
        map.insert("status".into(), json!({"ready": true}));
    }
    let reply = s.apply(&s.widget("a/status"), "two", &desired).await?;
    reply.expect("status", 200, "/status", json!({"ready": true}))?;
    reply.holds("spec", "/spec/size", 1)?;
    let owner = owner(&reply, "two");
    let seen = (owner.get("subresource").cloned(), owner.get("fieldsV1").cloned());
    expect(
        "owner",
        seen,
        (Some(json!("status")), Some(json!({"f:status": {"f:ready": {}}}))),
    )?;
    let reply = s.apply(&s.widget("a"), "one", &desired).await?;
    reply.holds("by the object's path", "/status", json!({"ready": true}))?;
    expect("of one", fields(&reply, "one"), json!({"f:spec": {"f:size": {}}}))
}

async fn no_op(s: Subject) -> CheckResult {
    let first = apply(&s, "one", json!({"size": 1})).await?;
    let again = apply(&s, "one", json!({"size": 1})).await?;
    let version = |reply: &Reply| reply.text("/metadata/resourceVersion");
    expect("version", version(&again), version(&first))
}

async fn dry_run(s: Subject) -> CheckResult {
    let path = s.widget("a?dryRun=All");
    let reply = s.apply(&path, "one", &config(json!({"size": 3}))).await?;
    expect(
        "create",
        (reply.code, fields(&reply, "one")),
        (201, json!({"f:spec": {"f:size": {}}})),
    )?;
    expect("read", s.get(&s.widget("a")).await?.code, 404)?;
    apply(&s, "one", json!({"size": 1})).await?;
    let reply = s.apply(&path, "one", &config(json!({"size": 3}))).await?;
    reply.expect("update", 200, "/spec/size", 3)?;
    expect("stored", s.get(&s.widget("a")).await?.at("/spec/size"), json!(1))
}

async fn yaml(s: Subject) -> CheckResult {
    let text = format!("apiVersion: {GROUP}/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 4\n  roles: [x]\n");
    let types = ("application/apply-patch+yaml", "application/json");
    let reply = s
        .send("PATCH", &s.widget("a?fieldManager=one"), types, text.into_bytes())
        .await?;
    let seen = (reply.code, reply.at("/spec/size"), reply.at("/spec/roles"));
    expect("answer", seen, (201, json!(4), json!(["x"])))
}

async fn endpoint(s: Subject) -> CheckResult {
    apply(&s, "topology", json!({"size": 1, "notes": {"zone": "z"}})).await?;
    let mut desired = config(json!({"pair": {"left": "10.0.0.1", "right": "6443"}}));
    if let Some(Value::Object(metadata)) = desired.get_mut("metadata") {
        metadata.insert(
            "annotations".into(),
            json!({"example.org/endpoint-from": "control-plane"}),
        );
    }
    let reply = s.apply(&s.widget("a"), "endpoint", &desired).await?;
    reply.expect("filled in", 200, "/spec/pair/left", "10.0.0.1")?;
    let owned = json!({
        "f:metadata": {"f:annotations": {"f:example.org/endpoint-from": {}}}, "f:spec": {"f:pair": {}},
    });
    expect("owned", fields(&reply, "endpoint"), owned)?;
    let reply = apply(&s, "topology", json!({"size": 2, "notes": {"zone": "z"}})).await?;
    reply.expect("second", 200, "/spec/pair/left", "10.0.0.1")?;
    let stated = json!({"size": 2, "pair": {"left": "10.0.0.2", "right": "6443"}});
    s.apply(&s.widget("a?force=true"), "topology", &config(stated)).await?;
    let reply = s.apply(&s.widget("a"), "endpoint", &desired).await?;
    let message = "Apply failed with 1 conflict: conflict with \"topology\": .spec.pair";
    reply.expect("refused", 409, "/message", message)
}
