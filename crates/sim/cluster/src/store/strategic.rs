//! Strategic merge patches: merge patches that merge the lists of built-in kinds, by keys or as sets.
//!
//! The tables of `wire` name the keys. A kind without a table has none, so that its lists are replaced.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::object::as_map;
use super::refusal::Refusal;
use super::wire::{Form, Message};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const REMOVE: &str = "$deleteFromPrimitiveList/";

type Object = Map<String, Value>;
type Table = Option<&'static Message>;

/// Applies a patch to an object or to a part of one.
///
/// # Errors
/// When the patch has an unknown directive, or an item of a list does not have its merge key.
pub(super) fn merge(target: &mut Object, patch: &Object, table: Table) -> Result<(), Refusal> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(directive) if directive == "replace" => {
            target.clone_from(patch);
            target.remove(DIRECTIVE);
            return Ok(());
        }
        Some(directive) if directive == "delete" => {
            target.clear();
            return Ok(());
        }
        Some(directive) => return Err(unknown(directive, patch)),
    }
    if let Some(retained) = patch.get(RETAIN) {
        retain(target, patch, retained)?;
    }
    let names: BTreeSet<&str> = patch.keys().filter_map(|name| field(name)).collect();
    for name in names {
        let form = table.and_then(|table| table.form(name));
        merge_field(target, patch, name, form)?;
    }
    Ok(())
}

fn unknown(directive: &Value, patch: &Object) -> Refusal {
    let (directive, patch) = (shown(directive), shown(&Value::Object(patch.clone())));
    Refusal::internal(format!("unknown patch type: {directive} in map: {patch}"))
}

/// A value as the server prints it in errors.
fn shown(value: &Value) -> String {
    let joined = |items: Vec<String>| items.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(shown).collect())),
        Value::Object(map) => {
            let mut members: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{name}:{}", shown(value)))
                .collect();
            members.sort_unstable();
            format!("map[{}]", joined(members))
        }
        other => other.to_string(),
    }
}

/// The field that a member of a patch changes; `None` for the directives of the whole object.
fn field(name: &str) -> Option<&str> {
    let named = name.strip_prefix(ORDER).or_else(|| name.strip_prefix(REMOVE));
    named.or_else(|| (name != DIRECTIVE && name != RETAIN).then_some(name))
}

fn retain(target: &mut Object, patch: &Object, retained: &Value) -> Result<(), Refusal> {
    let listed = |name: &str| {
        retained
            .as_array()
            .is_some_and(|list| list.iter().any(|item| item == name))
    };
    let mut fields = patch
        .iter()
        .filter(|(name, value)| field(name) == Some(name.as_str()) && !value.is_null());
    if !retained.is_array() || !fields.all(|(name, _)| listed(name)) {
        return Err(Refusal::bad_request("invalid patch format of retainKeys"));
    }
    target.retain(|name, _| listed(name));
    Ok(())
}

fn merge_field(target: &mut Object, patch: &Object, name: &str, form: Option<&'static Form>) -> Result<(), Refusal> {
    let before = target.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    if let (Some(Value::Array(removed)), Some(Value::Array(items))) =
        (patch.get(&format!("{REMOVE}{name}")), target.get_mut(name))
    {
        items.retain(|item| !removed.contains(item));
    }
    let wanted = patch.get(&format!("{ORDER}{name}")).and_then(Value::as_array);
    match (patch.get(name), target.get_mut(name)) {
        (None, _) => {}
        (Some(Value::Null), _) => drop(target.remove(name)),
        (Some(Value::Object(changes)), Some(found @ Value::Object(_))) => {
            let table = match form {
                Some(Form::One(table)) => Some(*table),
                _ => None,
            };
            merge(as_map(found), changes, table)?;
        }
        (Some(Value::Array(changes)), Some(Value::Array(found))) if merges(form) => {
            check_order(changes, wanted, form)?;
            merge_list(found, changes, form)?;
            arrange(found, wanted.unwrap_or(changes), &before, form);
        }
        // It changes what is not there.
        (Some(value), _) if value.get(DIRECTIVE).is_some() => drop(target.remove(name)),
        (Some(value), _) => drop(target.insert(name.to_owned(), plain(value))),
    }
    if let (Some(wanted), Some(Value::Array(found))) = (wanted, target.get_mut(name)) {
        arrange(found, wanted, &before, form);
    }
    Ok(())
}

const fn merges(form: Option<&'static Form>) -> bool {
    matches!(form, Some(Form::Keyed(..) | Form::Union(_)))
}

