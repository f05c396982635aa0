//! Members of the kinds, from their schemas.
//!
//! A member that has members itself is not listed: a user says it by them. Members of equal paths in several versions are one;
//! `spec.template.spec` of a template is the `spec` of the kind that Cluster API makes from it.

use std::collections::BTreeSet;

use metal3_api::catalog;
use serde_json::{Map, Value};

use super::Said;

/// Path of the part of a template that becomes the spec of an object.
const TEMPLATE: &str = "spec.template.spec.";

/// The members that a user writes, and the number of those of `status`.
pub(crate) fn all() -> (BTreeSet<Said>, usize) {
    let (mut said, mut status) = (BTreeSet::new(), BTreeSet::new());
    for definition in catalog::definitions() {
        for version in &definition.versions {
            for path in leaves(&(version.schema)()) {
                let thing = thing(definition.kind, &path);
                if path.starts_with("status") {
                    status.insert(thing);
                } else if path.contains('.') && !path.starts_with("metadata") {
                    said.insert(thing);
                }
            }
        }
    }
    (said, status.len())
}

fn thing(kind: &str, path: &str) -> Said {
    let made = kind.strip_suffix("Template").zip(path.strip_prefix(TEMPLATE));
    let (subject, name) = made.map_or_else(
        || (kind.to_owned(), path.to_owned()),
        |(kind, rest)| (kind.to_owned(), format!("spec.{rest}")),
    );
    Said { subject, name }
}

/// Paths of the members without members of a schema.
fn leaves(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(schema, "", &mut found);
    found
}

fn collect(schema: &Value, path: &str, found: &mut Vec<String>) {
    let properties = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned();
    let mut below: Vec<(String, Value)> = Vec::new();
    let dotted = |name: &String| {
        if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        }
    };
    let own: Map<String, Value> = properties(schema).unwrap_or_default();
    below.extend(own.iter().map(|(name, member)| (dotted(name), member.clone())));
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(child) = schema.get(key).filter(|child| properties(child).is_some()) {
            below.push((format!("{path}{mark}"), child.clone()));
        }
    }
    if below.is_empty() {
        found.push(path.to_owned());
    }
    for (path, child) in &below {
        collect(child, path, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_without_members_are_found_at_every_depth() {
        let schema = json!({ "properties": {
            "a": { "type": "string" },
            "b": { "items": { "properties": { "c": {}, "d": { "additionalProperties": { "type": "string" } } } } },
            "e": { "additionalProperties": { "properties": { "f": {} } } },
        } });
        assert_eq!(leaves(&schema), ["a", "b[].c", "b[].d", "e{}.f"]);
    }

    #[test]
    fn member_of_a_template_is_that_of_its_kind() {
        assert_eq!(
            thing("Metal3MachineTemplate", "spec.template.spec.image.url").subject,
            "Metal3Machine"
        );
        assert_eq!(
            thing("Metal3MachineTemplate", "spec.nodeReuse").subject,
            "Metal3MachineTemplate"
        );
        assert_eq!(
            thing("Metal3DataTemplate", "spec.metaData").subject,
            "Metal3DataTemplate"
        );
    }
}
