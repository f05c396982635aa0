//! The claim that a switch of the definitions changes no stored object: all recorded objects of the Go managers are stored
//! under their definitions, read and written through this project's, and read through theirs again.
//!
//! All groups get a suffix, so that the claim shares no definition with others on the same stack. Only the version that both
//! store is read, so nothing is converted; conversion is compared with recorded answers elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value, json};

use super::stack::Stack;
use crate::claim::Proof;
use crate::wait::until;
use crate::yaml::documents;

const NAMESPACE: &str = "recorded";
const SUFFIX: &str = ".recorded.test";
const GROUPS: [&str; 3] = ["metal3.io", "ipam.metal3.io", "infrastructure.cluster.x-k8s.io"];
const OF_GO: [&str; 3] = [
    "baremetal-operator-components.yaml",
    "capm3-components.yaml",
    "ipam-components.yaml",
];
const MARK: &str = "recorded.test/written";
/// How long the server needs at most to serve a changed definition.
const SERVED: Duration = Duration::from_secs(60);

/// Definitions by name, and the stored version of each kind.
struct Definitions {
    items: Vec<Value>,
    stored: BTreeMap<(String, String), String>,
}

/// Objects by kind and name, as the server shows them.
type Objects = BTreeMap<(String, String), Value>;

pub(super) fn recorded_objects_are_the_same_under_the_definitions_of_both_sides(stack: &Stack) -> Proof {
    let Some(upstream) = &stack.upstream else {
        return Ok("not proved: UPSTREAM names no folder with the definitions of the Go managers".to_owned());
    };
    let files: Vec<_> = OF_GO.iter().map(|file| upstream.join(file)).collect();
    let theirs = Definitions::read(&files)?;
    let ours = Definitions::read(&yaml_files(&repository().join("manifests/crds"))?)?;
    ensure!(
        theirs.stored == ours.stored,
        "the definitions store other versions: {:?} and {:?}",
        theirs.stored,
        ours.stored
    );
    stack.create_namespace(NAMESPACE)?.keep();
    let outcome = compare(stack, upstream, &theirs, &ours);
    let names: Vec<&str> = theirs.items.iter().filter_map(name).collect();
    stack.kubectl(&[&["delete", "crd", "--wait=false"], names.as_slice()].concat())?;
    stack.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"])?;
    outcome
}

fn compare(stack: &Stack, upstream: &Path, theirs: &Definitions, ours: &Definitions) -> Proof {
    theirs.serve(stack)?;
    let recorded = recorded(&upstream.with_file_name("golden"), &theirs.stored)?;
    let refused = store(stack, &recorded)?;
    let stored = objects(stack, theirs)?;
    let kinds: BTreeSet<&String> = stored.keys().map(|(kind, _)| kind).collect();
    ensure!(
        stored.len() > recorded.len() / 2 && kinds.len() > 15,
        "only {} of {} objects of the kinds {kinds:?} are stored",
        stored.len(),
        recorded.len()
    );
    ours.serve(stack)?;
    equal("read through ours", &stored, &objects(stack, ours)?)?;
    let written = write(stack, &stored, "by ours")?;
    equal("written through ours", &contents(&stored), &contents(&written))?;
    theirs.serve(stack)?;
    equal("read through theirs again", &written, &objects(stack, theirs)?)?;
    let rewritten = write(stack, &written, "by theirs")?;
    equal(
        "written through theirs again",
        &contents(&stored),
        &contents(&rewritten),
    )?;
    theirs.store_one_version(stack)?;
    Ok(format!(
        "{} objects of {} kinds; {refused} recorded ones are refused by the definitions of the Go managers",
        stored.len(),
        kinds.len()
    ))
}

impl Definitions {
    fn read(files: &[impl AsRef<Path>]) -> anyhow::Result<Self> {
        let mut definitions = Self {
            items: Vec::new(),
            stored: BTreeMap::new(),
        };
        for file in files {
            let file = file.as_ref();
            let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
            for document in documents(&text)? {
                if document["kind"] == "CustomResourceDefinition" {
                    definitions.add(document)?;
                }
            }
        }
        Ok(definitions)
    }

