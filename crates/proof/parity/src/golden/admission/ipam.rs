//! Deliberate differences of admission of `ipam.metal3.io`.

use serde_json::{Value, json};

use crate::golden::group::Rule;
use crate::values::{list, text};

/// Rules.
pub(super) const RULES: &[Rule] = &[MIXED_FAMILIES, RANDOM_SIZE, CLAIM_WITHOUT_POOL];

/// A range with an IPv4 start and an IPv6 end is rejected.
const MIXED_FAMILIES: Rule = Rule {
    row: "pool-mixed-families",
    touches: |input| {
        let ends =
            |range: &Value| ["start", "end"].map(|end| range.get(end).map(|text| text.to_string().contains(':')));
        list(input, "/object/spec/pools").any(|range| matches!(ends(range), [Some(start), Some(end)] if start != end))
    },
    predict: |_, recorded| *recorded = json!({ "allowed": false, "fields": ["spec.pools[0]"] }),
};

/// Random allocation supports ranges of any size.
const RANDOM_SIZE: Rule = Rule {
    row: "pool-random-size",
    touches: |input| {
        let random = text(input, "/object/spec/allocationStrategy") == "random";
        random
            && list(input, "/object/spec/pools")
                .all(|range| range.get("subnet").is_some() || range.get("end").is_some())
    },
    predict: |input, recorded| *recorded = json!({ "allowed": true, "object": input.get("object"), "warnings": [] }),
};

/// The schema rejects a claim without a pool: no default is set.
const CLAIM_WITHOUT_POOL: Rule = Rule {
    row: "claim-pool-required",
    touches: |input| {
        let claim = text(input, "/object/kind") == "IPClaim";
        claim && input.pointer("/object/spec/pool").is_none()
    },
    predict: |_, recorded| *recorded = json!({ "allowed": false, "fields": ["spec.pool"] }),
};
