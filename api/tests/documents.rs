//! Every kind in every version, with documents generated from its schema.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod generator;

use std::hash::{BuildHasher, RandomState};

use metal3_api::catalog;
use metal3_api::crd::Version;
use metal3_schema::Schema;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestCaseResult, TestRunner};
use serde_json::Value;

/// Documents of each version.
const CASES: u32 = 16;

/// The one member that is left out when empty: the severity of an old condition, as the Go managers write it.
const EMPTY_IS_ABSENT: &str = ".severity";

/// Runs a property over documents of every version. A failure prints the seed that repeats it.
fn for_every_version(property: impl Fn(&Version, Value) -> TestCaseResult) {
    for crd in catalog::definitions() {
        for version in &crd.versions {
            let api_version = format!("{}/{}", crd.group, version.name);
            let documents = generator::document(api_version, crd.kind, &(version.schema)());
            run(&format!("{}/{}", crd.kind, version.name), &documents, |document| {
                property(version, document)
            });
        }
    }
}

fn run<S: Strategy>(name: &str, strategy: &S, property: impl Fn(S::Value) -> TestCaseResult) {
    let defaults = Config::default();
    let seed = match defaults.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(name),
    };
    let config = Config {
        cases: CASES,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..defaults
    };
    if let Err(error) = TestRunner::new(config).run(strategy, property) {
        panic!("{name}, repeat with PROPTEST_RNG_SEED={seed}: {error}");
    }
}

fn reencoded(version: &Version, document: &Value) -> Result<Value, TestCaseError> {
    (version.reencode)(document).map_err(|error| TestCaseError::fail(format!("{error}: {document}")))
}

/// Paths of a document that are missing in the encoded one. Null, `{}` and `[]` may be absent.
fn lost(document: &Value, written: Option<&Value>, path: &str) -> Vec<String> {
    match (document, written) {
        (Value::Object(members), _) => {
            let below = |(name, value): (&String, &Value)| {
                let written = written.and_then(|written| written.get(name));
                lost(value, written, &format!("{path}.{name}"))
            };
            members.iter().flat_map(below).collect()
        }
        (Value::Array(items), _) => {
            let count = written.and_then(Value::as_array).map_or(0, Vec::len);
            let below = |(index, item): (usize, &Value)| {
                let written = written.and_then(|written| written.get(index));
                lost(item, written, &format!("{path}[{index}]"))
            };
            let missing = (count != items.len()).then(|| format!("{path}: {} items, {count} written", items.len()));
            missing
                .into_iter()
                .chain(items.iter().enumerate().flat_map(below))
                .collect()
        }
        (Value::Null, None) => vec![],
        (Value::String(text), None) if text.is_empty() && path.ends_with(EMPTY_IS_ABSENT) => vec![],
        (scalar, written) if written != Some(scalar) => vec![format!("{path}: {scalar}, written {written:?}")],
        _ => vec![],
    }
}

/// Whether a value has zero values only. Such a spec or status may be left out, with the same meaning.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_zero),
        scalar => [Value::Null, false.into(), 0.into(), "".into()].contains(scalar),
    }
}

#[test]
fn generated_documents_are_valid_for_the_schema() {
    for_every_version(|version, mut document| {
        let schema = Schema::parse(&(version.schema)()).unwrap();
        let errors = schema.validate(&document);
        prop_assert!(errors.is_empty(), "{errors:?}");
        let dropped = schema.prune(&mut document);
        prop_assert!(dropped.is_empty(), "{dropped:?}");
        Ok(())
    });
}

#[test]
fn an_object_of_every_kind_survives_decoding_and_encoding() {
    for_every_version(|version, mut document| {
        let written = reencoded(version, &document)?;
        for part in ["spec", "status"] {
            if written.get(part).is_none() && document.get(part).is_some_and(is_zero) {
                document[part].take();
            }
        }
        prop_assert_eq!(lost(&document, Some(&written), ""), Vec::<String>::new());
        prop_assert_eq!(reencoded(version, &written)?, written);
        Ok(())
    });
}

/// Replaces one value by a value of any shape.
fn replaced(document: &mut Value, place: Index, value: Value) {
    let mut paths = Vec::new();
    pointers(document, String::new(), &mut paths);
    let path = place.get(&paths);
    *document.pointer_mut(path).unwrap() = value;
}

fn pointers(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                pointers(value, format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
    found.push(path);
}

#[test]
fn a_document_with_a_wrong_value_is_decoded_or_rejected() {
    for crd in catalog::definitions() {
        for version in &crd.versions {
            let api_version = format!("{}/{}", crd.group, version.name);
            let documents = generator::document(api_version, crd.kind, &(version.schema)());
            let damaged = (documents, any::<Index>(), generator::anything());
            run(crd.kind, &damaged, |(mut document, place, value)| {
                replaced(&mut document, place, value);
                if let Ok(written) = (version.reencode)(&document) {
                    prop_assert_eq!(&reencoded(version, &written)?, &written);
                }
                Ok(())
            });
        }
    }
}

/// Decodes bytes as every kind; returns the number of kinds that accept them.
fn read_as_every_kind(bytes: &[u8]) -> usize {
    let Ok(document) = serde_saphyr::from_slice::<Value>(bytes) else {
        return 0;
    };
    let versions = catalog::definitions().into_iter().flat_map(|crd| crd.versions);
    versions.filter(|version| (version.reencode)(&document).is_ok()).count()
}

#[test]
fn any_bytes_are_decoded_or_rejected() {
    let bytes = prop::collection::vec(any::<u8>(), 0..64);
    run("bytes", &bytes, |bytes| {
        read_as_every_kind(&bytes);
        Ok(())
    });
    run("text", &"[-a-z:\\[\\]{}&*!|>'\"%@#, \n0-9.]{0,64}", |text| {
        read_as_every_kind(text.as_bytes());
        Ok(())
    });
}

#[test]
fn damaged_yaml_of_every_kind_is_decoded_or_rejected() {
    for crd in catalog::definitions() {
        for version in &crd.versions {
            let api_version = format!("{}/{}", crd.group, version.name);
            let documents = generator::document(api_version, crd.kind, &(version.schema)());
            let damage = prop::collection::vec((any::<Index>(), any::<u8>()), 1..4);
            run(
                crd.kind,
                &(documents, damage, any::<Index>()),
                |(document, damage, end)| {
                    let mut bytes = serde_saphyr::to_string(&document).unwrap().into_bytes();
                    let whole: Value = serde_saphyr::from_slice(&bytes).unwrap();
                    prop_assert!(
                        (version.reencode)(&whole).is_ok(),
                        "the encoded document decodes: {whole}"
                    );
                    for (place, byte) in damage {
                        let place = place.index(bytes.len());
                        bytes[place] = byte;
                    }
                    let damaged = serde_saphyr::from_slice::<Value>(&bytes);
                    let cut = serde_saphyr::from_slice::<Value>(&bytes[..end.index(bytes.len())]);
                    for document in [damaged, cut].into_iter().flatten() {
                        let _ = (version.reencode)(&document);
                    }
                    Ok(())
                },
            );
        }
    }
}
