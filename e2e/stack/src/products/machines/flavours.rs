//! The claim about `clusterctl generate cluster`: each template of the release, with the values that the release proposes.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::Candidate;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::yaml::documents;

const NAMESPACE: &str = "flavours";
/// The values that the release proposes.
const VALUES: &str = "example_variables.rc";
/// A file name around the name of a flavour.
const FLAVOUR: (&str, &str) = ("cluster-template-", ".yaml");

/// Generates a cluster of each flavour, and has the API server review the objects that it knows: those of other providers are
/// not installed here.
pub(super) fn generated(stack: &Stack, candidate: &Candidate<'_>) -> Proof {
    let _namespace = stack.create_namespace(NAMESPACE)?;
    let served = served(stack)?;
    let mut proved = Vec::new();
    for flavour in flavours(candidate)? {
        let text = generate(stack, candidate, &flavour).with_context(|| format!("flavour {flavour:?}"))?;
        ensure!(!text.contains("${"), "{flavour}: a variable is left in {text}");
        let objects = documents(&text)?;
        let is_served = |object: &&Value| served.contains(&group_and_kind(object));
        let known: Vec<Value> = objects.iter().filter(is_served).cloned().collect();
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

/// Group and kind of what the API server knows.
fn served(stack: &Stack) -> anyhow::Result<BTreeSet<(String, String)>> {
    let table = stack.kubectl(&["api-resources", "--no-headers"])?;
    let row = |line: &str| {
        let mut fields = line.split_whitespace().rev();
        let (kind, _, version) = (fields.next()?, fields.next()?, fields.next()?);
        Some((group(version), kind.to_owned()))
    };
    Ok(table.lines().filter_map(row).collect())
}

fn group_and_kind(object: &Value) -> (String, String) {
    let text = |member: &str| object[member].as_str().unwrap_or_default();
    (group(text("apiVersion")), text("kind").to_owned())
}

fn group(version: &str) -> String {
    version.rsplit_once('/').map_or("", |(group, _)| group).to_owned()
}

/// The flavours of the release, the default first.
fn flavours(candidate: &Candidate<'_>) -> anyhow::Result<Vec<String>> {
    let mut names = vec![String::new()];
    let folder = candidate.written.file("");
    for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
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
