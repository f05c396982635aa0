//! What Kubernetes does with objects of its own kinds, as far as the provider and Cluster API rely on it: decoding,
//! defaults and rules.
//!
//! Kinds that have a shape here are decoded by it and keep owners of fields. All others are taken as given but for the
//! rules below; `TAKEN_AS_GIVEN` says so for each.

use metal3_schema::{FieldError, Schema};
use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::object::{self, as_map};

/// Of which built-in kinds what is not checked, not defaulted or not kept. Part of the committed matrix.
pub(crate) const TAKEN_AS_GIVEN: [(&str, &str); 8] = [
    ("Namespace", "spec and status; owners of fields are not kept"),
    ("Node", "everything; no taint is added; owners of fields are not kept"),
    (
        "Event",
        "everything but the namespace of what is involved; owners of fields are not kept",
    ),
    ("ServiceAccount", "everything; owners of fields are not kept"),
    (
        "Service",
        "everything but that there are ports; owners of fields are not kept; cluster addresses are counted up",
    ),
    (
        "Deployment",
        "everything but selector and template labels; only replicas are defaulted; owners of fields are not kept",
    ),
    (
        "Pod",
        "everything but that there are containers; nothing is defaulted or admitted; owners of fields are not kept",
    ),
    (
        "CustomResourceDefinition",
        "everything but names and schemas; owners of fields are not kept",
    ),
];

/// The shape of a built-in kind that is decoded here.
pub(super) fn shape(kind: &str) -> Option<Schema> {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let (text, flag, whole) = (
        json!({"type": "string"}),
        json!({"type": "boolean"}),
        json!({"type": "integer"}),
    );
    let time = json!({"type": "string", "format": "date-time"});
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let list = json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": any});
    let properties = match kind {
        "ConfigMap" => json!({"data": texts, "binaryData": texts, "immutable": flag}),
        "Secret" => json!({"data": texts, "type": text, "immutable": flag}),
        "EndpointSlice" => json!({"addressType": text, "endpoints": list, "ports": list}),
        "Lease" => json!({"spec": {"type": "object", "properties": {
            "holderIdentity": text, "leaseDurationSeconds": whole, "acquireTime": time, "renewTime": time,
            "leaseTransitions": whole, "strategy": text, "preferredHolder": text,
        }}}),
        _ => return None,
    };
    // A shape is written in this function and parses.
    Schema::parse(&json!({"type": "object", "properties": properties})).ok()
}

/// A new object before anybody says anything: parts that are not optional are there.
pub(super) fn nothing(kind: &Kind, api_version: &str) -> Value {
    let mut nothing = json!({"apiVersion": api_version, "kind": kind.kind});
    if kind.kind == "Lease" && !kind.is_custom() {
        as_map(&mut nothing).insert("spec".to_owned(), json!({}));
    }
    nothing
}

/// Why a body is no object of its kind.
pub(super) fn undecodable(shape: &Schema, body: &Value) -> Option<String> {
    let mismatch = shape.apply_errors(body, true).into_iter().next();
    mismatch.map(|why| format!("json: {why}"))
}

/// What decoding adds, moves and drops.
pub(super) fn settle(kind: &str, body: &mut Value) {
    match kind {
        "Secret" => settle_secret(body),
        "EndpointSlice" => {
            for endpoint in items(body, "endpoints") {
                as_map(endpoint).entry("conditions").or_insert_with(|| json!({}));
            }
            for port in items(body, "ports") {
                default(as_map(port), &[("name", json!("")), ("protocol", json!("TCP"))]);
            }
        }
        "Deployment" => {
            if let Some(spec) = body.get_mut("spec") {
                default(as_map(spec), &[("replicas", json!(1))]);
            }
        }
        _ => {}
    }
    if matches!(kind, "Secret" | "ConfigMap") {
        let empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
        as_map(body)
            .retain(|name, value| !(name.to_ascii_lowercase().ends_with("data") && name != "metadata" && empty(value)));
    }
}

fn items<'a>(body: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    body.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn default(map: &mut Map<String, Value>, values: &[(&str, Value)]) {
    for (name, value) in values {
        map.entry(*name).or_insert_with(|| value.clone());
    }
}

/// `stringData` goes into `data`, and a Secret without type is opaque.
fn settle_secret(body: &mut Value) {
    let map = as_map(body);
    map.entry("type").or_insert_with(|| "Opaque".into());
    if let Some(Value::Object(texts)) = map.remove("stringData") {
        let data = as_map(map.entry("data").or_insert(Value::Null));
        for (key, text) in texts {
            let bytes = k8s_openapi::ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec());
            data.insert(key, serde_json::to_value(bytes).unwrap_or_default());
        }
    }
}

