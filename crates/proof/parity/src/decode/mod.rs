//! `decode`: decodes published manifests with the types of this project, strictly.
//!
//! A document of a kind of this project must decode, round-trip, and be admitted by schema and rules; a foreign one
//! only has to be YAML. Invariant: a kind of this project by name that the catalogue lacks is a failure.

mod lost;
mod variables;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use metal3_api::catalog;
use metal3_api::crd::Version;
use metal3_api::infrastructure::conversion;
use serde_json::Value;

use crate::admission;
use metal3_files::documents::{self, Document};

/// Folders of manifests, below the given one.
const FOLDERS: [&str; 2] = ["templates", "mixed"];
/// Folders that a recording may lack: the other examples, and the flavours and classes of the end-to-end tests.
const MORE_FOLDERS: [&str; 2] = ["examples", "flavours"];
/// The version that is converted before the rules apply.
const OLDER: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
/// File next to a template, or above it, with values of its variables.
const VARIABLES: &str = "example_variables.rc";

/// Members of published manifests that the definitions of the Go managers lack as well: their API server removes them.
const PRUNED: [(&str, &str); 1] = [(
    "Metal3ClusterTemplate",
    "spec.template.spec.controlPlaneEndpoint.cloudProviderEnabled is lost",
)];

/// Result of a document.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Whole,
    Foreign,
    Failed(Vec<String>),
}

/// Decodes all documents and prints the failures.
pub(crate) fn run(folder: Option<&Path>, texts: &[PathBuf]) -> Result<bool> {
    let mut documents = Vec::new();
    if let Some(folder) = folder {
        let (there, missing): (Vec<&str>, Vec<&str>) = MORE_FOLDERS.iter().partition(|name| folder.join(name).is_dir());
        for name in FOLDERS.into_iter().chain(there) {
            let within = folder.join(name);
            for file in documents::files(&within, &["yaml", "yml"])? {
                documents.extend(manifests(&file, &within)?);
            }
        }
        for name in missing {
            println!(
                "decode: {} does not exist and is not decoded",
                folder.join(name).display()
            );
        }
    }
    for file in texts {
        for block in metal3_scenario::blocks(&documents::text(file)?) {
            documents.extend(documents::parse(&block, file)?);
        }
    }
    if documents.is_empty() {
        bail!("nothing to decode: give a folder with `templates` and `mixed`, or a text with `--quoted`");
    }
    let (mut whole, mut foreign, mut failed) = (0, 0, 0);
    for document in &documents {
        match outcome(document) {
            Outcome::Whole => whole += 1,
            Outcome::Foreign => foreign += 1,
            Outcome::Failed(reasons) => {
                failed += 1;
                for reason in reasons {
                    println!("{}: {reason}", document.label());
                }
            }
        }
    }
    println!(
        "decode: {} documents; {whole} of ours come back whole and are admitted, {failed} do not; {foreign} foreign",
        documents.len()
    );
    Ok(failed == 0 && whole > 0)
}

/// Documents of a file, with variables from the nearest file of them within the folder.
fn manifests(file: &Path, within: &Path) -> Result<Vec<Document>> {
    let mut variables = variables::stand_ins();
    let near = file.ancestors().skip(1).take_while(|folder| folder.starts_with(within));
    let example = near
        .map(|folder| folder.join(VARIABLES))
        .find(|example| example.is_file());
    if let Some(example) = example {
        variables.extend(variables::read(&documents::text(&example)?));
    }
    let text = variables::substitute(&documents::text(file)?, &variables)
        .map_err(|missing| anyhow!("variables without a value: {}", missing.join(", ")))
        .with_context(|| format!("fill in {}", file.display()))?;
    documents::parse(&text, file)
}

fn outcome(document: &Document) -> Outcome {
    let Some((api_version, kind)) = document.type_meta() else {
        return Outcome::Foreign;
    };
    let Some(version) = version(api_version, kind) else {
        return if is_ours(api_version, kind) {
            Outcome::Failed(vec![format!("{api_version} {kind} is not in the catalogue")])
        } else {
            Outcome::Foreign
        };
    };
    let is_pruned = |lost: &String| PRUNED.iter().any(|(of, what)| *of == kind && what == lost);
    let mut lost = losses(version, &document.value);
    lost.retain(|one| !is_pruned(one));
    match lost {
        lost if lost.is_empty() => admitted(&document.value),
        lost => Outcome::Failed(lost),
    }
}