/// The place of the item with the same key.
fn place(list: &[Value], item: &Value, form: Option<&'static Form>) -> Option<usize> {
    match form {
        Some(Form::Keyed(key, _)) => {
            let wanted = item.get(key);
            list.iter().position(|other| other.get(key) == wanted)
        }
        _ => list.iter().position(|other| other == item),
    }
}

/// The items of a patch must be in the list that orders them, and in its order.
fn check_order(changes: &[Value], wanted: Option<&Vec<Value>>, form: Option<&'static Form>) -> Result<(), Refusal> {
    let Some(wanted) = wanted else { return Ok(()) };
    let kept = changes.iter().filter(|change| change.get(DIRECTIVE).is_none());
    let places: Option<Vec<usize>> = kept.map(|change| place(wanted, change, form)).collect();
    if places.is_some_and(|places| places.is_sorted()) {
        return Ok(());
    }
    let (changes, wanted) = (shown(&json!(changes)), shown(&json!(wanted)));
    let message = format!("The order in patch list:\n{changes}\n doesn't match $setElementOrder list:\n{wanted}\n");
    Err(Refusal::internal(message))
}

fn merge_list(found: &mut Vec<Value>, changes: &[Value], form: Option<&'static Form>) -> Result<(), Refusal> {
    let Some(Form::Keyed(key, table)) = form else {
        for change in changes {
            if !found.contains(change) {
                found.push(change.clone());
            }
        }
        return Ok(());
    };
    if changes
        .iter()
        .any(|change| change.get(DIRECTIVE) == Some(&json!("replace")))
    {
        let replaced = changes.iter().filter(|change| change.get(DIRECTIVE).is_none());
        *found = replaced.map(plain).collect();
        return Ok(());
    }
    for change in changes {
        let wanted = change.get(key).ok_or_else(|| {
            let change = shown(change);
            Refusal::internal(format!("map: {change} does not contain declared merge key: {key}"))
        })?;
        let same = |item: &Value| item.get(key) == Some(wanted);
        if change.get(DIRECTIVE) == Some(&json!("delete")) {
            found.retain(|item| !same(item));
            continue;
        }
        if let (Some(directive), Value::Object(change)) = (change.get(DIRECTIVE), change) {
            return Err(unknown(directive, change));
        }
        match (found.iter_mut().find(|item| same(item)), change) {
            (Some(item), Value::Object(change)) => merge(as_map(item), change, Some(table))?,
            _ => found.push(plain(change)),
        }
    }
    Ok(())
}

/// Sorts the items that the client lists as the client does, and the others, which only the server has, as before. Between both,
/// an item of the server comes first only if it did before.
fn arrange(items: &mut Vec<Value>, wanted: &[Value], before: &[Value], form: Option<&'static Form>) {
    let place = |list: &[Value], item: &Value| place(list, item, form);
    let (mut listed, mut others): (Vec<Value>, Vec<Value>) = std::mem::take(items)
        .into_iter()
        .partition(|item| place(wanted, item).is_some());
    listed.sort_by_key(|item| place(wanted, item));
    others.sort_by_key(|item| place(before, item).unwrap_or(usize::MAX));
    let (mut listed, mut others) = (listed.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(left), Some(right)) = (others.peek(), listed.peek()) {
        let is_left = place(before, left)
            .zip(place(before, right))
            .is_some_and(|(left, right)| left < right);
        items.extend(if is_left { others.next() } else { listed.next() });
    }
    items.extend(others.chain(listed));
}

