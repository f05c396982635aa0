//! Claims about creating.

use serde_json::{Value, json};

use super::{rows, widget, widget_with};
use crate::outcome::{CheckResult, expect};
use crate::{Claim, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "create", "identity", "a new object gets a uid, a version, a creation time and generation 1, whatever the request sets" => identity;
        "create", "names", "an existing name is rejected with AlreadyExists" => taken;
        "create", "names", "generateName appends five characters" => generated;
        "create", "names", "an object without a name is rejected" => unnamed;
        "create", "namespace", "an object with a different namespace is rejected" => elsewhere;
        "create", "namespace", "a missing namespace is not found" => no_namespace;
        "create", "type", "an object of another kind or version is rejected" => other_type;
        "create", "version", "an object with a resourceVersion is rejected" => given_version;
        "create", "version", "versions compare across resources: a later write has a higher version" => comparable;
        "create", "schema", "unknown fields are dropped with a warning, and defaults are set" => pruned;
        "create", "schema", "an invalid object is rejected with all causes" => invalid;
        "create", "schema", "unknown fields are rejected in strict mode" => strict;
        "create", "status", "a status is dropped when it is a subresource" => status_dropped;
        "create", "dry-run", "a dry run answers and stores nothing" => dry_run;
        "create", "dry-run", "a dry-run mode other than All is rejected" => dry_run_mode;
    }
}

