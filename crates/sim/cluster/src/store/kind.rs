//! The kinds that the server serves.
//!
//! A custom kind comes from its CRD, whose schema prunes, defaults and validates its objects. Built-in kinds are the
//! few that the provider and Cluster API use; `builtin` has their rules beyond metadata and status. Requests for other
//! Kubernetes kinds are rejected with 501.

use std::collections::BTreeSet;
use std::sync::Arc;

use metal3_schema::Schema;
use serde_json::Value;

use super::openapi::Typed;

/// One resource in all its versions.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// The version that objects are stored in.
    pub(crate) storage: String,
    /// Served versions.
    pub(crate) versions: Vec<Version>,
    pub(crate) origin: Origin,
    /// Whether a webhook converts between versions; else they differ in name only.
    pub(crate) converts: bool,
}

/// One served version.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) status: bool,
    /// The schema of a custom kind.
    pub(crate) schema: Option<Schema>,
    /// The schema that decodes a built-in kind, if there is one.
    pub(crate) shape: Option<Arc<Schema>>,
    /// The types of its fields.
    pub(crate) typed: Option<Arc<Typed>>,
    pub(crate) deprecated: bool,
    /// The text of the warning about a deprecated version, instead of the usual one.
    pub(crate) warning: Option<String>,
    /// The fields by which a client may select objects, besides name and namespace.
    pub(crate) selectable: Vec<String>,
    /// Where an object has its replicas, if they are a subresource.
    pub(crate) scale: Option<Scale>,
}

/// JSON pointers of the replicas of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    pub(crate) wanted: String,
    pub(crate) found: String,
    /// A selector as text, or the selector of a built-in kind.
    pub(crate) selector: Option<String>,
}

impl Scale {
    /// The pointers of a CRD, whose paths have the form `.spec.replicas`.
    fn read(scale: &Value) -> Option<Self> {
        let pointer = |name: &str| Some(scale.get(name)?.as_str()?.replace('.', "/"));
        Some(Self {
            wanted: pointer("specReplicasPath")?,
            found: pointer("statusReplicasPath")?,
            selector: pointer("labelSelectorPath"),
        })
    }
}

/// Where a kind is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Defined by a CRD.
    Custom,
    /// Part of Kubernetes. Whether the server counts generations differs by kind.
    BuiltIn {
        /// Whether a change of the spec bumps `metadata.generation`.
        generations: bool,
    },
}

impl Kind {
    /// `plural.group`.
    pub(crate) fn resource(&self) -> String {
        qualify(&self.plural, &self.group)
    }

    /// The kind with the names that no other kind of its group has.
    pub(crate) fn named(mut self, accepted: &Value) -> Self {
        let names = accepted.get("shortNames").and_then(Value::as_array);
        let names: BTreeSet<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
        self.short_names.retain(|name| names.contains(name.as_str()));
        self
    }

    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.group == CRD_GROUP && self.plural == CRD_PLURAL
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.origin == Origin::Custom
    }

    pub(crate) fn counts_generations(&self) -> bool {
        match self.origin {
            Origin::Custom => true,
            Origin::BuiltIn { generations } => generations,
        }
    }

    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.group)
        }
    }

    /// Group, version and kind as the server's conversions name them.
    pub(crate) fn qualified(&self, version: &str) -> String {
        format!("{}/{version}, Kind={}", self.group, self.kind)
    }

    /// Reads a CRD. Its schema is checked when it is written.
    ///
    /// # Errors
    /// When a required field is missing or a schema does not parse.
    pub(crate) fn from_definition(definition: &Value) -> Result<Self, String> {
        let spec = definition.get("spec").ok_or("spec: Required value")?;
        let names = spec.get("names").ok_or("spec.names: Required value")?;
        let text = |at: &Value, name: &str| at.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let texts = |name: &str| -> Vec<String> {
            let list = names.get(name).and_then(Value::as_array);
            list.into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        let mut storage = String::new();
        let mut versions = Vec::new();
        for version in spec.get("versions").and_then(Value::as_array).into_iter().flatten() {
            let flag = |name: &str| version.get(name).and_then(Value::as_bool).unwrap_or(false);
            if flag("storage") {
                storage = text(version, "name");
            }
            if !flag("served") {
                continue;
            }
            let schema = version
                .pointer("/schema/openAPIV3Schema")
                .ok_or("spec.versions.schema: Required value")?;
            versions.push(Version {
                name: text(version, "name"),
                status: version.pointer("/subresources/status").is_some(),
                schema: Some(Schema::parse(schema).map_err(|error| error.to_string())?),
                shape: None,
                typed: None,
                deprecated: flag("deprecated"),
                warning: Some(text(version, "deprecationWarning")).filter(|text| !text.is_empty()),
                selectable: selectable(version),
                scale: version.pointer("/subresources/scale").and_then(Scale::read),
            });
        }
        let kind = text(names, "kind");
        let or = |value: String, other: String| if value.is_empty() { other } else { value };
        Ok(Self {
            group: text(spec, "group"),
            list_kind: or(text(names, "listKind"), format!("{kind}List")),
            plural: text(names, "plural"),
            singular: or(text(names, "singular"), kind.to_lowercase()),
            kind,
            short_names: texts("shortNames"),
            categories: texts("categories"),
            namespaced: text(spec, "scope") == "Namespaced",
            storage,
            versions,
            origin: Origin::Custom,
            converts: spec.pointer("/conversion/strategy").and_then(Value::as_str) == Some("Webhook"),
        })
    }
}

/// The paths of a version's `selectableFields`, without the dot before them.
fn selectable(version: &Value) -> Vec<String> {
    let fields = version.get("selectableFields").and_then(Value::as_array);
    let paths = fields
        .into_iter()
        .flatten()
        .filter_map(|field| field.get("jsonPath")?.as_str());
    paths.map(|path| path.trim_start_matches('.').to_owned()).collect()
}

/// The kind of CRDs.
pub(crate) const CRD_GROUP: &str = "apiextensions.k8s.io";
pub(crate) const CRD_PLURAL: &str = "customresourcedefinitions";

/// `kind.group`, or the kind alone in the core group.
pub(crate) fn qualify(kind: &str, group: &str) -> String {
    if group.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind}.{group}")
    }
}
