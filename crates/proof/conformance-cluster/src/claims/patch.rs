//! Claims about patching.

use serde_json::{Value, json};

use super::rows;
use crate::outcome::{CheckResult, expect};
use crate::{Claim, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "patch", "merge", "a merge patch changes the given fields and removes null fields" => merges;
        "patch", "merge", "a merge patch without a change keeps the version" => no_op;
        "patch", "merge", "a merge patch that is not an object is rejected" => not_an_object;
        "patch", "preconditions", "a patch with a different version is rejected with Conflict" => versioned;
        "patch", "preconditions", "a patch with a different uid is rejected as invalid" => other_uid;
        "patch", "absence", "a missing object is not created" => absent;
        "patch", "names", "a patch of the name is rejected" => renames;
        "patch", "schema", "a patch to an invalid object is rejected" => invalid;
        "patch", "json", "a JSON patch adds, copies, moves, replaces and removes" => steps;
        "patch", "json", "a JSON patch whose test fails changes nothing" => tests;
        "patch", "json", "a JSON patch that does not apply is rejected" => impossible;
        "patch", "status", "a patch of the status path changes only the status" => status;
        "patch", "dry-run", "a dry run changes nothing" => dry_run;
        "patch", "metadata", "a write returns only the metadata on request" => metadata;
        "patch", "type", "a patch of an unknown type is rejected with the list of known types" => unknown_type;
    }
}

async fn merges(s: Subject) -> CheckResult {
    s.make("a").await?;
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"size": 2, "tags": ["t"], "colour": "blue"}});
    let reply = s.merge(&s.widget("a"), &patch).await?;
    reply.holds("spec", "/spec", json!({"size": 2, "tags": ["t"], "colour": "blue"}))?;
    reply.holds("generation", "/metadata/generation", 2)?;
    let body = json!({"metadata": {"labels": null}, "spec": {"tags": null, "colour": null}});
    let reply = s.merge(&s.widget("a"), &body).await?;
    reply.holds("spec with its default", "/spec", json!({"size": 2, "colour": "red"}))?;
    reply.holds("labels", "/metadata/labels", Value::Null)
}

async fn no_op(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let body = json!({"spec": {"size": 1}, "metadata": {"labels": {}}});
    let reply = s.merge(&s.widget("a"), &body).await?;
    reply.holds(
        "version",
        "/metadata/resourceVersion",
        made.text("/metadata/resourceVersion"),
    )
}

async fn not_an_object(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.merge(&s.widget("a"), &json!([1])).await?;
    let message = "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
    reply.expect("answer", 400, "/message", message)
}

async fn versioned(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let body = json!({"metadata": {"resourceVersion": "1"}, "spec": {"size": 2}});
    let reply = s.merge(&s.widget("a"), &body).await?;
    reply.expect("old", 409, "/reason", "Conflict")?;
    let version = made.text("/metadata/resourceVersion");
    let body = json!({"metadata": {"resourceVersion": version}, "spec": {"size": 2}});
    let reply = s.merge(&s.widget("a"), &body).await?;
    reply.expect("current", 200, "/spec/size", 2)
}

async fn other_uid(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.merge(&s.widget("a"), &json!({"metadata": {"uid": "1"}})).await?;
    expect("code", reply.code, 422)?;
    let message =
        "Widget.conformance.metal3.io \"a\" is invalid: metadata.uid: Invalid value: \"1\": field is immutable";
    reply.holds("message", "/message", message)
}

async fn absent(s: Subject) -> CheckResult {
    let reply = s.merge(&s.widget("a"), &json!({"spec": {"size": 1}})).await?;
    reply.expect("answer", 404, "/reason", "NotFound")
}

async fn renames(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.merge(&s.widget("a"), &json!({"metadata": {"name": "q"}})).await?;
    let message = "the name of the object (q) does not match the name on the URL (a)";
    reply.expect("answer", 400, "/message", message)
}

async fn invalid(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s.merge(&s.widget("a"), &json!({"spec": {"size": "t"}})).await?;
    expect("code", reply.code, 422)?;
    let message = "Widget.conformance.metal3.io \"a\" is invalid: spec.size: Invalid value: \"string\": spec.size in body must \
                   be of type integer: \"string\"";
    reply.holds("message", "/message", message)
}