/// Members of a document that the types do not represent; empty for foreign kinds.
pub(crate) fn lost(document: &Document) -> Vec<String> {
    let known = document
        .type_meta()
        .and_then(|(api_version, kind)| version(api_version, kind));
    known.map_or_else(Vec::new, |version| losses(version, &document.value))
}

fn losses(version: Version, document: &Value) -> Vec<String> {
    match (version.reencode)(document) {
        Ok(written) => lost::lost(document, &written),
        Err(error) => vec![error.to_string()],
    }
}

/// Published documents must be admitted in their own version and in the stored one.
fn admitted(document: &Value) -> Outcome {
    let mut refusals = admission::answer(document, None).refusals();
    let older = document.get("apiVersion").and_then(Value::as_str) == Some(OLDER);
    if refusals.is_empty() && older {
        refusals = match conversion::convert(document, conversion::Version::V1Beta2) {
            Ok(stored) => admission::answer(&stored, None).refusals(),
            Err(error) => vec![error.to_string()],
        };
    }
    if refusals.is_empty() {
        Outcome::Whole
    } else {
        Outcome::Failed(refusals)
    }
}

fn version(api_version: &str, kind: &str) -> Option<Version> {
    let (group, name) = api_version.split_once('/')?;
    let crd = catalog::definitions()
        .into_iter()
        .find(|crd| crd.group == group && crd.kind == kind)?;
    crd.versions.into_iter().find(|version| version.name == name)
}

/// Other providers share the infrastructure group, so the kind decides.
fn is_ours(api_version: &str, kind: &str) -> bool {
    let group = api_version.split_once('/').map(|(group, _)| group).unwrap_or_default();
    group == "metal3.io" || group == "ipam.metal3.io" || kind.starts_with("Metal3")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> Outcome {
        outcome(&Document {
            file: "x.yaml".into(),
            value,
        })
    }

    #[test]
    fn an_unknown_field_is_a_failure() {
        let pool = |spec: Value| json!({ "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool", "spec": spec });
        assert_eq!(of(pool(json!({ "namePrefix": "p" }))), Outcome::Whole);
        let misspelt = json!({ "namePrefix": "p", "pools": [{ "begin": "192.0.2.1" }] });
        let lost = "spec.pools[0].begin is lost".to_owned();
        assert_eq!(of(pool(misspelt)), Outcome::Failed(vec![lost]));
    }

    /// As a published class has it; elsewhere it is a failure like any other.
    #[test]
    fn member_that_the_go_managers_lack_as_well_is_no_failure() {
        let template = |endpoint: Value| {
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3ClusterTemplate",
                "metadata": { "name": "t", "namespace": "a" },
                "spec": { "template": { "spec": { "controlPlaneEndpoint": endpoint } } },
            })
        };
        let endpoint = |member: &str| json!({ "host": "192.0.2.1", "port": 6443, member: false });
        assert_eq!(of(template(endpoint("cloudProviderEnabled"))), Outcome::Whole);
        let lost = "spec.template.spec.controlPlaneEndpoint.cloudProvider is lost".to_owned();
        assert_eq!(of(template(endpoint("cloudProvider"))), Outcome::Failed(vec![lost]));
    }

    #[test]
    fn a_kind_of_another_provider_in_a_shared_group_is_foreign() {
        let api_version = "infrastructure.cluster.x-k8s.io/v1beta1";
        let byo = json!({ "apiVersion": api_version, "kind": "ByoCluster" });
        assert_eq!(of(byo), Outcome::Foreign);
        assert_eq!(of(json!({ "resources": ["a.yaml"] })), Outcome::Foreign);
    }

    #[test]
    fn an_own_kind_missing_in_the_catalogue_is_a_failure() {
        for (api_version, kind) in [
            ("infrastructure.cluster.x-k8s.io/v1beta1", "Metal3Misspelt"),
            ("ipam.metal3.io/v9", "IPPool"),
            ("metal3.io/v1alpha1", "Misspelt"),
        ] {
            let outcome = of(json!({ "apiVersion": api_version, "kind": kind }));
            assert!(matches!(outcome, Outcome::Failed(_)), "{kind}: {outcome:?}");
        }
    }
}
