//! `admission`: what the API server's schema and the webhooks say of one request.
//!
//! A real server stops at the schema, so where the recorded schema refuses, the webhook's findings are not compared. Of
//! the webhook's findings the fields are compared without case, since some managers spell Go names; where they name
//! none, only the verdict is.

use std::collections::BTreeSet;

use metal3_api::rules::Finding;
use serde_json::{Value, json};

use super::case::Case;
use super::group::{Group, Rule};
use crate::admission::{self, Answer};

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

/// `infrastructure.cluster.x-k8s.io`.
pub(super) const INFRASTRUCTURE: Group = Group {
    name: "admission/capm3",
    answer,
    expectation,
    rules: &[TEMPLATE_REPAIR, NO_STRATEGY, WIDER_LINKS],
};

/// A stored template that is invalid can be repaired.
const TEMPLATE_REPAIR: Rule = Rule {
    row: "cluster-template-repair",
    touches: |input| {
        let port = |which: &str| input.pointer(&format!("/{which}/spec/template/spec/controlPlaneEndpoint/port"));
        let template = input
            .pointer("/object/kind")
            .is_some_and(|kind| kind == "Metal3ClusterTemplate");
        template && input.get("oldObject").is_some() && port("oldObject").is_none() && port("object").is_some()
    },
    predict: |input, _| json!({ "allowed": true, "object": input.get("object"), "warnings": [] }),
};

/// What the older version stores, the newer one stores too: an MTU below that of IPv6, a bond parameter that is a plain
/// value.
const WIDER_LINKS: Rule = Rule {
    row: "data-template-wider-links",
    touches: |input| {
        let links = |kind: &str| {
            let path = format!("/object/spec/networkData/links/{kind}");
            input
                .pointer(&path)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let small = |link: &Value| link.get("mtu").and_then(Value::as_i64).is_some_and(|mtu| mtu < 1280);
        let plain = |bond: &Value| {
            let parameters = bond.get("parameters").and_then(Value::as_array);
            parameters
                .into_iter()
                .flatten()
                .any(|parameter| parameter.get("value").is_some_and(|value| !value.is_object()))
        };
        ["ethernets", "bonds", "vlans"]
            .iter()
            .any(|kind| links(kind).iter().any(small))
            || links("bonds").iter().any(plain)
    },
    predict: |input, _| json!({ "allowed": true, "object": defaulted_links(input), "warnings": [] }),
};

/// The object with the MTU that a link without one is given.
fn defaulted_links(input: &Value) -> Value {
    let mut object = input.get("object").cloned().unwrap_or_default();
    for kind in ["ethernets", "bonds", "vlans"] {
        let links = object
            .pointer_mut(&format!("/spec/networkData/links/{kind}"))
            .and_then(Value::as_array_mut);
        for link in links.into_iter().flatten().filter_map(Value::as_object_mut) {
            link.entry("mtu").or_insert(json!(1500));
        }
    }
    object
}

/// A remediation template need not have a strategy.
const NO_STRATEGY: Rule = Rule {
    row: "remediation-template-without-strategy",
    touches: |input| {
        let template = input
            .pointer("/object/kind")
            .is_some_and(|kind| kind == "Metal3RemediationTemplate");
        template && input.pointer("/object/spec/template/spec/strategy").is_none()
    },
    predict: |input, _| json!({ "allowed": true, "object": input.get("object"), "warnings": [] }),
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

fn answer(case: &Case) -> Value {
    match admission::answer(
        case.input.get("object").unwrap_or(&Value::Null),
        case.input.get("oldObject"),
    ) {
        Answer::Schema(errors) => refusal(errors.into_iter().map(|error| error.field).collect()),
        Answer::Webhook(verdict, _) if !verdict.allowed() => {
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
        Answer::Webhook(verdict, object) => json!({
            "allowed": true,
            "object": object,
            "warnings": if names_warnings(&case.expect) { json!(verdict.warnings().len()) } else { json!([]) },
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
