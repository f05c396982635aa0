//! `chart`: the Helm charts `metal3-rs-crds` and `metal3-rs`, from the objects of `all-in-one.yaml`.
//!
//! Each object of each form is composed as for the components. Where forms differ, the template chooses by the values;
//! members with a value of their own are in `slots`. A chart has no object that the components lack, except what a value
//! adds: a monitor, and Secrets for Ironic. It has no Namespace: `helm install --create-namespace` creates it.

mod cases;
pub(crate) mod check;
mod checks;
pub(crate) mod dry_run;
mod extras;
mod helpers;
mod installed;
pub(crate) mod package;
pub(crate) mod push;
mod rows;
mod schemas;
mod slots;
mod tree;
mod values;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use metal3_flags::version::version;
use metal3_webhooks::manifest::INJECTION_ANNOTATION;
use serde_json::{Value, json};

use self::tree::Case;
use super::form::{DEFINITION, Form, Key, key};
use super::{Files, write_all};
use metal3_domain::yaml;

/// The chart of the definitions. It is installed first, and its objects stay when it is uninstalled.
const DEFINITIONS: &str = "metal3-rs-crds";
/// The chart of the program.
const PROGRAM: &str = "metal3-rs";

/// The annotation of `Chart.yaml` with the image of the program.
pub(crate) const IMAGE_ANNOTATION: &str = "metal3-rs/image";

/// The versions of Kubernetes: the first one that serves admission policies as `v1`, and previews of newer ones.
const KUBERNETES: &str = ">=1.30.0-0";

/// The folders of both charts.
pub(crate) const CHARTS: [&str; 2] = [DEFINITIONS, PROGRAM];

/// Writes both charts into a folder, and prints their folders and archives.
pub(crate) fn run(folder: &Path, image: &str) -> Result<bool> {
    write(folder, image)?;
    for package in package::of(folder)? {
        println!("{}", folder.join(package.chart).display());
        println!("{}", folder.join(package.file()).display());
    }
    Ok(true)
}

/// Writes both charts and their archives into a folder.
pub(crate) fn write(folder: &Path, image: &str) -> Result<()> {
    // A template that is not written any more would be installed.
    for chart in CHARTS.map(|chart| folder.join(chart)) {
        if chart.join("Chart.yaml").is_file() {
            fs::remove_dir_all(&chart).with_context(|| format!("remove {}", chart.display()))?;
        }
    }
    write_all(folder, files(image))?;
    package::write(folder)
}

/// The files of both charts.
pub(super) fn files(image: &str) -> Files {
    let mut files = Files::new();
    let deployment = Form::default()
        .objects(image, None)
        .into_iter()
        .find(|object| object["kind"] == "Deployment");
    let about_definitions = "The kinds of metal3-rs. Install it before metal3-rs, in the same namespace";
    let about_program = "Bare metal for Cluster API: hosts, machines and addresses in one process";
    for (chart, about, rows) in [
        (DEFINITIONS, about_definitions, rows::of_definitions()),
        (
            PROGRAM,
            about_program,
            rows::of_program(&deployment.unwrap_or_default()),
        ),
    ] {
        let mut add = |name: &str, text: String| files.insert(Path::new(chart).join(name), text);
        add("Chart.yaml", yaml::text(&about_chart(chart, about, image)));
        add("values.yaml", values::yaml(&rows));
        add("values.schema.json", format!("{:#}\n", values::schema(&rows)));
    }
    files.extend(definitions(image));
    files.extend(templates(image));
    for (name, text) in [
        ("NOTES.txt", extras::NOTES.to_owned()),
        (helpers::FILE, helpers::TEXT.to_owned()),
        (checks::FILE, checks::template()),
    ] {
        files.insert(Path::new(PROGRAM).join("templates").join(name), text);
    }
    files
}

/// `Chart.yaml`. The image is an annotation and not the default of a value: `helm upgrade --reuse-values` keeps the defaults of
/// the former chart, and with them the image would stay that of the former release.
fn about_chart(chart: &str, about: &str, image: &str) -> Value {
    let mut all = json!({
        "apiVersion": "v2", "name": chart, "description": about, "type": "application",
        "version": version().trim_start_matches('v'), "appVersion": version(), "kubeVersion": KUBERNETES,
    });
    if let (PROGRAM, Value::Object(members)) = (chart, &mut all) {
        members.insert("annotations".to_owned(), json!({ IMAGE_ANNOTATION: image }));
    }
    all
}

/// The templates of the definitions, one file each.
fn definitions(image: &str) -> Files {
    let objects = Form::default().objects(image, Some(slots::NAMESPACE)).into_iter();
    let definitions = objects.filter(|object| object["kind"] == DEFINITION);
    let template = |object: Value| {
        let (_, _, name) = key(&object);
        let product = product(&object);
        let text = slots::definition(object, INJECTION_ANNOTATION);
        let text = format!("{{{{- if .Values.products.{product} }}}}\n{text}{{{{- end }}}}\n");
        (
            Path::new(DEFINITIONS).join("templates").join(format!("{name}.yaml")),
            text,
        )
    };
    definitions.map(template).collect()
}

/// The product that serves a definition.
fn product(definition: &Value) -> &'static str {
    match definition.pointer("/spec/group").and_then(Value::as_str) {
        Some("ipam.metal3.io") => "ipam",
        Some("metal3.io") => "hosts",
        _ => "capm3",
    }
}

/// The templates of all other objects, a file for each kind.
fn templates(image: &str) -> Files {
    let forms = tree::forms();
    let mut order: Vec<Key> = Vec::new();
    let mut texts: Vec<BTreeMap<Key, String>> = Vec::new();
    for form in &forms {
        let objects = form.objects(image, Some(slots::NAMESPACE)).into_iter();
        let mut of_form = BTreeMap::new();
        for object in objects.filter(|object| object["kind"] != DEFINITION && object["kind"] != "Namespace") {
            let object = without_argument(object);
            let key = key(&object);
            if !order.contains(&key) {
                order.push(key.clone());
            }
            of_form.insert(key, slots::template(object));
        }
        texts.push(of_form);
    }
    let mut files = Files::new();
    for key in order {
        let text = |of_form: &'_ BTreeMap<Key, String>| of_form.get(&key).cloned().unwrap_or_default();
        let texts: Vec<String> = texts.iter().map(text).collect();
        let cases: Vec<Case> = forms.iter().copied().zip(texts.iter().map(String::as_str)).collect();
        let path = file(&key.0);
        files.entry(path).or_default().push_str(&tree::template(&cases));
    }
    for (kind, text) in extras::templates() {
        files.entry(file(kind)).or_default().push_str(&text);
    }
    files
}

/// The object without the argument for which the template has a place of its own.
fn without_argument(mut object: Value) -> Value {
    let arguments = object.pointer_mut("/spec/template/spec/containers/0/args");
    if let Some(Value::Array(arguments)) = arguments {
        arguments.retain(|argument| argument != "--observe-only");
    }
    object
}

fn file(kind: &str) -> PathBuf {
    Path::new(PROGRAM)
        .join("templates")
        .join(format!("{}.yaml", kind.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_by_a_template() {
        let extras = extras::templates().into_iter().map(|(_, text)| text);
        let helpers = std::iter::once(helpers::TEXT.to_owned());
        let all: String = templates("r/x:1").into_values().chain(extras).chain(helpers).collect();
        for row in rows::of_program(&json!({})) {
            let read = format!(".Values.{}", row.path);
            // Not only as the beginning of another value.
            let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.');
            assert!(all.split(&read).skip(1).any(is_whole), "{}", row.path);
        }
    }
}
