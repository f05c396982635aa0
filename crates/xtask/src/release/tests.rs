use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::*;

fn documents() -> Vec<Value> {
    ipam_documents("registry.example.org/capm3:v1")
}

fn find<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap()
}

#[test]
fn there_is_one_namespace_it_comes_first_and_all_that_lives_in_one_lives_in_it() {
    let documents = documents();
    assert_eq!(documents[0]["kind"], "Namespace");
    let namespace = &documents[0]["metadata"]["name"];
    assert_eq!(
        documents
            .iter()
            .filter(|document| document["kind"] == "Namespace")
            .count(),
        1
    );
    for document in &documents {
        let own = &document["metadata"]["namespace"];
        assert!(own.is_null() || own == namespace, "{document}");
    }
}

#[test]
fn every_object_carries_the_label_of_the_provider_and_has_a_name_of_its_own() {
    let documents = documents();
    let mut names = BTreeSet::new();
    for document in &documents {
        assert_eq!(
            document["metadata"]["labels"]["cluster.x-k8s.io/provider"], "ipam-metal3",
            "{document}"
        );
        assert!(names.insert((document["kind"].to_string(), document["metadata"]["name"].to_string())));
    }
}

#[test]
fn roles_grant_no_wildcard_and_no_more_than_was_declared() {
    let documents = documents();
    let rules = ["Role", "ClusterRole"].map(|kind| find(&documents, kind)["rules"].clone());
    let text = serde_json::to_string(&rules).unwrap();
    assert!(!text.contains('*'), "{text}");
    let granted: usize = rules
        .iter()
        .flat_map(|rules| rules.as_array().unwrap())
        .map(|rule| rule["resources"].as_array().unwrap().len() * rule["verbs"].as_array().unwrap().len())
        .sum();
    let declared: usize = metal3_manager::grants::ipam()
        .iter()
        .map(|(_, needs)| needs.len())
        .sum();
    assert_eq!(granted, declared);
}

#[test]
fn pods_are_as_restricted_as_their_namespace_demands() {
    let documents = documents();
    let pod = &find(&documents, "Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["name"], "manager");
    let security = &container["securityContext"];
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert!(container["resources"]["requests"].is_object() && container["resources"]["limits"].is_object());
}

#[test]
fn the_arguments_are_flags_of_the_program_once_the_variables_have_their_defaults() {
    let documents = documents();
    let arguments = &find(&documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
    let arguments = arguments.as_array().unwrap().iter().map(|argument| {
        let text = argument.as_str().unwrap();
        match text.split_once("=${") {
            Some((flag, variable)) => {
                let default = variable.strip_suffix('}').unwrap().split_once(":=").unwrap().1;
                format!("{flag}={default}")
            }
            None => text.to_owned(),
        }
    });
    let parsed = metal3_manager::flags::parse(arguments);
    assert!(
        matches!(parsed, Ok(metal3_manager::flags::Request::Run(_))),
        "{parsed:?}"
    );
}

#[test]
fn what_is_written_reads_back_as_it_was() {
    let artefacts: BTreeMap<_, _> = artefacts("registry.example.org/capm3:v1", String::new());
    let text = &artefacts[Path::new("ipam-components.yaml")];
    let read: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    assert_eq!(read, documents());
    assert_eq!(artefacts.len(), 2);
}
