//! Folders for `kubectl apply -k`: `manifests/default` and the overlays of it.
//!
//! `default` is `all-in-one.yaml`. An overlay is the difference between two forms: objects that it adds, and patches for
//! those that it changes or removes. Definitions come from `manifests/crds`, where they are those of the single products.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use metal3_api::catalog;
use metal3_domain::yaml;
use metal3_files::{documents, workspace};
use serde_json::{Value, json};

use super::form::{Form, Key, key};
use crate::codegen::header;

/// The image in the folders; a kustomization of the user names another.
const IMAGE: &str = "localhost/metal3/capm3:dev";
const DEFAULT: &str = "manifests/default";
const CRDS: &str = "manifests/crds";
const OVERLAYS: [(&str, Form); 3] = [
    (
        "manifests/overlays/namespaced",
        Form {
            is_namespaced: true,
            ..WHOLE
        },
    ),
    (
        "manifests/overlays/observe-only",
        Form {
            observes: true,
            ..WHOLE
        },
    ),
    (
        "manifests/overlays/self-managed-certificates",
        Form {
            is_self_managed: true,
            ..WHOLE
        },
    ),
];
const WHOLE: Form = Form {
    is_self_managed: false,
    is_namespaced: false,
    observes: false,
    left_out: [false; 3],
};

/// The folders with generated files only.
pub(crate) fn folders() -> impl Iterator<Item = &'static str> {
    std::iter::once(DEFAULT).chain(OVERLAYS.iter().map(|(folder, _)| *folder))
}

/// The generated files, by their paths in the checkout.
pub(crate) fn files() -> Result<BTreeMap<PathBuf, String>> {
    let definitions = catalog::definitions();
    let names = definitions
        .iter()
        .map(|definition| format!("{}_{}.yaml", definition.group, definition.plural));
    let (mut files, crds) = (BTreeMap::new(), kustomization(&names.collect::<Vec<_>>(), &[]));
    files.insert(Path::new(CRDS).join("kustomization.yaml"), crds);
    let whole = WHOLE.objects(IMAGE, None);
    let alone: Vec<Value> = definitions.iter().map(|definition| definition.manifest()).collect();
    let change = Change::between(&alone, &whole)?;
    files.extend(change.files(DEFAULT, &["../crds"], "components.yaml"));
    for (folder, form) in OVERLAYS {
        let change = Change::between(&whole, &form.objects(IMAGE, None))?;
        files.extend(change.files(folder, &["../../default"], "more.yaml"));
    }
    Ok(files)
}

/// The difference between two sets of objects.
struct Change {
    added: Vec<Value>,
    patches: Vec<String>,
}

impl Change {
    fn between(from: &[Value], to: &[Value]) -> Result<Self> {
        let by_key = |objects: &'_ [Value]| -> BTreeMap<Key, Value> {
            objects.iter().map(|object| (key(object), object.clone())).collect()
        };
        let (old, new) = (by_key(from), by_key(to));
        let added = to
            .iter()
            .filter(|object| !old.contains_key(&key(object)))
            .cloned()
            .collect();
        let mut patches = Vec::new();
        for (key, object) in &old {
            match new.get(key) {
                Some(same) if same == object => {}
                Some(other) => {
                    let operations = serde_json::to_value(json_patch::diff(object, other))?;
                    patches.push(patch(object, &operations));
                }
                None => patches.push(patch(object, &removal(object))),
            }
        }
        Ok(Self { added, patches })
    }

    fn files(&self, folder: &str, bases: &[&str], name: &str) -> Vec<(PathBuf, String)> {
        let mut resources: Vec<String> = bases.iter().map(|base| (*base).to_owned()).collect();
        let mut files = Vec::new();
        if !self.added.is_empty() {
            resources.push(name.to_owned());
            let text: String = self.added.iter().map(yaml::document).collect();
            files.push((Path::new(folder).join(name), format!("{}{text}", header(SOURCE))));
        }
        let text = kustomization(&resources, &self.patches);
        files.push((Path::new(folder).join("kustomization.yaml"), text));
        files
    }
}

const SOURCE: &str = "crates/xtask/src/release";

fn kustomization(resources: &[String], patches: &[String]) -> String {
    let head = json!({ "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization" });
    let list = yaml::text(&json!({ "resources": resources }));
    let patches = match patches {
        [] => String::new(),
        patches => format!("patches:\n{}", patches.concat()),
    };
    format!("{}{}{list}{patches}", header(SOURCE), yaml::text(&head))
}

/// A patch that removes the object.
fn removal(object: &Value) -> Value {
    let mut patch = json!({ "$patch": "delete" });
    let metadata = object.get("metadata");
    let named = ["name", "namespace"].map(|member| (member, metadata.and_then(|all| all.get(member)).cloned()));
    let named = named
        .into_iter()
        .filter_map(|(member, value)| Some((member.to_owned(), value?)));
    if let Value::Object(members) = &mut patch {
        members.insert("metadata".to_owned(), Value::Object(named.collect()));
        for member in ["apiVersion", "kind"] {
            members.insert(member.to_owned(), object.get(member).cloned().unwrap_or_default());
        }
    }
    patch
}

/// An item of `patches`.
fn patch(object: &Value, content: &Value) -> String {
    let (kind, namespace, name) = key(object);
    let mut target = json!({ "kind": kind, "name": name });
    if let (false, Value::Object(members)) = (namespace.is_empty(), &mut target) {
        members.insert("namespace".to_owned(), namespace.into());
    }
    let indented =
        |text: String, indent: &str| text.lines().map(|line| format!("{indent}{line}\n")).collect::<String>();
    format!(
        "- patch: |-\n{}  target:\n{}",
        indented(yaml::text(content), "    "),
        indented(yaml::text(&target), "    ")
    )
}

/// Compares what `kubectl kustomize` renders with the components.
pub(crate) fn check(kubectl: &Path) -> Result<bool> {
    let root = workspace::root()?;
    for (folder, form) in std::iter::once((DEFAULT, WHOLE)).chain(OVERLAYS) {
        let output = Command::new(kubectl).arg("kustomize").arg(root.join(folder)).output();
        let output = output.with_context(|| format!("run {}", kubectl.display()))?;
        let why = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl kustomize {folder}: {}", why.trim());
        let rendered = documents::parse(&String::from_utf8(output.stdout)?, Path::new(folder))?;
        let mut rendered: BTreeMap<Key, Value> = rendered
            .into_iter()
            .map(|document| (key(&document.value), document.value))
            .collect();
        let wanted = form.objects(IMAGE, None);
        for object in &wanted {
            let found = rendered.remove(&key(object));
            ensure!(
                found.as_ref() == Some(object),
                "{folder} differs from the components in {:?}",
                key(object)
            );
        }
        if let Some(key) = rendered.keys().next() {
            bail!("{folder} has {key:?}, which the components lack");
        }
        println!("{folder}: {} objects equal to those of the components", wanted.len());
    }
    Ok(true)
}
