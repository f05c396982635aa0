//! Discovery in one document, for clients that ask for it: all groups with their versions and resources.

use serde_json::{Map, Value, json};

/// The media type of such a document.
pub(crate) const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether a client prefers that document.
pub(super) fn is_wanted(accept: &str) -> bool {
    let first: Vec<&str> = accept
        .split(',')
        .next()
        .unwrap_or_default()
        .split(';')
        .map(str::trim)
        .collect();
    MEDIA_TYPE.split(';').all(|part| first.contains(&part))
}

/// The document of groups.
pub(super) fn list(groups: Vec<Value>) -> Value {
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups })
}

/// A group from its versions, with the documents of their resources. The core group has no name. Only custom kinds repeat their group.
pub(super) fn group(name: &str, versions: &[(&str, Value)], is_custom: bool) -> Value {
    let version = |(version, document): &(&str, Value)| {
        let place = if is_custom { (name, *version) } else { ("", "") };
        json!({ "version": version, "resources": resources(place, document), "freshness": "Current" })
    };
    let metadata = if name.is_empty() {
        json!({})
    } else {
        json!({ "name": name })
    };
    json!({ "metadata": metadata, "versions": versions.iter().map(version).collect::<Vec<_>>() })
}

/// The resources of a version, each with its subresources.
fn resources(place: (&str, &str), document: &Value) -> Vec<Value> {
    let listed = document.get("resources").and_then(Value::as_array);
    let listed = listed.map(Vec::as_slice).unwrap_or_default();
    let whole = listed.iter().filter(|one| !text(one, "name").contains('/'));
    whole.map(|one| resource(place, one, listed)).collect()
}

fn resource(place: (&str, &str), found: &Value, listed: &[Value]) -> Value {
    let name = text(found, "name");
    let is_namespaced = found.get("namespaced") == Some(&Value::Bool(true));
    let mut members = Map::from_iter([
        ("resource".to_owned(), json!(name)),
        ("responseKind".to_owned(), response_kind(place, found)),
        (
            "scope".to_owned(),
            json!(if is_namespaced { "Namespaced" } else { "Cluster" }),
        ),
        ("singularResource".to_owned(), json!(text(found, "singularName"))),
    ]);
    for member in ["verbs", "shortNames", "categories"] {
        members.extend(found.get(member).map(|value| (member.to_owned(), value.clone())));
    }
    let below = listed.iter().filter_map(|one| {
        let (of, subresource) = text(one, "name").split_once('/')?;
        (of == name).then(|| {
            json!({ "subresource": subresource, "responseKind": response_kind(place, one), "verbs": one.get("verbs") })
        })
    });
    let below: Vec<Value> = below.collect();
    if !below.is_empty() {
        members.insert("subresources".to_owned(), below.into());
    }
    Value::Object(members)
}

/// The kind of the answers: of the own group, unless another one is stated.
fn response_kind((group, version): (&str, &str), found: &Value) -> Value {
    let own = |name: &str, own: &str| found.get(name).and_then(Value::as_str).unwrap_or(own).to_owned();
    json!({ "group": own("group", group), "version": own("version", version), "kind": text(found, "kind") })
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
