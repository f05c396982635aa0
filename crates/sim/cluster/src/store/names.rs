//! The names of kinds: a group has each only once. A CRD whose names another one has is stored and not served.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Store;
use super::object;

impl Store {
    /// The definition with the accepted names and the conditions that clients wait for; `None` when they are right already.
    pub(super) fn with_accepted_names(&self, definition: &Value, time: &str) -> Option<Value> {
        let wanted = definition.pointer("/spec/names").cloned().unwrap_or_default();
        let before = definition.pointer("/status/acceptedNames").cloned().unwrap_or_default();
        let taken = self.names_of_others(definition);
        let (mut accepted, mut problem) = (Map::new(), None);
        for (name, reason) in [
            ("plural", "PluralConflict"),
            ("singular", "SingularConflict"),
            ("shortNames", "ShortNamesConflict"),
            ("kind", "KindConflict"),
            ("listKind", "ListKindConflict"),
        ] {
            let found = wanted.get(name).cloned().unwrap_or_default();
            let clashes: Vec<String> = texts(&found)
                .into_iter()
                .filter(|text| taken.contains(text))
                .map(|text| format!("{text:?} is already in use"))
                .collect();
            let value = if clashes.is_empty() {
                Some(&found)
            } else {
                before.get(name)
            };
            accepted.extend(
                value
                    .filter(|value| !value.is_null() && **value != "")
                    .map(|value| (name.to_owned(), value.clone())),
            );
            if !clashes.is_empty() {
                problem = Some((reason, aggregated(&clashes)));
            }
        }
        accepted.extend(
            wanted
                .get("categories")
                .map(|value| ("categories".to_owned(), value.clone())),
        );
        let conditions = conditions(definition, problem, time);
        let now = (Some(&Value::Object(accepted.clone())), Some(&conditions));
        if now
            == (
                definition.pointer("/status/acceptedNames"),
                definition.pointer("/status/conditions"),
            )
        {
            return None;
        }
        let mut changed = definition.clone();
        let status = object::as_map(object::as_map(&mut changed).entry("status").or_insert(Value::Null));
        status.insert("acceptedNames".to_owned(), accepted.into());
        status.insert("conditions".to_owned(), conditions);
        Some(changed)
    }

    /// All accepted names of the other definitions of the group.
    fn names_of_others(&self, definition: &Value) -> BTreeSet<String> {
        let Some(kind) = self.definition_kind() else {
            return BTreeSet::new();
        };
        let group = definition.pointer("/spec/group");
        let all = self.objects.get(&super::resource_key(&kind)).into_iter().flatten();
        let others = all
            .filter(|(key, other)| key.1 != object::text(definition, "name") && other.pointer("/spec/group") == group);
        let accepted = others.filter_map(|(_, other)| other.pointer("/status/acceptedNames")?.as_object());
        let names = accepted.flat_map(|names| names.iter().filter(|(name, _)| *name != "categories"));
        names.flat_map(|(_, value)| texts(value)).collect()
    }
}

/// Several problems are in brackets.
fn aggregated(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Whether it has all the names that it wants.
pub(super) fn has_its_names(definition: &Value) -> bool {
    condition(definition, "NamesAccepted").is_some_and(|found| found.get("status") == Some(&json!("True")))
}

/// Whether a definition is served.
pub(super) fn is_established(definition: &Value) -> bool {
    condition(definition, "Established").is_some_and(|found| found.get("status") == Some(&json!("True")))
}

fn condition<'a>(definition: &'a Value, name: &str) -> Option<&'a Value> {
    let all = definition.pointer("/status/conditions")?.as_array()?;
    all.iter()
        .find(|found| found.get("type").is_some_and(|found| found == name))
}

fn conditions(definition: &Value, problem: Option<(&str, String)>, time: &str) -> Value {
    let names = match &problem {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    let established = match &problem {
        Some(_) if !is_established(definition) => ("False", "NotAccepted", "not all names are accepted"),
        _ => ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    };
    let all = [("NamesAccepted", names), ("Established", established)].map(|(name, (status, reason, message))| {
        let new = json!({
            "type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": time,
        });
        let same = |old: &&Value| {
            ["status", "reason", "message"]
                .iter()
                .all(|part| old.get(*part) == new.get(*part))
        };
        condition(definition, name).filter(same).cloned().unwrap_or(new)
    });
    let others = definition.pointer("/status/conditions").and_then(Value::as_array);
    let others = others.into_iter().flatten().filter(|found| {
        !matches!(
            found.get("type").and_then(Value::as_str),
            Some("NamesAccepted" | "Established")
        )
    });
    all.into_iter().chain(others.cloned()).collect()
}
