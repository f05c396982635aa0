//! Claims about decoding built-in kinds: bytes, strings, times, numbers and selectors.

use serde_json::{Value, json};

use super::rows;
use crate::outcome::{CheckResult, Violation, expect};
use crate::{Claim, Reply, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "kinds", "Secret", "stringData has strings, null is the empty string; other values are rejected" => string_data;
        "kinds", "Secret", "data is base64 and becomes canonical; other values are rejected" => secret_bytes;
        "kinds", "Secret", "a patch and an apply to an invalid Secret are rejected with different errors" => secret_patch;
        "kinds", "ConfigMap", "binaryData is base64 without keys of data, and null is empty" => binary_data;
        "kinds", "Lease", "times have six digits after the seconds and are shown in UTC" => lease_times;
        "kinds", "Lease", "numbers are integers, the duration is at least 1, transitions at least 0" => lease_numbers;
        "kinds", "Deployment", "the expressions of a selector must match, and an empty selector is rejected" => expressions;
        "kinds", "Deployment", "an invalid expression is rejected" => senseless;
    }
}

/// Expects a decoding error with this prefix.
fn expect_decoding_error(what: &str, reply: &Reply, kind: &str, why: &str) -> CheckResult {
    let prefix = format!("{kind} in version \"v1\" cannot be handled as a {kind}: {why}");
    let message = reply.text("/message");
    let seen = (reply.code, reply.text("/reason"), message.starts_with(&prefix));
    expect(&format!("{what}: {message}"), seen, (400, "BadRequest".into(), true))
}

async fn secret_of(s: &Subject, name: &str, rest: &Value) -> Result<Reply, Violation> {
    let mut body = json!({"metadata": {"name": name}});
    if let (Value::Object(body), Value::Object(rest)) = (&mut body, rest) {
        body.extend(rest.clone());
    }
    s.post(&s.core("secrets"), &body).await
}

async fn string_data(s: Subject) -> CheckResult {
    for wrong in [
        json!({"k": 1}),
        json!({"k": true}),
        json!({"k": {}}),
        json!("x"),
        json!([]),
    ] {
        let reply = secret_of(&s, "a", &json!({"stringData": wrong})).await?;
        expect_decoding_error(&wrong.to_string(), &reply, "Secret", "json: ")?;
    }
    let rest = json!({"data": {"k": "YQ==", "m": "YQ=="}, "stringData": {"k": "b", "l": null}, "type": ""});
    let reply = secret_of(&s, "a", &rest).await?;
    let data = json!({"k": "Yg==", "l": "", "m": "YQ=="});
    expect(
        "made",
        (reply.code, reply.at("/data"), reply.text("/type")),
        (201, data, "Opaque".into()),
    )
}

async fn secret_bytes(s: Subject) -> CheckResult {
    for wrong in ["!!", "YQ", "Y Q==", "YQ=", "Y-8="] {
        let reply = secret_of(&s, "a", &json!({"data": {"k": wrong}})).await?;
        expect_decoding_error(wrong, &reply, "Secret", "illegal base64 data")?;
    }
    let reply = secret_of(&s, "a", &json!({"data": {"k": 1}})).await?;
    expect_decoding_error("number", &reply, "Secret", "json: ")?;
    let given = json!({"data": {"a": "YR==", "b": "YQ\n==", "c": "", "d": null, "e": "YQ=="}});
    let reply = secret_of(&s, "a", &given).await?;
    let data = json!({"a": "YQ==", "b": "YQ==", "c": "", "d": "", "e": "YQ=="});
    reply.expect("made", 201, "/data", data)?;
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "!"}});
    let reply = s.put(&s.core("secrets/a"), &body).await?;
    expect_decoding_error("replaced", &reply, "Secret", "illegal base64 data")
}

