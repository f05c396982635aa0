//! Claims about kinds that are part of Kubernetes.

use serde_json::{Value, json};

use super::{DEFINITION, DEFINITIONS, rows};
use crate::conformance::outcome::{Held, expect};
use crate::conformance::{Claim, Reply, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "kinds", "Namespace", "a namespace is active, labelled with its name and kept by a finalizer" => namespace;
        "kinds", "Namespace", "a namespace that is going takes no new objects" => terminating;
        "kinds", "Secret", "stringData goes into data, and the type cannot be changed" => secret;
        "kinds", "Secret", "Secrets are selected by type" => secret_type;
        "kinds", "ConfigMap", "an update without a version wins, a create does not need a type" => config_map;
        "kinds", "Lease", "a lease has no generation and conflicts by version" => lease;
        "kinds", "Node", "a node's status has its own path, which takes labels along" => node;
        "kinds", "Deployment", "the generation counts changes of the spec and not of the status" => deployment;
        "kinds", "Event", "an Event keeps what it is told and has no generation" => event;
        "kinds", "CustomResourceDefinition", "an installed kind is established and says what it stores" => definition;
    }
}

async fn namespace(s: Subject) -> Held {
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

async fn terminating(s: Subject) -> Held {
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

async fn make(s: &Subject, resource: &str, body: Value) -> Result<Reply, crate::conformance::Broken> {
    s.post(&s.core(resource), &body).await
}

async fn secret(s: Subject) -> Held {
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

async fn secret_type(s: Subject) -> Held {
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

async fn config_map(s: Subject) -> Held {
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

async fn lease(s: Subject) -> Held {
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

async fn node(s: Subject) -> Held {
    let name = format!("node-of-{}", s.namespace());
    let path = format!("/api/v1/nodes/{name}");
    let made = s.post("/api/v1/nodes", &json!({"metadata": {"name": name}})).await?;
    expect(
        "generation",
        (made.code, made.at("/metadata/generation")),
        (201, Value::Null),
    )?;
    let patch =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"providerID": "p"}, "status": {"phase": "Running"}});
    let reply = s.merge(&format!("{path}/status"), &patch).await?;
    expect(
        "status",
        (reply.code, reply.text("/status/phase")),
        (200, "Running".into()),
    )?;
    expect("label", reply.at("/metadata/labels/a"), json!("b"))?;
    expect("spec", reply.at("/spec/providerID"), Value::Null)?;
    let reply = s
        .merge(
            &path,
            &json!({"spec": {"providerID": "p"}, "status": {"phase": "Pending"}}),
        )
        .await?;
    expect("spec by the object's path", reply.text("/spec/providerID"), "p".into())?;
    expect(
        "status by the object's path",
        reply.text("/status/phase"),
        "Running".into(),
    )?;
    expect("deleted", s.delete(&path, &Value::Null).await?.code, 200)
}

async fn deployment(s: Subject) -> Held {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", s.namespace());
    let labels = json!({"app": "a"});
    let body = json!({
        "metadata": {"name": "a"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "a", "image": "a:1"}]},
            },
        },
    });
    let made = s.post(&path, &body).await?;
    expect("created", (made.code, made.at("/metadata/generation")), (201, json!(1)))?;
    let one = format!("{path}/a");
    let scaled = s
        .merge(&one, &json!({"spec": {"replicas": 2}, "status": {"replicas": 9}}))
        .await?;
    expect(
        "scaled",
        (scaled.code, scaled.at("/metadata/generation")),
        (200, json!(2)),
    )?;
    let status = s
        .merge(
            &format!("{one}/status"),
            &json!({"spec": {"replicas": 3}, "status": {"replicas": 2}}),
        )
        .await?;
    expect("status", (status.code, status.at("/status/replicas")), (200, json!(2)))?;
    expect(
        "spec and generation",
        (status.at("/spec/replicas"), status.at("/metadata/generation")),
        (json!(2), json!(2)),
    )
}

async fn event(s: Subject) -> Held {
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

async fn definition(s: Subject) -> Held {
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