async fn steps(s: Subject) -> CheckResult {
    s.make("a").await?;
    let patch = json!([
        {"op": "add", "path": "/spec/tags", "value": ["e"]},
        {"op": "add", "path": "/spec/tags/-", "value": "f"},
        {"op": "copy", "from": "/spec/tags/0", "path": "/spec/tags/-"},
        {"op": "move", "from": "/spec/tags/1", "path": "/spec/tags/0"},
        {"op": "test", "path": "/spec/size", "value": 1},
        {"op": "replace", "path": "/spec/size", "value": 4},
        {"op": "remove", "path": "/spec/colour"},
        {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}},
        {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "d"},
    ]);
    let reply = s.json_patch(&s.widget("a"), &patch).await?;
    reply.holds(
        "spec",
        "/spec",
        json!({"size": 4, "colour": "red", "tags": ["f", "e", "e"]}),
    )?;
    reply.holds("annotations", "/metadata/annotations", json!({"a/b": "d"}))
}

async fn tests(s: Subject) -> CheckResult {
    let made = s.make("a").await?;
    let patch = json!([
        {"op": "replace", "path": "/spec/size", "value": 4},
        {"op": "test", "path": "/spec/colour", "value": "blue"},
    ]);
    let reply = s.json_patch(&s.widget("a"), &patch).await?;
    reply.expect("code", 422, "/reason", "Invalid")?;
    let message = "the server rejected our request due to an error in our request";
    reply.holds("message", "/message", message)?;
    let version = s.get(&s.widget("a")).await?.text("/metadata/resourceVersion");
    expect("version", version, made.text("/metadata/resourceVersion"))
}

async fn impossible(s: Subject) -> CheckResult {
    s.make("a").await?;
    for patch in [
        json!([{"op": "remove", "path": "/spec/nope"}]),
        json!([{"op": "add", "path": "/spec/tags/0", "value": "e"}]),
        json!([{"op": "frob", "path": "/spec"}]),
    ] {
        expect(
            &patch.to_string(),
            s.json_patch(&s.widget("a"), &patch).await?.code,
            422,
        )?;
    }
    let reply = s.json_patch(&s.widget("a"), &json!({"op": "x"})).await?;
    let message = "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
    reply.expect("an object", 400, "/message", message)
}

async fn status(s: Subject) -> CheckResult {
    s.make("a").await?;
    let patch = json!({"status": {"ready": true}, "spec": {"size": 7}, "metadata": {"labels": {"a": "b"}}});
    let reply = s.merge(&s.widget("a/status"), &patch).await?;
    reply.holds("status", "/status", json!({"ready": true}))?;
    reply.holds("spec", "/spec/size", 1)?;
    reply.holds("generation", "/metadata/generation", 1)?;
    let reply = s.merge(&s.widget("a"), &patch).await?;
    reply.holds("spec by the object's path", "/spec/size", 7)?;
    reply.holds("spec by the object's path", "/metadata/generation", 2)
}

async fn dry_run(s: Subject) -> CheckResult {
    s.make("a").await?;
    let reply = s
        .merge(&s.widget("a?dryRun=All"), &json!({"spec": {"size": 5}}))
        .await?;
    reply.expect("answer", 200, "/spec/size", 5)?;
    expect("stored", s.get(&s.widget("a")).await?.at("/spec/size"), json!(1))
}

async fn metadata(s: Subject) -> CheckResult {
    s.make("a").await?;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let body = json!({"spec": {"size": 5}}).to_string().into_bytes();
    let types = ("application/merge-patch+json", accept);
    let reply = s.send("PATCH", &s.widget("a"), types, body).await?;
    let seen = (reply.code, reply.text("/kind"), reply.at("/spec"));
    expect("answer", seen, (200, "PartialObjectMetadata".into(), Value::Null))?;
    expect("stored", s.get(&s.widget("a")).await?.at("/spec/size"), json!(5))
}

async fn unknown_type(s: Subject) -> CheckResult {
    s.make("a").await?;
    for media_type in ["application/strategic-merge-patch+json", "text/plain"] {
        let reply = s
            .send(
                "PATCH",
                &s.widget("a"),
                (media_type, "application/json"),
                b"{}".to_vec(),
            )
            .await?;
        reply.expect(media_type, 415, "/reason", "UnsupportedMediaType")?;
    }
    Ok(())
}
