//! `admission`: what the API server's schema and the webhooks say of one request.
//!
//! A real server stops at the schema, so where the recorded schema refuses, the webhook's findings are not compared. Of
//! the webhook's findings the fields are compared without case, since some managers spell Go names; where they name
//! none, only the verdict is.

use std::collections::BTreeSet;

use metal3_api::catalog;
use metal3_api::crd::Definition;
use metal3_api::rules::{Finding, Operation, Verdict};
use metal3_schema::Schema;
use serde_json::{Value, json};

use super::case::Case;
use super::group::{Group, Rule};

/// `ipam.metal3.io`.
pub(super) const IPAM: Group = Group {
    name: "admission/ipam",
    answer,
    expectation,
    rules: &[MIXED_FAMILIES, RANDOM_SIZE, CLAIM_WITHOUT_POOL],
};

/// `metal3.io`.
pub(super) const HOSTS: Group = Group {
    name: "admission/baremetalhost",
    answer,
    expectation,
    rules: &[],
};

/// An entry with an IPv4 start and an IPv6 end is refused.
const MIXED_FAMILIES: Rule = Rule {
    row: "pool-mixed-families",
    touches: |input| {
        let ends =
            |range: &Value| ["start", "end"].map(|end| range.get(end).map(|text| text.to_string().contains(':')));
        ranges(input).any(|range| matches!(ends(range), [Some(start), Some(end)] if start != end))
    },
    predict: |_, _| json!({ "allowed": false, "fields": ["spec.pools[0]"] }),
};

/// A range of any size is taken at random.
const RANDOM_SIZE: Rule = Rule {
    row: "pool-random-size",
    touches: |input| {
        let random = input
            .pointer("/object/spec/allocationStrategy")
            .is_some_and(|strategy| strategy == "random");
        random && ranges(input).all(|range| range.get("subnet").is_some() || range.get("end").is_some())
    },
    predict: |input, _| json!({ "allowed": true, "object": input.get("object"), "warnings": [] }),
};

/// A claim without a pool is refused by the schema: nothing writes an empty one into it.
const CLAIM_WITHOUT_POOL: Rule = Rule {
    row: "claim-pool-required",
    touches: |input| {
        let claim = input.pointer("/object/kind").is_some_and(|kind| kind == "IPClaim");
        claim && input.pointer("/object/spec/pool").is_none()
    },
    predict: |_, _| json!({ "allowed": false, "fields": ["spec.pool"] }),
};

fn ranges(input: &Value) -> impl Iterator<Item = &Value> {
    input
        .pointer("/object/spec/pools")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// What the server makes of the request.
enum Outcome {
    Schema(Vec<String>),
    Webhook(Verdict, Value),
    Undecodable(String),
}

fn answer(case: &Case) -> Value {
    match outcome(&case.input) {
        Outcome::Schema(fields) => refusal(fields),
        Outcome::Webhook(verdict, _) if !verdict.allowed() => {
            let fields: Vec<String> = verdict
                .refusals()
                .map(|finding: &Finding| finding.path.to_string())
                .collect();
            if names_no_field(&case.expect) {
                json!({ "allowed": false })
            } else {
                refusal(fields)
            }
        }
        Outcome::Webhook(verdict, object) => json!({
            "allowed": true,
            "object": object,
            "warnings": if names_warnings(&case.expect) { json!(verdict.warnings().len()) } else { json!([]) },
        }),
        Outcome::Undecodable(why) => json!({ "undecodable": why }),
    }
}

fn refusal(fields: Vec<String>) -> Value {
    let fields: BTreeSet<String> = fields.iter().map(|field| field.to_lowercase()).collect();
    json!({ "allowed": false, "fields": fields })
}

fn outcome(input: &Value) -> Outcome {
    let mut object = input.get("object").cloned().unwrap_or_default();
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let version = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let Some(schema) = schema(&catalog::definitions(), &kind, &version) else {
        return Outcome::Undecodable(format!("{version} {kind} is not in the catalog"));
    };
    schema.prune(&mut object);
    schema.default(&mut object);
    let reviewer = catalog::reviewers().into_iter().find(|reviewer| reviewer.kind == kind);
    // As in a server: what the user left out is filled in before the schema judges. A document that is no object of
    // its kind cannot be filled in; the schema says what is wrong with it.
    if let Some(filled) = reviewer.and_then(|reviewer| (reviewer.fill)(&object).ok()) {
        object = filled;
    }
    let errors = schema.validate(&object);
    if !errors.is_empty() {
        return Outcome::Schema(errors.into_iter().map(|error| error.field).collect());
    }
    let Some(reviewer) = reviewer else {
        return Outcome::Webhook(Verdict::default(), object);
    };
    let old = input.get("oldObject").map(|old| {
        let mut old = old.clone();
        schema.default(&mut old);
        old
    });
    let operation = if old.is_some() {
        Operation::Update
    } else {
        Operation::Create
    };
    match (reviewer.review)(operation, old.as_ref(), Some(&object)) {
        Ok(verdict) => Outcome::Webhook(verdict, object),
        Err(error) => Outcome::Undecodable(error.to_string()),
    }
}

fn schema(definitions: &[Definition], kind: &str, version: &str) -> Option<Schema> {
    let crd = definitions.iter().find(|crd| crd.kind == kind)?;
    let version = crd
        .versions
        .iter()
        .find(|served| version == format!("{}/{}", crd.group, served.name))?;
    Schema::parse(&(version.schema)()).ok()
}

fn expectation(case: &Case) -> Value {
    if case.expect.get("allowed") == Some(&Value::Bool(true)) {
        let unchanged = || case.input.get("object").cloned().unwrap_or_default();
        let object = case
            .expect
            .get("objectAfterDefaulting")
            .cloned()
            .unwrap_or_else(unchanged);
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

fn errors(expect: &Value) -> impl Iterator<Item = &Value> {
    expect.get("errors").and_then(Value::as_array).into_iter().flatten()
}

fn fields(expect: &Value, source: &str) -> Vec<String> {
    errors(expect)
        .filter(|error| error.get("source").is_some_and(|found| found == source))
        .filter_map(|error| error.get("field")?.as_str().map(str::to_owned))
        .collect()
}

/// True when only a webhook refuses, and says no field.
fn names_no_field(expect: &Value) -> bool {
    errors(expect).next().is_some() && fields(expect, "schema").is_empty() && fields(expect, "webhook").is_empty()
}

fn names_warnings(expect: &Value) -> bool {
    expect.get("warnings").is_some()
}
