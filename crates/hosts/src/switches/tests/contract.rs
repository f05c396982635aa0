//! The file of the switches in `contract`, which Ironic's own reader reads in `make ironic-switches`.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use metal3_api::metal3::v1alpha1::BareMetalSwitch;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::file::{HEADER, section};

#[derive(Deserialize)]
struct Cases {
    folder: String,
    switches: Vec<Case>,
    rejected: Vec<String>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    spec: Value,
    login: BTreeMap<String, String>,
}

fn cases() -> Cases {
    serde_json::from_str(include_str!("contract/cases.json")).unwrap()
}

fn object(case: &Case) -> BareMetalSwitch {
    let mut spec = case.spec.clone();
    spec["credentials"] = json!({ "name": "login" });
    serde_json::from_value(json!({ "metadata": { "name": case.name }, "spec": spec })).unwrap()
}

fn values(login: &BTreeMap<String, String>) -> BTreeMap<String, ByteString> {
    let value = |(key, value): (&String, &String)| (key.clone(), ByteString(value.clone().into_bytes()));
    login.iter().map(value).collect()
}

#[test]
fn switches_are_written_as_ironic_reads_them() {
    let cases = cases();
    let sections = cases.switches.iter().map(|case| {
        let section = section(&object(case), "login", &values(&case.login), &cases.folder);
        section
            .unwrap_or_else(|problem| panic!("{}: {problem:?}", case.name))
            .text
            .to_string()
    });
    let written = HEADER.to_owned() + &sections.collect::<String>();
    assert_eq!(written, include_str!("contract/switch-configs.conf"));
}

#[test]
fn values_that_ironic_reads_otherwise_are_rejected() {
    let cases = cases();
    let case = cases.switches.first().unwrap();
    for value in &cases.rejected {
        let mut login = case.login.clone();
        login.insert("password".to_owned(), value.clone());
        let problem = section(&object(case), "login", &values(&login), &cases.folder).err();
        assert!(
            problem.is_some_and(|problem| problem.message.contains("password")),
            "{value:?}"
        );
    }
}
