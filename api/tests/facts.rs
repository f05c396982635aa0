//! The definitions against `facts.yaml`, a summary of the Go managers' definitions.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::catalog;
use metal3_api::crd::Definition;
use serde::Deserialize;
use serde_json::Value;

const FACTS: &str = include_str!("facts.yaml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    kinds: BTreeMap<String, Kind>,
    nodes: BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    group: String,
    plural: String,
    short: BTreeSet<String>,
    #[serde(default)]
    categories: BTreeSet<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    versions: BTreeMap<String, Version>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    #[serde(default)]
    storage: bool,
    #[serde(default)]
    deprecated: bool,
    #[serde(default)]
    status: bool,
    #[serde(default)]
    columns: BTreeMap<String, String>,
}

fn facts() -> Facts {
    serde_saphyr::from_str(FACTS).unwrap()
}

fn definition(kind: &str) -> Definition {
    let found = catalog::definitions().into_iter().find(|crd| crd.kind == kind);
    found.unwrap_or_else(|| panic!("{kind} is not in the catalogue"))
}

fn owned(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What the autoscaler reads of a template is written by this program alone.
fn has_additional_status(kind: &str) -> bool {
    kind == "Metal3MachineTemplate"
}

#[test]
fn every_kind_has_the_names_and_versions_of_the_go_managers() {
    let facts = facts();
    assert_eq!(
        facts.kinds.len(),
        25,
        "nine of infrastructure, three of IPAM, thirteen of hosts"
    );
    for (kind, fact) in facts.kinds {
        let crd = definition(&kind);
        assert_eq!(crd.group, fact.group, "{kind}");
        assert_eq!(crd.plural, fact.plural, "{kind}");
        assert_eq!(owned(crd.short_names), fact.short, "{kind}");
        assert_eq!(owned(crd.categories), fact.categories, "{kind}");
        let manifest = crd.manifest();
        for (member, facts) in [("labels", &fact.labels), ("annotations", &fact.annotations)] {
            for (name, value) in facts {
                assert_eq!(manifest["metadata"][member][name], value.as_str(), "{kind}: {name}");
            }
        }
        let versions: BTreeSet<&str> = crd.versions.iter().map(|version| version.name).collect();
        assert_eq!(versions, fact.versions.keys().map(String::as_str).collect(), "{kind}");
        for version in &crd.versions {
            let fact = &fact.versions[version.name];
            let found = (version.storage, version.deprecated, version.status_subresource);
            let has_status = fact.status || has_additional_status(&kind);
            assert_eq!(
                found,
                (fact.storage, fact.deprecated, has_status),
                "{kind}/{}",
                version.name
            );
            for (name, path) in &fact.columns {
                let column = version.columns.iter().find(|column| column.name == name);
                assert_eq!(column.map(|column| column.path), Some(path.as_str()), "{kind}: {name}");
            }
        }
    }
}

#[test]
fn every_node_has_the_values_bounds_defaults_and_keys_of_the_go_managers() {
    for (place, nodes) in facts().nodes {
        let (kind, version) = place.split_once('/').unwrap();
        let crd = definition(kind);
        let version = crd.versions.iter().find(|candidate| candidate.name == version).unwrap();
        let schema = (version.schema)();
        for (path, facts) in nodes {
            let node = node(&schema, &path).unwrap_or_else(|| panic!("{place} has no {path}"));
            for (aspect, expected) in facts {
                let found = aspect_of(node, &aspect);
                assert_eq!(
                    normalised(&aspect, found),
                    normalised(&aspect, Some(&expected)),
                    "{place} {path} {aspect}"
                );
            }
        }
    }
}

fn aspect_of<'a>(node: &'a Value, aspect: &str) -> Option<&'a Value> {
    node.get(match aspect {
        "keys" => "x-kubernetes-list-map-keys",
        other => other,
    })
}

/// Sets compare without order.
fn normalised(aspect: &str, value: Option<&Value>) -> Option<Value> {
    let mut value = value?.clone();
    if let (Value::Array(items), "enum" | "required") = (&mut value, aspect) {
        items.sort_by_key(Value::to_string);
    }
    Some(value)
}

/// The node at a path such as `spec.pools[].start` or `spec.indexes{}`.
fn node<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.replace("[]", ".[]").replace("{}", ".{}");
    let steps = path.split('.').filter(|step| !step.is_empty());
    steps.into_iter().try_fold(schema, |node, step| match step {
        "[]" => node.get("items"),
        "{}" => node.get("additionalProperties"),
        name => node.get("properties")?.get(name),
    })
}
