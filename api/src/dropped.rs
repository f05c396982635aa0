//! Removes one member from every decoded object of a kind, for `xtask fields --prove`: the test of a row must then fail. A member
//! without which the object does not decode gets the same value in every object instead. Only builds with debug assertions do
//! it, so that the tests of `make test` serve the proof; released programs have none.

use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Kind and path, as `Metal3Machine spec.image.url`.
const VARIABLE: &str = "METAL3_DROP_MEMBER";
/// A value that the schema lists for the member; absent when it lists none.
const LISTED: &str = "METAL3_DROP_LISTED";

/// The member that the environment names.
pub(crate) struct Member {
    kind: String,
    path: Vec<String>,
    listed: Option<String>,
}

/// The member to remove, if it is one of this kind.
pub(crate) fn member_of(kind: &str) -> Option<&'static Member> {
    static NAMED: OnceLock<Option<Member>> = OnceLock::new();
    NAMED.get_or_init(named).as_ref().filter(|member| member.kind == kind)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the proof reaches a test that another process runs by the environment only"
)]
fn named() -> Option<Member> {
    let text = std::env::var(VARIABLE).ok()?;
    let (kind, path) = text.split_once(' ')?;
    Some(Member {
        kind: kind.to_owned(),
        path: path.split('.').map(str::to_owned).collect(),
        listed: std::env::var(LISTED).ok(),
    })
}

impl Member {
    /// Decodes a document without the member.
    pub(crate) fn drop_from<W: DeserializeOwned>(&self, document: Value) -> serde_json::Result<W> {
        let mut shortened = document.clone();
        change(&mut shortened, &self.path, &|members, name| {
            members.remove(name);
        });
        if let Ok(decoded) = serde_json::from_value(shortened) {
            return Ok(decoded);
        }
        let mut replaced = document;
        change(&mut replaced, &self.path, &|members, name| {
            if let Some(value) = members.get_mut(name) {
                *value = self.listed.as_deref().map_or_else(|| constant(value), Value::from);
            }
        });
        serde_json::from_value(replaced)
    }
}

/// A value of the type of another, and the same for all of the type.
fn constant(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) => json!(false),
        Value::Number(_) => json!(1),
        Value::String(_) => json!("dropped"),
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
    }
}

fn name(segment: &str) -> &str {
    segment.trim_end_matches("[]").trim_end_matches("{}")
}

/// Changes the member at a path in every item of the lists, and every value of the maps, on the way. `apply` gets the object that
/// contains it, and its name.
fn change(value: &mut Value, path: &[String], apply: &impl Fn(&mut serde_json::Map<String, Value>, &str)) {
    let (Some((segment, rest)), Value::Object(members)) = (path.split_first(), value) else {
        return;
    };
    let name = name(segment);
    if rest.is_empty() {
        apply(members, name);
        return;
    }
    match members.get_mut(name) {
        Some(Value::Array(items)) if segment.ends_with("[]") => {
            items.iter_mut().for_each(|item| change(item, rest, apply));
        }
        Some(Value::Object(values)) if segment.ends_with("{}") => {
            values.values_mut().for_each(|item| change(item, rest, apply));
        }
        Some(member) => change(member, rest, apply),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    fn path_of(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn member_is_removed_from_each_item() {
        let mut document =
            json!({ "spec": { "a": [{ "b": 1, "c": 2 }, { "b": 3 }], "m": { "k": { "b": 4 } }, "d": 5 } });
        for text in ["spec.a[].b", "spec.m{}.b", "spec.d", "spec.none.x"] {
            change(&mut document, &path_of(text), &|members, name| {
                members.remove(name);
            });
        }
        assert_eq!(document, json!({ "spec": { "a": [{ "c": 2 }, {}], "m": { "k": {} } } }));
    }

    #[test]
    fn required_member_gets_the_same_value_in_each_object() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Wire {
            name: String,
            size: Option<i64>,
        }
        let without = |path: &str, listed: Option<&str>| {
            let member = Member {
                kind: String::new(),
                path: path_of(path),
                listed: listed.map(str::to_owned),
            };
            member.drop_from::<Wire>(json!({ "name": "a", "size": 7 })).unwrap()
        };
        let wire = |name: &str, size| Wire {
            name: name.to_owned(),
            size,
        };
        assert_eq!(without("name", None), wire("dropped", Some(7)));
        assert_eq!(without("name", Some("b")), wire("b", Some(7)));
        assert_eq!(without("size", None), wire("a", None));
    }
}
