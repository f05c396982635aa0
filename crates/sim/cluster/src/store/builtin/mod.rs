//! Decoding, defaults and rules of built-in kinds, as far as the provider and Cluster API rely on them.
//!
//! Kinds with a shape are decoded by it and have managed fields. Objects of the other kinds are accepted unchecked
//! except for the rules below; `TAKEN_AS_GIVEN` lists what is not checked.

pub(super) mod checks;
mod data;
mod defaults;
pub(super) mod definition;
mod deployment;
mod kinds;
mod lease;
mod parts;

use std::collections::BTreeSet;

use metal3_schema::{FieldError, Schema, label_violations};
use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::object::{self, as_map};
use super::openapi::{Decoder, Typed};

pub use kinds::TAKEN_AS_GIVEN;
pub(super) use kinds::{built_in, is_built_in_group};

/// The schema that decodes a built-in kind.
pub(super) fn shape(kind: &str) -> Option<Schema> {
    // Null is the empty string: see `data`.
    let texts = json!({"type": "object", "additionalProperties": {"type": "string", "nullable": true}});
    let (text, flag, whole) = (
        json!({"type": "string"}),
        json!({"type": "boolean"}),
        json!({"type": "integer"}),
    );
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let list = json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": any});
    let properties = match kind {
        "ConfigMap" => json!({"data": texts, "binaryData": texts, "immutable": flag}),
        "Secret" => json!({"data": texts, "stringData": texts, "type": text, "immutable": flag}),
        "EndpointSlice" => json!({"addressType": text, "endpoints": list, "ports": list}),
        "Lease" => json!({"spec": {"type": "object", "properties": {
            "holderIdentity": text, "leaseDurationSeconds": whole, "acquireTime": text, "renewTime": text,
            "leaseTransitions": whole, "strategy": text, "preferredHolder": text,
        }}}),
        _ => return None,
    };
    // The shapes above parse.
    Schema::parse(&json!({"type": "object", "properties": properties})).ok()
}

/// An empty object with its required parts.
pub(super) fn empty_object(kind: &Kind, api_version: &str) -> Value {
    let mut empty = json!({"apiVersion": api_version, "kind": kind.kind});
    if kind.kind == "Lease" && !kind.is_custom() {
        as_map(&mut empty).insert("spec".to_owned(), json!({}));
    }
    if kind.is_definition() {
        as_map(&mut empty).insert("spec".to_owned(), json!({ "names": {} }));
    }
    empty
}

/// Decodes a body as an object of its kind in place.
///
/// # Errors
/// When the body does not decode.
pub(super) fn decode(typed: Option<&Typed>, decoder: Decoder, kind: &str, body: &mut Value) -> Result<(), String> {
    if let Some(typed) = typed {
        typed.decode(body, decoder)?;
    }
    parts::fill(kind, body);
    match kind {
        "Secret" | "ConfigMap" => {
            data::decode(kind, body)?;
            data::normalize(kind, body);
        }
        "Lease" => lease::decode(body)?,
        "EndpointSlice" => {
            for endpoint in items(body, "endpoints") {
                as_map(endpoint).entry("conditions").or_insert_with(|| json!({}));
            }
            for port in items(body, "ports") {
                default(as_map(port), &[("name", json!("")), ("protocol", json!("TCP"))]);
            }
        }
        "Deployment" => defaults::deployment(body),
        "ReplicaSet" => defaults::replica_set(body),
        "Pod" => defaults::pod(body),
        "CustomResourceDefinition" => checks::fill(body),
        other => defaults::workload(other, body),
    }
    Ok(())
}

fn items<'a>(body: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    body.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn default(map: &mut Map<String, Value>, values: &[(&str, Value)]) {
    for (name, value) in values {
        map.entry(*name).or_insert_with(|| value.clone());
    }
}

/// Sets the defaults of a new object that controllers read. `number` makes cluster addresses distinct.
pub(super) fn initialize(kind: &str, body: &mut Value, number: u64) {
    let map = as_map(body);
    match kind {
        "Namespace" => {
            map.insert("status".into(), json!({"phase": "Active"}));
            let spec = as_map(map.entry("spec").or_insert(Value::Null));
            let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
            if let Value::Array(names) = finalizers
                && !names.contains(&json!("kubernetes"))
            {
                names.push("kubernetes".into());
            }
        }
        "Service" => {
            map.insert("status".into(), json!({"loadBalancer": {}}));
            addresses(as_map(map.entry("spec").or_insert(Value::Null)), number);
        }
        "Pod" => defaults::admit(body),
        "Deployment" | "ReplicaSet" | "ResourceQuota" | "Job" | "CronJob" => {
            drop(map.insert("status".into(), json!({})))
        }
        "Ingress" => drop(map.insert("status".into(), json!({"loadBalancer": {}}))),
        "CustomResourceDefinition" => {
            let status = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []});
            map.insert("status".into(), status);
            definition::remember_storage(body);
        }
        _ => {}
    }
}

/// The addresses of a new Service.
fn addresses(spec: &mut Map<String, Value>, number: u64) {
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
        ],
    );
    let address = spec.get("clusterIP").cloned().unwrap_or_default();
    default(spec, &[("clusterIPs", json!([address]))]);
}

