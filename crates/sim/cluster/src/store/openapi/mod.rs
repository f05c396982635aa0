//! OpenAPI documents: the published schemas of built-in kinds, and those of custom kinds as the server publishes them.
//!
//! Clients read them before they explain a field, validate unknown fields or merge. Of the paths they have what clients look for: the
//! kind of an object's path, its patches, and that the server validates fields.

mod published;
mod quantity;
mod shape;
mod typed;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::request::Request;
use super::{Answer, Store, object};
use published::{REFERENCE, SCHEMAS, built_in};

pub(super) use shape::shape;
pub(super) use typed::{Decoder, Typed, typed};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// A kind whose descriptions of the type are those of each kind.
const DESCRIBED: &str = "io.k8s.api.core.v1.ConfigMap";
const OF_METADATA: &str = "Standard object's metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

impl Store {
    /// Answers a request for a document; `None` for other paths.
    pub(super) fn openapi(&self, request: &Request) -> Option<Answer> {
        if request.method != "GET" {
            return None;
        }
        let place = request.path.strip_prefix("/openapi/v3")?.trim_matches('/');
        if place.is_empty() {
            return Some(Answer::ok(self.places()));
        }
        self.document(place).map(Answer::ok)
    }

    /// The documents, one for each version of a group.
    fn places(&self) -> Value {
        let paths: Map<String, Value> = self
            .versions()
            .map(|(_, _, place)| {
                let address = json!({ "serverRelativeURL": format!("/openapi/v3/{place}") });
                (place, address)
            })
            .collect();
        json!({ "paths": paths })
    }

    /// Each version of each kind, with the place of its document.
    fn versions(&self) -> impl Iterator<Item = (&Kind, &str, String)> {
        self.kinds.values().flat_map(|kind| {
            kind.versions.iter().map(|version| {
                let prefix = if kind.group.is_empty() { "api" } else { "apis" };
                let place = format!("{prefix}/{}", kind.api_version(&version.name));
                (&**kind, version.name.as_str(), place)
            })
        })
    }

    fn document(&self, place: &str) -> Option<Value> {
        let (mut paths, mut schemas) = (Map::new(), Map::new());
        for (kind, version, _) in self.versions().filter(|(.., at)| at == place) {
            let scope = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
            let path = format!("/{place}/{scope}{}/{{name}}", kind.plural);
            paths.insert(path, json!({ "patch": patch(kind, version) }));
            let (name, schema) = match built_in(&kind.group, &kind.kind) {
                Some((name, schema)) if !kind.is_custom() => (name.to_owned(), schema.clone()),
                _ => match self.custom(kind, version) {
                    Some(custom) => custom,
                    None => continue,
                },
            };
            add_references(&schema, &mut schemas);
            schemas.insert(name, schema);
        }
        (!paths.is_empty()).then(|| {
            json!({
                "openapi": "3.0.0", "info": { "title": "Kubernetes", "version": "v1.36.0+simulated" }, "paths": paths,
                "components": { "schemas": schemas },
            })
        })
    }

    /// The name and the schema of a kind of a CRD.
    fn custom(&self, kind: &Kind, version: &str) -> Option<(String, Value)> {
        let definitions = self.definition_kind()?;
        let stored = self.stored(&definitions, &(String::new(), kind.resource()))?;
        let versions = stored.pointer("/spec/versions")?.as_array()?;
        let found = versions
            .iter()
            .find(|found| found.get("name") == Some(&version.into()))?;
        let mut schema = found.pointer("/schema/openAPIV3Schema")?.clone();
        let members = object::as_map(&mut schema);
        let properties = object::as_map(members.entry("properties").or_insert_with(|| json!({})));
        for name in ["apiVersion", "kind"] {
            let described = SCHEMAS.get(DESCRIBED)?.pointer(&format!("/properties/{name}"))?;
            properties.insert(name.to_owned(), described.clone());
        }
        let meta = json!({ "allOf": [{ "$ref": format!("{REFERENCE}{OBJECT_META}") }], "description": OF_METADATA });
        properties.insert("metadata".to_owned(), meta);
        let named = json!([{ "group": kind.group, "version": version, "kind": kind.kind }]);
        members.insert("x-kubernetes-group-version-kind".to_owned(), named);
        let group: Vec<&str> = kind.group.split('.').rev().collect();
        Some((format!("{}.{version}.{}", group.join("."), kind.kind), schema))
    }
}

/// The operation that changes an object.
fn patch(kind: &Kind, version: &str) -> Value {
    let types = [
        "apply-patch+yaml",
        "json-patch+json",
        "merge-patch+json",
        "strategic-merge-patch+json",
    ];
    let accepted = types
        .into_iter()
        .filter(|media| !kind.is_custom() || !media.starts_with("strategic"));
    let content: Map<String, Value> = accepted
        .map(|media| (format!("application/{media}"), json!({})))
        .collect();
    json!({
        "parameters": [{ "name": "fieldValidation", "in": "query", "schema": { "type": "string" } }],
        "requestBody": { "content": content, "required": true },
        "responses": {},
        "x-kubernetes-group-version-kind": { "group": kind.group, "version": version, "kind": kind.kind },
    })
}

/// Adds the schemas to which a schema refers, directly or not.
fn add_references(schema: &Value, to: &mut Map<String, Value>) {
    let mut names = BTreeSet::new();
    references(schema, &mut names);
    for name in names {
        if let Some(found) = SCHEMAS.get(name).filter(|_| !to.contains_key(name)) {
            to.insert(name.to_owned(), found.clone());
            add_references(found, to);
        }
    }
}

fn references<'a>(schema: &'a Value, to: &mut BTreeSet<&'a str>) {
    match schema {
        Value::Object(members) => {
            let named = members.get("$ref").and_then(Value::as_str);
            to.extend(named.and_then(|named| named.strip_prefix(REFERENCE)));
            members.values().for_each(|member| references(member, to));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, to)),
        _ => {}
    }
}
