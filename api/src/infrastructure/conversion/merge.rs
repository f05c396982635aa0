//! Applies the changes of an older client to the stored object.
//!
//! A three-way merge in the newer version: `stored` is the object before the change, `base` is `stored` after a round
//! trip through the older version, `edited` is the client's object. A member that is equal in `base` and `edited` was
//! not changed by the client and keeps the stored value, even when the older version cannot express it. Objects are
//! merged member by member, lists as a whole.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Merges objects through their JSON form.
pub(super) fn merge_objects<T>(base: &T, stored: &T, edited: &T) -> serde_json::Result<T>
where
    T: Serialize + DeserializeOwned,
{
    let [base, stored, edited] = [base, stored, edited].map(serde_json::to_value);
    let (base, stored, edited) = (base?, stored?, edited?);
    serde_json::from_value(merge(Some(&base), Some(&stored), Some(&edited)).unwrap_or_default())
}

/// The merged value; `None` for an absent member.
fn merge(base: Option<&Value>, stored: Option<&Value>, edited: Option<&Value>) -> Option<Value> {
    if base == edited {
        return stored.cloned();
    }
    let (Some(Value::Object(stored)), Some(Value::Object(edited))) = (stored, edited) else {
        return edited.cloned();
    };
    let members = |name: &String| {
        let before = base.and_then(|base| base.get(name));
        merge(before, stored.get(name), edited.get(name)).map(|value| (name.clone(), value))
    };
    let added = edited.keys().filter(|name| !stored.contains_key(*name));
    Some(
        stored
            .keys()
            .chain(added)
            .filter_map(members)
            .collect::<Map<_, _>>()
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(base: Value, stored: Value, edited: Value) -> Value {
        merge(Some(&base), Some(&stored), Some(&edited)).unwrap()
    }

    #[test]
    fn unchanged_members_keep_the_stored_value() {
        let stored = json!({ "a": 1, "hidden": true, "list": [{ "x": false }] });
        let base = json!({ "a": 1, "list": [{}] });
        assert_eq!(merged(base.clone(), stored.clone(), base), stored);
    }

    #[test]
    fn a_changed_member_wins_and_its_siblings_keep_the_stored_value() {
        let stored = json!({ "in": { "a": 1, "hidden": true } });
        let base = json!({ "in": { "a": 1 } });
        let edited = json!({ "in": { "a": 2 }, "new": 3 });
        assert_eq!(
            merged(base, stored, edited),
            json!({ "in": { "a": 2, "hidden": true }, "new": 3 })
        );
    }

    #[test]
    fn a_removed_member_is_removed_with_its_hidden_members() {
        let stored = json!({ "in": { "a": 1, "hidden": true }, "b": 1 });
        let base = json!({ "in": { "a": 1 }, "b": 1 });
        assert_eq!(merged(base, stored, json!({ "b": 1 })), json!({ "b": 1 }));
    }

    #[test]
    fn a_changed_list_replaces_the_stored_one() {
        let stored = json!({ "list": [{ "x": 1, "hidden": 1 }, { "x": 2 }] });
        let base = json!({ "list": [{ "x": 1 }, { "x": 2 }] });
        let edited = json!({ "list": [{ "x": 1 }] });
        assert_eq!(merged(base, stored, edited.clone()), edited);
    }
}