/// Validation errors of a new object, or of an update of `old`.
pub(super) fn errors(kind: &str, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let absent = |at: &str| {
        new.pointer(at)
            .is_none_or(|value| value.is_null() || value == "" || *value == json!([]))
    };
    let changed = |at: &str| old.is_some_and(|old| old.pointer(at) != new.pointer(at));
    let mut errors = finalizer_errors(new);
    match kind {
        "ConfigMap" | "Secret" => errors.extend(data::errors(kind, new, old)),
        "Lease" => errors.extend(lease::errors(new)),
        "Event" => errors.extend(event_error(new)),
        "Deployment" => errors.extend(deployment::errors(new)),
        "Service" if absent("/spec/ports") => {
            let portless = new.pointer("/spec/type") == Some(&json!("ExternalName"))
                || new.pointer("/spec/clusterIP") == Some(&json!("None"));
            errors.extend((!portless).then(|| FieldError::required("spec.ports", "")));
        }
        "Service" | "RoleBinding" | "ClusterRoleBinding" => errors.extend(parts::errors(kind, new, old)),
        "Pod" if absent("/spec/containers") => errors.push(FieldError::required("spec.containers", "")),
        "Pod" => errors.extend(container_errors(new)),
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

/// Members of metadata, as clients write them.
const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The members of an item of these lists in metadata.
const ITEMS: [(&str, &[&str]); 2] = [
    (
        "managedFields",
        &[
            "apiVersion",
            "fieldsType",
            "fieldsV1",
            "manager",
            "operation",
            "subresource",
            "time",
        ],
    ),
    (
        "ownerReferences",
        &["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"],
    ),
];

/// Removes unknown members of metadata and of the items of its lists, and returns their paths.
pub(super) fn prune_metadata(body: &mut Value) -> Vec<String> {
    let Some(Value::Object(metadata)) = body.get_mut("metadata") else {
        return Vec::new();
    };
    let mut unknown = removed(metadata, &METADATA, "metadata");
    for (list, known) in ITEMS {
        let items = metadata.get_mut(list).and_then(Value::as_array_mut);
        for (number, item) in items.into_iter().flatten().enumerate() {
            if let Some(item) = item.as_object_mut() {
                unknown.extend(removed(item, known, &format!("metadata.{list}[{number}]")));
            }
        }
    }
    unknown
}

/// Removes all but the known members, and returns the paths of the others.
fn removed(object: &mut Map<String, Value>, known: &[&str], path: &str) -> Vec<String> {
    let unknown = object.keys().filter(|name| !known.contains(&name.as_str()));
    let unknown = unknown.map(|name| format!("{path}.{name}")).collect();
    object.retain(|name, _| known.contains(&name.as_str()));
    unknown
}

/// The name of a Namespace is a label: replaces the error of a name that is not.
pub(super) fn check_label(name: &str, errors: &mut Vec<FieldError>) {
    let wrong = label_violations(name);
    if !name.is_empty() && !wrong.is_empty() {
        errors.retain(|error| error.field != "metadata.name");
        errors.extend(
            wrong
                .into_iter()
                .map(|why| FieldError::invalid("metadata.name", name, why)),
        );
    }
}

/// What an update of a kind cannot change, whatever it says.
pub(super) fn keep(kind: &str, old: &Value, new: &mut Value) {
    parts::keep(kind, old, new);
}

/// Errors of finalizers without a group that Kubernetes does not know.
fn finalizer_errors(object: &Value) -> Vec<FieldError> {
    const KNOWN: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];
    let named = object::finalizers(object).into_iter().enumerate();
    let unknown = named.filter(|(_, name)| !name.contains('/') && !KNOWN.contains(&name.as_str()));
    unknown
        .map(|(number, name)| {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            FieldError::invalid(format!("metadata.finalizers[{number}]"), name.as_str(), detail)
        })
        .collect()
}

/// Errors of the names and images of containers.
fn container_errors(pod: &Value) -> Vec<FieldError> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let (mut errors, mut names) = (Vec::new(), BTreeSet::new());
    for (number, container) in containers.into_iter().flatten().enumerate() {
        let text = |name: &str| container.get(name).and_then(Value::as_str).unwrap_or_default();
        let at = |name: &str| format!("spec.containers[{number}].{name}");
        let name = text("name");
        if name.is_empty() {
            errors.push(FieldError::required(at("name"), ""));
        } else {
            let wrong = label_violations(name).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid(at("name"), name, why)));
            errors.extend((!names.insert(name)).then(|| FieldError::duplicate(at("name"), name)));
        }
        if text("image").is_empty() {
            errors.push(FieldError::required(at("image"), ""));
        }
    }
    errors
}

fn event_error(event: &Value) -> Option<FieldError> {
    let involved = event
        .pointer("/involvedObject/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    // Events of cluster-scoped objects belong to the default namespace.
    let home = if involved.is_empty() { "default" } else { involved };
    let detail = "does not match event.namespace";
    (home != object::text(event, "namespace"))
        .then(|| FieldError::invalid("involvedObject.namespace", involved, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_members_of_metadata_and_of_its_lists_are_removed_and_named() {
        let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u", "bogus": 1 });
        let mut body = json!({ "metadata": { "name": "a", "label": {}, "ownerReferences": [owner], "managedFields": [{ "x": 1 }] } });
        let expected = [
            "metadata.label",
            "metadata.managedFields[0].x",
            "metadata.ownerReferences[0].bogus",
        ];
        assert_eq!(prune_metadata(&mut body), expected);
        let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u" });
        let left = json!({ "metadata": { "name": "a", "ownerReferences": [owner], "managedFields": [{}] } });
        assert_eq!(body, left);
    }
}