async fn secret_patch(s: Subject) -> CheckResult {
    secret_of(&s, "a", &json!({"data": {"k": "YQ=="}})).await?;
    let path = s.core("secrets/a");
    for wrong in [
        json!({"data": {"k": "!"}}),
        json!({"data": {"k": 1}}),
        json!({"stringData": {"k": 1}}),
    ] {
        let reply = s.merge(&path, &wrong).await?;
        let seen = (reply.code, reply.text("/reason"), reply.at("/details/causes/0/field"));
        expect(&wrong.to_string(), seen, (422, "Invalid".into(), json!("patch")))?;
    }
    let config = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
    for name in ["a", "b"] {
        let reply = s
            .apply(
                &s.core(&format!("secrets/{name}")),
                "m",
                &config(name, json!({"z": "!"})),
            )
            .await?;
        let message = reply.text("/message");
        let prefix = format!(
            "failed to convert new object (/{name}; /v1, Kind=Secret) to proper version: unable to convert unstructured \
             object to /v1, Kind=Secret: error decoding from json: illegal base64 data"
        );
        expect(&message, (reply.code, message.starts_with(&prefix)), (500, true))?;
    }
    let reply = s.apply(&path, "m", &config("a", json!({"z": 1}))).await?;
    let message = reply.text("/message");
    let prefix = "failed to create typed patch object (/a; /v1, Kind=Secret): .data.z: expected string";
    expect(&message, (reply.code, message.starts_with(prefix)), (500, true))?;
    let reply = s.apply(&path, "m", &config("a", json!({"z": null}))).await?;
    reply.expect("null", 200, "/data", json!({"k": "YQ==", "z": ""}))
}

async fn binary_data(s: Subject) -> CheckResult {
    let make = |rest: Value| {
        let mut body = json!({"metadata": {"name": "a"}});
        if let (Value::Object(body), Value::Object(rest)) = (&mut body, rest) {
            body.extend(rest);
        }
        let (s, path) = (s.clone(), s.core("configmaps"));
        async move { s.post(&path, &body).await }
    };
    let reply = make(json!({"binaryData": {"k": "!!"}})).await?;
    expect_decoding_error("bytes", &reply, "ConfigMap", "illegal base64 data")?;
    let reply = make(json!({"data": {"k": "a"}, "binaryData": {"k": "YQ=="}})).await?;
    let message = "ConfigMap \"a\" is invalid: data[k]: Invalid value: \"k\": duplicate of key present in binaryData";
    reply.expect("twice", 422, "/message", message)?;
    let reply = make(json!({"data": {"k": null}, "binaryData": {"l": "YR==", "m": null}})).await?;
    let seen = (reply.code, reply.at("/data"), reply.at("/binaryData"));
    expect("made", seen, (201, json!({"k": ""}), json!({"l": "YQ==", "m": ""})))
}

async fn lease_of(s: &Subject, name: &str, spec: &Value) -> Result<Reply, Violation> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", s.namespace());
    s.post(&path, &json!({"metadata": {"name": name}, "spec": spec})).await
}

async fn lease_times(s: Subject) -> CheckResult {
    for wrong in [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.123Z",
        "2026-01-01T00:00:00.123456789Z",
        "2026-01-01 00:00:00.123456Z",
        "2026-01-01t00:00:00.123456z",
        "2026-02-30T00:00:00.123456Z",
        "2026-01-01T00:00:60.123456Z",
        "2026-01-01T00:00:00.123456+0100",
        "",
    ] {
        let reply = lease_of(&s, "a", &json!({"renewTime": wrong})).await?;
        expect_decoding_error(wrong, &reply, "Lease", &format!("parsing time {wrong:?}"))?;
    }
    let spec = json!({"acquireTime": "2026-01-01T00:00:00.123456+01:00", "renewTime": null, "holderIdentity": ""});
    let reply = lease_of(&s, "a", &spec).await?;
    let read = json!({"acquireTime": "2025-12-31T23:00:00.123456Z", "holderIdentity": ""});
    reply.expect("made", 201, "/spec", read)?;
    let reply = lease_of(&s, "b", &Value::Null).await?;
    reply.expect("an empty spec", 201, "/spec", json!({}))
}

