//! Checks of `x-kubernetes-validations` in their context.

use crate::error::FieldError;
use crate::model::{ListType, Rule, Schema};
use crate::rules::field_path;
use crate::value_path::ValuePath;

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// `within`: the outermost list whose items do not correlate.
pub(super) fn rules(schema: &Schema, within: Option<&str>, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    let list = at.field("x-kubernetes-validations");
    for (index, rule) in schema.rules.iter().enumerate() {
        one_rule(schema, rule, within, &list.item(index), found);
    }
    let properties = at.field("properties");
    for (name, property) in &schema.properties {
        rules(property, within, &properties.key(name), found);
    }
    if let Some(entry) = schema.additional_schema() {
        rules(entry, within, &at.field("additionalProperties"), found);
    }
    if let Some(items) = &schema.items {
        let here = at.bracketed();
        let inner = if schema.list_type == Some(ListType::Map) {
            within
        } else {
            Some(within.unwrap_or(&here))
        };
        rules(items, inner, &at.field("items"), found);
    }
}

fn one_rule(schema: &Schema, rule: &Rule, within: Option<&str>, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    let here = |keyword: &str| at.field(keyword).bracketed();
    let (source, message) = (rule.source.trim(), rule.message.trim());
    let invalid = |keyword: &str, value: &str, detail: &str| FieldError::invalid(here(keyword), value, detail);
    if !rule.message.is_empty() && message.is_empty() {
        found.push(invalid("message", &rule.message, "must be non-empty if specified"));
    } else if message.contains('\n') {
        found.push(invalid("message", &rule.message, "must not contain line breaks"));
    } else if source.contains('\n') && message.is_empty() {
        found.push(FieldError::required(
            here("message"),
            "message must be specified if rule contains line breaks",
        ));
    }
    if !rule.reason.is_empty() && !REASONS.contains(&rule.reason.as_str()) {
        let reasons = REASONS.map(String::from);
        found.push(FieldError::not_supported(
            here("reason"),
            rule.reason.as_str().into(),
            &reasons,
        ));
    }
    if rule.field_path.contains('\n') {
        found.push(invalid("fieldPath", &rule.field_path, "must not contain line breaks"));
    }
    if field_path(schema, &rule.field_path).is_none() {
        found.push(invalid("fieldPath", &rule.field_path, "must be a valid path"));
    }
    match (rule.program.uses_old_self(), within) {
        (true, Some(within)) => {
            let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
            found.push(invalid("rule", &rule.source, &detail));
        }
        (false, _) if rule.optional_old_self => {
            let detail = "may not be set if oldSelf is not used in rule";
            found.push(FieldError::invalid(here("optionalOldSelf"), true, detail));
        }
        _ => {}
    }
}
