//! Claims about replacing.

use serde_json::{Value, json};

use super::{rows, widget};
use crate::outcome::{CheckResult, expect};
use crate::{Claim, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "update", "conflict", "an old version is rejected with Conflict" => conflict;
        "update", "conflict", "a missing version is rejected" => unversioned;
        "update", "preconditions", "a different uid is rejected with Conflict" => other_uid;
        "update", "absence", "a missing object is not created" => absent;
        "update", "names", "a name or namespace different from the path is rejected" => names;
        "update", "generation", "a spec change increments the generation, a label change does not" => generation;
        "update", "no-op", "an update without a change keeps the version" => no_op;
        "update", "status", "the object path does not change the status, and the status path changes nothing else" => status;
        "update", "metadata", "the creation time cannot be changed" => creation_time;
        "update", "dry-run", "a dry run changes nothing" => dry_run;
    }
}

fn set(mut object: Value, pointer: &str, value: Value) -> Value {
    if let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(map)) = object.pointer_mut(parent)
    {
        map.insert(name.to_owned(), value);
    }
    object
}

async fn conflict(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let reply = s
        .put(&s.widget("a"), &set(made.body, "/metadata/resourceVersion", json!("1")))
        .await?;
    expect("code", reply.code, 409)?;
    let message = "Operation cannot be fulfilled on widgets.conformance.metal3.io \"a\": the object has been modified; please \
                   apply your changes to the latest version and try again";
    reply.holds("message", "/message", message)?;
    reply.holds("reason", "/reason", "Conflict")?;
    reply.holds("kind", "/details/kind", "widgets")
}

async fn unversioned(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.put(&s.widget("a"), &widget("a")).await?;
    expect("code", reply.code, 422)?;
    let message = "widgets.conformance.metal3.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
                   specified for an update";
    reply.holds("message", "/message", message)
}

async fn other_uid(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let reply = s
        .put(&s.widget("a"), &set(made.body, "/metadata/uid", json!("1")))
        .await?;
    reply.expect("code", 409, "/reason", "Conflict")?;
    let message = reply.text("/message");
    expect(
        &message,
        message.contains("Precondition failed: UID in precondition: 1, UID in object meta: "),
        true,
    )
}

async fn absent(s: Subject) -> CheckResult {
    let reply = s.put(&s.widget("a"), &widget("a")).await?;
    let message = "widgets.conformance.metal3.io \"a\" not found";
    reply.expect("answer", 404, "/message", message)
}

async fn names(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let reply = s
        .put(&s.widget("a"), &set(made.body.clone(), "/metadata/name", json!("b")))
        .await?;
    let message = "the name of the object (b) does not match the name on the URL (a)";
    reply.expect("name", 400, "/message", message)?;
    let reply = s
        .put(&s.widget("a"), &set(made.body, "/metadata/namespace", json!("b")))
        .await?;
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    reply.expect("namespace", 400, "/message", message)
}

async fn generation(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let changed = s.put(&s.widget("a"), &set(made.body, "/spec/size", json!(2))).await?;
    changed.holds("after a spec", "/metadata/generation", 2)?;
    let labelled = s
        .put(
            &s.widget("a"),
            &set(changed.body, "/metadata/labels", json!({"a": "b"})),
        )
        .await?;
    labelled.holds("after a label", "/metadata/generation", 2)?;
    let forged = s
        .put(&s.widget("a"), &set(labelled.body, "/metadata/generation", json!(9)))
        .await?;
    forged.holds("generation", "/metadata/generation", 2)
}

async fn no_op(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let same = s.put(&s.widget("a"), &made.body).await?;
    expect("code", same.code, 200)?;
    same.holds(
        "version",
        "/metadata/resourceVersion",
        made.text("/metadata/resourceVersion"),
    )
}

async fn status(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let same = s
        .put(&s.widget("a"), &set(made.body, "/status", json!({"ready": true})))
        .await?;
    same.holds("status by the object's path", "/status", Value::Null)?;
    let desired = set(
        set(same.body, "/status", json!({"ready": true})),
        "/spec/size",
        json!(9),
    );
    let desired = set(desired, "/metadata/labels", json!({"a": "b"}));
    let reply = s.put(&s.widget("a/status"), &desired).await?;
    reply.holds("status", "/status", json!({"ready": true}))?;
    reply.holds("spec", "/spec/size", 1)?;
    reply.holds("labels", "/metadata/labels", Value::Null)?;
    reply.holds("generation", "/metadata/generation", 1)?;
    expect(
        "read",
        s.get(&s.widget("a/status")).await?.at("/status"),
        json!({"ready": true}),
    )
}

async fn creation_time(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let time = made.text("/metadata/creationTimestamp");
    let desired = set(made.body, "/metadata/creationTimestamp", json!("2001-01-01T00:00:00Z"));
    expect(
        "time",
        s.put(&s.widget("a"), &desired)
            .await?
            .text("/metadata/creationTimestamp"),
        time,
    )
}

async fn dry_run(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let reply = s
        .put(&s.widget("a?dryRun=All"), &set(made.body, "/spec/size", json!(5)))
        .await?;
    reply.expect("answer", 200, "/spec/size", 5)?;
    expect("stored", s.get(&s.widget("a")).await?.at("/spec/size"), json!(1))
}
