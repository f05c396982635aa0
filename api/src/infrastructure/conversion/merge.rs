//! What an older client changed, applied to what is stored.
//!
//! Three objects of the newer version meet: `stored` is the truth before the change, `base` is what of it survives a
//! trip through the older version, `edited` is what the client sent. A member that is equal in `base` and `edited` was
//! not touched by the client, so the stored value stays, also where the older version cannot express it. Objects are
//! compared member by member, lists as a whole.

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

/// The value after the change; `None` for a member that is absent.
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
    fn what_the_client_left_alone_is_as_stored() {
        let stored = json!({ "a": 1, "hidden": true, "list": [{ "x": false }] });
        let base = json!({ "a": 1, "list": [{}] });
        assert_eq!(merged(base.clone(), stored.clone(), base), stored);
    }

    #[test]
    fn what_the_client_changed_wins_and_its_neighbours_stay() {
        let stored = json!({ "in": { "a": 1, "hidden": true } });
        let base = json!({ "in": { "a": 1 } });
        let edited = json!({ "in": { "a": 2 }, "new": 3 });
        assert_eq!(
            merged(base, stored, edited),
            json!({ "in": { "a": 2, "hidden": true }, "new": 3 })
        );
    }

    #[test]
    fn what_the_client_removed_is_gone_with_what_it_could_not_see() {
        let stored = json!({ "in": { "a": 1, "hidden": true }, "b": 1 });
        let base = json!({ "in": { "a": 1 }, "b": 1 });
        assert_eq!(merged(base, stored, json!({ "b": 1 })), json!({ "b": 1 }));
    }

    #[test]
    fn a_list_that_changed_is_taken_whole() {
        let stored = json!({ "list": [{ "x": 1, "hidden": 1 }, { "x": 2 }] });
        let base = json!({ "list": [{ "x": 1 }, { "x": 2 }] });
        let edited = json!({ "list": [{ "x": 1 }] });
        assert_eq!(merged(base, stored, edited.clone()), edited);
    }
}
