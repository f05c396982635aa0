//! What the server requires of a CRD besides its schemas: names, scope, group, versions, columns.

use std::collections::BTreeSet;

use metal3_schema::{FieldError, SchemaError, kind_violations, subdomain_violations};
use serde_json::{Value, json};

use crate::store::object::{self, as_map};

/// The annotation without which a group of Kubernetes cannot be used.
const APPROVED: &str = "api-approved.kubernetes.io";
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
/// Parts of versions that belong to the CRD when they are the same in all versions.
const SHARED: [(&str, &str); 3] = [
    ("schema", "validation"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Sets the defaults of a CRD.
pub(in crate::store) fn fill(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    let spec = as_map(spec);
    super::default(spec, &[("conversion", json!({ "strategy": "None" }))]);
    if let Some(service) = spec
        .get_mut("conversion")
        .and_then(|conversion| conversion.pointer_mut("/webhook/clientConfig/service"))
    {
        super::default(as_map(service), &[("port", json!(443))]);
    }
    if let Some(names) = spec.get_mut("names").filter(|names| names.is_object()) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            let (singular, list) = (kind.to_lowercase(), format!("{kind}List"));
            super::default(
                as_map(names),
                &[("singular", singular.into()), ("listKind", list.into())],
            );
        }
    }
}

/// The versions of a CRD.
fn versions(definition: &Value) -> &[Value] {
    let all = definition.pointer("/spec/versions").and_then(Value::as_array);
    all.map(Vec::as_slice).unwrap_or_default()
}

/// Where an error names a part of a version.
pub(in crate::store) fn place(definition: &Value, number: usize, part: &str) -> String {
    let all = versions(definition);
    let first = all.first().and_then(|version| version.get(part));
    let is_shared = first.is_some() && all.iter().all(|version| version.get(part) == first);
    let shared = SHARED.iter().find(|(name, _)| *name == part && is_shared);
    match shared {
        Some((_, name)) => format!("spec.{name}"),
        None => format!("spec.versions[{number}].{part}"),
    }
}

/// The error of a schema that does not parse, whose fields start at `at`.
pub(in crate::store) fn unparsed(error: &SchemaError, at: &str) -> FieldError {
    let placed = |path: &str| format!("{at}.{path}");
    match error {
        SchemaError::Rule { at, shown, problem, .. } => {
            let detail = format!("{shown}: compilation failed: {problem}");
            FieldError::new(placed(at), metal3_schema::Cause::Invalid, None, detail)
        }
        SchemaError::Malformed {
            at, found: Some(found), ..
        } if at.ends_with(".type") => {
            let types = ["array", "boolean", "integer", "number", "object", "string"].map(str::to_owned);
            FieldError::not_supported(placed(at), found.as_str().into(), &types)
        }
        other => FieldError::invalid("spec", Value::Null, placed(&other.to_string())),
    }
}

/// Errors of a CRD; those of its schemas are found elsewhere. `old` is the established one that it replaces.
pub(in crate::store) fn errors(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let text = |at: &str| definition.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let mut errors = Vec::new();
    if let Some(old) = old {
        for path in ["group", "scope", "names/kind", "names/plural"] {
            let at = format!("/spec/{path}");
            if old.pointer(&at) != definition.pointer(&at) {
                let field = format!("spec.{}", path.replace('/', "."));
                errors.push(FieldError::invalid(field, text(&at), "field is immutable"));
            }
        }
    } else {
        let name = object::text(definition, "name");
        if name != format!("{plural}.{group}") {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            errors.push(FieldError::invalid("metadata.name", name, detail));
        }
        errors.extend(approval(definition, group));
    }
    errors.extend(group_errors(group));
    match text("/spec/scope") {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => {
            let known = ["Cluster", "Namespaced"].map(str::to_owned);
            errors.push(FieldError::not_supported("spec.scope", other.into(), &known));
        }
    }
    errors.extend(name_errors(definition));
    errors.extend(version_errors(definition));
    errors
}

fn group_errors(group: &str) -> Vec<FieldError> {
    if group.is_empty() {
        return vec![FieldError::required("spec.group", "")];
    }
    let mut wrong = subdomain_violations(group);
    if wrong.is_empty() && !group.contains('.') {
        wrong.push("should be a domain with at least one dot".to_owned());
    }
    wrong
        .into_iter()
        .map(|why| FieldError::invalid("spec.group", group, why))
        .collect()
}

/// Groups of Kubernetes need an annotation.
fn approval(definition: &Value, group: &str) -> Option<FieldError> {
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|own| {
        group
            .strip_suffix(own)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let given = object::member(definition, "annotations").and_then(|all| all.get(APPROVED)?.as_str());
    let (field, see) = (
        format!("metadata.annotations[{APPROVED}]"),
        "see https://github.com/kubernetes/enhancements/pull/1111",
    );
    match given.unwrap_or_default() {
        _ if !is_protected => None,
        "" => {
            let detail = format!("protected groups must have approval annotation {APPROVED:?}, {see}");
            Some(FieldError::required(field, detail))
        }
        given if given.starts_with("unapproved") || given.contains("://") => None,
        given => {
            let detail = format!(
                "protected groups must have approval annotation {APPROVED:?} with either a URL or a reason starting with \
                 \"unapproved\", {see}"
            );
            Some(FieldError::invalid(field, given, detail))
        }
    }
}

fn name_errors(definition: &Value) -> Vec<FieldError> {
    let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let mut errors = Vec::new();
    for name in ["plural", "singular", "kind", "listKind"] {
        let (field, found) = (
            format!("spec.names.{name}"),
            names.get(name).and_then(Value::as_str).unwrap_or_default(),
        );
        let is_kind = name.to_lowercase().ends_with("kind");
        if found.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        let wrong = if is_kind {
            kind_violations(&found.to_lowercase())
        } else {
            kind_violations(found)
        };
        let head = if is_kind {
            "may have mixed case, but should otherwise match: "
        } else {
            ""
        };
        errors.extend(
            wrong
                .into_iter()
                .map(|why| FieldError::invalid(field.clone(), found, format!("{head}{why}"))),
        );
    }
    for list in ["shortNames", "categories"] {
        let items = names
            .get(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate();
        for (number, found) in items.map(|(number, item)| (number, item.as_str().unwrap_or_default())) {
            let field = format!("spec.names.{list}[{number}]");
            let wrong = kind_violations(found).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid(field.clone(), found, why)));
        }
    }
    errors
}

