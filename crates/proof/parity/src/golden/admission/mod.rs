//! `admission`: decisions of the schema and of the webhooks.
//!
//! A real server stops at the schema, so findings of the webhook are compared only when the schema accepts. Fields are
//! compared case-insensitively, because some managers use Go names; without fields only the decision is compared.
//! Warnings are compared where recorded.

mod infrastructure;
mod ipam;

use std::collections::BTreeSet;

use metal3_api::rules::Finding;
use serde_json::{Value, json};

use super::case::Case;
use super::group::{Group, Rule};
use crate::admission::{self, Answer};
use crate::values::{list, text};

/// All groups of `admission`.
pub(super) const GROUPS: [Group; 3] = [
    group("admission/baremetalhost", &[]),
    group("admission/capm3", infrastructure::RULES),
    group("admission/ipam", ipam::RULES),
];

const fn group(name: &'static str, rules: &'static [Rule]) -> Group {
    Group {
        name,
        answer,
        expectation,
        rules,
    }
}

fn answer(case: &Case) -> Value {
    let object = case.input.get("object").unwrap_or(&Value::Null);
    match admission::answer(object, case.input.get("oldObject")) {
        Answer::Schema(errors) => refusal(errors.into_iter().map(|error| error.field).collect()),
        Answer::Webhook(decision, _) if !decision.allowed() => {
            let fields: Vec<String> = decision
                .refusals()
                .map(|finding: &Finding| finding.path.to_string())
                .collect();
            if names_no_field(&case.expect) {
                json!({ "allowed": false })
            } else {
                refusal(fields)
            }
        }
        Answer::Webhook(decision, object) => json!({
            "allowed": true,
            "object": object,
            "warnings": if names_warnings(&case.expect) { json!(decision.warnings().len()) } else { json!([]) },
        }),
        Answer::Undecodable(why) => json!({ "undecodable": why }),
    }
}

fn refusal(fields: Vec<String>) -> Value {
    let fields: BTreeSet<String> = fields.iter().map(|field| field.to_lowercase()).collect();
    json!({ "allowed": false, "fields": fields })
}

fn expectation(case: &Case) -> Value {
    if case.expect.get("allowed") == Some(&Value::Bool(true)) {
        let unchanged = || case.input.get("object").cloned().unwrap_or_default();
        let defaulted = case.expect.get("objectAfterDefaulting").cloned();
        let object = defaulted.unwrap_or_else(unchanged);
        let warnings = case.expect.get("warnings").and_then(Value::as_array).map(Vec::len);
        return json!({ "allowed": true, "object": object, "warnings": warnings.map_or(json!([]), |count| json!(count)) });
    }
    let schema = fields(&case.expect, "schema");
    match (schema.is_empty(), names_no_field(&case.expect)) {
        (false, _) => refusal(schema),
        (true, true) => json!({ "allowed": false }),
        (true, false) => refusal(fields(&case.expect, "webhook")),
    }
}

fn fields(expect: &Value, source: &str) -> Vec<String> {
    list(expect, "/errors")
        .filter(|error| text(error, "/source") == source)
        .filter_map(|error| error.get("field")?.as_str().map(str::to_owned))
        .collect()
}

/// Whether only a webhook rejects, without a field.
fn names_no_field(expect: &Value) -> bool {
    list(expect, "/errors").next().is_some()
        && fields(expect, "schema").is_empty()
        && fields(expect, "webhook").is_empty()
}

fn names_warnings(expect: &Value) -> bool {
    expect.get("warnings").is_some()
}
