use std::collections::BTreeMap;

use metal3_api::metal3::v1alpha1::HostDeployPolicy;
use serde_json::{Value, json};

use super::super::policy::copied;
use super::{host, policy, rules};

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn policy_accepts_namespaces_for_which_all_its_conditions_hold() {
    let nested = "((((x{100}){100}){100}){100})";
    let long = "a?".repeat(300);
    let table: &[(Value, bool)] = &[
        (json!(null), false),
        (json!({}), true),
        (json!({ "names": [] }), false),
        (json!({ "names": ["other"] }), false),
        (json!({ "names": ["other", "tenant"] }), true),
        (json!({ "nameMatches": "" }), true),
        (json!({ "nameMatches": "ten" }), false),
        (json!({ "nameMatches": "enant" }), false),
        (json!({ "nameMatches": "ten.*" }), true),
        (json!({ "nameMatches": "x|tenant" }), true),
        (json!({ "nameMatches": "x)|(tenant" }), false),
        (json!({ "nameMatches": "(?m)^ten" }), false),
        (json!({ "nameMatches": "(?x)tenant #" }), false),
        (json!({ "nameMatches": "(" }), false),
        (json!({ "nameMatches": nested }), false),
        (json!({ "nameMatches": long }), false),
        (json!({ "names": ["tenant"], "nameMatches": "other" }), false),
        (json!({ "hasLabels": [{ "name": "team" }] }), true),
        (json!({ "hasLabels": [{ "name": "team", "value": "" }] }), true),
        (json!({ "hasLabels": [{ "name": "team", "value": "blue" }] }), true),
        (json!({ "hasLabels": [{ "name": "team", "value": "red" }] }), false),
        (json!({ "hasLabels": [{ "name": "team" }, { "name": "zone" }] }), false),
    ];
    let found = labels(&[("team", "blue")]);
    for (accepted, expected) in table {
        assert_eq!(
            rules(policy(accepted)).accepts("tenant", Some(&found)),
            *expected,
            "{accepted}"
        );
    }
}

#[test]
fn unknown_labels_and_a_policy_that_is_deleted_permit_nothing() {
    let by_label = policy(&json!({ "hasLabels": [{ "name": "team" }] }));
    assert!(!rules(by_label).accepts("tenant", None));
    assert!(rules(policy(&json!({}))).accepts("tenant", None));
    let mut deleted = policy(&json!({}));
    deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert!(!rules(deleted).accepts("tenant", None));
}

#[test]
fn only_keys_that_a_policy_names_and_that_do_not_describe_the_management_are_copied() {
    let metadata = json!({ "metadata": {
        "labels": { "rack": "r7", "rack-unit": "4", "other": "x", "baremetalhost.metal3.io/ironic": "two" },
        "annotations": { "site.example/room": "12", "baremetalhost.metal3.io/status": "{}",
            "kubectl.kubernetes.io/last-applied-configuration": "bmc", "inspect.metal3.io": "x", "notmetal3.io/a": "1" },
    } });
    let with = |rules: Value| -> HostDeployPolicy {
        let mut policy = policy(&json!({}));
        policy.spec.metadata_copy = serde_json::from_value(rules).unwrap();
        policy
    };
    let found = |rules: Value| {
        let all = [super::rules(with(rules))];
        let copied = copied(&host(&metadata), all.iter().map(|one| &**one));
        let keys = copied.labels.into_keys().chain(copied.annotations.into_keys());
        keys.collect::<Vec<_>>()
    };
    assert_eq!(found(json!(null)), Vec::<String>::new());
    assert_eq!(found(json!({ "labelsMatch": "rack" })), ["rack"]);
    assert_eq!(found(json!({ "labelsMatch": ".*" })), ["other", "rack", "rack-unit"]);
    assert_eq!(
        found(json!({ "annotationsMatch": ".*" })),
        ["notmetal3.io/a", "site.example/room"]
    );
    assert_eq!(found(json!({ "labelsMatch": "(" })), Vec::<String>::new());
}
