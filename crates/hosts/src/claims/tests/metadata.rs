use std::sync::Arc;

use metal3_api::metal3::v1alpha1::HardwareData;
use serde_json::{Value, json};

use super::super::plan::{Action, Step};
use super::{after_reads, bound, facts, host, key, merged, no_copies, own, policy};

fn written(rules: Value, found: Value) -> Option<Value> {
    let labelled = merged(
        bound(),
        &json!({ "metadata": { "labels": { "rack": "r7" } }, "spec": { "online": true } }),
    );
    let mut facts = facts(own(&json!({})), vec![host(&labelled)]);
    let mut opening = policy(&json!({}));
    opening.spec.metadata_copy = serde_json::from_value(rules).unwrap();
    facts.policies.insert(key("metal", "p"), super::rules(opening));
    let metadata = merged(
        json!({ "namespace": "metal", "name": "h", "resourceVersion": "1" }),
        &found,
    );
    let hardware: HardwareData = serde_json::from_value(json!({ "metadata": metadata, "spec": {} })).unwrap();
    facts.hardware.insert(key("metal", "h"), Arc::new(hardware));
    facts.copies.insert(key("metal", "h"), no_copies());
    match after_reads(&mut facts).0 {
        Step::Do(Action::Hardware(changed)) => Some(serde_json::to_value(&changed.metadata).unwrap()),
        Step::End(_) => None,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn copied_keys_are_recorded_and_removed_when_no_policy_names_them() {
    let copied = written(json!({ "labelsMatch": "rack" }), json!({})).unwrap();
    assert_eq!(copied["labels"], json!({ "rack": "r7" }));
    let record = copied["annotations"].clone();
    assert!(
        record["hostclaim.metal3.io/copied-metadata"]
            .as_str()
            .unwrap()
            .contains("rack")
    );
    let again = json!({ "labels": copied["labels"], "annotations": record });
    assert_eq!(
        written(json!({ "labelsMatch": "rack" }), again.clone()),
        None,
        "it is settled"
    );
    let removed = written(json!(null), again).unwrap();
    assert_eq!(
        (&removed["labels"], &removed["annotations"]),
        (&json!(null), &json!(null))
    );
}

#[test]
fn what_others_wrote_is_neither_replaced_nor_removed() {
    let theirs = json!({ "labels": { "rack": "theirs", "mine": "1" } });
    assert_eq!(written(json!({ "labelsMatch": "rack" }), theirs), None);
}
