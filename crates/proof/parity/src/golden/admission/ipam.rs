//! Deliberate differences of admission of `ipam.metal3.io`.

use serde_json::{Value, json};

use metal3_domain::ip::{AnyRange, EntryText, PoolEntry};

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
    touches: |input| text(input, "/object/spec/allocationStrategy") == "random" && too_large(input).next().is_some(),
    // Only the findings about the size go: an object with another error stays refused for it.
    predict: |input, recorded| {
        let large: Vec<Value> = too_large(input).map(|at| json!(format!("spec.pools[{at}]"))).collect();
        let Some(Value::Array(fields)) = recorded.get_mut("fields") else {
            return;
        };
        fields.retain(|field| !large.contains(field));
        if fields.is_empty() {
            *recorded = json!({ "allowed": true, "object": input.get("object"), "warnings": [] });
        }
    },
};

/// The positions of ranges with more addresses than a signed number of 64 bits counts.
fn too_large(input: &Value) -> impl Iterator<Item = usize> {
    let is_too_large = |range: &Value| {
        let entry = PoolEntry::parse(EntryText {
            start: range.get("start").and_then(Value::as_str),
            end: range.get("end").and_then(Value::as_str),
            subnet: range.get("subnet").and_then(Value::as_str),
        });
        let bounded = range.get("end").is_some() || range.get("subnet").is_some();
        match entry.ok().and_then(|entry| entry.range().ok()).flatten() {
            Some(AnyRange::V6(range)) => {
                let last = u128::from(range.last()) - u128::from(range.first());
                bounded && last >= u128::from(u64::MAX >> 1)
            }
            Some(AnyRange::V4(_)) | None => false,
        }
    };
    let ranges = list(input, "/object/spec/pools").enumerate();
    ranges.filter(move |(_, range)| is_too_large(range)).map(|(at, _)| at)
}

/// The schema rejects a claim without a pool: no default is set.
const CLAIM_WITHOUT_POOL: Rule = Rule {
    row: "claim-pool-required",
    touches: |input| {
        let claim = text(input, "/object/kind") == "IPClaim";
        claim && input.pointer("/object/spec/pool").is_none()
    },
    predict: |_, recorded| *recorded = json!({ "allowed": false, "fields": ["spec.pool"] }),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_of_a_random_pool_excuses_no_other_finding() {
        let ranges = json!([{ "subnet": "fd00::/64" }, { "subnet": "10.0.0.0/30", "start": "10.9.0.0" }]);
        let object = json!({ "spec": { "allocationStrategy": "random", "pools": ranges } });
        let input = json!({ "object": object });
        assert!((RANDOM_SIZE.touches)(&input));
        let mut refused = json!({ "allowed": false, "fields": ["spec.pools[0]", "spec.pools[1]"] });
        (RANDOM_SIZE.predict)(&input, &mut refused);
        assert_eq!(refused, json!({ "allowed": false, "fields": ["spec.pools[1]"] }));
        let mut large = json!({ "allowed": false, "fields": ["spec.pools[0]"] });
        (RANDOM_SIZE.predict)(&input, &mut large);
        assert_eq!(large["allowed"], true);
        for subnet in ["fd00::/66", "10.0.0.0/8"] {
            let object = json!({ "spec": { "allocationStrategy": "random", "pools": [{ "subnet": subnet }] } });
            assert!(!(RANDOM_SIZE.touches)(&json!({ "object": object })), "{subnet}");
        }
    }
}
