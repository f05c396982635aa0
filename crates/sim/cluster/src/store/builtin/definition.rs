//! CRDs: their versions, and the versions in which objects were ever stored.

use metal3_schema::FieldError;
use serde_json::{Value, json};

use crate::store::object::as_map;

/// Names of versions; with `flag`, only of versions that set this flag.
fn versions<'a>(definition: &'a Value, flag: Option<&str>) -> Vec<&'a str> {
    let all = definition.pointer("/spec/versions").and_then(Value::as_array);
    let is_set = |version: &&Value| flag.is_none_or(|flag| version.get(flag) == Some(&Value::Bool(true)));
    let name = |version: &'a Value| version.get("name").and_then(Value::as_str);
    all.into_iter().flatten().filter(is_set).filter_map(name).collect()
}

/// Adds the storage version to `status.storedVersions`.
pub(in crate::store) fn remember_storage(definition: &mut Value) {
    let Some(storage) = versions(definition, Some("storage"))
        .first()
        .map(|name| Value::from(*name))
    else {
        return;
    };
    let status = as_map(as_map(definition).entry("status").or_insert(Value::Null));
    let stored = status.entry("storedVersions").or_insert(Value::Null);
    if !stored.is_array() {
        *stored = json!([]);
    }
    if let Value::Array(stored) = stored
        && !stored.contains(&storage)
    {
        stored.push(storage);
    }
}

/// Fills an empty `status.storedVersions` with the storage version.
pub(in crate::store) fn default_stored(definition: &mut Value) {
    let stored = definition.pointer("/status/storedVersions").and_then(Value::as_array);
    if stored.is_none_or(Vec::is_empty) {
        remember_storage(definition);
    }
}

/// Errors for stored versions that the new definition no longer lists.
pub(in crate::store) fn lost_versions(definition: &Value) -> Vec<FieldError> {
    let all = versions(definition, None);
    let stored = definition.pointer("/status/storedVersions").and_then(Value::as_array);
    let names = stored.into_iter().flatten().filter_map(Value::as_str).enumerate();
    names
        .filter(|(_, name)| !all.contains(name))
        .map(|(number, name)| {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            FieldError::invalid(format!("status.storedVersions[{number}]"), name, detail)
        })
        .collect()
}