/// A new value: without directives, and without members that are only removed.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(name, value)| {
                field(name) == Some(name.as_str()) && !value.is_null() && value.get(DIRECTIVE).is_none()
            })
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect::<Object>()
            .into(),
        Value::Array(items) => items
            .iter()
            .filter(|item| item.get(DIRECTIVE).is_none())
            .map(plain)
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire;
    use super::*;

    fn merged(kind: &str, object: &Value, patch: &Value) -> Result<Value, Refusal> {
        let mut object = object.as_object().unwrap().clone();
        merge(&mut object, patch.as_object().unwrap(), wire::table(kind))?;
        Ok(object.into())
    }

    fn containers(names: &[&str]) -> Value {
        let items: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"containers": items}})
    }

    #[test]
    fn fields_and_maps_merge_and_null_removes() {
        let object = json!({"data": {"a": "1", "b": "2"}, "immutable": true});
        let patch = json!({"data": {"a": null, "c": "3"}, "immutable": null});
        assert_eq!(
            merged("ConfigMap", &object, &patch).unwrap(),
            json!({"data": {"b": "2", "c": "3"}})
        );
    }

    #[test]
    fn lists_merge_by_key_and_new_items_come_first() {
        let object = json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}});
        let patch = json!({"spec": {"containers": [{"name": "c"}, {"name": "b", "image": "z"}]}});
        let expected = json!({"spec": {"containers": [
            {"name": "c"}, {"name": "a", "image": "x"}, {"name": "b", "image": "z"},
        ]}});
        assert_eq!(merged("Pod", &object, &patch).unwrap(), expected);
    }

    #[test]
    fn items_are_deleted_replaced_and_ordered() {
        for (patch, expected) in [
            (json!([{"name": "a", "$patch": "delete"}]), vec!["b", "c"]),
            (json!([{"name": "d"}, {"$patch": "replace"}]), vec!["d"]),
            (
                json!([{"name": "c", "$patch": "delete"}, {"name": "d"}]),
                vec!["d", "a", "b"],
            ),
        ] {
            let patch = json!({"spec": {"containers": patch}});
            let found = merged("Pod", &containers(&["a", "b", "c"]), &patch).unwrap();
            assert_eq!(found, containers(&expected), "{patch}");
        }
        let patch = json!({"spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "b", "$patch": "delete"}],
        }});
        assert_eq!(
            merged("Pod", &containers(&["a", "b", "c"]), &patch).unwrap(),
            containers(&["c", "a"])
        );
    }

    #[test]
    fn sets_are_extended_and_reduced() {
        let object = json!({"metadata": {"finalizers": ["a", "b"]}});
        let patch = json!({"metadata": {
            "finalizers": ["a", "c"], "$deleteFromPrimitiveList/finalizers": ["b"],
            "$setElementOrder/finalizers": ["a", "c"],
        }});
        let expected = json!({"metadata": {"finalizers": ["a", "c"]}});
        assert_eq!(merged("ConfigMap", &object, &patch).unwrap(), expected);
    }

    #[test]
    fn other_lists_are_replaced() {
        let object = json!({"spec": {"taints": [{"key": "a"}]}});
        let patch = json!({"spec": {"taints": [{"key": "b"}]}});
        assert_eq!(merged("Node", &object, &patch).unwrap(), patch);
    }

    #[test]
    fn retained_keys_remove_the_others() {
        let object = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let strategy = json!({"type": "Recreate", "$retainKeys": ["type"]});
        let expected = json!({"spec": {"strategy": {"type": "Recreate"}}});
        let patch = json!({"spec": {"strategy": strategy}});
        assert_eq!(merged("Deployment", &object, &patch).unwrap(), expected);
        let patch = json!({"spec": {"strategy": {"type": "Recreate", "$retainKeys": ["rollingUpdate"]}}});
        assert_eq!(merged("Deployment", &object, &patch).unwrap_err().code, 400);
    }

    #[test]
    fn maps_are_replaced_and_deleted() {
        let object = json!({"data": {"a": "1"}});
        for (patch, expected) in [
            (
                json!({"data": {"$patch": "replace", "b": "2"}}),
                json!({"data": {"b": "2"}}),
            ),
            (json!({"data": {"$patch": "delete"}}), json!({"data": {}})),
        ] {
            assert_eq!(merged("ConfigMap", &object, &patch).unwrap(), expected);
        }
    }

    #[test]
    fn directives_are_not_stored() {
        let patch = json!({"spec": {
            "$setElementOrder/containers": [{"name": "a"}],
            "containers": [{"name": "a", "$retainKeys": ["name"]}, {"name": "b", "$patch": "delete"}],
        }});
        assert_eq!(merged("Pod", &json!({}), &patch).unwrap(), containers(&["a"]));
    }

    #[test]
    fn missing_merge_key_and_unknown_directive_are_rejected() {
        let patch = json!({"spec": {"containers": [{"image": "x"}]}});
        let refusal = merged("Pod", &containers(&["a"]), &patch).unwrap_err();
        assert!(
            refusal.message.contains("declared merge key: name"),
            "{}",
            refusal.message
        );
        let refusal = merged("Pod", &json!({}), &json!({"$patch": "frob"})).unwrap_err();
        assert_eq!(refusal.message, "unknown patch type: frob in map: map[$patch:frob]");
        let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "c"}]}});
        let refusal = merged("Pod", &containers(&["a"]), &patch).unwrap_err();
        assert!(
            refusal.message.starts_with("The order in patch list:\n[map[name:c]]\n"),
            "{}",
            refusal.message
        );
    }
}
