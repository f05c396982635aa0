//! `chart-check`: the real Helm reads the charts, and renders what the components contain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use metal3_files::documents;
use serde_json::{Value, json};

use super::cases::{EFFECTS, REFUSED, REMOVED};
use super::{DEFINITIONS, PROGRAM, package, slots, tree};
use crate::release::form::{Form, Key, key};
use crate::release::layout::WATCHED;
use crate::run::next_to;

/// Namespace of the release: that of the components.
pub(super) const NAMESPACE: &str = "metal3-system";
/// The watched namespace of forms with one. It looks like a number.
pub(super) const TENANT: &str = "123";

/// The oldest version of Kubernetes that the charts accept.
const OLDEST: &str = "1.30.0";

type Objects = BTreeMap<Key, Value>;

/// Checks the charts in a folder, which were written for this image.
pub(crate) fn run(folder: &Path, image: &str, helm: &Path) -> Result<bool> {
    let helm = Helm {
        program: helm.to_path_buf(),
        charts: folder.to_path_buf(),
    };
    for chart in [DEFINITIONS, PROGRAM] {
        let (accepted, text) = helm.answer("lint", chart, &["--strict"])?;
        ensure!(accepted, "helm lint {chart}: {text}");
    }
    packaged(&helm, image)?;
    super::push::check(folder, &helm.program)?;
    let forms = tree::forms();
    let mut compared = 0;
    for form in &forms {
        compared += same(&helm, form, image)?;
    }
    println!(
        "charts: {} forms rendered, {compared} objects equal to those of the components",
        forms.len()
    );
    for (arguments, kind, pointer, wanted) in EFFECTS.iter().copied() {
        effect(&helm, arguments, kind, pointer, wanted)?;
    }
    for (argument, kind) in REMOVED.iter().copied() {
        for (arguments, is_there) in [(vec![], true), (vec!["--set", argument], false)] {
            let objects = helm.objects(PROGRAM, &arguments)?;
            ensure!(
                objects.iter().any(|object| object["kind"] == kind) == is_there,
                "{arguments:?}: whether there is a {kind} is not {is_there}"
            );
        }
    }
    for (chart, argument, why) in REFUSED.iter().copied() {
        let (accepted, text) = helm.answer("template", chart, &["--set", argument])?;
        ensure!(
            !accepted && text.contains(why),
            "helm template {chart} --set {argument}: {text}"
        );
    }
    println!(
        "charts: {} values have their effect, {} wrong ones are refused",
        EFFECTS.len() + REMOVED.len(),
        REFUSED.len()
    );
    Ok(true)
}

/// Helm renders the archive of each chart as its folder, and the charts of another folder have the same archives.
fn packaged(helm: &Helm, image: &str) -> Result<()> {
    let other = next_to(&helm.charts, "again");
    super::write(&other, image)?;
    let (packages, again) = (package::written(&helm.charts)?, package::written(&other));
    fs::remove_dir_all(&other).with_context(|| format!("remove {}", other.display()))?;
    ensure!(packages == again?, "charts in another folder have other archives");
    for package in &packages {
        let of_folder = helm.answer("template", package.chart, &[])?;
        ensure!(of_folder.0, "helm template {}: {}", package.chart, of_folder.1);
        ensure!(
            helm.answer("template", &package.file(), &[])? == of_folder,
            "helm renders {} in another way than its folder",
            package.file()
        );
    }
    println!("charts: {} archives equal in two folders", packages.len());
    Ok(())
}

/// The program, and the folder of the charts.
pub(super) struct Helm {
    pub(super) program: PathBuf,
    pub(super) charts: PathBuf,
}

impl Helm {
    /// Whether it succeeds, and what it prints.
    fn answer(&self, verb: &str, chart: &str, arguments: &[&str]) -> Result<(bool, String)> {
        let mut helm = Command::new(&self.program);
        helm.arg(verb)
            .arg(self.charts.join(chart))
            .args(["--namespace", NAMESPACE])
            // A Helm that is built from source takes an old version for that of a server it does not ask.
            .args(["--kube-version", OLDEST])
            .args(arguments);
        let output = helm
            .output()
            .with_context(|| format!("run {}", self.program.display()))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() || verb == "lint" {
            text.push_str(&String::from_utf8_lossy(&output.stderr));
        }
        Ok((output.status.success(), text))
    }

