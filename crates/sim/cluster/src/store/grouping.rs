//! List and map types in the schemas of a definition: atomic, set, or keyed entries.
//!
//! Managed fields depend on these types. When a type changes, the real server migrates the managed fields; this one
//! detects the change and rejects it.

use serde_json::{Map, Value, json};

/// The path of the first value whose list or map type differs between two definitions.
pub(super) fn changed(old: &Value, new: &Value) -> Option<String> {
    let versions = |definition: &Value| -> Map<String, Value> {
        let all = definition.pointer("/spec/versions").and_then(Value::as_array);
        let named = |version: &Value| {
            let name = version.get("name")?.as_str()?.to_owned();
            Some((name, version.pointer("/schema/openAPIV3Schema")?.clone()))
        };
        all.into_iter().flatten().filter_map(named).collect()
    };
    let after = versions(new);
    versions(old).iter().find_map(|(name, before)| {
        let at = between(Place::root(before), Place::root(after.get(name)?), String::new())?;
        Some(format!("{name}{at}"))
    })
}

/// A schema, or no schema where any value is allowed: there maps are granular and lists are atomic.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: Option<&'a Value>,
    open: bool,
}

impl<'a> Place<'a> {
    fn root(schema: &'a Value) -> Self {
        Self::of_schema(schema, false)
    }

    fn of_schema(schema: &'a Value, open: bool) -> Self {
        let kept = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
        Self {
            schema: Some(schema),
            open: open || kept,
        }
    }

    fn keyword(self, name: &str) -> Option<&'a Value> {
        self.schema?.get(name)
    }

    fn text(self, name: &str, otherwise: &'a str) -> &'a str {
        self.keyword(name).and_then(Value::as_str).unwrap_or(otherwise)
    }

    fn list(self) -> (&'a str, Option<&'a Value>) {
        let keys = self.keyword("x-kubernetes-list-map-keys");
        (self.text("x-kubernetes-list-type", "atomic"), keys)
    }

    fn map(self) -> &'a str {
        self.text("x-kubernetes-map-type", "granular")
    }

    fn properties(self) -> impl Iterator<Item = &'a String> {
        self.keyword("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
    }

    /// The schema of a member; `None` when the member is not allowed.
    fn entry(self, name: &str) -> Option<Self> {
        let named = self.keyword("properties").and_then(|properties| properties.get(name));
        let other = || self.keyword("additionalProperties").filter(|schema| schema.is_object());
        match named.or_else(other) {
            Some(schema) => Some(Self::of_schema(schema, self.open)),
            None => self.unspecified(),
        }
    }

    fn item(self) -> Option<Self> {
        match self.keyword("items") {
            Some(schema) => Some(Self::of_schema(schema, self.open)),
            None => self.unspecified(),
        }
    }

    fn unspecified(self) -> Option<Self> {
        let anything = self.open || self.keyword("additionalProperties") == Some(&json!(true));
        anything.then_some(Self {
            schema: None,
            open: true,
        })
    }
}

fn between(old: Place<'_>, new: Place<'_>, at: String) -> Option<String> {
    if old.schema.is_none() && new.schema.is_none() {
        return None;
    }
    if old.list() != new.list() || old.map() != new.map() {
        return Some(at);
    }
    let entries = || {
        // A name outside of `properties` represents all additional properties.
        let others = String::from("*");
        let names = old.properties().chain(new.properties()).cloned().chain([others]);
        names
            .into_iter()
            .find_map(|name| between(old.entry(&name)?, new.entry(&name)?, format!("{at}.{name}")))
    };
    let items = || between(old.item()?, new.item()?, format!("{at}[]"));
    let whole = (old.map() == "atomic", old.list().0 == "atomic");
    let in_map = if whole.0 { None } else { entries() };
    in_map.or_else(|| if whole.1 { None } else { items() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(schema: &Value) -> Value {
        json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"spec": schema}}}}]}})
    }

    #[test]
    fn changed_list_or_map_type_is_found_where_managed_fields_depend_on_it() {
        let list = |kind: &str| json!({"type": "array", "x-kubernetes-list-type": kind, "items": {"type": "string"}});
        let keyed = |keys: Value, items: Value| {
            json!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "list": items}},
            })
        };
        let map =
            |kind: &str| json!({"type": "object", "x-kubernetes-map-type": kind, "properties": {"a": list("set")}});
        let within = |schema: Value| json!({"type": "object", "properties": {"x": schema}});
        let entries = |schema: Value| json!({"type": "object", "additionalProperties": schema});
        let plain = json!({"type": "array", "items": {"type": "string"}});
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let atomic_over = |schema: Value| json!({"type": "array", "items": schema});
        for (old, new, found) in [
            (list("set"), list("atomic"), Some("v1.spec")),
            (plain.clone(), list("atomic"), None),
            (plain.clone(), list("set"), Some("v1.spec")),
            (
                keyed(json!(["name"]), plain.clone()),
                keyed(json!(["list"]), plain.clone()),
                Some("v1.spec"),
            ),
            (
                keyed(json!(["name"]), plain.clone()),
                keyed(json!(["name"]), list("set")),
                Some("v1.spec[].list"),
            ),
            (map("granular"), map("atomic"), Some("v1.spec")),
            (within(list("set")), within(plain.clone()), Some("v1.spec.x")),
            (within(list("set")), json!({"type": "object"}), None),
            (entries(list("set")), entries(plain.clone()), Some("v1.spec.*")),
            (anything.clone(), within(list("set")), Some("v1.spec.x")),
            (within(list("set")), anything, Some("v1.spec.x")),
            (atomic_over(within(list("set"))), atomic_over(within(plain)), None),
        ] {
            let at = changed(&definition(&old), &definition(&new));
            assert_eq!(at.as_deref(), found, "{old} to {new}");
        }
    }
}
