//! Defaults and rules of Namespaces, Services, role bindings, limits, and the other kinds that run Pods.

use metal3_schema::FieldError;
use serde_json::{Map, Value, json};

use super::{default, items};
use crate::store::object::{self, as_map};

const RBAC: &str = "rbac.authorization.k8s.io";
/// The label with the name of a Namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Sets the defaults that a kind has, also of parts that an update adds.
pub(super) fn fill(kind: &str, body: &mut Value) {
    match kind {
        "Namespace" => {
            let name = object::text(body, "name").to_owned();
            if !name.is_empty() {
                let metadata = as_map(as_map(body).entry("metadata").or_insert(Value::Null));
                as_map(metadata.entry("labels").or_insert(Value::Null)).insert(NAME_LABEL.to_owned(), name.into());
            }
        }
        "Service" => service(as_map(as_map(body).entry("spec").or_insert(Value::Null))),
        "RoleBinding" | "ClusterRoleBinding" => {
            if let Some(role) = body.get_mut("roleRef") {
                default(as_map(role), &[("apiGroup", json!(RBAC))]);
            }
            for subject in items(body, "subjects") {
                if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
                    default(as_map(subject), &[("apiGroup", json!(RBAC))]);
                }
            }
        }
        "LimitRange" => {
            let limits = body.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
            limits.into_iter().flatten().for_each(limit);
        }
        _ => {}
    }
}

fn service(spec: &mut Map<String, Value>) {
    default(
        spec,
        &[("type", json!("ClusterIP")), ("sessionAffinity", json!("None"))],
    );
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let port = as_map(port);
        let number = port.get("port").cloned().unwrap_or_default();
        default(port, &[("protocol", json!("TCP")), ("targetPort", number)]);
    }
    if spec.get("sessionAffinity") == Some(&json!("ClientIP")) {
        default(
            spec,
            &[(
                "sessionAffinityConfig",
                json!({ "clientIP": { "timeoutSeconds": 10_800 } }),
            )],
        );
    }
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind != "ExternalName" {
        default(spec, &[("internalTrafficPolicy", json!("Cluster"))]);
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        default(spec, &[("externalTrafficPolicy", json!("Cluster"))]);
    }
    if kind == "LoadBalancer" {
        default(spec, &[("allocateLoadBalancerNodePorts", json!(true))]);
    }
}

/// The limits of a container: what is not given follows from the others.
fn limit(item: &mut Value) {
    if item.get("type") != Some(&json!("Container")) {
        return;
    }
    let item = as_map(item);
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let given = item.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
        if !given.is_empty() {
            let target = as_map(item.entry(to).or_insert(Value::Null));
            for (name, value) in given {
                target.entry(name).or_insert(value);
            }
        }
    }
}

/// What an update of a kind cannot change, whatever it says.
pub(super) fn keep(kind: &str, old: &Value, new: &mut Value) {
    let names: &[&str] = match kind {
        "Namespace" => &["finalizers"],
        "Service" => &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"],
        _ => return,
    };
    let spec = as_map(as_map(new).entry("spec").or_insert(Value::Null));
    if spec.get("type") == Some(&json!("ExternalName")) {
        return;
    }
    for name in names {
        let before = old.get("spec").and_then(|spec| spec.get(*name));
        let is_fixed = kind == "Namespace" || !spec.contains_key(*name);
        if let Some(value) = before.filter(|_| is_fixed) {
            spec.insert((*name).to_owned(), value.clone());
        }
    }
}

/// Errors of these kinds.
pub(super) fn errors(kind: &str, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match kind {
        "Service" => ports(new),
        "RoleBinding" | "ClusterRoleBinding" => {
            let changed = old.is_some_and(|old| old.get("roleRef") != new.get("roleRef"));
            changed.then(|| other_role(new)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn other_role(binding: &Value) -> FieldError {
    let text = |name: &str| {
        binding
            .pointer(&format!("/roleRef/{name}"))
            .cloned()
            .unwrap_or_default()
    };
    let shown = json!({ "APIGroup": text("apiGroup"), "Kind": text("kind"), "Name": text("name") });
    FieldError::invalid("roleRef", shown, "cannot change roleRef")
}

/// Errors of ports that no server can listen on, and of several ports without names.
fn ports(service: &Value) -> Vec<FieldError> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    let ports = ports.map(Vec::as_slice).unwrap_or_default();
    let detail = "must be between 1 and 65535, inclusive";
    let mut errors = Vec::new();
    for (number, port) in ports.iter().enumerate() {
        let at = |name: &str| format!("spec.ports[{number}].{name}");
        if ports.len() > 1 && port.get("name").is_none_or(|name| name == "") {
            errors.push(FieldError::required(at("name"), ""));
        }
        for name in ["port", "targetPort"] {
            let found = port.get(name).and_then(Value::as_i64);
            let found = found.or_else(|| (name == "port").then_some(0));
            if let Some(found) = found.filter(|found| !(1..=65_535).contains(found)) {
                errors.push(FieldError::invalid(at(name), found, detail));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_container_follow_from_the_others() {
        let mut item = json!({ "type": "Container", "default": { "cpu": "100m" }, "max": { "memory": "1Gi" } });
        limit(&mut item);
        let both = json!({ "cpu": "100m", "memory": "1Gi" });
        assert_eq!((&item["default"], &item["defaultRequest"]), (&both, &both));
    }

    #[test]
    fn several_ports_have_names() {
        let service = |ports: Value| errors("Service", &json!({ "spec": { "ports": ports } }), None).len();
        assert_eq!(service(json!([{ "port": 80, "targetPort": "http" }])), 0);
        assert_eq!(service(json!([{ "port": 0, "targetPort": 0 }])), 2);
        assert_eq!(service(json!([{ "port": 80 }, { "port": 81, "name": "b" }])), 1);
    }
}