    /// The objects that a chart renders.
    pub(super) fn objects(&self, chart: &str, arguments: &[&str]) -> Result<Vec<Value>> {
        let (rendered, text) = self.answer("template", chart, arguments)?;
        ensure!(rendered, "helm template {chart} {}: {text}", arguments.join(" "));
        let documents = documents::parse(&text, Path::new(chart))?;
        Ok(documents.into_iter().map(|document| document.value).collect())
    }
}

/// The values of a form: those of both charts, and with them those of the program.
pub(super) fn values(form: &Form) -> [Value; 2] {
    let [ipam, capm3, hosts] = form.left_out.map(|left_out| !left_out);
    let certificates = if form.is_self_managed {
        "self-managed"
    } else {
        "cert-manager"
    };
    let namespace = if form.is_namespaced { TENANT } else { "" };
    let shared = json!({
        "products": { "ipam": ipam, "capm3": capm3, "hosts": hosts }, "certificates": certificates,
    });
    let mut program = shared.clone();
    if let Value::Object(members) = &mut program {
        members.insert("watchNamespace".to_owned(), namespace.into());
        members.insert("observeOnly".to_owned(), form.observes.into());
    }
    [shared, program]
}

/// Compares both charts with the components of a form; returns the number of objects.
fn same(helm: &Helm, form: &Form, image: &str) -> Result<usize> {
    let file = std::env::temp_dir().join(format!("chart-check-{}.json", std::process::id()));
    let path = file.display().to_string();
    let mut rendered = Vec::new();
    for (chart, values) in [DEFINITIONS, PROGRAM].into_iter().zip(values(form)) {
        // A process that observes leaves the definitions of others as they are.
        if form.observes && chart == DEFINITIONS {
            continue;
        }
        fs::write(&file, values.to_string()).with_context(|| format!("write {path}"))?;
        rendered.extend(helm.objects(chart, &["--values", &path])?);
    }
    fs::remove_file(&file).with_context(|| format!("remove {path}"))?;
    let rendered = by_key(rendered.into_iter().map(without_helms))?;
    let components = form
        .objects(image, None)
        .into_iter()
        .filter(|object| object["kind"] != "Namespace");
    let text = serde_json::to_string(&components.collect::<Vec<_>>())?.replace(WATCHED, TENANT);
    let components = by_key(serde_json::from_str::<Vec<Value>>(&text)?.into_iter())?;
    let differ: Vec<String> = components
        .keys()
        .chain(rendered.keys().filter(|key| !components.contains_key(*key)))
        .filter(|key| components.get(*key) != rendered.get(*key))
        .map(|(kind, namespace, name)| format!("{kind} {namespace}/{name}"))
        .collect();
    ensure!(
        differ.is_empty(),
        "{form:?}: the chart differs from the components in {}",
        differ.join(", ")
    );
    Ok(rendered.len())
}

/// An object without what only a chart has: the policy that keeps definitions, and the checksum of the settings.
fn without_helms(mut object: Value) -> Value {
    for (of, annotation) in [
        ("/metadata", "helm.sh/resource-policy"),
        ("/spec/template/metadata", slots::CHECKSUM),
    ] {
        let Some(Value::Object(metadata)) = object.pointer_mut(of) else {
            continue;
        };
        let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
            continue;
        };
        annotations.remove(annotation);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

fn by_key(objects: impl Iterator<Item = Value>) -> Result<Objects> {
    let mut found = Objects::new();
    for object in objects {
        if let Some(twice) = found.insert(key(&object), object) {
            bail!("{:?} is there twice", key(&twice));
        }
    }
    Ok(found)
}

fn effect(helm: &Helm, arguments: &[&str], kind: &str, pointer: &str, wanted: &str) -> Result<()> {
    let arguments: Vec<&str> = arguments.iter().flat_map(|argument| ["--set", argument]).collect();
    let objects = helm.objects(PROGRAM, &arguments)?;
    let mut of_kind = objects.iter().filter(|object| object["kind"] == kind);
    let found = of_kind.find_map(|object| object.pointer(pointer)).map(Value::to_string);
    ensure!(
        found.as_deref() == Some(wanted),
        "{arguments:?}: {kind} has {found:?} at {pointer}, not {wanted}"
    );
    Ok(())
}
