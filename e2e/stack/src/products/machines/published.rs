//! The claim about the templates that the Go managers publish: each is admitted as it is, with the values that lie
//! next to it or above.

use std::path::{Path, PathBuf};

use super::Candidate;
use super::flavours::is_foreign;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::yaml::documents;
use anyhow::{Context, ensure};
use serde_json::Value;

const NAMESPACE: &str = "published";
const VALUES: &str = "example_variables.rc";
const OVERLAY: &str = "kustomization.yaml";
/// Folders whose files are no clusters, but parts of some.
const PARTS: [&str; 3] = ["bases", "overlays", "components"];

/// A file or a folder, and the file of its values.
type Template = (PathBuf, Option<PathBuf>);

/// Renders each template of the given folder, and has the API server review all objects but those of other providers.
pub(super) fn admitted(stack: &Stack, candidate: &Candidate<'_>) -> Proof {
    let Some(folder) = candidate.templates else {
        return Ok("not proved: no folder of published templates is given".to_owned());
    };
    let _namespace = stack.create_namespace(NAMESPACE)?;
    let mut templates = Vec::new();
    find(folder, None, &mut templates)?;
    ensure!(!templates.is_empty(), "{} has no templates", folder.display());
    // Without it kubectl does not know that the server validates fields.
    stack.kubectl(&["get", "--raw", "/openapi/v2"])?;
    let (mut admitted, mut refused) = (0_usize, Vec::new());
    for (template, values) in &templates {
        let about = template.strip_prefix(folder).unwrap_or(template).display();
        let text = render(stack, template, values.as_deref())?;
        let mut objects = documents(&text).with_context(|| about.to_string())?;
        objects.retain(|object| is_served(object) && !is_foreign(object));
        if objects.is_empty() {
            refused.push(format!("{about}: nothing to admit"));
        } else if let Err(error) = admit(stack, &objects) {
            refused.push(format!("{about}: {error:#}"));
        }
        admitted += objects.len();
    }
    ensure!(refused.is_empty(), "{}", refused.join("\n"));
    Ok(format!("{admitted} objects of {} templates", templates.len()))
}

/// Objects of this project may have no unknown member, except one that the definitions of the Go managers lack too. Others are those of
/// Cluster API, whose webhooks set what kubectl misses in them.
fn admit(stack: &Stack, objects: &[Value]) -> anyhow::Result<()> {
    const UNKNOWN: &str = "unknown field";
    const KNOWN: &str = "cloudProviderEnabled";
    let review = |objects: &[Value], validate: &str| {
        let args = ["apply", "--dry-run=server", validate, "--namespace", NAMESPACE];
        stack.send(&args, objects)
    };
    let own: Vec<Value> = objects.iter().filter(|object| is_own(object)).cloned().collect();
    if !own.is_empty()
        && let Err(error) = review(&own, "--validate=strict")
    {
        let text = format!("{error:#}");
        let known = text
            .lines()
            .filter(|line| line.contains(UNKNOWN) && line.contains(KNOWN));
        let is_known = known.count() == 1 && text.matches(UNKNOWN).count() == 1;
        ensure!(is_known, "{text}");
    }
    review(objects, "--validate=ignore")
}

fn is_own(object: &Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    version.contains("metal3.io/") || version.starts_with("infrastructure.cluster.x-k8s.io/")
}

/// Whether the object is of a kind of this project, of Cluster API, or a Secret or ConfigMap.
fn is_served(object: &Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    version == "v1" || group.ends_with("cluster.x-k8s.io") || group.ends_with("metal3.io")
}

/// The templates below a folder, each with the nearest values, if there are any: folders that kustomize renders, and other files.
fn find(folder: &Path, values: Option<&Path>, templates: &mut Vec<Template>) -> anyhow::Result<()> {
    let own = folder.join(VALUES);
    let values = if own.is_file() { Some(own.as_path()) } else { values };
    let found = |template: PathBuf| (template, values.map(Path::to_path_buf));
    if folder.join(OVERLAY).is_file() {
        templates.push(found(folder.to_path_buf()));
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !PARTS.contains(&&*name) {
            find(&path, values, templates)?;
        } else if path.is_file() && name.ends_with(".yaml") {
            templates.push(found(path));
        }
    }
    Ok(())
}

/// As a user does: in a shell that has read the values.
fn render(stack: &Stack, template: &Path, values: Option<&Path>) -> anyhow::Result<String> {
    // The first line is what a user names by arguments of clusterctl, and an endpoint.
    const SCRIPT: &str = r#"
        export CONTROL_PLANE_MACHINE_COUNT=1 WORKER_MACHINE_COUNT=1 KUBERNETES_VERSION=v1.34.9
        export CLUSTER_APIENDPOINT_HOST=192.0.2.1 CLUSTER_APIENDPOINT_PORT=6443
        if [ -n "$0" ]; then . "$0"; fi
        export NAMESPACE="$2" CLUSTER_NAME="${CLUSTER_NAME:-published}"
        if [ -d "$1" ]; then text=$(kubectl kustomize "$1"); else text=$(cat "$1"); fi
        printf '%s\n' "$text" | clusterctl generate yaml --from -"#;
    let values = values.map(Path::to_string_lossy).unwrap_or_default();
    stack.run(
        "sh",
        &["-e", "-c", SCRIPT, &values, &template.to_string_lossy(), NAMESPACE],
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_found_with_the_nearest_values_and_parts_are_none() {
        let root = std::env::temp_dir().join(format!("published-{}", std::process::id()));
        for file in [
            VALUES,
            "cluster.yaml",
            "notes.md",
            "bases/part/kustomization.yaml",
            "v1/components/part/kustomization.yaml",
            "v1/flavour/kustomization.yaml",
            "v1/flavour/md.yaml",
            "v2/example_variables.rc",
            "v2/cluster.yaml",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let mut templates = Vec::new();
        find(&root, None, &mut templates).unwrap();
        let expected = [
            ("cluster.yaml", Some(VALUES)),
            ("v1/flavour", Some(VALUES)),
            ("v2/cluster.yaml", Some("v2/example_variables.rc")),
        ];
        let at = |(one, values): (&str, Option<&str>)| (root.join(one), values.map(|values| root.join(values)));
        assert_eq!(templates, expected.map(at));
        let mut without_values = Vec::new();
        find(&root.join("v1"), None, &mut without_values).unwrap();
        assert_eq!(without_values, [at(("v1/flavour", None))]);
        std::fs::remove_dir_all(root).unwrap();
    }
}
