//! The list of deliberate differences.

use serde_json::json;

use super::super::difference::Direction::Wider;
use super::super::{allow, schema};
use super::{outline, root, row};

fn entry(path: &str, aspect: &str) -> String {
    format!("- {{ kind: Thing, version: v1, path: \"{path}\", aspect: {aspect}, reason: because }}\n")
}

#[test]
fn an_entry_excuses_one_node_and_aspect() {
    let project = json!({ "properties": { "a": { "default": 1 }, "b": {} } });
    let differences = schema::compare(&root(), &json!({ "properties": {} }), &project).0;
    let evaluation = allow::evaluate(&differences, &allow::parse(&entry("a", "property")).unwrap());
    assert_eq!(evaluation.excused, 1);
    assert_eq!(outline(&evaluation.unexplained), [row("b", "property", Wider)]);
    assert!(!evaluation.is_clean());
    let both = entry("a", "property") + &entry("b", "property");
    assert!(allow::evaluate(&differences, &allow::parse(&both).unwrap()).is_clean());
}

#[test]
fn an_unused_entry_fails() {
    let evaluation = allow::evaluate(&[], &allow::parse(&entry("a", "property")).unwrap());
    assert_eq!(evaluation.unused.len(), 1);
    assert!(!evaluation.is_clean());
}

#[test]
fn an_entry_that_would_excuse_a_narrowing_fails() {
    let differences = schema::compare(&root(), &json!({ "maxLength": 2 }), &json!({ "maxLength": 1 })).0;
    let evaluation = allow::evaluate(&differences, &allow::parse(&entry("", "maxLength")).unwrap());
    assert_eq!((evaluation.excused, evaluation.forbidden.len()), (0, 1));
    assert!(!evaluation.is_clean());
}

#[test]
fn duplicate_unexplained_and_misspelt_entries_are_rejected() {
    let twice = entry("a", "property") + &entry("a", "property");
    assert!(allow::parse(&twice).unwrap_err().to_string().contains("twice"));
    let silent = "- { kind: Thing, aspect: property, reason: \" \" }";
    assert!(allow::parse(silent).unwrap_err().to_string().contains("reason"));
    let misspelt = "- { kind: Thing, aspect: property, reasons: because, reason: because }";
    assert!(allow::parse(misspelt).is_err());
}
