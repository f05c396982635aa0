//! What is compared of an object: short texts by the path that they stand at, as the recordings write them.

use std::collections::BTreeMap;

use serde_json::Value;

/// What is said at each path. Nothing is said where a value is empty.
pub(super) type Facts = BTreeMap<String, String>;

/// An object, by its kind and a name that is the same in a recording and here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    pub(super) kind: &'static str,
    pub(super) name: String,
}

/// A kind of which something is compared.
pub(super) struct Tracked {
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    /// Who writes what is compared, as the recordings call him.
    pub(super) writer: &'static str,
    /// Beginnings of the paths that are compared. Where there is none, only whether the object exists is.
    paths: &'static [&'static str],
}

const fn tracked(
    kind: &'static str,
    plural: &'static str,
    writer: &'static str,
    paths: &'static [&'static str],
) -> Tracked {
    Tracked {
        kind,
        plural,
        writer,
        paths,
    }
}

/// Kinds of Cluster API and of ours; each object of them is compared by itself.
const SHARED: [&str; 2] = ["Cluster", "Metal3Cluster"];
const TRACKED: [Tracked; 7] = [
    tracked(
        "Cluster",
        "clusters",
        "core",
        &["spec.controlPlaneEndpoint.", "status.initialization.", "status.phase"],
    ),
    tracked("Metal3Cluster", "metal3clusters", "", &[]),
    tracked(
        "KamajiControlPlane",
        "kamajicontrolplanes",
        "kamaji-provider",
        &["spec.controlPlaneEndpoint.", "status."],
    ),
    tracked("TenantControlPlane", "tenantcontrolplanes", "", &[]),
    tracked(
        "ByoCluster",
        "byoclusters",
        "byoh",
        // Its host is the user's.
        &["metadata.finalizers", "spec.controlPlaneEndpoint.port", "status."],
    ),
    tracked(
        "ByoMachine",
        "byomachines",
        "byoh",
        &["metadata.finalizers", "spec.providerID", "status."],
    ),
    tracked(
        "ByoHost",
        "byohosts",
        "byoh",
        &[
            "metadata.labels.",
            "metadata.annotations.",
            "spec.bootstrapSecret.",
            "status.",
        ],
    ),
];

impl Tracked {
    pub(super) fn of_kind(kind: &str) -> Option<&'static Self> {
        TRACKED.iter().find(|tracked| tracked.kind == kind)
    }

    pub(super) fn of_plural(plural: &str) -> Option<&'static Self> {
        TRACKED.iter().find(|tracked| tracked.plural == plural)
    }

    /// Whether what stands at a path is compared. No server gives an object the UID that another gave it.
    pub(super) fn compares(&self, path: &str) -> bool {
        self.paths.iter().any(|begin| path.starts_with(begin)) && !path.ends_with(".uid")
    }

    /// Whether objects of it belong to one provider, and are compared at one moment.
    pub(super) fn is_own(&self) -> bool {
        !SHARED.contains(&self.kind)
    }
}

/// What is called differently in each world.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pub(super) namespace: String,
    /// The one machine of another provider, whose name ends as chance would have it.
    pub(super) machine: String,
}

impl Names {
    /// A value in words that both worlds share.
    pub(super) fn shared(&self, value: &str) -> String {
        let (namespace, machine) = ("NAMESPACE", "MACHINE");
        match value {
            _ if value == self.namespace => namespace.to_owned(),
            _ if value == self.machine => machine.to_owned(),
            _ if value == format!("{}.{}", self.namespace, self.machine) => format!("{namespace}.{machine}"),
            _ => match value.strip_prefix("byoh://").and_then(|id| id.split_once('/')) {
                Some((host, end)) if end.len() == 6 && end.chars().all(char::is_alphanumeric) => {
                    format!("byoh://{host}/SIX")
                }
                _ => value.replace("\", \"", "\",\""),
            },
        }
    }
}

/// What of an object is compared, and as whose.
pub(super) fn of(object: &Value, names: &Names) -> Option<(Subject, Facts)> {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let tracked = Tracked::of_kind(text("/kind"))?;
    let mut facts = Facts::new();
    for part in ["metadata", "spec", "status"] {
        flatten(part, object.get(part).unwrap_or(&Value::Null), &mut facts);
    }
    facts.retain(|path, _| tracked.compares(path));
    facts.values_mut().for_each(|value| *value = names.shared(value));
    let name = names.shared(text("/metadata/name"));
    facts.retain(|path, value| is_said(tracked, path, value));
    let kind = tracked.kind;
    Some((Subject { kind, name }, facts))
}

/// Whether a value says something. Core leaves out what is not so; others say it.
pub(super) fn is_said(tracked: &Tracked, path: &str, value: &str) -> bool {
    let is_no = tracked.kind == "Cluster" && path.starts_with("status.initialization.") && value == "false";
    !value.is_empty() && value != "-" && value != "{}" && !is_no
}

fn flatten(path: &str, value: &Value, into: &mut Facts) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                flatten(&format!("{path}.{name}"), member, into);
            }
        }
        Value::Array(all) if path == "status.conditions" => {
            for one in all {
                let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
                let said = format!("{} {}", text("status"), text("reason"));
                into.insert(format!("{path}[{}]", text("type")), said.trim().to_owned());
            }
        }
        Value::Null => {}
        // One recording was made in `y`, which is a truth in YAML, and no text.
        Value::Bool(true) if path.ends_with(".namespace") => drop(into.insert(path.to_owned(), "y".to_owned())),
        Value::String(text) => drop(into.insert(path.to_owned(), text.clone())),
        other => drop(into.insert(path.to_owned(), other.to_string())),
    }
}
