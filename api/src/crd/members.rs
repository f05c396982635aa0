//! Paths of the members of a schema.

use serde_json::Value;

/// Paths of the members that have no members themselves, such as `spec.pools[].start` or `spec.domains{}.attributes`: `[]`
/// stands for the items of a list, `{}` for the values of a map.
#[must_use]
pub fn leaves(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(schema, "", &mut found);
    found
}

fn collect(schema: &Value, path: &str, found: &mut Vec<String>) {
    let below = below(schema, path);
    if below.is_empty() {
        found.push(path.to_owned());
    }
    for (path, child) in below {
        collect(child, &path, found);
    }
}

/// The schemas directly below a schema, with their paths.
fn below<'a>(schema: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let own = properties.into_iter().flatten().map(|(name, member)| {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        (path, member)
    });
    let has_members = |child: &&Value| child.get("properties").is_some();
    let inner = [("items", "[]"), ("additionalProperties", "{}")]
        .into_iter()
        .filter_map(|(key, mark)| Some((format!("{path}{mark}"), schema.get(key).filter(has_members)?)));
    own.chain(inner).collect()
}

/// A member of a document.
#[derive(Clone, Debug)]
pub struct Present<'a> {
    /// The path, as in [`leaves`].
    pub path: String,
    /// The pointer into the document.
    pub pointer: String,
    /// The schema of the member.
    pub schema: &'a Value,
}

/// The members of a document that a schema has as [`leaves`].
#[must_use]
pub fn present<'a>(schema: &'a Value, document: &Value) -> Vec<Present<'a>> {
    let mut found = Vec::new();
    walk(schema, document, ("", ""), &mut found);
    found
}

fn walk<'a>(schema: &'a Value, value: &Value, (path, pointer): (&str, &str), found: &mut Vec<Present<'a>>) {
    let below = below(schema, path);
    if below.is_empty() {
        found.push(Present {
            path: path.to_owned(),
            pointer: pointer.to_owned(),
            schema,
        });
    }
    for (child_path, child) in below {
        match (value, child_path.strip_prefix(path).unwrap_or(&child_path)) {
            (Value::Array(items), "[]") => {
                for (position, item) in items.iter().enumerate() {
                    walk(child, item, (&child_path, &format!("{pointer}/{position}")), found);
                }
            }
            (Value::Object(values), "{}") => {
                for (key, value) in values {
                    walk(child, value, (&child_path, &format!("{pointer}/{key}")), found);
                }
            }
            (Value::Object(members), name) => {
                let name = name.trim_start_matches('.');
                if let Some(member) = members.get(name) {
                    walk(child, member, (&child_path, &format!("{pointer}/{name}")), found);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({ "properties": {
            "a": { "type": "string" },
            "b": { "items": { "properties": { "c": {}, "d": { "additionalProperties": { "type": "string" } } } } },
            "e": { "additionalProperties": { "properties": { "f": {} } } },
        } })
    }

    #[test]
    fn members_without_members_are_found_at_every_depth() {
        assert_eq!(leaves(&schema()), ["a", "b[].c", "b[].d", "e{}.f"]);
    }

    #[test]
    fn members_of_a_document_are_found_with_their_place() {
        let document = json!({ "a": 1, "b": [{ "c": 2 }, { "d": { "x": "y" } }], "e": { "k": { "f": 3 } }, "z": 4 });
        let schema = schema();
        let found = present(&schema, &document);
        let found: Vec<_> = found
            .iter()
            .map(|member| format!("{} {}", member.path, member.pointer))
            .collect();
        assert_eq!(found, ["a /a", "b[].c /b/0/c", "b[].d /b/1/d", "e{}.f /e/k/f"]);
    }
}
