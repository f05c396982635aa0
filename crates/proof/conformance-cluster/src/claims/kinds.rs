//! Claims about built-in kinds.

use serde_json::{Value, json};

use super::{DEFINITION, DEFINITIONS, rows};
use crate::outcome::{CheckResult, expect};
use crate::{Claim, Subject};

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
    reply.holds("phase", "/status/phase", "Active")?;
    reply.holds("finalizers", "/spec/finalizers", json!(["kubernetes"]))?;
    reply.holds(
        "label",
        "/metadata/labels",
        json!({"kubernetes.io/metadata.name": s.namespace()}),
    )?;
    reply.holds("generation", "/metadata/generation", Value::Null)
}

async fn terminating(s: Subject) -> CheckResult {
    let reply = s
        .delete(&format!("/api/v1/namespaces/{}", s.namespace()), &Value::Null)
        .await?;
    reply.expect("phase", 200, "/status/phase", "Terminating")?;
    let reply = s.create("configmaps", json!({"metadata": {"name": "a"}})).await?;
    expect("code", reply.code, 403)?;
    let message = format!(
        "configmaps \"a\" is forbidden: unable to create new content in namespace {} because it is being terminated",
        s.namespace()
    );
    reply.holds("message", "/message", message)?;
    reply.holds("cause", "/details/causes/0/reason", "NamespaceTerminating")
}

async fn secret(s: Subject) -> CheckResult {
    let body = json!({"metadata": {"name": "a"}, "stringData": {"k": "b"}});
    let reply = s.create("secrets", body).await?;
    reply.expect("data", 201, "/data", json!({"k": "Yg=="}))?;
    reply.holds("type", "/type", "Opaque")?;
    reply.holds("type", "/kind", "Secret")?;
    let reply = s.merge(&s.core("secrets/a"), &json!({"type": "x"})).await?;
    let message = "Secret \"a\" is invalid: type: Invalid value: \"x\": field is immutable";
    reply.expect("change", 422, "/message", message)
}

async fn secret_type(s: Subject) -> CheckResult {
    s.create("secrets", json!({"metadata": {"name": "a"}})).await?;
    let body = json!({"metadata": {"name": "b"}, "type": "cluster.x-k8s.io/secret"});
    s.create("secrets", body).await?;
    let list = s
        .get(&s.core("secrets?fieldSelector=type%3Dcluster.x-k8s.io/secret"))
        .await?;
    expect("names", list.names().join(" "), "b".into())
}

async fn config_map(s: Subject) -> CheckResult {
    let reply = s
        .create("configmaps", json!({"metadata": {"name": "a"}, "data": {"k": "1"}}))
        .await?;
    reply.expect("kind", 201, "/kind", "ConfigMap")?;
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "2"}});
    let reply = s.put(&s.core("configmaps/a"), &body).await?;
    reply.expect("data", 200, "/data/k", "2")?;
    let reply = s
        .put(&s.core("configmaps/b"), &json!({"metadata": {"name": "b"}}))
        .await?;
    let message = "configmaps \"b\" not found";
    reply.expect("absent", 404, "/message", message)
}

async fn lease(s: Subject) -> CheckResult {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", s.namespace());
    let made = s
        .post(
            &path,
            &json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}}),
        )
        .await?;
    made.expect("generation", 201, "/metadata/generation", Value::Null)?;
    let one = format!("{path}/a");
    expect("first", s.put(&one, &with_holder(&made.body, "y")).await?.code, 200)?;
    let reply = s.put(&one, &with_holder(&made.body, "z")).await?;
    reply.expect("second", 409, "/details/kind", "leases")
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
    let made = s.create("events", body).await?;
    made.expect("created", 201, "/metadata/generation", Value::Null)?;
    let again = s.merge(&s.core("events/a"), &json!({"count": 2})).await?;
    again.expect("counted", 200, "/count", 2)?;
    again.holds("kept", "/reason", "Seen")?;
    again.holds("kept", "/involvedObject/name", "b")
}

async fn definition(s: Subject) -> CheckResult {
    let reply = s.get(&format!("{DEFINITIONS}/{DEFINITION}")).await?;
    reply.holds("stored", "/status/storedVersions", json!(["v1"]))?;
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
    let reply = s
        .create("configmaps", json!({"metadata": {"name": "a"}, "data": {"k": 1}}))
        .await?;
    reply.expect("code", 400, "/reason", "BadRequest")?;
    let message = reply.text("/message");
    let prefix = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: ";
    expect(&message, message.starts_with(prefix), true)?;
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "v"}, "nope": {"b": 1}});
    let reply = s.create("configmaps", body).await?;
    reply.expect("unknown", 201, "/nope", Value::Null)?;
    expect(
        "warning",
        reply.warnings.join(";"),
        "299 - \"unknown field \\\"nope\\\"\"".to_owned(),
    )
}

async fn data_rules(s: Subject) -> CheckResult {
    let reply = s
        .create(
            "configmaps",
            json!({"metadata": {"name": "a"}, "data": {"bad key": "v"}}),
        )
        .await?;
    reply.expect("key", 422, "/details/causes/0/field", "data[bad key]")?;
    let body = json!({"metadata": {"name": "a"}, "immutable": true, "data": {}});
    let reply = s.create("configmaps", body).await?;
    reply.expect("empty data", 201, "/data", Value::Null)?;
    let reply = s.merge(&s.core("configmaps/a"), &json!({"data": {"k": "v"}})).await?;
    let message = "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set";
    reply.expect("immutable", 422, "/message", message)
}

async fn applied_map(s: Subject) -> CheckResult {
    let desired =
        |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
    let path = s.core("configmaps/a");
    let reply = s.apply(&path, "kubectl", &desired("v")).await?;
    reply.expect("created", 201, "/data/k", "v")?;
    let owned = json!({"f:data": {"f:k": {}}});
    reply.holds("owned", "/metadata/managedFields/0/fieldsV1", owned)?;
    let reply = s.apply(&path, "kubectl", &desired("w")).await?;
    reply.expect("changed", 200, "/data/k", "w")?;
    let reply = s.apply(&path, "other", &desired("x")).await?;
    let message = "Apply failed with 1 conflict: conflict with \"kubectl\": .data.k";
    reply.expect("conflict", 409, "/message", message)
}

async fn secret_owner(s: Subject) -> CheckResult {
    let body = json!({"metadata": {"name": "a"}, "stringData": {"k": "b"}});
    let reply = s.create("secrets", body).await?;
    let owned = json!({"f:data": {".": {}, "f:k": {}}, "f:type": {}});
    reply.holds("owned", "/metadata/managedFields/0/fieldsV1", owned)
}

async fn lease_owner(s: Subject) -> CheckResult {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", s.namespace());
    let body = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}});
    let reply = s.post(&path, &body).await?;
    let owned = json!({"f:spec": {"f:holderIdentity": {}, "f:leaseDurationSeconds": {}}});
    reply.holds("owned", "/metadata/managedFields/0/fieldsV1", owned)
}

async fn event_elsewhere(s: Subject) -> CheckResult {
    let body = json!({"metadata": {"name": "a"}, "involvedObject": {"kind": "A", "namespace": "other", "name": "b"}});
    let reply = s.create("events", body).await?;
    let message =
        "Event \"a\" is invalid: involvedObject.namespace: Invalid value: \"other\": does not match event.namespace";
    reply.expect("answer", 422, "/message", message)
}