    fn add(&mut self, mut definition: Value) -> anyhow::Result<()> {
        let group = definition["spec"]["group"].as_str().unwrap_or_default().to_owned();
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default();
        let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
        let stored = versions.iter().find(|version| version["storage"] == true);
        let stored = stored.and_then(|version| version["name"].as_str());
        let stored = stored.with_context(|| format!("{kind} stores no version"))?;
        self.stored.insert((group.clone(), kind.to_owned()), stored.to_owned());
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let name = format!("{plural}.{group}{SUFFIX}");
        definition["metadata"] = json!({"name": name});
        definition["spec"]["group"] = json!(format!("{group}{SUFFIX}"));
        definition["spec"]["conversion"] = json!({"strategy": "None"});
        self.items.push(definition);
        Ok(())
    }

    /// Replaces what is served by these definitions, and waits until the server shows their schemas.
    fn serve(&self, stack: &Stack) -> anyhow::Result<()> {
        let before = schemas(stack)?;
        stack.send(
            &[
                "apply",
                "--server-side",
                "--force-conflicts",
                "--field-manager=definitions",
            ],
            &self.items,
        )?;
        let names: Vec<String> = self
            .items
            .iter()
            .filter_map(name)
            .map(|name| format!("crd/{name}"))
            .collect();
        let mut wait = vec!["wait", "--for=condition=Established", "--timeout=60s"];
        wait.extend(names.iter().map(String::as_str));
        stack.kubectl(&wait)?;
        let versions: BTreeSet<String> = self
            .stored
            .iter()
            .map(|((group, _), version)| path(group, version))
            .collect();
        until(SERVED, "the schemas of the changed definitions", || {
            let now = schemas(stack)?;
            let is_changed = |path: &String| now.contains_key(path) && now.get(path) != before.get(path);
            Ok(versions.iter().all(is_changed).then_some(()))
        })
    }

    /// Every object was written under one version.
    fn store_one_version(&self, stack: &Stack) -> anyhow::Result<()> {
        let definitions: Value = serde_json::from_str(&stack.kubectl(&["get", "crd", "--output=json"])?)?;
        let all = definitions["items"].as_array().map_or(&[][..], Vec::as_slice);
        for ((group, kind), version) in &self.stored {
            let is_it = |one: &&Value| {
                one["spec"]["group"] == format!("{group}{SUFFIX}") && one["spec"]["names"]["kind"] == kind.as_str()
            };
            let found = all
                .iter()
                .find(is_it)
                .with_context(|| format!("{kind} is not defined"))?;
            let stored = &found["status"]["storedVersions"];
            ensure!(*stored == json!([version]), "{kind} was stored as {stored}");
        }
        Ok(())
    }
}

fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

fn name(object: &Value) -> Option<&str> {
    object["metadata"]["name"].as_str()
}

fn path(group: &str, version: &str) -> String {
    format!("apis/{group}{SUFFIX}/{version}")
}

/// The address of the schema of each version, which contains a digest of it.
fn schemas(stack: &Stack) -> anyhow::Result<Map<String, Value>> {
    let index: Value = serde_json::from_str(&stack.kubectl(&["get", "--raw", "/openapi/v3"])?)?;
    index["paths"]
        .as_object()
        .cloned()
        .context("the server shows no schemas")
}

/// All YAML files of a folder and those below it.
fn yaml_files(folder: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(yaml_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Each different object of the recordings, in the version that is stored.
fn recorded(folder: &Path, stored: &BTreeMap<(String, String), String>) -> anyhow::Result<Vec<Value>> {
    let mut found = BTreeMap::new();
    for file in yaml_files(folder)? {
        let text = fs::read_to_string(&file)?;
        for document in documents(&text).with_context(|| format!("reading {}", file.display()))? {
            collect(&document, stored, &mut found);
        }
    }
    let named = found.into_values().enumerate().map(|(number, mut object)| {
        object["metadata"]["name"] = json!(format!("recorded-{number}"));
        object
    });
    Ok(named.collect())
}

fn collect(value: &Value, stored: &BTreeMap<(String, String), String>, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, stored, found)),
        Value::Object(members) => match storable(value, stored) {
            Some(object) => drop(found.insert(object.to_string(), object)),
            None => members.values().for_each(|member| collect(member, stored, found)),
        },
        _ => {}
    }
}

