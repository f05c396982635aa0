//! Claims about deleting.

use serde_json::{Value, json};

use super::{rows, widget_with};
use crate::outcome::{CheckResult, expect};
use crate::{Claim, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "delete", "at once", "an object without finalizers is deleted immediately, with a Status with its uid" => at_once;
        "delete", "absence", "a missing object is not found" => absent;
        "delete", "finalizers", "an object with finalizers gets a deletion timestamp and a new generation, and stays" => marked;
        "delete", "finalizers", "removing the last finalizer deletes the object" => last_finalizer;
        "delete", "finalizers", "a terminating object accepts no new finalizers and stays terminating" => no_way_back;
        "delete", "preconditions", "a different uid or version is rejected with Conflict" => preconditions;
        "delete", "dry-run", "a dry run deletes nothing" => dry_run;
        "delete", "options", "an unknown propagation policy is rejected" => bad_policy;
        "delete", "options", "foreground and orphan deletion add a finalizer, which background deletion removes" => policies;
        "deletecollection", "selectors", "only the selected objects are deleted" => collection;
        "deletecollection", "dry-run", "a dry run deletes nothing" => collection_dry_run;
        "deletecollection", "metadata", "an unacceptable representation is rejected after the objects are deleted" => refused_late;
        "deletecollection", "finalizers", "objects with finalizers get a deletion timestamp" => collection_marks;
    }
}

async fn at_once(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let reply = s.delete(&s.widget("a"), &Value::Null).await?;
    expect("code", reply.code, 200)?;
    let details = json!({
        "name": "a", "group": "conformance.metal3.io", "kind": "widgets", "uid": made.text("/metadata/uid"),
    });
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    expect("status", reply.body, status)?;
    expect("read", s.get(&s.widget("a")).await?.code, 404)
}

async fn absent(s: Subject) -> CheckResult {
    let reply = s.delete(&s.widget("a"), &Value::Null).await?;
    reply.expect("answer", 404, "/reason", "NotFound")
}

fn held(name: &str) -> Value {
    widget_with(name, json!({"finalizers": ["example.org/hold"]}))
}

async fn marked(s: Subject) -> CheckResult {
    s.make_with(&held("a")).await?;
    let reply = s.delete(&s.widget("a"), &Value::Null).await?;
    reply.expect("answer", 200, "/kind", "Widget")?;
    reply.holds("generation", "/metadata/generation", 2)?;
    reply.holds("grace", "/metadata/deletionGracePeriodSeconds", 0)?;
    expect("time length", reply.text("/metadata/deletionTimestamp").len(), 20)?;
    let again = s.delete(&s.widget("a"), &Value::Null).await?;
    again.holds(
        "again",
        "/metadata/resourceVersion",
        reply.text("/metadata/resourceVersion"),
    )
}

async fn last_finalizer(s: Subject) -> CheckResult {
    s.make_with(&held("a")).await?;
    s.delete(&s.widget("a"), &Value::Null).await?;
    let reply = s
        .merge(&s.widget("a"), &json!({"metadata": {"finalizers": null}}))
        .await?;
    reply.expect("code", 200, "/kind", "Widget")?;
    reply.holds("finalizers", "/metadata/finalizers", Value::Null)?;
    expect("read", s.get(&s.widget("a")).await?.code, 404)
}

async fn no_way_back(s: Subject) -> CheckResult {
    s.make_with(&held("a")).await?;
    s.delete(&s.widget("a"), &Value::Null).await?;
    let desired = json!({"metadata": {"finalizers": ["example.org/hold", "example.org/more"]}});
    let reply = s.merge(&s.widget("a"), &desired).await?;
    expect("code", reply.code, 422)?;
    let message = "Widget.conformance.metal3.io \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be \
                   added if the object is being deleted, found new finalizers []string{\"example.org/more\"}";
    reply.holds("message", "/message", message)?;
    let reply = s
        .merge(&s.widget("a"), &json!({"metadata": {"deletionTimestamp": null}}))
        .await?;
    expect("still going", reply.text("/metadata/deletionTimestamp").len(), 20)?;
    let reply = s.merge(&s.widget("a"), &json!({"spec": {"size": 3}})).await?;
    reply.expect("spec", 200, "/metadata/generation", 3)
}

