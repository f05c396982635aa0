//! What the controllers would write and order first, as a dry run of them has shown.
//!
//! A change names its object and the members that it changes, and contains no value: one may be that of a Secret.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::catalog;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::finding::NotRead;

/// Members of an object deeper than this are named by the one that contains them.
const DEPTH: usize = 3;

/// A write or a request to Ironic that was not sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// `create`, `patch`, `patch status` or `delete`; for a request to Ironic `order` with its name.
    pub verb: String,
    /// The object, as `KIND NAMESPACE/NAME`.
    pub object: String,
    /// The members that a patch changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Whether it may interrupt or erase a machine.
    pub interrupts: bool,
}

impl Change {
    /// A write. None for an Event, which changes nothing.
    #[must_use]
    pub fn write(verb: &str, (group, resource): (&str, &str), name: &str, body: &Value) -> Option<Self> {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        if plural == "events" {
            return None;
        }
        let members = match verb {
            "create" | "delete" => Vec::new(),
            _ => members(body, plural == "secrets"),
        };
        Some(Self {
            verb: format!("{verb} {subresource}").trim().to_owned(),
            object: format!("{} {name}", kind(group, plural)),
            members,
            interrupts: false,
        })
    }

    /// A request to Ironic.
    #[must_use]
    pub fn order(kind: &str, name: &str, verb: &str, interrupts: bool) -> Self {
        Self {
            verb: format!("order {verb}"),
            object: format!("{kind} {name}"),
            members: Vec::new(),
            interrupts,
        }
    }
}

/// The kind of a resource, or its name in URLs where the kind is not one of this program.
fn kind(group: &str, plural: &str) -> String {
    let definitions = catalog::definitions();
    let known = definitions
        .iter()
        .find(|one| (one.group, one.plural) == (group, plural));
    match (known, plural) {
        (Some(known), _) => known.kind.to_owned(),
        (None, "secrets") => "Secret".to_owned(),
        (None, other) => other.to_owned(),
    }
}

/// The members that a merge patch, an apply patch or a list of steps changes.
fn members(body: &Value, is_secret: bool) -> Vec<String> {
    let mut found = BTreeSet::new();
    match body {
        Value::Object(root) => walk(root, &mut Vec::new(), is_secret, &mut found),
        Value::Array(steps) => found.extend(steps.iter().filter(|step| step["op"] != "test").filter_map(|step| {
            let path = step["path"].as_str()?.trim_start_matches('/');
            Some(path.replace('/', ".").replace("~1", "/").replace("~0", "~"))
        })),
        _ => {}
    }
    found.into_iter().collect()
}

fn walk<'a>(members: &'a Map<String, Value>, path: &mut Vec<&'a str>, is_secret: bool, found: &mut BTreeSet<String>) {
    for (name, value) in members {
        if is_identity(path, name) {
            continue;
        }
        path.push(name);
        // Names of entries of a Secret are not shown either.
        let is_leaf = path.len() >= DEPTH || (is_secret && path.first() != Some(&"metadata"));
        match value {
            Value::Object(inner) if !is_leaf && !inner.is_empty() => walk(inner, path, is_secret, found),
            Value::Null => drop(found.insert(format!("{} removed", path.join(".")))),
            _ => drop(found.insert(path.join("."))),
        }
        path.pop();
    }
}

/// Whether a member says which object and version is meant.
fn is_identity(path: &[&str], name: &str) -> bool {
    match path {
        [] => matches!(name, "apiVersion" | "kind"),
        ["metadata"] => matches!(name, "name" | "namespace" | "resourceVersion" | "uid"),
        _ => false,
    }
}

/// What the controllers do first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// Their first changes, in the order of their text. What follows from a response is not among them.
    pub changes: BTreeSet<Change>,
    /// What is not known of them, and why.
    pub not_known: Vec<NotRead>,
}

/// Equal changes with their objects.
type Groups<'a> = BTreeMap<(&'a str, &'a str, &'a [String], bool), Vec<&'a str>>;

impl DryRun {
    /// The lines for a person.
    pub(crate) fn text(&self) -> String {
        let mut groups = Groups::new();
        for change in &self.changes {
            let (kind, name) = change.object.split_once(' ').unwrap_or(("", &change.object));
            let group = (change.verb.as_str(), kind, change.members.as_slice(), change.interrupts);
            groups.entry(group).or_default().push(name);
        }
        let mut text = format!("\nFirst, this program would ({}):\n", self.changes.len());
        for ((verb, kind, members, interrupts), names) in groups {
            let members = if members.is_empty() {
                String::new()
            } else {
                format!(": {}", members.join(", "))
            };
            let warning = if interrupts {
                ", which may interrupt or erase the machine"
            } else {
                ""
            };
            let place = if verb.starts_with("order ") {
                format!(" at Ironic for {kind}")
            } else {
                format!(" {kind}")
            };
            text.push_str(&format!("- {verb}{place}{members}{warning} ({})\n", few(&names)));
        }
        for unknown in grouped(&self.not_known) {
            text.push_str(&format!("- not known: {unknown}\n"));
        }
        text
    }
}

/// The same reason once.
fn grouped(not_known: &[NotRead]) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in not_known {
        by_reason.entry(&one.why).or_default().push(&one.what);
    }
    let line = |(why, what): (&str, Vec<&str>)| format!("{}, because {why}", few(&what));
    by_reason.into_iter().map(line).collect()
}

/// All names, or the first ones and how many follow.
fn few(names: &[&str]) -> String {
    match names {
        [] | [_] | [_, _] | [_, _, _] => names.join(", "),
        [first, second, ..] => format!("{first}, {second} and {} more", names.len().saturating_sub(2)),
    }
}
