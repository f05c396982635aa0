//! Compared fields of objects: short texts by path, in the format of recordings.

use std::collections::BTreeMap;

use serde_json::Value;

/// Values by path; empty values are left out.
pub(super) type Fields = BTreeMap<String, String>;

/// An object by kind and by a name that recording and simulation share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectId {
    pub(super) kind: &'static str,
    pub(super) name: String,
}

/// A compared kind.
pub(super) struct ComparedKind {
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    /// Writer of the compared fields in recordings.
    pub(super) writer: &'static str,
    /// Prefixes of compared paths; without any, only existence is compared.
    paths: &'static [&'static str],
}

const fn compared(
    kind: &'static str,
    plural: &'static str,
    writer: &'static str,
    paths: &'static [&'static str],
) -> ComparedKind {
    ComparedKind {
        kind,
        plural,
        writer,
        paths,
    }
}

/// Kinds of Cluster API and of this project; their objects are compared one by one.
const SHARED: [&str; 2] = ["Cluster", "Metal3Cluster"];
const TRACKED: [ComparedKind; 7] = [
    compared(
        "Cluster",
        "clusters",
        "core",
        &["spec.controlPlaneEndpoint.", "status.initialization.", "status.phase"],
    ),
    compared("Metal3Cluster", "metal3clusters", "", &[]),
    compared(
        "KamajiControlPlane",
        "kamajicontrolplanes",
        "kamaji-provider",
        &["spec.controlPlaneEndpoint.", "status."],
    ),
    compared("TenantControlPlane", "tenantcontrolplanes", "", &[]),
    compared(
        "ByoCluster",
        "byoclusters",
        "byoh",
        // The user sets the host.
        &["metadata.finalizers", "spec.controlPlaneEndpoint.port", "status."],
    ),
    compared(
        "ByoMachine",
        "byomachines",
        "byoh",
        &["metadata.finalizers", "spec.providerID", "status."],
    ),
    compared(
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

impl ComparedKind {
    pub(super) fn of_kind(kind: &str) -> Option<&'static Self> {
        TRACKED.iter().find(|compared| compared.kind == kind)
    }

    pub(super) fn of_plural(plural: &str) -> Option<&'static Self> {
        TRACKED.iter().find(|compared| compared.plural == plural)
    }

    /// Whether a path is compared. UIDs always differ.
    pub(super) fn compares(&self, path: &str) -> bool {
        self.paths.iter().any(|begin| path.starts_with(begin)) && !path.ends_with(".uid")
    }

    /// Whether its objects belong to one provider and are compared at one moment.
    pub(super) fn is_own(&self) -> bool {
        !SHARED.contains(&self.kind)
    }
}

/// Names that differ between recording and simulation.
#[derive(Debug, Clone, Default)]
pub(super) struct Placeholders {
    pub(super) namespace: String,
    /// The only machine of another provider, with a random suffix.
    pub(super) machine: String,
}

impl Placeholders {
    /// A value with placeholders.
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

/// Compared fields of an object.
pub(super) fn of(object: &Value, placeholders: &Placeholders) -> Option<(ObjectId, Fields)> {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let compared = ComparedKind::of_kind(text("/kind"))?;
    let mut fields = Fields::new();
    for part in ["metadata", "spec", "status"] {
        flatten(part, object.get(part).unwrap_or(&Value::Null), &mut fields);
    }
    fields.retain(|path, _| compared.compares(path));
    fields
        .values_mut()
        .for_each(|value| *value = placeholders.shared(value));
    let name = placeholders.shared(text("/metadata/name"));
    fields.retain(|path, value| is_set(compared, path, value));
    let kind = compared.kind;
    Some((ObjectId { kind, name }, fields))
}

/// Whether a value is set. Cluster API omits false values.
pub(super) fn is_set(compared: &ComparedKind, path: &str, value: &str) -> bool {
    let is_no = compared.kind == "Cluster" && path.starts_with("status.initialization.") && value == "false";
    !value.is_empty() && value != "-" && value != "{}" && !is_no
}

fn flatten(path: &str, value: &Value, into: &mut Fields) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                flatten(&format!("{path}.{name}"), member, into);
            }
        }
        Value::Array(all) if path == "status.conditions" => {
            for one in all {
                let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
                let condition = format!("{} {}", text("status"), text("reason"));
                into.insert(format!("{path}[{}]", text("type")), condition.trim().to_owned());
            }
        }
        Value::Null => {}
        // One recording has the namespace `y`, a boolean in YAML.
        Value::Bool(true) if path.ends_with(".namespace") => drop(into.insert(path.to_owned(), "y".to_owned())),
        Value::String(text) => drop(into.insert(path.to_owned(), text.clone())),
        other => drop(into.insert(path.to_owned(), other.to_string())),
    }
}