async fn lease_numbers(s: Subject) -> CheckResult {
    for wrong in [json!(1.5), json!("15"), json!(99_999_999_999_i64)] {
        let reply = lease_of(&s, "a", &json!({"leaseDurationSeconds": wrong})).await?;
        expect_decoding_error(&wrong.to_string(), &reply, "Lease", "json: ")?;
    }
    let reply = lease_of(&s, "a", &json!({"leaseDurationSeconds": 0})).await?;
    let prefix = "Lease.coordination.k8s.io \"a\" is invalid: spec.";
    let message = format!("{prefix}leaseDurationSeconds: Invalid value: 0: must be greater than 0");
    reply.expect("duration", 422, "/message", message)?;
    let reply = lease_of(&s, "a", &json!({"leaseTransitions": -1})).await?;
    let message = format!("{prefix}leaseTransitions: Invalid value: -1: must be greater than or equal to 0");
    reply.expect("transitions", 422, "/message", message)
}

async fn deployment_of(s: &Subject, selector: &Value) -> Result<Reply, Violation> {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments?dryRun=All", s.namespace());
    let template =
        json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}});
    let spec = json!({"selector": selector, "template": template});
    s.post(&path, &json!({"metadata": {"name": "a"}, "spec": spec})).await
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
}

async fn expressions(s: Subject) -> CheckResult {
    for fits in [
        expression("app", "In", &["a", "b"]),
        expression("app", "NotIn", &["b"]),
        expression("x", "NotIn", &["b"]),
        expression("app", "Exists", &[]),
        expression("x", "DoesNotExist", &[]),
    ] {
        expect(&fits.to_string(), deployment_of(&s, &fits).await?.code, 201)?;
    }
    let mut both = expression("app", "In", &["b"]);
    if let Value::Object(map) = &mut both {
        map.insert("matchLabels".to_owned(), json!({"app": "a"}));
    }
    for other in [
        both,
        expression("app", "In", &["b"]),
        expression("app", "NotIn", &["a"]),
        expression("x", "Exists", &[]),
        expression("app", "DoesNotExist", &[]),
    ] {
        let reply = deployment_of(&s, &other).await?;
        let message = "Deployment.apps \"a\" is invalid: spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: \
                       `selector` does not match template `labels`";
        reply.expect(&other.to_string(), 422, "/message", message)?;
    }
    for empty in [
        json!({}),
        json!({"matchLabels": null}),
        json!({"matchLabels": {}, "matchExpressions": []}),
    ] {
        let reply = deployment_of(&s, &empty).await?;
        let message = "Deployment.apps \"a\" is invalid: spec.selector: Invalid value: {}: empty selector is invalid for \
                       deployment";
        reply.expect(&empty.to_string(), 422, "/message", message)?;
    }
    Ok(())
}

async fn senseless(s: Subject) -> CheckResult {
    for (selector, field, why) in [
        (
            expression("app", "Gt", &["1"]),
            "operator",
            "Invalid value: \"Gt\": not a valid selector operator",
        ),
        (
            expression("app", "In", &[]),
            "values",
            "Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            expression("app", "Exists", &["a"]),
            "values",
            "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
    ] {
        let reply = deployment_of(&s, &selector).await?;
        let cause = (
            reply.text("/details/causes/0/field"),
            reply.text("/details/causes/0/message"),
        );
        let expected = (format!("spec.selector.matchExpressions[0].{field}"), why.to_owned());
        expect(&selector.to_string(), (reply.code, cause), (422, expected))?;
        let also = (reply.text("/details/causes/1/field"), reply.at("/details/causes/2"));
        expect("the whole selector", also, ("spec.selector".into(), Value::Null))?;
    }
    Ok(())
}
