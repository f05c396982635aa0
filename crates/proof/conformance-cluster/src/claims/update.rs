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
    expect("message", reply.text("/message"), message.into())?;
    expect("reason", reply.text("/reason"), "Conflict".into())?;
    expect("kind", reply.text("/details/kind"), "widgets".into())
}

async fn unversioned(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.put(&s.widget("a"), &widget("a")).await?;
    expect("code", reply.code, 422)?;
    let message = "widgets.conformance.metal3.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
                   specified for an update";
    expect("message", reply.text("/message"), message.into())
}

async fn other_uid(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let reply = s
        .put(&s.widget("a"), &set(made.body, "/metadata/uid", json!("1")))
        .await?;
    expect("code", (reply.code, reply.text("/reason")), (409, "Conflict".into()))?;
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
    expect("answer", (reply.code, reply.text("/message")), (404, message.into()))
}

async fn names(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let reply = s
        .put(&s.widget("a"), &set(made.body.clone(), "/metadata/name", json!("b")))
        .await?;
    let message = "the name of the object (b) does not match the name on the URL (a)";
    expect("name", (reply.code, reply.text("/message")), (400, message.into()))?;
    let reply = s
        .put(&s.widget("a"), &set(made.body, "/metadata/namespace", json!("b")))
        .await?;
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    expect("namespace", (reply.code, reply.text("/message")), (400, message.into()))
}

async fn generation(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let changed = s.put(&s.widget("a"), &set(made.body, "/spec/size", json!(2))).await?;
    expect("after a spec", changed.at("/metadata/generation"), json!(2))?;
    let labelled = s
        .put(
            &s.widget("a"),
            &set(changed.body, "/metadata/labels", json!({"a": "b"})),
        )
        .await?;
    expect("after a label", labelled.at("/metadata/generation"), json!(2))?;
    let forged = s
        .put(&s.widget("a"), &set(labelled.body, "/metadata/generation", json!(9)))
        .await?;
    expect("generation", forged.at("/metadata/generation"), json!(2))
}

async fn no_op(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let same = s.put(&s.widget("a"), &made.body).await?;
    expect("code", same.code, 200)?;
    expect(
        "version",
        same.text("/metadata/resourceVersion"),
        made.text("/metadata/resourceVersion"),
    )
}

async fn status(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let same = s
        .put(&s.widget("a"), &set(made.body, "/status", json!({"ready": true})))
        .await?;
    expect("status by the object's path", same.at("/status"), Value::Null)?;
    let desired = set(
        set(same.body, "/status", json!({"ready": true})),
        "/spec/size",
        json!(9),
    );
    let desired = set(desired, "/metadata/labels", json!({"a": "b"}));
    let reply = s.put(&s.widget("a/status"), &desired).await?;
    expect("status", reply.at("/status"), json!({"ready": true}))?;
    expect("spec", reply.at("/spec/size"), json!(1))?;
    expect("labels", reply.at("/metadata/labels"), Value::Null)?;
    expect("generation", reply.at("/metadata/generation"), json!(1))?;
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
    expect("answer", (reply.code, reply.at("/spec/size")), (200, json!(5)))?;
    expect("stored", s.get(&s.widget("a")).await?.at("/spec/size"), json!(1))
}
