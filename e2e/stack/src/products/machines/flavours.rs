//! The claim about `clusterctl generate cluster`: each template of the release, with the values that the release proposes.

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::Candidate;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::yaml::documents;

const NAMESPACE: &str = "flavours";
/// The values that the release proposes.
const VALUES: &str = "example_variables.rc";
/// Kinds of other providers, which are not installed.
const FOREIGN: [&str; 3] = ["ByoCluster", "ByoMachineTemplate", "KamajiControlPlane"];
/// A file name around the name of a flavour.
const FLAVOUR: (&str, &str) = ("cluster-template-", ".yaml");

/// Generates a cluster of each flavour, and has the API server review all objects but those of other providers.
pub(super) fn generated(stack: &Stack, candidate: &Candidate<'_>) -> Proof {
    let _namespace = stack.create_namespace(NAMESPACE)?;
    let mut proved = Vec::new();
    for flavour in flavours(&candidate.written.file(""))? {
        let text = generate(stack, candidate, &flavour).with_context(|| format!("flavour {flavour:?}"))?;
        ensure!(!text.contains("${"), "{flavour}: a variable is left in {text}");
        let objects = documents(&text)?;
        let known: Vec<Value> = objects.iter().filter(|object| !is_foreign(object)).cloned().collect();
        let machines = known
            .iter()
            .any(|object| object["kind"] == "MachineDeployment" || object["kind"] == "Cluster");
        ensure!(machines, "flavour {flavour:?} has no Cluster and no MachineDeployment");
        let args = ["apply", "--dry-run=server", "--namespace", NAMESPACE];
        stack
            .send(&args, &known)
            .with_context(|| format!("flavour {flavour:?}"))?;
        let name = if flavour.is_empty() { "default" } else { &flavour };
        proved.push(format!("{name} {} of {}", known.len(), objects.len()));
    }
    Ok(format!("objects admitted: {}", proved.join(", ")))
}

/// Whether the object is of a provider that is not installed here.
pub(crate) fn is_foreign(object: &Value) -> bool {
    object["kind"].as_str().is_some_and(|kind| FOREIGN.contains(&kind))
}

/// The flavours of the release, the default first.
pub(crate) fn flavours(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = vec![String::new()];
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let name = name
            .strip_prefix(FLAVOUR.0)
            .and_then(|rest| rest.strip_suffix(FLAVOUR.1));
        names.extend(name.map(str::to_owned));
    }
    names.sort();
    ensure!(names.len() > 1, "{} has no flavour", folder.display());
    Ok(names)
}

/// As documented, in a shell that has read the proposed values.
fn generate(stack: &Stack, candidate: &Candidate<'_>, flavour: &str) -> anyhow::Result<String> {
    let values = candidate.written.file(VALUES);
    let shell = format!(
        "source '{}' && METAL3_RELEASE='{}' clusterctl generate cluster example --config '{}' --infrastructure metal3 \
         --target-namespace {NAMESPACE} {}",
        values.display(),
        candidate.written.file("").display(),
        candidate.written.configuration().display(),
        if flavour.is_empty() {
            String::new()
        } else {
            format!("--flavor {flavour}")
        }
    );
    stack.run("bash", &["-e", "-c", &shell], None)
}
