//! Variables of a container.

use k8s_openapi::api::core::v1::Container;

use super::*;

fn container(environment: Value) -> Container {
    let mut container = json!({ "name": "manager" });
    merge(&mut container, environment);
    serde_json::from_value(container).unwrap()
}

/// Each variable as its name and its value; `?` stands for a value that is not known.
fn variables_of(environment: Value) -> Vec<String> {
    let entries = [("A", "1"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let maps = ConfigMaps::from([
        ("read".to_owned(), Some(BTreeMap::from(entries))),
        ("missing".to_owned(), Some(BTreeMap::new())),
        ("forbidden".to_owned(), None),
    ]);
    let variables = variables(&container(environment), "lab", &maps);
    let text = |one: &Variable| format!("{}={}", one.name, one.value.as_deref().unwrap_or("?"));
    variables.iter().map(text).collect()
}

#[test]
fn only_what_was_not_read_has_no_known_value() {
    let entry = |map: &str, key: &str| json!({ "env": [{ "name": "X", "valueFrom": { "configMapKeyRef": { "name": map, "key": key } } }] });
    let field = |path: &str| json!({ "env": [{ "name": "X", "valueFrom": { "fieldRef": { "fieldPath": path } } }] });
    let secret = json!({ "env": [{ "name": "X", "valueFrom": { "secretKeyRef": { "name": "s", "key": "x" } } }] });
    let rows: [(Value, &[&str]); 13] = [
        (json!({ "env": [{ "name": "X", "value": "1" }] }), &["X=1"]),
        (json!({ "env": [{ "name": "X", "value": "" }] }), &["X="]),
        (json!({ "env": [{ "name": "X" }] }), &["X="]),
        (entry("read", "A"), &["X=1"]),
        (entry("read", "EMPTY"), &["X="]),
        (entry("read", "B"), &[]),
        (entry("missing", "A"), &[]),
        (entry("forbidden", "A"), &["X=?"]),
        (secret, &["X=?"]),
        (field("metadata.namespace"), &["X=lab"]),
        (field("status.podIP"), &["X=?"]),
        (
            json!({ "envFrom": [{ "configMapRef": { "name": "read" }, "prefix": "P_" }] }),
            &["P_A=1", "P_EMPTY="],
        ),
        (
            json!({ "envFrom": [{ "configMapRef": { "name": "forbidden" }, "prefix": "P_" }] }),
            &["P_*=?"],
        ),
    ];
    for (environment, expected) in rows {
        assert_eq!(variables_of(environment.clone()), expected, "{environment}");
    }
}

/// Of several sources of one variable the last one counts, and a source that is not read may be that.
#[test]
fn later_source_of_a_variable_replaces_an_earlier_one() {
    let (map, secret) = (
        json!({ "configMapRef": { "name": "read" } }),
        json!({ "secretRef": { "name": "s" } }),
    );
    let other = json!({ "secretRef": { "name": "s" }, "prefix": "OTHER_" });
    let own = json!([{ "name": "A", "value": "2" }]);
    for (sources, own, expected) in [
        (json!([map]), json!([]), Some("1")),
        (json!([map, secret]), json!([]), None),
        (json!([secret, map]), json!([]), Some("1")),
        (json!([map, other]), json!([]), Some("1")),
        (json!([map, secret]), own.clone(), Some("2")),
        (json!([map]), own, Some("2")),
        (
            json!([map]),
            json!([{ "name": "A", "value": "3" }, { "name": "A" }]),
            Some(""),
        ),
    ] {
        let environment = json!({ "envFrom": sources, "env": own });
        let entries = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let maps = ConfigMaps::from([("read".to_owned(), Some(entries))]);
        let all = variables(&container(environment.clone()), "lab", &maps);
        let found = Variable::find(&all, "A").and_then(|one| one.value.clone());
        assert_eq!(found.as_deref(), expected, "{environment}");
    }
}

#[test]
fn config_maps_of_a_container_are_those_of_all_entries_and_of_single_ones() {
    let environment = json!({ "envFrom": [{ "configMapRef": { "name": "a" } }, { "secretRef": { "name": "s" } }],
        "env": [{ "name": "X", "valueFrom": { "configMapKeyRef": { "name": "b", "key": "x" } } }, { "name": "Y", "value": "1" }] });
    let expected = ["a", "b"].map(str::to_owned);
    assert_eq!(config_maps(&container(environment)), expected.into());
}
