//! Deliberate differences of admission of `ipam.metal3.io`.

use serde_json::{Value, json};

use crate::golden::group::Rule;

/// Rules.
pub(super) const RULES: &[Rule] = &[MIXED_FAMILIES, RANDOM_SIZE, CLAIM_WITHOUT_POOL];

/// A range with an IPv4 start and an IPv6 end is rejected.
const MIXED_FAMILIES: Rule = Rule {
    row: "pool-mixed-families",
    touches: |input| {
        let ends =
            |range: &Value| ["start", "end"].map(|end| range.get(end).map(|text| text.to_string().contains(':')));
        ranges(input).any(|range| matches!(ends(range), [Some(start), Some(end)] if start != end))
    },
    predict: |_, _| json!({ "allowed": false, "fields": ["spec.pools[0]"] }),
};

/// Random allocation supports ranges of any size.
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

/// The schema rejects a claim without a pool: no default is set.
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
