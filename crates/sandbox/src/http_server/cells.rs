//! The cells of built-in kinds, as the real server prints them.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

/// The value at a pointer, or null.
pub(super) fn member<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

/// The text at a pointer, or none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    member(object, pointer).as_str().unwrap_or_default()
}

/// A copy of the value at a pointer.
pub(super) fn kept(object: &Value, pointer: &str) -> Value {
    member(object, pointer).clone()
}

fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    member(object, pointer).as_array().into_iter().flatten()
}

fn list(texts: &[&str]) -> Value {
    json!(texts.join(","))
}

fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}

/// The number of members of maps.
pub(super) fn count(object: &Value, pointers: &[&str]) -> Value {
    let length = |pointer: &&str| member(object, pointer).as_object().map_or(0, serde_json::Map::len);
    json!(pointers.iter().map(length).sum::<usize>())
}

/// The time since a timestamp.
pub(super) fn age(timestamp: &Value, now: DateTime<Utc>) -> String {
    let then = timestamp
        .as_str()
        .and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    then.map_or_else(
        || "<unknown>".to_owned(),
        |then| super::table::age(now.signed_duration_since(then).num_seconds()),
    )
}

/// The time since an event was seen last.
pub(super) fn events_age(event: &Value, now: DateTime<Utc>) -> Value {
    let times = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/eventTime",
        "/firstTimestamp",
    ];
    let found = times.iter().map(|at| member(event, at)).find(|time| time.is_string());
    age(found.unwrap_or(&Value::Null), now).into()
}

/// The object of an event.
pub(super) fn object_of(event: &Value) -> Value {
    let kind = text(event, "/involvedObject/kind").to_lowercase();
    json!(format!("{kind}/{}", text(event, "/involvedObject/name")))
}

/// Names or images of the containers of a template.
pub(super) fn containers(object: &Value, name: &str) -> Value {
    let found = items(object, "/spec/template/spec/containers");
    let texts: Vec<&str> = found.filter_map(|one| one.get(name)?.as_str()).collect();
    list(&texts)
}

/// The labels of a selector.
pub(super) fn selector(selector: &Value) -> Value {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let pairs = labels.into_iter().flatten();
    let texts: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    or_none(&texts.join(","))
}

/// The ports of a Service.
pub(super) fn ports(service: &Value) -> Value {
    let shown = |port: &Value| {
        let node = port.get("nodePort").and_then(Value::as_i64).filter(|node| *node > 0);
        let node = node.map(|node| format!(":{node}")).unwrap_or_default();
        format!("{}{node}/{}", member(port, "/port"), text(port, "/protocol"))
    };
    let texts: Vec<String> = items(service, "/spec/ports").map(shown).collect();
    or_none(&texts.join(","))
}

/// The addresses by which others reach a Service.
pub(super) fn external_address(service: &Value) -> Value {
    match text(service, "/spec/type") {
        "ExternalName" => json!(text(service, "/spec/externalName")),
        "LoadBalancer" => {
            let found = items(service, "/status/loadBalancer/ingress");
            let texts: Vec<&str> = found.map(|one| text(one, "/ip")).collect();
            json!(if texts.is_empty() {
                "<pending>".to_owned()
            } else {
                texts.join(",")
            })
        }
        _ => or_none(""),
    }
}

/// Ready containers of all.
pub(super) fn pod_ready(pod: &Value) -> Value {
    let all = items(pod, "/spec/containers").count();
    let ready = items(pod, "/status/containerStatuses").filter(|one| one.get("ready") == Some(&json!(true)));
    json!(format!("{}/{all}", ready.count()))
}

/// The phase of a Pod, or that it is being deleted.
pub(super) fn pod(pod: &Value) -> Value {
    if member(pod, "/metadata/deletionTimestamp").is_string() {
        return json!("Terminating");
    }
    json!(text(pod, "/status/phase"))
}

/// Restarts of its containers.
pub(super) fn restarts(pod: &Value) -> Value {
    let each = items(pod, "/status/containerStatuses").filter_map(|one| one.get("restartCount")?.as_i64());
    json!(each.sum::<i64>().to_string())
}

/// The condition of a Node, and whether it takes Pods.
pub(super) fn node_status(node: &Value) -> Value {
    let mut conditions = items(node, "/status/conditions");
    let ready = conditions.find(|one| one.get("type") == Some(&json!("Ready")));
    let mut texts = vec![match ready.map(|ready| text(ready, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }];
    if member(node, "/spec/unschedulable") == &json!(true) {
        texts.push("SchedulingDisabled");
    }
    list(&texts)
}

/// The roles in the labels of a Node.
pub(super) fn roles(node: &Value) -> Value {
    let labels = member(node, "/metadata/labels").as_object();
    let named = labels.into_iter().flatten();
    let texts: Vec<&str> = named
        .filter_map(|(name, _)| name.strip_prefix("node-role.kubernetes.io/"))
        .collect();
    or_none(&texts.join(","))
}

/// An address of a Node.
pub(super) fn node_address(node: &Value, kind: &str) -> Value {
    let mut found = items(node, "/status/addresses").filter(|one| text(one, "/type") == kind);
    or_none(found.next().map(|one| text(one, "/address")).unwrap_or_default())
}

/// The subjects of a binding with a kind.
pub(super) fn subjects(binding: &Value, kind: &str) -> Value {
    let shown = |one: &Value| match text(one, "/namespace") {
        "" => text(one, "/name").to_owned(),
        namespace => format!("{namespace}/{}", text(one, "/name")),
    };
    let found = items(binding, "/subjects").filter(|one| text(one, "/kind") == kind);
    let texts: Vec<String> = found.map(shown).collect();
    json!(texts.join(", "))
}
