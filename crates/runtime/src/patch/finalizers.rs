//! Finalizers, one at a time.
//!
//! A patch replaces the whole list, so it has the version of the list as its precondition: a concurrent change of
//! finalizers makes the write fail instead of being undone.

use kube_core::Resource;
use serde_json::{Map, Value, json};

use crate::version::ResourceVersion;

use super::changes::MergePatch;

/// The patch that appends `finalizer`; `None` if it is present.
#[must_use]
pub fn add_finalizer(present: &[String], finalizer: &str, at: &ResourceVersion) -> Option<MergePatch> {
    if present.iter().any(|name| name == finalizer) {
        return None;
    }
    let all = present.iter().map(String::as_str).chain([finalizer]);
    Some(replace(all.map(Value::from).collect(), at))
}

/// The patch that removes `finalizer` and keeps the others in order; `None` if it is not present.
#[must_use]
pub fn remove_finalizer(present: &[String], finalizer: &str, at: &ResourceVersion) -> Option<MergePatch> {
    let rest: Vec<Value> = present
        .iter()
        .filter(|name| *name != finalizer)
        .map(|name| Value::from(name.as_str()))
        .collect();
    (rest.len() < present.len()).then(|| replace(rest, at))
}

/// The object to create with `finalizer`, so that it is never without it and needs no second write.
#[must_use]
pub fn with_finalizer<K: Resource>(mut object: K, finalizer: &str) -> K {
    let present = object.meta_mut().finalizers.get_or_insert_default();
    if present.iter().all(|name| name != finalizer) {
        present.push(finalizer.to_owned());
    }
    object
}

/// Whether the object has `finalizer`.
#[must_use]
pub fn has_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    let present = object.meta().finalizers.as_deref().unwrap_or_default();
    present.iter().any(|name| name == finalizer)
}

fn replace(finalizers: Vec<Value>, at: &ResourceVersion) -> MergePatch {
    let list = if finalizers.is_empty() {
        Value::Null
    } else {
        Value::Array(finalizers)
    };
    let members = Map::from_iter([("metadata".to_owned(), json!({ "finalizers": list }))]);
    MergePatch::new(members, &Value::Null).with_precondition(at)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn an_object_is_born_with_a_finalizer_once_and_keeps_those_it_has() {
        let mut object = ConfigMap::default();
        object.metadata.finalizers = Some(names(&["other"]));
        assert!(!has_finalizer(&object, "own") && !has_finalizer(&ConfigMap::default(), "own"));
        let guarded = with_finalizer(with_finalizer(object, "own"), "own");
        assert_eq!(guarded.metadata.finalizers, Some(names(&["other", "own"])));
        assert!(has_finalizer(&guarded, "own"));
        assert_eq!(
            with_finalizer(ConfigMap::default(), "own").metadata.finalizers,
            Some(names(&["own"]))
        );
    }

    #[test]
    fn finalizers_change_one_at_a_time_and_carry_their_version() {
        type Edit = fn(&[String], &str, &ResourceVersion) -> Option<MergePatch>;
        let version = ResourceVersion::parse("42").unwrap();
        let table: [(Edit, &[&str], Option<Value>); 6] = [
            (add_finalizer, &[], Some(json!(["own"]))),
            (add_finalizer, &["other"], Some(json!(["other", "own"]))),
            (add_finalizer, &["own", "other"], None),
            (remove_finalizer, &["a", "own", "b"], Some(json!(["a", "b"]))),
            (remove_finalizer, &["own"], Some(json!(null))),
            (remove_finalizer, &["other"], None),
        ];
        for (edit, present, list) in table {
            let patch = edit(&names(present), "own", &version).map(MergePatch::into_document);
            let expected = list.map(|list| json!({"metadata": {"finalizers": list, "resourceVersion": "42"}}));
            assert_eq!(patch, expected, "{present:?}");
        }
    }
}