/// The defaults of a new object that controllers look at. `number` tells objects apart.
pub(super) fn born(kind: &str, body: &mut Value, number: u64) {
    let name = object::text(body, "name").to_owned();
    let map = as_map(body);
    match kind {
        "Namespace" => {
            map.insert("spec".into(), json!({"finalizers": ["kubernetes"]}));
            map.insert("status".into(), json!({"phase": "Active"}));
            let metadata = as_map(map.entry("metadata").or_insert(Value::Null));
            let labels = as_map(metadata.entry("labels").or_insert(Value::Null));
            labels.insert("kubernetes.io/metadata.name".into(), name.into());
        }
        "Service" => {
            map.insert("status".into(), json!({"loadBalancer": {}}));
            service(as_map(map.entry("spec").or_insert(Value::Null)), number);
        }
        "Pod" => drop(map.insert("status".into(), json!({"phase": "Pending"}))),
        _ => {}
    }
}

fn service(spec: &mut Map<String, Value>, number: u64) {
    default(
        spec,
        &[("type", json!("ClusterIP")), ("sessionAffinity", json!("None"))],
    );
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let port = as_map(port);
        let number = port.get("port").cloned().unwrap_or_default();
        default(port, &[("protocol", json!("TCP")), ("targetPort", number)]);
    }
    if spec.get("type") == Some(&json!("ExternalName")) {
        return;
    }
    let address = format!("10.96.{}.{}", (number >> 8) & 0xff, number & 0xff);
    default(
        spec,
        &[
            ("clusterIP", address.into()),
            ("ipFamilies", json!(["IPv4"])),
            ("ipFamilyPolicy", json!("SingleStack")),
            ("internalTrafficPolicy", json!("Cluster")),
        ],
    );
    let address = spec.get("clusterIP").cloned().unwrap_or_default();
    default(spec, &[("clusterIPs", json!([address]))]);
}

/// What is wrong with a new object, or with one that is to replace `old`.
pub(super) fn errors(kind: &str, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let absent = |at: &str| {
        new.pointer(at)
            .is_none_or(|value| value.is_null() || value == "" || *value == json!([]))
    };
    let changed = |at: &str| old.is_some_and(|old| old.pointer(at) != new.pointer(at));
    let mut errors = Vec::new();
    match kind {
        "ConfigMap" | "Secret" => errors.extend(data_errors(kind, new, old)),
        "Event" => errors.extend(event_error(new)),
        "Deployment" => errors.extend(deployment_errors(new)),
        "Service" if absent("/spec/ports") => {
            let portless = new.pointer("/spec/type") == Some(&json!("ExternalName"))
                || new.pointer("/spec/clusterIP") == Some(&json!("None"));
            errors.extend((!portless).then(|| FieldError::required("spec.ports", "")));
        }
        "Pod" if absent("/spec/containers") => errors.push(FieldError::required("spec.containers", "")),
        "EndpointSlice" if absent("/addressType") => errors.push(FieldError::required("addressType", "")),
        _ => {}
    }
    let fixed = [
        ("Secret", "/type", "type"),
        ("Deployment", "/spec/selector", "spec.selector"),
        ("EndpointSlice", "/addressType", "addressType"),
    ];
    for (of, at, field) in fixed {
        if of == kind && changed(at) {
            let found = new.pointer(at).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(field, found, "field is immutable"));
        }
    }
    errors
}

fn event_error(event: &Value) -> Option<FieldError> {
    let involved = event
        .pointer("/involvedObject/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    // What lives in no namespace is told of in the default one.
    let home = if involved.is_empty() { "default" } else { involved };
    let detail = "does not match event.namespace";
    (home != object::text(event, "namespace"))
        .then(|| FieldError::invalid("involvedObject.namespace", involved, detail))
}

fn deployment_errors(deployment: &Value) -> Vec<FieldError> {
    let labels = deployment
        .pointer("/spec/template/metadata/labels")
        .cloned()
        .unwrap_or_default();
    let selector = deployment
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object);
    let mut errors = Vec::new();
    if deployment.pointer("/spec/selector").is_none_or(Value::is_null) {
        errors.push(FieldError::required("spec.selector", ""));
    }
    let matches = selector.is_some_and(|selector| selector.iter().all(|(name, value)| labels.get(name) == Some(value)));
    if !matches {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, detail));
    }
    errors
}

fn data_errors(kind: &str, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    for name in ["data", "binaryData"] {
        let keys = new.get(name).and_then(Value::as_object).into_iter().flat_map(Map::keys);
        for key in keys.filter(|key| key.is_empty() || !key.chars().all(allowed)) {
            let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', or \
                          'KEY_NAME', or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
            errors.push(FieldError::invalid(format!("{name}[{key}]"), key.as_str(), detail));
        }
    }
    let Some(old) = old.filter(|old| old.get("immutable") == Some(&Value::Bool(true))) else {
        return errors;
    };
    let fields: &[&str] = if kind == "Secret" {
        &["immutable", "data"]
    } else {
        &["immutable", "data", "binaryData"]
    };
    for field in fields.iter().filter(|field| old.get(**field) != new.get(**field)) {
        errors.push(FieldError::forbidden(
            *field,
            "field is immutable when `immutable` is set",
        ));
    }
    errors
}
