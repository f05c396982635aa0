//! Merge patches over documents, as RFC 7386 defines them.

use serde_json::{Map, Value};

/// The patch that turns `from` into `to`; `None` if they are equal. A null field counts as absent.
#[must_use]
pub fn diff(from: &Value, to: &Value) -> Option<Value> {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            let patch = members(from, to);
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        _ => (from != to).then(|| to.clone()),
    }
}

/// Applies `patch` to `target`, as the server does.
pub fn apply(patch: &Value, target: &mut Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            apply(change, members.entry(name.as_str()).or_insert(Value::Null));
        }
    }
}

fn members(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let gone = from
        .iter()
        .filter(|(name, old)| !old.is_null() && present(to, name).is_none())
        .map(|(name, _)| (name.clone(), Value::Null));
    let changed = to.iter().filter(|(_, new)| !new.is_null()).filter_map(|(name, new)| {
        let change = match present(from, name) {
            Some(old) => diff(old, new)?,
            None => new.clone(),
        };
        Some((name.clone(), change))
    });
    gone.chain(changed).collect()
}

fn present<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn patched(patch: &Value, mut target: Value) -> Value {
        apply(patch, &mut target);
        target
    }

    #[test]
    fn patches_apply_as_the_standard_shows() {
        // Target, patch and result: the cases in the appendix of the RFC.
        let table = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (target, patch, result) in table {
            assert_eq!(patched(&patch, target.clone()), result, "{patch} on {target}");
        }
    }

    #[test]
    fn differences_are_as_small_as_they_can_be() {
        let table = [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 1, "b": null}), None),
            (json!({"a": null}), json!({}), None),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": 1}}),
                Some(json!({"a": {"c": null}})),
            ),
            (json!({"a": {"b": 1}}), json!({"a": null}), Some(json!({"a": null}))),
            (json!({}), json!({"a": {}}), Some(json!({"a": {}}))),
            (
                json!({"a": {"b": 1}}),
                json!({"a": {}}),
                Some(json!({"a": {"b": null}})),
            ),
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
        ];
        for (from, to, patch) in table {
            assert_eq!(diff(&from, &to), patch, "{from} to {to}");
        }
    }

    fn document(with_null: bool) -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            2 => any::<u8>().prop_map(|number| json!(number)),
            1 => "[a-c]{0,2}".prop_map(Value::String),
            1 => any::<bool>().prop_map(move |bit| if with_null { Value::Null } else { Value::Bool(bit) }),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                4 => prop::collection::hash_map("[a-d]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Lists are replaced whole, so nulls inside them stay.
    fn without_nulls(value: Value) -> Value {
        match value {
            Value::Object(members) => members
                .into_iter()
                .filter(|(_, member)| !member.is_null())
                .map(|(name, member)| (name, without_nulls(member)))
                .collect(),
            other => other,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn applying_the_difference_gives_the_second_document(a in document(false), b in document(false)) {
            match diff(&a, &b) {
                Some(patch) => {
                    prop_assert_ne!(&a, &b);
                    prop_assert_eq!(patched(&patch, a), b);
                }
                None => prop_assert_eq!(a, b),
            }
        }

        #[test]
        fn null_members_count_as_absent(a in document(true), b in document(true)) {
            let result = diff(&a, &b).map_or(a.clone(), |patch| patched(&patch, a));
            prop_assert_eq!(without_nulls(result), without_nulls(b));
        }

        #[test]
        fn applying_twice_changes_nothing_more(patch in document(true), target in document(true)) {
            let once = patched(&patch, target);
            prop_assert_eq!(patched(&patch, once.clone()), once);
        }
    }
}