async fn preconditions(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let reply = s
        .delete(&s.widget("a"), &json!({"preconditions": {"uid": "nope"}}))
        .await?;
    reply.expect("uid", 409, "/reason", "Conflict")?;
    let message = format!(
        "Operation cannot be fulfilled on Widget.conformance.metal3.io \"a\": the UID in the precondition (nope) does not match \
         the UID in record ({}). The object might have been deleted and then recreated",
        made.text("/metadata/uid")
    );
    reply.holds("message", "/message", message)?;
    let reply = s
        .delete(&s.widget("a"), &json!({"preconditions": {"resourceVersion": "1"}}))
        .await?;
    expect("version", reply.code, 409)?;
    let exact = json!({"uid": made.text("/metadata/uid"), "resourceVersion": made.text("/metadata/resourceVersion")});
    expect(
        "both right",
        s.delete(&s.widget("a"), &json!({"preconditions": exact})).await?.code,
        200,
    )
}

async fn dry_run(s: Subject) -> CheckResult {
    s.make("a").await?;
    expect(
        "query",
        s.delete(&s.widget("a?dryRun=All"), &Value::Null).await?.code,
        200,
    )?;
    expect(
        "body",
        s.delete(&s.widget("a"), &json!({"dryRun": ["All"]})).await?.code,
        200,
    )?;
    expect("read", s.get(&s.widget("a")).await?.code, 200)
}

async fn policies(s: Subject) -> CheckResult {
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        s.make("a").await?;
        let reply = s.delete(&s.widget("a"), &json!({"propagationPolicy": policy})).await?;
        reply.expect(policy, 200, "/metadata/finalizers", json!([finalizer]))?;
        reply.holds("generation", "/metadata/generation", 2)?;
        let reply = s.delete(&s.widget("a"), &Value::Null).await?;
        reply.expect("again", 200, "/metadata/finalizers", json!([finalizer]))?;
        let reply = s
            .delete(&s.widget("a"), &json!({"propagationPolicy": "Background"}))
            .await?;
        reply.expect("background", 200, "/status", "Success")?;
    }
    Ok(())
}

async fn bad_policy(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.delete(&s.widget("a"), &json!({"propagationPolicy": "Bogus"})).await?;
    expect("code", reply.code, 422)?;
    let message = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Bogus\": supported values: \
                   \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
    reply.holds("message", "/message", message)
}

async fn collection(s: Subject) -> CheckResult {
    s.make_with(&widget_with("a", json!({"labels": {"go": "y"}}))).await?;
    s.make("b").await?;
    let reply = s.delete(&s.widget("?labelSelector=go%3Dy"), &Value::Null).await?;
    expect(
        "answer",
        (reply.code, reply.text("/kind"), reply.names()),
        (200, "WidgetList".into(), vec!["a".into()]),
    )?;
    expect("left", s.get(&s.widget("")).await?.names().join(" "), "b".into())
}

async fn collection_dry_run(s: Subject) -> CheckResult {
    s.make("a").await?;
    expect(
        "code",
        s.delete(&s.widget("?dryRun=All"), &Value::Null).await?.code,
        200,
    )?;
    expect("read", s.get(&s.widget("a")).await?.code, 200)
}

async fn refused_late(s: Subject) -> CheckResult {
    s.make("a").await?;
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let reply = s
        .send("DELETE", &s.widget(""), ("application/json", one), Vec::new())
        .await?;
    expect("code", reply.code, 406)?;
    expect("read", s.get(&s.widget("a")).await?.code, 404)
}

async fn collection_marks(s: Subject) -> CheckResult {
    s.make_with(&held("a")).await?;
    s.make("b").await?;
    expect("code", s.delete(&s.widget(""), &Value::Null).await?.code, 200)?;
    let left = s.get(&s.widget("")).await?;
    expect("left", left.names().join(" "), "a".into())?;
    expect("marked", left.text("/items/0/metadata/deletionTimestamp").len(), 20)
}