async fn identity(s: Subject) -> CheckResult {
    let given = json!({"uid": "x", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z"});
    let made = s.make_with(&widget_with("a", given)).await?;
    expect("uid length", made.text("/metadata/uid").len(), 36)?;
    made.holds("generation", "/metadata/generation", 1)?;
    made.holds("namespace", "/metadata/namespace", s.namespace().to_owned())?;
    expect(
        "old time",
        made.text("/metadata/creationTimestamp").starts_with("2001"),
        false,
    )?;
    expect(
        "version is a number",
        made.text("/metadata/resourceVersion").parse::<u64>().is_ok(),
        true,
    )
}

async fn taken(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.post(&s.widget(""), &widget("a")).await?;
    expect("code", reply.code, 409)?;
    reply.holds("reason", "/reason", "AlreadyExists")?;
    reply.holds(
        "message",
        "/message",
        "widgets.conformance.metal3.io \"a\" already exists",
    )?;
    let details = json!({"name": "a", "group": "conformance.metal3.io", "kind": "widgets"});
    reply.holds("details", "/details", details)
}

async fn generated(s: Subject) -> CheckResult {
    let mut body = widget("");
    if let Some(metadata) = body.get_mut("metadata") {
        *metadata = json!({"generateName": "w-"});
    }
    let made = s.make_with(&body).await?;
    let name = made.text("/metadata/name");
    expect("prefix", name.starts_with("w-"), true)?;
    expect("length", name.len(), 7)
}

async fn unnamed(s: Subject) -> CheckResult {
    let reply = s.post(&s.widget(""), &widget("")).await?;
    expect("code", reply.code, 422)?;
    let message =
        "Widget.conformance.metal3.io \"\" is invalid: metadata.name: Required value: name or generateName is required";
    reply.holds("message", "/message", message)
}

async fn elsewhere(s: Subject) -> CheckResult {
    let reply = s
        .post(&s.widget(""), &widget_with("a", json!({"namespace": "default"})))
        .await?;
    expect("code", reply.code, 400)?;
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    reply.holds("message", "/message", message)?;
    reply.holds("details", "/details", Value::Null)
}

async fn no_namespace(s: Subject) -> CheckResult {
    let missing = s.in_namespace("is-not-there");
    let reply = missing.post(&missing.widget(""), &widget("a")).await?;
    expect("code", reply.code, 404)?;
    reply.holds("message", "/message", "namespaces \"is-not-there\" not found")
}

async fn other_type(s: Subject) -> CheckResult {
    let with = |name: &str, value: &str| {
        let mut body = widget("a");
        if let Some(member) = body.get_mut(name) {
            *member = value.into();
        }
        body
    };
    let reply = s.post(&s.widget(""), &with("kind", "Gadget")).await?;
    expect("code for a kind", reply.code, 422)?;
    let message = "Gadget.conformance.metal3.io \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget";
    reply.holds("message for a kind", "/message", message)?;
    let reply = s
        .post(&s.widget(""), &with("apiVersion", "conformance.metal3.io/v2"))
        .await?;
    expect("code for a version", reply.code, 400)?;
    let message = "the API version in the data (conformance.metal3.io/v2) does not match the expected API version \
                   (conformance.metal3.io/v1)";
    reply.holds("message for a version", "/message", message)
}

async fn given_version(s: Subject) -> CheckResult {
    let reply = s
        .post(&s.widget(""), &widget_with("a", json!({"resourceVersion": "5"})))
        .await?;
    expect("code", reply.code, 500)?;
    reply.holds(
        "message",
        "/message",
        "resourceVersion should not be set on objects to be created",
    )
}

async fn comparable(s: Subject) -> CheckResult {
    let version = |reply: &crate::Reply| {
        reply
            .text("/metadata/resourceVersion")
            .parse::<u64>()
            .unwrap_or_default()
    };
    let widget = version(&s.make("a").await?);
    let body = json!({"metadata": {"name": "a"}});
    let map = version(&s.post(&s.core("configmaps"), &body).await?);
    let other = version(&s.make("b").await?);
    expect("order", 0 < widget && widget < map && map < other, true)
}

async fn pruned(s: Subject) -> CheckResult {
    let mut body = widget("a");
    if let Some(spec) = body.get_mut("spec") {
        *spec = json!({"size": 2, "weight": 1});
    }
    let made = s.make_with(&body).await?;
    made.holds("spec", "/spec", json!({"size": 2, "colour": "red"}))?;
    expect(
        "warnings",
        made.warnings,
        vec!["299 - \"unknown field \\\"spec.weight\\\"\"".to_owned()],
    )
}

async fn invalid(s: Subject) -> CheckResult {
    let mut body = widget("a");
    if let Some(spec) = body.get_mut("spec") {
        *spec = json!({"size": 0, "colour": 3});
    }
    let reply = s.post(&s.widget(""), &body).await?;
    expect("code", reply.code, 422)?;
    reply.holds("reason", "/reason", "Invalid")?;
    // The real server iterates a map, so the order of causes is random.
    let causes = reply.at("/details/causes");
    let mut causes: Vec<Value> = causes.as_array().cloned().unwrap_or_default();
    causes.sort_by_key(Value::to_string);
    let colour = "Invalid value: \"integer\": spec.colour in body must be of type string: \"integer\"";
    let size = "Invalid value: 0: spec.size in body should be greater than or equal to 1";
    let expected = vec![
        json!({"field": "spec.colour", "message": colour, "reason": "FieldValueTypeInvalid"}),
        json!({"field": "spec.size", "message": size, "reason": "FieldValueInvalid"}),
    ];
    expect("causes", causes, expected)
}

async fn strict(s: Subject) -> CheckResult {
    let mut body = widget("a");
    if let Some(map) = body.as_object_mut() {
        map.insert("foo".into(), 1.into());
    }
    let reply = s.post(&s.widget("?fieldValidation=Strict"), &body).await?;
    expect("code", reply.code, 400)?;
    let message =
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"foo\"";
    reply.holds("message", "/message", message)
}

async fn status_dropped(s: Subject) -> CheckResult {
    let mut body = widget("a");
    if let Some(map) = body.as_object_mut() {
        map.insert("status".into(), json!({"ready": true}));
    }
    expect("status", s.make_with(&body).await?.at("/status"), Value::Null)
}

async fn dry_run(s: Subject) -> CheckResult {
    let reply = s.post(&s.widget("?dryRun=All"), &widget("a")).await?;
    expect("code", reply.code, 201)?;
    reply.holds("version", "/metadata/resourceVersion", Value::Null)?;
    expect("uid length", reply.text("/metadata/uid").len(), 36)?;
    expect("read", s.get(&s.widget("a")).await?.code, 404)
}

async fn dry_run_mode(s: Subject) -> CheckResult {
    let reply = s.post(&s.widget("?dryRun=Some"), &widget("a")).await?;
    expect("code", reply.code, 422)?;
    let message =
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"";
    reply.holds("message", "/message", message)
}
