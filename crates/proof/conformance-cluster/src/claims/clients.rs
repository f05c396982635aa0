//! Claims about what kubectl and clients in Go need: bodies in protobuf, strategic merge patches, reviews of access.

use serde_json::{Value, json};

use super::rows;
use crate::outcome::{CheckResult, Violation, expect};
use crate::subject::Reply;
use crate::{Claim, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "patch", "strategic", "lists of a built-in kind merge by their key, and new items come first" => keyed;
        "patch", "strategic", "items are deleted, and a list is replaced or ordered, by a directive" => directives;
        "patch", "strategic", "a set of values is extended and reduced" => set;
        "patch", "strategic", "other members of a map are removed by a list of the retained ones" => retained;
        "patch", "strategic", "an item without its merge key, and an unknown directive, are internal errors" => keyless;
        "patch", "strategic", "items that the list of the order does not have are an internal error" => disordered;
        "create", "protobuf", "a protobuf body of a built-in kind is accepted, and the answer is JSON on request" => binary;
        "create", "protobuf", "a body without the prefix of protobuf, or cut off, is rejected" => malformed;
        "delete", "protobuf", "options in protobuf have preconditions" => binary_options;
        "create", "access", "a client may ask whether it may do something" => access;
        "create", "access", "a question about no attributes is rejected" => pointless;
        "create", "access", "a client may ask who it is" => subject;
    }
}

const BINARY: &str = "application/vnd.kubernetes.protobuf";

/// The message of a kind: an envelope, and the fields of the object. Each part is shorter than 128 bytes.
fn message_of_kind(api_version: &str, kind: &str, fields: &[u8]) -> Vec<u8> {
    let named = [part(1, api_version.as_bytes()), part(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), part(1, &named), part(2, fields)].concat()
}

fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    [&[number << 3 | 2, length], bytes].concat()
}

/// A ConfigMap with the name `a` and one key.
fn config_map() -> Vec<u8> {
    let entry = [part(1, b"k"), part(2, b"v")].concat();
    let fields = [part(1, &part(1, b"a")), part(2, &entry)].concat();
    message_of_kind("v1", "ConfigMap", &fields)
}

async fn strategic(s: &Subject, path: &str, patch: &Value) -> Result<Reply, Violation> {
    let types = ("application/strategic-merge-patch+json", "application/json");
    s.send("PATCH", path, types, patch.to_string().into_bytes()).await
}