/// The object without what the server or another object decides.
fn storable(value: &Value, stored: &BTreeMap<(String, String), String>) -> Option<Value> {
    let (group, version) = value["apiVersion"].as_str()?.split_once('/')?;
    let kind = value["kind"].as_str()?;
    if !value["metadata"].is_object() || !GROUPS.contains(&group) {
        return None;
    }
    (stored.get(&(group.to_owned(), kind.to_owned()))? == version).then_some(())?;
    let mut object = value.clone();
    object["apiVersion"] = json!(format!("{group}{SUFFIX}/{version}"));
    let kept = ["labels", "annotations"].map(|key| (key, value["metadata"][key].clone()));
    object["metadata"] = json!({"namespace": NAMESPACE});
    for (key, member) in kept {
        if member.is_object() {
            object["metadata"][key] = member;
        }
    }
    Some(object)
}

/// Creates the objects with their statuses; the number of refused ones.
fn store(stack: &Stack, recorded: &[Value]) -> anyhow::Result<usize> {
    let created = send(stack, &["create", "--validate=ignore", "--output=json"], recorded)?;
    let statuses: BTreeMap<_, _> = recorded
        .iter()
        .map(|object| (identity(object), &object["status"]))
        .collect();
    let mut reported = Vec::new();
    for mut object in created.clone() {
        let status = statuses
            .get(&identity(&object))
            .copied()
            .filter(|status| status.is_object());
        if let Some(status) = status {
            object["status"] = status.clone();
            reported.push(object);
        }
    }
    // A status that the definition refuses leaves an object without one.
    send(
        stack,
        &["replace", "--subresource=status", "--validate=ignore", "--output=json"],
        &reported,
    )?;
    Ok(recorded.len().saturating_sub(created.len()))
}

/// What kubectl was sent and the server took.
fn send(stack: &Stack, arguments: &[&str], items: &[Value]) -> anyhow::Result<Vec<Value>> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let arguments = [arguments, &["--filename", "-"]].concat();
    let output = stack.output("kubectl", &arguments, Some(&list))?;
    let mut taken = Vec::new();
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    for answer in answers {
        let answer = answer.with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        match answer["items"].as_array() {
            Some(items) => taken.extend(items.iter().cloned()),
            None => taken.push(answer),
        }
    }
    if taken.is_empty() && !items.is_empty() {
        bail!(
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(taken)
}

fn identity(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// All objects, in the version that is stored.
fn objects(stack: &Stack, definitions: &Definitions) -> anyhow::Result<Objects> {
    let kinds: Vec<String> = definitions.items.iter().filter_map(name).map(str::to_owned).collect();
    let arguments = ["get", &kinds.join(","), "--namespace", NAMESPACE, "--output=json"];
    let list: Value = serde_json::from_str(&stack.kubectl(&arguments)?)?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    Ok(items.into_iter().map(|object| (identity(&object), object)).collect())
}

/// Writes each object as it was read, with one annotation more: without a change the server stores nothing.
fn write(stack: &Stack, objects: &Objects, by: &str) -> anyhow::Result<Objects> {
    let changed = objects.values().cloned().map(|mut object| {
        object["metadata"]["annotations"][MARK] = json!(by);
        object
    });
    let changed: Vec<Value> = changed.collect();
    let written = send(stack, &["replace", "--validate=strict", "--output=json"], &changed)?;
    ensure!(
        written.len() == changed.len(),
        "only {} of {} objects could be written {by}",
        written.len(),
        changed.len()
    );
    Ok(written.into_iter().map(|object| (identity(&object), object)).collect())
}

/// The objects without what a write of the annotation changes. The generation stays: it counts changes of a spec.
fn contents(objects: &Objects) -> Objects {
    let content = |(key, object): (&(String, String), &Value)| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
            let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
            let is_empty = annotations.is_some_and(|annotations| {
                annotations.remove(MARK);
                annotations.is_empty()
            });
            if is_empty {
                metadata.remove("annotations");
            }
        }
        (key.clone(), object)
    };
    objects.iter().map(content).collect()
}

fn equal(what: &str, before: &Objects, after: &Objects) -> anyhow::Result<()> {
    let different = before.iter().filter(|(key, object)| after.get(*key) != Some(*object));
    let different: Vec<_> = different.map(|((kind, name), object)| (kind, name, object)).collect();
    if let Some((kind, name, object)) = different.first() {
        let key = ((*kind).clone(), (*name).clone());
        bail!(
            "{what}: {} of {} objects differ; {kind} {name}: {object} and {}",
            different.len(),
            before.len(),
            after.get(&key).unwrap_or(&Value::Null)
        );
    }
    ensure!(
        before.len() == after.len(),
        "{what}: {} objects of {}",
        after.len(),
        before.len()
    );
    Ok(())
}
