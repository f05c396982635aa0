//! Patches: RFC 7386 (merge) and RFC 6902 (JSON), as lenient as the API server.
//!
//! `apply` has server-side apply, `strategic` the merge patches of built-in kinds.

use serde_json::{Map, Value};

use super::golang::syntax;
use super::kind::Kind;
use super::object::{self, as_map};
use super::refusal::Refusal;
use super::wire::Message;
use super::{strategic, wire};

/// A parsed patch.
#[derive(Debug, Clone)]
pub(crate) enum Patch {
    Merge(Value),
    /// A merge patch and the table of its kind, which has the keys of its lists.
    Strategic(Map<String, Value>, Option<&'static Message>),
    Json(Vec<Step>),
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    op: String,
    path: Vec<String>,
    from: Vec<String>,
    value: Value,
}

impl Patch {
    pub(crate) fn parse(media_type: &str, body: &[u8], kind: &Kind) -> Result<Self, Refusal> {
        let document = || serde_json::from_slice::<Value>(body).map_err(|error| undecodable(&syntax(body, &error)));
        match media_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => match document()? {
                patch @ Value::Object(_) => Ok(Self::Merge(patch)),
                other => Err(undecodable(&format!(
                    "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    object::type_name(&other)
                ))),
            },
            "application/json-patch+json" => match document()? {
                Value::Array(steps) if steps.len() > MOST_STEPS => {
                    Err(Refusal::too_many_steps(MOST_STEPS, steps.len()))
                }
                Value::Array(steps) => Ok(Self::Json(steps.iter().map(Step::read).collect::<Result<_, _>>()?)),
                other => Err(undecodable(&format!(
                    "json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
                    object::type_name(&other)
                ))),
            },
            "application/strategic-merge-patch+json" if !kind.is_custom() => {
                let patch: Value =
                    serde_json::from_slice(body).map_err(|error| Refusal::bad_request(syntax(body, &error)))?;
                match patch {
                    Value::Null => Ok(Self::Strategic(Map::new(), None)),
                    Value::Object(patch) => match wire::table(&kind.kind) {
                        // Its lists have no keys.
                        None if !kind.is_definition() => {
                            let what = format!("strategic merge patches of {}", kind.resource());
                            Err(Refusal::unsupported(&what))
                        }
                        table => Ok(Self::Strategic(patch, table)),
                    },
                    other => Err(Refusal::bad_request(format!(
                        "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                        object::type_name(&other)
                    ))),
                }
            }
            _ if kind.is_custom() => Err(Refusal::unknown_media_type(
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ => Err(Refusal::unknown_media_type(
                "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, \
                 application/apply-patch+yaml",
            )),
        }
    }

    pub(crate) fn apply(&self, object: &Value) -> Result<Value, Refusal> {
        let mut patched = object.clone();
        match self {
            Self::Merge(patch) => merge(&mut patched, patch),
            Self::Strategic(patch, table) => strategic::merge(as_map(&mut patched), patch, *table)?,
            Self::Json(steps) => {
                let mut copied = 0;
                for step in steps {
                    copied += step.copied(&patched);
                    if copied > MOST_COPIED {
                        return Err(Refusal::patch_rejected());
                    }
                    step.apply(&mut patched).ok_or_else(Refusal::patch_rejected)?;
                }
            }
        }
        // A body is never deeper, and what is stored is walked by recursion.
        if is_deeper(&patched, DEEPEST) {
            return Err(Refusal::bad_request("exceeded max depth"));
        }
        Ok(patched)
    }
}

fn is_deeper(value: &Value, limit: usize) -> bool {
    let below = |value: &Value| limit.checked_sub(1).is_none_or(|limit| is_deeper(value, limit));
    match value {
        Value::Array(items) => items.iter().any(below),
        Value::Object(members) => members.values().any(below),
        _ => false,
    }
}

fn undecodable(why: &str) -> Refusal {
    Refusal::bad_request(format!("error decoding patch: {why}"))
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let target = as_map(target);
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            merge(target.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}

/// The most levels of an object, as in a body.
const DEEPEST: usize = 127;
/// The most steps of a patch.
const MOST_STEPS: usize = 10_000;
/// The bytes that all copies of a patch add.
const MOST_COPIED: usize = 3 << 20;

impl Step {
    /// The bytes that the step copies.
    fn copied(&self, object: &Value) -> usize {
        let of = Some(object).filter(|_| self.op == "copy");
        of.and_then(|object| get(object, &self.from))
            .map_or(0, |value| value.to_string().len())
    }

    fn read(step: &Value) -> Result<Self, Refusal> {
        let text = |name: &str| step.get(name).and_then(Value::as_str);
        let path = |name: &str| text(name).map(pointer);
        Ok(Self {
            op: text("op").unwrap_or_default().to_owned(),
            path: path("path").ok_or_else(Refusal::patch_rejected)?,
            from: path("from").unwrap_or_default(),
            value: step.get("value").cloned().unwrap_or(Value::Null),
        })
    }

    /// Returns `None` when the step fails; the API server gives no reason either.
    fn apply(&self, object: &mut Value) -> Option<()> {
        match self.op.as_str() {
            "add" => insert(object, &self.path, self.value.clone()),
            // The API server's library adds a missing member on `replace`.
            "replace" => replace(object, &self.path, self.value.clone()),
            "remove" => remove(object, &self.path).map(drop),
            "copy" => {
                // The copy of what is absent is null.
                let value = get(object, &self.from).cloned().unwrap_or_default();
                insert(object, &self.path, value)
            }
            "move" => {
                let value = remove(object, &self.from)?;
                insert(object, &self.path, value)
            }
            "test" => {
                let found = get(object, &self.path).unwrap_or(&Value::Null);
                (*found == self.value).then_some(())
            }
            _ => None,
        }
    }
}

fn pointer(text: &str) -> Vec<String> {
    text.split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// The place of an item; negative ones count from the end.
fn place(index: &str, length: usize) -> Option<usize> {
    match index.parse::<isize>().ok()? {
        negative if negative < 0 => length.checked_add_signed(negative),
        other => usize::try_from(other).ok(),
    }
}

fn get<'a>(root: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(root, |at, name| match at {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(place(name, items.len())?),
        _ => None,
    })
}

fn parent<'a, 'b>(root: &'a mut Value, path: &'b [String]) -> Option<(&'a mut Value, &'b str)> {
    let (last, rest) = path.split_last()?;
    let at = rest.iter().try_fold(root, |at, name| match at {
        Value::Object(map) => map.get_mut(name),
        Value::Array(items) => {
            let length = items.len();
            items.get_mut(place(name, length)?)
        }
        _ => None,
    })?;
    Some((at, last))
}

fn insert(root: &mut Value, path: &[String], value: Value) -> Option<()> {
    match parent(root, path)? {
        (Value::Object(map), name) => {
            map.insert(name.to_owned(), value);
        }
        (Value::Array(items), "-") => items.push(value),
        (Value::Array(items), index) => {
            let after = items.len().saturating_add(1);
            let index = place(index, after).filter(|index| *index < after)?;
            items.insert(index, value);
        }
        _ => return None,
    }
    Some(())
}

fn replace(root: &mut Value, path: &[String], value: Value) -> Option<()> {
    if path.is_empty() {
        *root = value;
        return Some(());
    }
    match parent(root, path)? {
        (Value::Object(map), name) => {
            map.insert(name.to_owned(), value);
        }
        (Value::Array(items), index) => {
            let length = items.len();
            *items.get_mut(place(index, length)?)? = value;
        }
        _ => return None,
    }
    Some(())
}

fn remove(root: &mut Value, path: &[String]) -> Option<Value> {
    match parent(root, path)? {
        (Value::Object(map), name) => map.remove(name),
        (Value::Array(items), index) => {
            let index = place(index, items.len()).filter(|index| *index < items.len())?;
            Some(items.remove(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each copy of a map into itself doubles it.
    #[test]
    fn patch_whose_copies_grow_without_end_is_rejected() {
        let steps = |count: usize| {
            let copies = (0..count).map(|number| {
                let path = ["a".to_owned(), format!("c{number}")].to_vec();
                Step {
                    op: "copy".to_owned(),
                    path,
                    from: vec!["a".to_owned()],
                    value: Value::Null,
                }
            });
            Patch::Json(copies.collect())
        };
        let object = json!({ "a": { "text": "x".repeat(1_000) } });
        assert!(steps(3).apply(&object).is_ok());
        assert_eq!(steps(40).apply(&object).unwrap_err().code, 422);
    }
}
