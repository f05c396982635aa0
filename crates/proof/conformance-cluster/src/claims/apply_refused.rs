//! Claims about invalid applies.

use serde_json::{Value, json};

use super::apply::{apply, config};
use super::{GROUP, rows};
use crate::outcome::{CheckResult, expect};
use crate::{Claim, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "apply", "manager", "an apply without a manager and force without an apply are rejected" => manager;
        "apply", "type", "another kind or version, managed fields, or a value other than an object is rejected" => other_type;
        "apply", "schema", "a field that is unknown or of another type is an internal error" => schema;
        "apply", "schema", "a value that violates the schema is invalid" => invalid;
        "apply", "names", "a missing name is rejected on create, a different name always" => names;
        "apply", "preconditions", "a different version is rejected with Conflict, and so is a uid without an object" => preconditions;
    }
}

async fn manager(s: Subject) -> CheckResult {
    let reply = apply(&s, "", json!({"size": 1})).await?;
    let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
    reply.expect("none", 422, "/message", message)?;
    let reply = s.merge(&s.widget("a?force=true"), &json!({})).await?;
    let message =
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch";
    reply.expect("force", 422, "/message", message)?;
    let reply = s
        .merge(&s.widget(&format!("a?fieldManager={}", "x".repeat(129))), &json!({}))
        .await?;
    let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes";
    reply.expect("too long", 422, "/message", message)
}

async fn other_type(s: Subject) -> CheckResult {
    let name = json!({"name": "a"});
    let unmarshal = "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go \
                     value of type map[string]interface {}";
    let version = format!("{GROUP}/v1");
    for (desired, message) in [
        (
            json!({"apiVersion": format!("{GROUP}/v2"), "kind": "Widget", "metadata": name}),
            format!("invalid object type: {GROUP}/v2, Kind=Widget"),
        ),
        (
            json!({"kind": "Widget", "metadata": name}),
            "invalid object type: /, Kind=Widget".to_owned(),
        ),
        (
            json!({"apiVersion": version, "kind": "Gadget", "metadata": name}),
            format!("invalid object type: {version}, Kind=Gadget"),
        ),
        (
            json!({"apiVersion": version, "kind": "Widget", "metadata": {"name": "a", "managedFields": []}}),
            "metadata.managedFields must be nil".to_owned(),
        ),
        (json!([1]), unmarshal.to_owned()),
    ] {
        let reply = s.apply(&s.widget("a"), "one", &desired).await?;
        reply.expect(&desired.to_string(), 400, "/message", message)?;
    }
    Ok(())
}

async fn schema(s: Subject) -> CheckResult {
    for (spec, why) in [
        (json!({"nope": 1}), ".spec.nope: field not declared in schema"),
        (
            json!({"size": "x"}),
            ".spec.size: expected numeric (int or float), got string",
        ),
        (
            json!({"roles": ["x", "x"]}),
            ".spec.roles: duplicate entries for key [=\"x\"]",
        ),
        (
            json!({"ports": [{"port": 1}]}),
            ".spec.ports: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and \
             doesn't have default values for any key fields)",
        ),
    ] {
        let reply = apply(&s, "one", spec).await?;
        let message = format!("failed to create typed patch object (/a; {GROUP}/v1, Kind=Widget): {why}");
        reply.expect(why, 500, "/message", message)?;
    }
    Ok(())
}

async fn invalid(s: Subject) -> CheckResult {
    let reply = apply(&s, "one", json!({"size": 0})).await?;
    let message = "Widget.conformance.metal3.io \"a\" is invalid: spec.size: Invalid value: 0: spec.size in body should be \
                   greater than or equal to 1";
    reply.expect("create", 422, "/message", message)?;
    apply(&s, "one", json!({"size": 1})).await?;
    let reply = apply(&s, "one", json!({"colour": "red"})).await?;
    let message = "Widget.conformance.metal3.io \"a\" is invalid: spec.size: Required value";
    reply.expect("update", 422, "/message", message)
}

async fn names(s: Subject) -> CheckResult {
    let named = |metadata: Value| {
        let mut desired = config(json!({"size": 1}));
        if let Some(map) = desired.as_object_mut() {
            map.insert("metadata".into(), metadata);
        }
        desired
    };
    let reply = s.apply(&s.widget("a"), "one", &named(json!({}))).await?;
    let message = "the name of the object (a based on URL) was undeterminable: name must be provided";
    reply.expect("none", 400, "/message", message)?;
    let reply = s.apply(&s.widget("a"), "one", &named(json!({"name": "b"}))).await?;
    let message = "the name of the object (b) does not match the name on the URL (a)";
    reply.expect("another", 400, "/message", message)?;
    s.make("a").await?;
    let reply = s.apply(&s.widget("a"), "one", &named(json!({}))).await?;
    reply.expect("none on update", 200, "/metadata/name", "a")
}

async fn preconditions(s: Subject) -> CheckResult {
    let with = |name: &str, value: &str| {
        let mut desired = config(json!({"size": 1}));
        if let Some(Value::Object(metadata)) = desired.get_mut("metadata") {
            metadata.insert(name.to_owned(), value.into());
        }
        desired
    };
    let reply = s.apply(&s.widget("a"), "one", &with("uid", "x")).await?;
    let message = "Operation cannot be fulfilled on widgets.conformance.metal3.io \"a\": uid mismatch: the provided object \
                   specified uid x, and no existing object was found";
    reply.expect("uid of nothing", 409, "/message", message)?;
    let made = apply(&s, "one", json!({"size": 1})).await?;
    let reply = s.apply(&s.widget("a"), "one", &with("resourceVersion", "1")).await?;
    reply.expect("old", 409, "/reason", "Conflict")?;
    let current = with("resourceVersion", &made.text("/metadata/resourceVersion"));
    expect("current", s.apply(&s.widget("a"), "one", &current).await?.code, 200)
}
