//! `values.yaml` and `values.schema.json`, from one table of values.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use metal3_domain::yaml;
use metal3_flags::FALSE;
use serde_json::{Map, Value, json};

use super::rows::Row;

/// `values.yaml`, with a comment for each value.
pub(super) fn yaml(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut open = "";
    for row in rows {
        let (group, member) = row.path.split_once('.').unwrap_or(("", row.path));
        if group != open && !group.is_empty() {
            text.push_str(&format!("{group}:\n"));
        }
        open = group;
        let indent = if group.is_empty() { "" } else { "  " };
        // Writing to a String cannot fail.
        let _written = writeln!(text, "{indent}# {}", row.about);
        let value = yaml::text(&json!({ member: row.default }));
        text.extend(value.lines().map(|line| format!("{indent}{line}\n")));
    }
    text
}

/// `values.schema.json`. Other members than those of the table are errors.
pub(super) fn schema(rows: &[Row]) -> Value {
    let mut members = Map::new();
    // Helm adds it for charts that contain others, which name the others as conditions.
    members.insert("global".to_owned(), json!({}));
    members.insert("enabled".to_owned(), json!({ "type": "boolean" }));
    members.insert("tags".to_owned(), json!({ "type": "object" }));
    for row in rows {
        let mut schema = row.schema.clone();
        if let Value::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), row.about.into());
        }
        match row.path.split_once('.') {
            None => {
                members.insert(row.path.to_owned(), schema);
            }
            Some((group, member)) => {
                let group = members
                    .entry(group.to_owned())
                    .or_insert_with(|| json!({ "type": "object", "additionalProperties": false, "properties": {} }));
                if let Some(Value::Object(below)) = group.get_mut("properties") {
                    below.insert(member.to_owned(), schema);
                }
            }
        }
    }
    let mut whole = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "required": required(rows),
        "properties": members,
        "allOf": rules(rows),
    });
    if let Some(products) = whole.pointer_mut("/properties/products")
        && let Value::Object(products) = products
    {
        let on = ["ipam", "capm3", "hosts"].map(|name| json!({ "properties": { name: { "const": true } } }));
        products.insert("anyOf".to_owned(), json!(on));
        products.insert("required".to_owned(), json!(["ipam", "capm3", "hosts"]));
    }
    whole
}

/// Members without which templates have nothing to read from: a `null` removes one. The values of an older release, which an
/// upgrade may reuse, have them, so a new group of values needs templates that accept its absence.
fn required(rows: &[Row]) -> BTreeSet<&'static str> {
    let groups = rows.iter().filter_map(|row| Some(row.path.split_once('.')?.0));
    let members = rows.iter().map(|row| row.path);
    groups
        .chain(members.filter(|path| ["certificates", "replicas"].contains(path)))
        .collect()
}

/// Values that contradict each other.
fn rules(rows: &[Row]) -> Vec<Value> {
    if !rows.iter().any(|row| row.path == "observeOnly") {
        return vec![json!({})];
    }
    let filled = json!({ "minLength": 1 });
    // An empty variable is off, too.
    let off: Vec<&str> = FALSE.into_iter().chain([""]).collect();
    let login = |member: &str| json!({ "properties": { "ironic": { "required": [member], "properties": { member: filled } } } });
    let plain = json!({ "pattern": "^http:" });
    let of_further = json!({ "contains": {
        "required": ["endpoint", "credentialsSecret"], "properties": { "endpoint": plain },
    } });
    let is_allowed =
        json!({ "properties": { "extraArgs": { "contains": { "pattern": "^--allow-insecure-ironic(=true)?$" } } } });
    vec![
        json!({ "not": { "properties": {
            "observeOnly": { "const": true }, "certificates": { "const": "self-managed" },
        } } }),
        json!({ "not": { "properties": {
            "serviceMonitor": { "properties": { "enabled": { "const": true } } },
            "podMonitor": { "properties": { "enabled": { "const": true } } },
        } } }),
        json!({
            "if": { "properties": { "ironic": { "anyOf": [
                { "required": ["endpoint"], "properties": { "endpoint": plain } },
                { "required": ["further"], "properties": { "further": of_further } },
            ] } } },
            "then": is_allowed,
        }),
        // A policy accepts no change of the two Secrets of switches, which have the names that a user gives them.
        json!({
            "if": { "required": ["settings"], "properties": { "settings": {
                "required": ["IRONIC_NETWORKING_ENABLED"],
                "properties": { "IRONIC_NETWORKING_ENABLED": { "not": { "enum": off } } },
            } } },
            // An upgrade that keeps older values has none.
            "then": { "required": ["admissionPolicies"], "properties": {
                "admissionPolicies": { "const": false }, "certificates": { "const": "cert-manager" },
            } },
        }),
        json!({ "if": login("username"), "then": login("password") }),
        json!({ "if": login("password"), "then": login("username") }),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use metal3_flags::VARIABLES;

    use super::*;
    use crate::release::chart::rows::of_program;

    fn rows() -> Vec<Row> {
        of_program(&json!({ "spec": { "replicas": 2, "template": { "spec": { "tolerations": [{ "key": "a" }] } } } }))
    }

    #[test]
    fn every_variable_of_the_program_can_be_set() {
        let (schema, rows) = (schema(&rows()), rows());
        let of_settings = &schema["properties"]["settings"]["propertyNames"]["enum"];
        let of_settings: Vec<&str> = of_settings
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let of_values = BTreeMap::from([
            ("IRONIC_ENDPOINT", "ironic.endpoint"),
            ("IRONIC_ENDPOINTS", "ironic.endpoints"),
            ("IRONIC_NAME", "ironic.name"),
            ("IRONIC_NAMESPACE", "ironic.namespace"),
            ("WATCH_NAMESPACE", "watchNamespace"),
        ]);
        for variable in VARIABLES {
            let value = of_values.get(variable.name);
            let is_value = value.is_some_and(|value| rows.iter().any(|row| row.path == *value));
            let is_setting = of_settings.contains(&variable.name);
            assert!(
                is_value != is_setting,
                "{}: {value:?}, a setting: {is_setting}",
                variable.name
            );
        }
    }

    #[test]
    fn every_value_is_in_the_file_with_its_default_and_in_the_schema() {
        let values: Value = serde_saphyr::from_str(&yaml(&rows())).unwrap();
        let schema = schema(&rows());
        for row in rows() {
            let pointer = format!("/{}", row.path.replace('.', "/"));
            assert_eq!(values.pointer(&pointer), Some(&row.default), "{}", row.path);
            let in_schema = format!("/properties/{}", row.path.replace('.', "/properties/"));
            assert_eq!(
                schema.pointer(&in_schema).unwrap()["description"],
                row.about,
                "{}",
                row.path
            );
        }
    }
}
