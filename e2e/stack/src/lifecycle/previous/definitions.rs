//! Which members the schemas of definitions have: an upgrade adds those of the newer release, and a rollback takes them off.

use std::collections::BTreeSet;

use serde_json::Value;

/// The members of these definitions, as `NAME VERSION .spec.list[].member`.
pub(super) fn members<'a>(definitions: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for definition in definitions {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            let start = format!("{name} {} ", version["name"].as_str().unwrap_or_default());
            add(&version["schema"]["openAPIV3Schema"], &start, &mut found);
        }
    }
    found
}

fn add(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        add(below, &path, found);
        found.insert(path);
    }
    for (member, sign) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[member].is_object() {
            add(&schema[member], &format!("{path}{sign}"), found);
        }
    }
}

/// What one set has and the other lacks, in words.
pub(super) fn difference(wanted: &BTreeSet<String>, found: &BTreeSet<String>) -> Vec<String> {
    let missing = wanted.difference(found).map(|member| format!("{member} is missing"));
    let further = found.difference(wanted).map(|member| format!("{member} is too many"));
    missing.chain(further).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(spec: &Value) -> Value {
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        json!({
            "metadata": { "name": "hosts.example.org" },
            "spec": { "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": schema } }] },
        })
    }

    #[test]
    fn members_of_lists_and_maps_are_found() {
        let one = definition(&json!({ "properties": {
            "list": { "items": { "properties": { "a": {} } } },
            "map": { "additionalProperties": { "properties": { "b": {} } } },
            "open": { "additionalProperties": true },
        } }));
        let found = members([&one]);
        let found: Vec<&str> = found
            .iter()
            .filter_map(|one| one.strip_prefix("hosts.example.org v1 "))
            .collect();
        assert_eq!(
            found,
            [
                ".spec",
                ".spec.list",
                ".spec.list[].a",
                ".spec.map",
                ".spec.map{}.b",
                ".spec.open"
            ]
        );
    }

    #[test]
    fn members_that_only_one_release_has_are_named() {
        let older = members([&definition(&json!({ "properties": { "a": {}, "b": {} } }))]);
        let newer = members([&definition(&json!({ "properties": { "a": {}, "c": {} } }))]);
        let named = ["b is missing", "c is too many"].map(|rest| format!("hosts.example.org v1 .spec.{rest}"));
        assert_eq!(difference(&older, &newer), named);
        assert!(difference(&older, &older).is_empty());
    }
}
