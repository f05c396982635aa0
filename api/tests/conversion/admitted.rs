//! What the schema of one version admits, the schema of the other admits after the conversion.
//!
//! Exceptions are values that have no meaning in either version. Conversion keeps them, so that the user finds what he
//! wrote; the schema of `v1beta2` refuses them when they are written, and accepts stored ones that do not change.

use std::collections::BTreeSet;

use metal3_api::infrastructure::conversion::{Version, convert};
use metal3_schema::{Cause, FieldError, Schema};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::generator;

/// Documents of each kind and direction.
const DOCUMENTS: usize = 600;

/// Values without a meaning, by the last member of the field: how the other version's schema refuses each. 0 has a
/// meaning, absent, and must be admitted everywhere.
const MEANINGLESS: &[(&str, &[Cause])] = &[
    ("annotation", &[Cause::Invalid]),
    ("apiGroup", &[Cause::Invalid]),
    ("bondLinks", &[Cause::Invalid]),
    ("id", &[Cause::Invalid]),
    ("index", &[Cause::Invalid]),
    ("key", &[Cause::Invalid]),
    ("kind", &[Cause::Invalid]),
    ("label", &[Cause::Invalid]),
    ("link", &[Cause::Invalid]),
    ("name", &[Cause::Invalid]),
    ("offset", &[Cause::Invalid]),
    ("phase", &[Cause::NotSupported]),
    ("port", &[Cause::Invalid]),
    ("prefix", &[Cause::Invalid]),
    ("retryCount", &[Cause::Invalid]),
    ("step", &[Cause::Invalid]),
    ("type", &[Cause::NotSupported]),
    ("url", &[Cause::Invalid, Cause::TypeInvalid, Cause::Required]),
    ("vlanID", &[Cause::Invalid]),
    ("vlanLink", &[Cause::Invalid]),
];

fn version_schema(kind: &str, version: Version) -> Value {
    let definitions = metal3_api::infrastructure::definitions();
    let definition = definitions.iter().find(|definition| definition.kind == kind).unwrap();
    let version = definition.versions.iter().find(|found| found.name == version.name());
    (version.unwrap().schema)()
}

/// Integers that the newer version cannot express are refused by the conversion itself.
fn bounded(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            let integer = members.get("type").is_some_and(|kind| kind == "integer");
            for member in members.values_mut() {
                *member = bounded(member.take());
            }
            if integer {
                members.insert("format".into(), "int32".into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = bounded(item.take())),
        _ => {}
    }
    schema
}

fn refusals(kind: &str, document: &Value, to: Version) -> Vec<FieldError> {
    let Ok(converted) = convert(document, to) else {
        return Vec::new();
    };
    Schema::parse(&version_schema(kind, to)).unwrap().validate(&converted)
}

/// The last member of a field, without positions: `spec.pools[0].start` is `start`, `spec.pools[0]` is `pools`.
fn last_member(field: &str) -> &str {
    let member = field.rsplit('.').next().unwrap_or_default();
    member.split('[').next().unwrap_or_default()
}

/// Repeated keys are kept on purpose, because the hosts may need both; `repeated` reports them.
fn is_meaningless(refusal: &FieldError) -> bool {
    let named = MEANINGLESS
        .iter()
        .find(|(member, _)| *member == last_member(&refusal.field));
    let zero = refusal.bad_value.as_ref().is_some_and(|value| *value == 0);
    refusal.cause == Cause::Duplicate || !zero && named.is_some_and(|(_, causes)| causes.contains(&refusal.cause))
}

/// Whatever the schema of `from` admits, its conversion is admitted by the schema of `to`.
fn conversion_is_admitted(from: Version, to: Version, seen: &mut BTreeSet<String>) {
    let mut runner = TestRunner::deterministic();
    for definition in metal3_api::infrastructure::definitions() {
        let kind = definition.kind;
        let source = bounded(version_schema(kind, from));
        let documents = generator::document(format!("{}/{}", definition.group, from.name()), kind, &source);
        let (source, target) = (
            Schema::parse(&source).unwrap(),
            Schema::parse(&version_schema(kind, to)).unwrap(),
        );
        for _ in 0..DOCUMENTS {
            let mut document = documents.new_tree(&mut runner).unwrap().current();
            source.default(&mut document);
            let Ok(mut converted) = convert(&document, to) else {
                continue;
            };
            target.default(&mut converted);
            for refusal in target.validate(&converted) {
                assert!(is_meaningless(&refusal), "{kind} from {}: {refusal}", from.name());
                if refusal.cause != Cause::Duplicate {
                    seen.insert(last_member(&refusal.field).to_owned());
                }
            }
            // The object as an older client reads it must be writable as it is.
            let back = convert(&converted, from).unwrap();
            let refused = source.validate(&back);
            assert!(refused.is_empty(), "{kind} from {} and back: {refused:?}", from.name());
        }
    }
}

#[test]
fn older_objects_are_admitted_by_the_newer_schema() {
    let mut seen = BTreeSet::new();
    conversion_is_admitted(Version::V1Beta1, Version::V1Beta2, &mut seen);
    let excused: BTreeSet<String> = MEANINGLESS.iter().map(|(member, _)| (*member).to_owned()).collect();
    let unused: Vec<_> = excused.difference(&seen).collect();
    assert!(unused.is_empty(), "exceptions without a case: {unused:?}");
}

#[test]
fn newer_objects_are_admitted_by_the_older_schema() {
    let mut seen = BTreeSet::new();
    conversion_is_admitted(Version::V1Beta2, Version::V1Beta1, &mut seen);
    assert_eq!(
        seen,
        BTreeSet::new(),
        "the older schema refuses nothing that the newer one admits"
    );
}

fn object(version: &str, kind: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "kind": kind,
        "metadata": { "name": "x", "namespace": "metal" }, "spec": spec,
    })
}

#[test]
fn values_that_mean_absent_are_admitted() {
    let strategy = json!({ "type": "Reboot", "retryLimit": 0, "timeout": "5m0s" });
    let remediation = object("v1beta1", "Metal3Remediation", json!({ "strategy": strategy }));
    assert_eq!(refusals("Metal3Remediation", &remediation, Version::V1Beta2), []);
    let without_cluster = object("v1beta2", "Metal3DataTemplate", json!({}));
    assert_eq!(refusals("Metal3DataTemplate", &without_cluster, Version::V1Beta1), []);
    let empty_text = json!({ "clusterName": "c", "metaData": { "strings": [{ "key": "a", "value": "" }] } });
    let template = object("v1beta1", "Metal3DataTemplate", empty_text);
    assert_eq!(refusals("Metal3DataTemplate", &template, Version::V1Beta2), []);
    let rack = json!({ "key": "rack", "operator": "In", "values": [""] });
    let machine = json!({ "image": { "url": "http://i/a" }, "hostSelector": { "matchExpressions": [rack] } });
    let machine = object("v1beta1", "Metal3Machine", machine);
    assert_eq!(refusals("Metal3Machine", &machine, Version::V1Beta2), []);
}