fn version_errors(definition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_set = |version: &&Value, flag: &str| version.get(flag) == Some(&Value::Bool(true));
    let all = versions(definition);
    for (number, version) in all.iter().enumerate() {
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        for why in kind_violations(name) {
            if number == 0 {
                errors.push(FieldError::invalid("spec.version", name, why.clone()));
            }
            errors.push(FieldError::invalid(format!("spec.versions[{number}].name"), name, why));
        }
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let field = format!("spec.versions[{number}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, ""));
            if version.get("selectableFields").is_some() {
                let detail = "may only be set when validations.schema is included";
                errors.push(FieldError::invalid(
                    place(definition, number, "selectableFields"),
                    "",
                    detail,
                ));
            }
        }
        errors.extend(column_errors(definition, number, version));
    }
    let mut names = BTreeSet::new();
    let twice = all
        .iter()
        .any(|version| !names.insert(version.get("name").and_then(Value::as_str)));
    let wrong = |detail: &str| {
        FieldError::new(
            "spec.versions",
            metal3_schema::Cause::Invalid,
            None,
            format!("{}: {detail}", shown(definition)),
        )
    };
    errors.extend(twice.then(|| wrong("must contain unique version names")));
    let storages = all.iter().filter(|version| is_set(version, "storage")).count();
    errors.extend((storages != 1).then(|| wrong("must have exactly one version marked as storage version")));
    let stored = definition.pointer("/status/storedVersions").and_then(Value::as_array);
    if stored.is_none_or(Vec::is_empty) {
        errors.push(FieldError::invalid(
            "status.storedVersions",
            Value::Null,
            "must have at least one stored version",
        ));
    }
    errors
}

/// The versions as the server prints them: without the parts that all versions share.
fn shown(definition: &Value) -> String {
    if definition.pointer("/spec/versions").is_none_or(Value::is_null) {
        return "null".to_owned();
    }
    let version = |version: &Value| {
        let flag = |name: &str| version.get(name) == Some(&Value::Bool(true));
        let name = version.get("name").cloned().unwrap_or_else(|| "".into());
        let warning = version.get("deprecationWarning").cloned().unwrap_or_default();
        format!(
            "{{\"Name\":{name},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{warning},\"Schema\":null,\
             \"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
            flag("served"),
            flag("storage"),
            flag("deprecated")
        )
    };
    let all: Vec<String> = versions(definition).iter().map(version).collect();
    format!("[{}]", all.join(","))
}

fn column_errors(definition: &Value, number: usize, version: &Value) -> Vec<FieldError> {
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let at = place(definition, number, "additionalPrinterColumns");
    let mut errors = Vec::new();
    if number > 0 && !at.starts_with("spec.versions") {
        return errors;
    }
    for (column, found) in columns.into_iter().flatten().enumerate() {
        let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
        let field = |name: &str| format!("{at}[{column}].{name}");
        if text("name").is_empty() {
            errors.push(FieldError::required(field("name"), ""));
        }
        match text("type") {
            "" => {
                let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
                errors.push(FieldError::required(field("type"), detail));
            }
            known if COLUMN_TYPES.contains(&known) => {}
            other => {
                let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
                errors.push(FieldError::invalid(field("type"), other, detail));
            }
        }
        match text("jsonPath") {
            "" => errors.push(FieldError::required(field("JSONPath"), "")),
            path if path.starts_with('.') => {}
            path => {
                let detail = "must be a simple json path starting with .";
                errors.push(FieldError::invalid(field("JSONPath"), path, detail));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(spec: Value) -> Value {
        json!({ "metadata": { "name": "as.b.c" }, "spec": spec, "status": { "storedVersions": ["v1"] } })
    }

    #[test]
    fn shared_parts_of_versions_are_parts_of_the_definition() {
        let versions =
            |other: &str| definition(json!({ "versions": [{ "schema": { "a": 1 } }, { "schema": { other: 1 } }] }));
        assert_eq!(place(&versions("a"), 1, "schema"), "spec.validation");
        assert_eq!(place(&versions("b"), 1, "schema"), "spec.versions[1].schema");
    }

    #[test]
    fn groups_of_kubernetes_are_approved() {
        for (group, expected) in [
            ("k8s.io", true),
            ("a.k8s.io", true),
            ("cluster.x-k8s.io", false),
            ("b.c", false),
        ] {
            assert_eq!(approval(&definition(json!({})), group).is_some(), expected, "{group}");
        }
    }

    #[test]
    fn singular_and_list_follow_from_the_kind() {
        let mut filled = definition(json!({ "names": { "kind": "CronTab" } }));
        fill(&mut filled);
        let names = json!({ "kind": "CronTab", "singular": "crontab", "listKind": "CronTabList" });
        assert_eq!(
            filled["spec"],
            json!({ "names": names, "conversion": { "strategy": "None" } })
        );
    }
}
