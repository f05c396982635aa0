//! The list of differences that are meant.

use serde_json::json;

use super::super::difference::Direction::Wider;
use super::super::{allow, schema};
use super::{outline, root, row};

fn entry(path: &str, aspect: &str) -> String {
    format!("- {{ kind: Thing, version: v1, path: \"{path}\", aspect: {aspect}, reason: because }}\n")
}

#[test]
fn an_entry_excuses_its_own_node_and_aspect_alone() {
    let ours = json!({ "properties": { "a": { "default": 1 }, "b": {} } });
    let differences = schema::compare(&root(), &json!({ "properties": {} }), &ours).0;
    let verdict = allow::judge(&differences, &allow::parse(&entry("a", "property")).unwrap());
    assert_eq!(verdict.excused, 1);
    assert_eq!(outline(&verdict.unexplained), [row("b", "property", Wider)]);
    assert!(!verdict.is_clean());
    let both = entry("a", "property") + &entry("b", "property");
    assert!(allow::judge(&differences, &allow::parse(&both).unwrap()).is_clean());
}

#[test]
fn an_unused_entry_fails() {
    let verdict = allow::judge(&[], &allow::parse(&entry("a", "property")).unwrap());
    assert_eq!(verdict.unused.len(), 1);
    assert!(!verdict.is_clean());
}

#[test]
fn an_entry_that_would_excuse_a_narrowing_fails() {
    let differences = schema::compare(&root(), &json!({ "maxLength": 2 }), &json!({ "maxLength": 1 })).0;
    let verdict = allow::judge(&differences, &allow::parse(&entry("", "maxLength")).unwrap());
    assert_eq!((verdict.excused, verdict.forbidden.len()), (0, 1));
    assert!(!verdict.is_clean());
}

#[test]
fn an_entry_twice_or_without_a_reason_or_with_a_misspelt_member_is_refused() {
    let twice = entry("a", "property") + &entry("a", "property");
    assert!(allow::parse(&twice).unwrap_err().to_string().contains("twice"));
    let silent = "- { kind: Thing, aspect: property, reason: \" \" }";
    assert!(allow::parse(silent).unwrap_err().to_string().contains("reason"));
    let misspelt = "- { kind: Thing, aspect: property, reasons: because, reason: because }";
    assert!(allow::parse(misspelt).is_err());
}
