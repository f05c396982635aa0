//! JSON patches with the operations that the client sends: `add` and `remove`.

use serde_json::Value;

use crate::refusal::Refusal;

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    /// The field of the node.
    pub(crate) field: String,
    /// The path within the field.
    inner: Vec<String>,
    /// `None` for `remove`.
    value: Option<Value>,
}

/// Whether Ironic takes this as a part of a path: no dot, no slash, no tilde.
fn is_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// Reads a patch.
pub(crate) fn read(body: &Value) -> Result<Vec<Operation>, Refusal> {
    let schema = || Refusal::invalid("Schema error for patch: it is not a list of operations");
    let operations = body.as_array().ok_or_else(schema)?;
    operations
        .iter()
        .map(|operation| {
            let text = |key: &str| operation.get(key).and_then(Value::as_str);
            let path = text("path")
                .and_then(|path| path.strip_prefix('/'))
                .ok_or_else(schema)?;
            if !path.split('/').all(is_key) {
                let message = format!("Schema error for patch: '/{path}' does not match '^(/[\\\\w-]+)+$'");
                return Err(Refusal::invalid(message));
            }
            let mut keys = path.split('/').map(str::to_owned);
            let field = keys.next().unwrap_or_default();
            let value = match text("op") {
                Some("remove") => None,
                Some("add") => Some(operation.get("value").cloned().ok_or_else(schema)?),
                Some(other) => return Err(Refusal::not_simulated(&format!("the patch operation {other}"))),
                None => return Err(schema()),
            };
            Ok(Operation {
                field,
                inner: keys.collect(),
                value,
            })
        })
        .collect()
}

impl Operation {
    /// Whether it removes the whole field.
    pub(crate) fn removes(&self, field: &str) -> bool {
        self.field == field && self.inner.is_empty() && self.value.is_none()
    }

    /// Applies it to the value of its field; `unset` returns the default value.
    pub(crate) fn apply(&self, field: &mut Value, unset: impl FnOnce() -> Value) -> Result<(), Refusal> {
        let Some((last, parents)) = self.inner.split_last() else {
            *field = self.value.clone().unwrap_or_else(unset);
            return Ok(());
        };
        let mut place = field;
        for key in parents {
            place = match place {
                Value::Object(map) => map.get_mut(key),
                Value::Array(items) => key.parse().ok().and_then(|at: usize| items.get_mut(at)),
                _ => None,
            }
            .ok_or_else(|| self.impossible())?;
        }
        let done = match (place, &self.value) {
            (Value::Object(map), Some(value)) => {
                map.insert(last.clone(), value.clone());
                true
            }
            (Value::Object(map), None) => map.remove(last).is_some(),
            (Value::Array(items), value) => change_list(items, last, value.as_ref()),
            _ => false,
        };
        if done { Ok(()) } else { Err(self.impossible()) }
    }

    fn impossible(&self) -> Refusal {
        let (field, inner) = (&self.field, self.inner.join("/"));
        Refusal::invalid(format!(
            "Couldn't apply patch to '/{field}/{inner}'. Reason: can't reach or remove a non-existent object"
        ))
    }
}

fn change_list(items: &mut Vec<Value>, at: &str, value: Option<&Value>) -> bool {
    let index = match at {
        "-" => Some(items.len()),
        digits => digits.parse().ok(),
    };
    match (index, value) {
        (Some(index), Some(value)) if index <= items.len() => items.insert(index, value.clone()),
        (Some(index), None) if index < items.len() => drop(items.remove(index)),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(operation: &Value, mut field: Value) -> Result<Value, u16> {
        let status = |refusal: Refusal| refusal.status.as_u16();
        let operations = read(&json!([operation])).map_err(status)?;
        operations[0].apply(&mut field, || json!({})).map_err(status)?;
        Ok(field)
    }

    #[test]
    fn add_replaces_a_value_and_does_not_create_parents() {
        let add = |path: &str, value| json!({"op": "add", "path": path, "value": value});
        assert_eq!(patched(&add("/extra/a", 1), json!({"a": 0})), Ok(json!({"a": 1})));
        for refused in ["/extra/a~1b", "/extra/a.b", "/extra/", "/extra/a b"] {
            assert_eq!(patched(&add(refused, 1), json!({})), Err(400), "{refused}");
        }
        assert_eq!(patched(&add("/extra", 1), json!({})), Ok(json!(1)));
        assert_eq!(
            patched(&add("/extra/l/1", 2), json!({"l": [1]})),
            Ok(json!({"l": [1, 2]}))
        );
        assert_eq!(
            patched(&add("/extra/l/-", 2), json!({"l": [1]})),
            Ok(json!({"l": [1, 2]}))
        );
        assert_eq!(patched(&add("/extra/a/b", 1), json!({})), Err(400));
        assert_eq!(patched(&add("/extra/l/3", 1), json!({"l": []})), Err(400));
    }

    #[test]
    fn remove_requires_an_existing_value() {
        let remove = |path: &str| json!({"op": "remove", "path": path});
        assert_eq!(patched(&remove("/extra/a"), json!({"a": 1})), Ok(json!({})));
        assert_eq!(patched(&remove("/extra"), json!({"a": 1})), Ok(json!({})));
        assert_eq!(patched(&remove("/extra/a"), json!({})), Err(400));
        assert_eq!(patched(&remove("/extra/a/b"), json!({"a": 1})), Err(400));
    }

    #[test]
    fn other_operations_answer_501() {
        assert_eq!(
            patched(&json!({"op": "replace", "path": "/a", "value": 1}), json!({})),
            Err(501)
        );
        assert_eq!(
            patched(&json!({"op": "add", "path": "a", "value": 1}), json!({})),
            Err(400)
        );
        assert!(read(&json!({})).is_err());
    }
}
