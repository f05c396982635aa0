//! Claims about built-in kinds.

use serde_json::{Value, json};

use super::{DEFINITION, DEFINITIONS, rows};
use crate::outcome::{CheckResult, expect};
use crate::{Claim, Reply, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "kinds", "Namespace", "a namespace is active, has its name as a label and a finalizer" => namespace;
        "kinds", "Namespace", "a terminating namespace accepts no new objects" => terminating;
        "kinds", "Secret", "stringData is merged into data, and the type is immutable" => secret;
        "kinds", "Secret", "a field selector selects Secrets by type" => secret_type;
        "kinds", "ConfigMap", "an update without a version succeeds, and a create does not need a type" => config_map;
        "kinds", "ConfigMap", "data of another type is rejected, and unknown fields are dropped with a warning" => decoded;
        "kinds", "ConfigMap", "a key has letters, digits, '-', '_' and '.', and immutable data cannot change" => data_rules;
        "kinds", "ConfigMap", "an applier owns the applied fields" => applied_map;
        "kinds", "Secret", "the creator owns data and type" => secret_owner;
        "kinds", "Lease", "the creator owns the set fields of the spec" => lease_owner;
        "kinds", "Lease", "a lease has no generation and conflicts by version" => lease;
        "kinds", "Event", "an Event is in the namespace of the involved object" => event_elsewhere;
        "kinds", "Event", "an Event keeps its fields and has no generation" => event;
        "kinds", "CustomResourceDefinition", "an installed kind is established and lists its stored versions" => definition;
    }
}

async fn namespace(s: Subject) -> CheckResult {
    let reply = s.get(&format!("/api/v1/namespaces/{}", s.namespace())).await?;
    expect("phase", reply.text("/status/phase"), "Active".into())?;
    expect("finalizers", reply.at("/spec/finalizers"), json!(["kubernetes"]))?;
    expect(
        "label",
        reply.at("/metadata/labels"),
        json!({"kubernetes.io/metadata.name": s.namespace()}),
    )?;
    expect("generation", reply.at("/metadata/generation"), Value::Null)
}

async fn terminating(s: Subject) -> CheckResult {
    let reply = s
        .delete(&format!("/api/v1/namespaces/{}", s.namespace()), &Value::Null)
        .await?;
    expect(
        "phase",
        (reply.code, reply.text("/status/phase")),
        (200, "Terminating".into()),
    )?;
    let reply = make(&s, "configmaps", json!({"metadata": {"name": "a"}})).await?;
    expect("code", reply.code, 403)?;
    let message = format!(
        "configmaps \"a\" is forbidden: unable to create new content in namespace {} because it is being terminated",
        s.namespace()
    );
    expect("message", reply.text("/message"), message)?;
    expect(
        "cause",
        reply.text("/details/causes/0/reason"),
        "NamespaceTerminating".into(),
    )
}

async fn make(s: &Subject, resource: &str, body: Value) -> Result<Reply, crate::Violation> {
    s.post(&s.core(resource), &body).await
}

async fn secret(s: Subject) -> CheckResult {
    let reply = make(
        &s,
        "secrets",
        json!({"metadata": {"name": "a"}, "stringData": {"k": "b"}}),
    )
    .await?;
    expect("data", (reply.code, reply.at("/data")), (201, json!({"k": "Yg=="})))?;
    expect(
        "type",
        (reply.text("/type"), reply.text("/kind")),
        ("Opaque".into(), "Secret".into()),
    )?;
    let reply = s.merge(&s.core("secrets/a"), &json!({"type": "x"})).await?;
    let message = "Secret \"a\" is invalid: type: Invalid value: \"x\": field is immutable";
    expect("change", (reply.code, reply.text("/message")), (422, message.into()))
}

async fn secret_type(s: Subject) -> CheckResult {
    make(&s, "secrets", json!({"metadata": {"name": "a"}})).await?;
    make(
        &s,
        "secrets",
        json!({"metadata": {"name": "b"}, "type": "cluster.x-k8s.io/secret"}),
    )
    .await?;
    let list = s
        .get(&s.core("secrets?fieldSelector=type%3Dcluster.x-k8s.io/secret"))
        .await?;
    expect("names", list.names().join(" "), "b".into())
}

async fn config_map(s: Subject) -> CheckResult {
    let reply = make(&s, "configmaps", json!({"metadata": {"name": "a"}, "data": {"k": "1"}})).await?;
    expect("kind", (reply.code, reply.text("/kind")), (201, "ConfigMap".into()))?;
    let reply = s
        .put(
            &s.core("configmaps/a"),
            &json!({"metadata": {"name": "a"}, "data": {"k": "2"}}),
        )
        .await?;
    expect("data", (reply.code, reply.at("/data/k")), (200, json!("2")))?;
    let reply = s
        .put(&s.core("configmaps/b"), &json!({"metadata": {"name": "b"}}))
        .await?;
    let message = "configmaps \"b\" not found";
    expect("absent", (reply.code, reply.text("/message")), (404, message.into()))
}

async fn lease(s: Subject) -> CheckResult {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", s.namespace());
    let made = s
        .post(
            &path,
            &json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}}),
        )
        .await?;
    expect(
        "generation",
        (made.code, made.at("/metadata/generation")),
        (201, Value::Null),
    )?;
    let one = format!("{path}/a");
    expect("first", s.put(&one, &with_holder(&made.body, "y")).await?.code, 200)?;
    let reply = s.put(&one, &with_holder(&made.body, "z")).await?;
    expect(
        "second",
        (reply.code, reply.text("/details/kind")),
        (409, "leases".into()),
    )
}