/// A Deployment with two containers.
async fn deployment(s: &Subject) -> Result<String, Violation> {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", s.namespace());
    let (labels, image) = (json!({"app": "a"}), "a:1");
    let containers = json!([{"name": "a", "image": image}, {"name": "b", "image": image}]);
    let body = json!({"metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    }});
    expect("created", s.post(&path, &body).await?.code, 201)?;
    Ok(format!("{path}/a"))
}

fn containers(reply: &Reply) -> Vec<String> {
    let list = reply.at("/spec/template/spec/containers");
    let text = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = list.as_array().into_iter().flatten();
    items
        .map(|item| format!("{} {}", text(item, "name"), text(item, "image")))
        .collect()
}

fn of_template(change: &Value) -> Value {
    json!({"spec": {"template": {"spec": change}}})
}

async fn keyed(s: Subject) -> CheckResult {
    let path = deployment(&s).await?;
    let change = json!({"containers": [{"name": "c", "image": "c:1"}, {"name": "b", "image": "b:2"}]});
    let reply = strategic(&s, &path, &of_template(&change)).await?;
    expect(
        "containers",
        containers(&reply).join(", "),
        "c c:1, a a:1, b b:2".to_owned(),
    )?;
    reply.holds("generation", "/metadata/generation", 2)
}

async fn directives(s: Subject) -> CheckResult {
    let path = deployment(&s).await?;
    let change = json!({
        "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
        "containers": [{"name": "a", "$patch": "delete"}, {"name": "c", "image": "c:1"}],
    });
    let reply = strategic(&s, &path, &of_template(&change)).await?;
    expect("ordered", containers(&reply).join(", "), "c c:1, b a:1".to_owned())?;
    let change = json!({"containers": [{"name": "d", "image": "d:1"}, {"$patch": "replace"}]});
    let reply = strategic(&s, &path, &of_template(&change)).await?;
    expect("replaced", containers(&reply).join(", "), "d d:1".to_owned())
}

async fn set(s: Subject) -> CheckResult {
    let body = json!({"metadata": {"name": "a", "finalizers": ["x.io/a", "x.io/b"]}, "data": {"k": "1", "l": "2"}});
    s.create("configmaps", body).await?;
    let path = s.core("configmaps/a");
    let patch = json!({
        "metadata": {"finalizers": ["x.io/c"], "$deleteFromPrimitiveList/finalizers": ["x.io/a"]},
        "data": {"k": null, "m": "3"},
    });
    let reply = strategic(&s, &path, &patch).await?;
    reply.expect("finalizers", 200, "/metadata/finalizers", json!(["x.io/c", "x.io/b"]))?;
    reply.holds("data", "/data", json!({"l": "2", "m": "3"}))?;
    let reply = strategic(&s, &path, &json!({"metadata": {"finalizers": null}})).await?;
    reply.expect("none", 200, "/metadata/finalizers", Value::Null)
}

async fn retained(s: Subject) -> CheckResult {
    let path = deployment(&s).await?;
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
    let reply = strategic(&s, &path, &json!({"spec": {"strategy": strategy}})).await?;
    reply.expect("strategy", 200, "/spec/strategy/rollingUpdate/maxSurge", 1)?;
    let strategy = json!({"$retainKeys": ["type"], "type": "Recreate"});
    let reply = strategic(&s, &path, &json!({"spec": {"strategy": strategy}})).await?;
    reply.expect("retained", 200, "/spec/strategy", json!({"type": "Recreate"}))?;
    let strategy = json!({"$retainKeys": ["rollingUpdate"], "type": "Recreate"});
    let reply = strategic(&s, &path, &json!({"spec": {"strategy": strategy}})).await?;
    reply.expect("not retained", 400, "/message", "invalid patch format of retainKeys")
}

async fn keyless(s: Subject) -> CheckResult {
    let path = deployment(&s).await?;
    let change = json!({"containers": [{"image": "c:1"}]});
    let reply = strategic(&s, &path, &of_template(&change)).await?;
    expect("code", reply.code, 500)?;
    let message = "map: map[image:c:1] does not contain declared merge key: name";
    reply.holds("message", "/message", message)?;
    let reply = strategic(&s, &path, &of_template(&json!({"$patch": "frob"}))).await?;
    let message = "unknown patch type: frob in map: map[$patch:frob]";
    reply.expect("directive", 500, "/message", message)
}

async fn disordered(s: Subject) -> CheckResult {
    let path = deployment(&s).await?;
    let change = json!({
        "$setElementOrder/containers": [{"name": "c"}],
        "containers": [{"name": "a", "$patch": "delete"}, {"name": "d"}],
    });
    let reply = strategic(&s, &path, &of_template(&change)).await?;
    let message = "The order in patch list:\n[map[$patch:delete name:a] map[name:d]]\n doesn't match $setElementOrder \
                   list:\n[map[name:c]]\n";
    reply.expect("answer", 500, "/message", message)
}

async fn binary(s: Subject) -> CheckResult {
    let types = (BINARY, "application/vnd.kubernetes.protobuf,application/json");
    let reply = s
        .send(
            "POST",
            &s.core("configmaps"),
            (types.0, "application/json"),
            config_map(),
        )
        .await?;
    reply.expect("data", 201, "/data", json!({"k": "v"}))?;
    let reply = s.send("POST", &s.core("configmaps"), types, config_map()).await?;
    expect("again", reply.code, 409)
}

async fn malformed(s: Subject) -> CheckResult {
    let types = (BINARY, "application/json");
    let reply = s.send("POST", &s.core("configmaps"), types, b"{}".to_vec()).await?;
    expect("code", reply.code, 400)?;
    let message = "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a \
                   protobuf message, expected prefix [107 56 115 0] ({})";
    reply.holds("message", "/message", message)?;
    let body = message_of_kind("v1", "ConfigMap", &[0x0a]);
    let reply = s.send("POST", &s.core("configmaps"), types, body).await?;
    let message = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF";
    reply.expect("cut", 400, "/message", message)
}

async fn binary_options(s: Subject) -> CheckResult {
    s.create("configmaps", json!({"metadata": {"name": "a"}})).await?;
    let path = s.core("configmaps/a");
    let options = |uid: &str| message_of_kind("v1", "DeleteOptions", &part(2, &part(1, uid.as_bytes())));
    let types = (BINARY, "application/json");
    let reply = s.send("DELETE", &path, types, options("other")).await?;
    reply.expect("another uid", 409, "/reason", "Conflict")?;
    let uid = s.get(&path).await?.text("/metadata/uid");
    expect(
        "its uid",
        s.send("DELETE", &path, types, options(&uid)).await?.code,
        200,
    )
}

const ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

async fn access(s: Subject) -> CheckResult {
    let attributes = json!({"verb": "create", "resource": "pods", "namespace": s.namespace()});
    let reply = s
        .post(ACCESS, &json!({"spec": {"resourceAttributes": attributes}}))
        .await?;
    reply.expect("answer", 201, "/status/allowed", true)?;
    reply.holds("kind", "/kind", "SelfSubjectAccessReview")?;
    reply.holds("question", "/spec/resourceAttributes/resource", "pods")
}

async fn pointless(s: Subject) -> CheckResult {
    let reply = s.post(ACCESS, &json!({"spec": {}})).await?;
    let message = ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: \
                   null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
    reply.expect("answer", 422, "/message", message)
}

async fn subject(s: Subject) -> CheckResult {
    let reply = s
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({}))
        .await?;
    reply.expect("answer", 201, "/kind", "SelfSubjectReview")?;
    expect("named", reply.text("/status/userInfo/username").is_empty(), false)
}
