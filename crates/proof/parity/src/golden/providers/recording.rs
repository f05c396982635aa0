//! States of a recording: the objects by the number of the state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::fields::{self, Fields, ObjectId, Placeholders};
use crate::values::text;
use metal3_files::documents;

/// A recording.
pub(super) struct Recording {
    pub(super) folder: PathBuf,
    pub(super) placeholders: Placeholders,
    states: BTreeMap<String, Vec<Value>>,
}

impl Recording {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut states = BTreeMap::new();
        for file in documents::files(folder, &["yaml"])? {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let number = name.split('-').next().unwrap_or_default().to_owned();
            let documents = documents::parse(&documents::text(&file)?, &file)?;
            let objects = documents.into_iter().map(|document| document.value);
            states.insert(number, objects.collect::<Vec<Value>>());
        }
        let mut all = states.values().flatten();
        let machine = all.clone().find(|object| text(object, "/kind") == "ByoMachine");
        let placeholders = Placeholders {
            namespace: all
                .find_map(namespace)
                .with_context(|| format!("nothing in {}", folder.display()))?,
            machine: machine.map_or("", |machine| text(machine, "/metadata/name")).to_owned(),
        };
        Ok(Self {
            folder: folder.to_owned(),
            placeholders,
            states,
        })
    }

    /// Compared fields of the objects of a state.
    pub(super) fn fields(&self, state: &str) -> Result<BTreeMap<ObjectId, Fields>> {
        let all = self.state(state)?.iter();
        Ok(all
            .filter_map(|object| fields::of(object, &self.placeholders))
            .collect())
    }

    /// The object of a kind in a state; without a name, the only one.
    pub(super) fn object(&self, kind: &str, name: &str, state: &str) -> Result<&Value> {
        let is_it = |object: &&Value| {
            text(object, "/kind") == kind && (name.is_empty() || text(object, "/metadata/name") == name)
        };
        let found = self.state(state)?.iter().find(is_it);
        found.with_context(|| format!("no {kind} {name} in state {state} of {}", self.folder.display()))
    }

    /// An object in the first state that has it.
    pub(super) fn first(&self, kind: &str, name: &str) -> Result<&Value> {
        let found = self.states.keys().find_map(|state| self.object(kind, name, state).ok());
        found.with_context(|| format!("no {kind} {name} in {}", self.folder.display()))
    }

    fn state(&self, state: &str) -> Result<&Vec<Value>> {
        self.states
            .get(state)
            .with_context(|| format!("no state {state} in {}", self.folder.display()))
    }
}

/// One recording has the namespace `y`, a boolean in YAML.
fn namespace(object: &Value) -> Option<String> {
    match object.pointer("/metadata/namespace")? {
        Value::String(name) => Some(name.clone()),
        Value::Bool(true) => Some("y".to_owned()),
        _ => None,
    }
}