fn with_holder(lease: &Value, holder: &str) -> Value {
    let mut lease = lease.clone();
    if let Some(spec) = lease.get_mut("spec") {
        *spec = json!({"holderIdentity": holder});
    }
    lease
}

async fn event(s: Subject) -> CheckResult {
    let body = json!({
        "metadata": {"name": "a"},
        "involvedObject": {"kind": "ConfigMap", "namespace": s.namespace(), "name": "b"},
        "reason": "Seen", "message": "it was seen", "type": "Normal", "count": 1,
    });
    let made = make(&s, "events", body).await?;
    expect(
        "created",
        (made.code, made.at("/metadata/generation")),
        (201, Value::Null),
    )?;
    let again = s.merge(&s.core("events/a"), &json!({"count": 2})).await?;
    expect("counted", (again.code, again.at("/count")), (200, json!(2)))?;
    expect(
        "kept",
        (again.text("/reason"), again.text("/involvedObject/name")),
        ("Seen".into(), "b".into()),
    )
}

async fn definition(s: Subject) -> CheckResult {
    let reply = s.get(&format!("{DEFINITIONS}/{DEFINITION}")).await?;
    expect("stored", reply.at("/status/storedVersions"), json!(["v1"]))?;
    let conditions = reply.at("/status/conditions");
    let types = conditions.as_array().into_iter().flatten();
    let mut types: Vec<String> = types
        .filter(|condition| condition.get("status") == Some(&json!("True")))
        .filter_map(|condition| condition.get("type").and_then(Value::as_str).map(str::to_owned))
        .collect();
    types.sort();
    expect("conditions", types.join(" "), "Established NamesAccepted".into())
}

async fn decoded(s: Subject) -> CheckResult {
    let reply = make(&s, "configmaps", json!({"metadata": {"name": "a"}, "data": {"k": 1}})).await?;
    expect("code", (reply.code, reply.text("/reason")), (400, "BadRequest".into()))?;
    let message = reply.text("/message");
    let prefix = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: ";
    expect(&message, message.starts_with(prefix), true)?;
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "v"}, "nope": {"b": 1}});
    let reply = make(&s, "configmaps", body).await?;
    expect("unknown", (reply.code, reply.at("/nope")), (201, Value::Null))?;
    expect(
        "warning",
        reply.warnings.join(";"),
        "299 - \"unknown field \\\"nope\\\"\"".to_owned(),
    )
}

async fn data_rules(s: Subject) -> CheckResult {
    let reply = make(
        &s,
        "configmaps",
        json!({"metadata": {"name": "a"}, "data": {"bad key": "v"}}),
    )
    .await?;
    expect(
        "key",
        (reply.code, reply.text("/details/causes/0/field")),
        (422, "data[bad key]".into()),
    )?;
    let body = json!({"metadata": {"name": "a"}, "immutable": true, "data": {}});
    let reply = make(&s, "configmaps", body).await?;
    expect("empty data", (reply.code, reply.at("/data")), (201, Value::Null))?;
    let reply = s.merge(&s.core("configmaps/a"), &json!({"data": {"k": "v"}})).await?;
    let message = "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set";
    expect("immutable", (reply.code, reply.text("/message")), (422, message.into()))
}

async fn applied_map(s: Subject) -> CheckResult {
    let desired =
        |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
    let path = s.core("configmaps/a");
    let reply = s.apply(&path, "kubectl", &desired("v")).await?;
    expect("created", (reply.code, reply.at("/data/k")), (201, json!("v")))?;
    let owned = json!({"f:data": {"f:k": {}}});
    expect("owned", reply.at("/metadata/managedFields/0/fieldsV1"), owned)?;
    let reply = s.apply(&path, "kubectl", &desired("w")).await?;
    expect("changed", (reply.code, reply.at("/data/k")), (200, json!("w")))?;
    let reply = s.apply(&path, "other", &desired("x")).await?;
    let message = "Apply failed with 1 conflict: conflict with \"kubectl\": .data.k";
    expect("conflict", (reply.code, reply.text("/message")), (409, message.into()))
}

async fn secret_owner(s: Subject) -> CheckResult {
    let reply = make(
        &s,
        "secrets",
        json!({"metadata": {"name": "a"}, "stringData": {"k": "b"}}),
    )
    .await?;
    let owned = json!({"f:data": {".": {}, "f:k": {}}, "f:type": {}});
    expect("owned", reply.at("/metadata/managedFields/0/fieldsV1"), owned)
}

async fn lease_owner(s: Subject) -> CheckResult {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", s.namespace());
    let body = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}});
    let reply = s.post(&path, &body).await?;
    let owned = json!({"f:spec": {"f:holderIdentity": {}, "f:leaseDurationSeconds": {}}});
    expect("owned", reply.at("/metadata/managedFields/0/fieldsV1"), owned)
}

async fn event_elsewhere(s: Subject) -> CheckResult {
    let body = json!({"metadata": {"name": "a"}, "involvedObject": {"kind": "A", "namespace": "other", "name": "b"}});
    let reply = make(&s, "events", body).await?;
    let message =
        "Event \"a\" is invalid: involvedObject.namespace: Invalid value: \"other\": does not match event.namespace";
    expect("answer", (reply.code, reply.text("/message")), (422, message.into()))
}
