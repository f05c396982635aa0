//! The parts of a `CustomResourceDefinition` outside its schema, as tables, and how the manifest is built.
//!
//! Each group has one file with its rows; `xtask codegen` writes `manifests/crds/` from [`Definition::manifest`].

pub(crate) mod defaults;
mod manifest;
pub mod members;
pub mod schema;

use schemars::JsonSchema;
use serde_json::Value;

use crate::kind::Kind;

/// One CRD: names, labels and versions.
#[derive(Debug, Clone)]
pub struct Definition {
    /// API group.
    pub group: &'static str,
    /// Kind, in CamelCase.
    pub kind: &'static str,
    /// Resource name in URLs.
    pub plural: &'static str,
    /// Singular name for the command line.
    pub singular: &'static str,
    /// Abbreviations for the command line.
    pub short_names: &'static [&'static str],
    /// Groups of kinds that `kubectl get CATEGORY` lists together.
    pub categories: &'static [&'static str],
    /// Labels on the CRD, the Cluster API contract among them.
    pub labels: &'static [(&'static str, &'static str)],
    /// Annotations on the CRD.
    pub annotations: &'static [(&'static str, &'static str)],
    /// The service that converts between versions, if any.
    pub conversion: Option<ConversionService>,
    /// Served versions, oldest first.
    pub versions: Vec<Version>,
}

/// Where the API server sends objects to be converted.
#[derive(Debug, Clone, Copy)]
pub struct ConversionService {
    /// Name of the Service.
    pub name: &'static str,
    /// Namespace of the Service in the manifest; an installer may change it.
    pub namespace: &'static str,
    /// Namespace and name of the certificate whose authority is injected.
    pub certificate: &'static str,
}

/// One served version of a CRD.
#[derive(Debug, Clone)]
pub struct Version {
    /// Version name, such as `v1beta2`.
    pub name: &'static str,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Whether the server warns users of this version.
    pub deprecated: bool,
    /// Whether `status` is written through its own subresource.
    pub status_subresource: bool,
    /// Whether the replicas in `spec` and `status` are a subresource, for `kubectl scale`.
    pub scale_subresource: bool,
    /// Columns of `kubectl get`.
    pub columns: &'static [Column],
    /// The `openAPIV3Schema`.
    pub schema: fn() -> Value,
    /// Decodes a document into the type of this version and writes it again.
    pub reencode: fn(&Value) -> serde_json::Result<Value>,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// JSON path of the value.
    pub path: &'static str,
    /// `string`, `integer`, `boolean` or `date`.
    pub kind: &'static str,
    /// 0 is always shown; more only with `-o wide`.
    pub priority: i32,
    /// Description of the column; empty when the heading is enough.
    pub description: &'static str,
}

/// The usual last column.
pub const AGE: Column = Column::date("Age", ".metadata.creationTimestamp");

impl Column {
    /// A text column.
    #[must_use]
    pub const fn string(name: &'static str, path: &'static str) -> Self {
        Self::typed(name, path, "string")
    }

    /// A column that shows the time passed since a date.
    #[must_use]
    pub const fn date(name: &'static str, path: &'static str) -> Self {
        Self::typed(name, path, "date")
    }

    /// A column of another type.
    #[must_use]
    pub const fn typed(name: &'static str, path: &'static str, kind: &'static str) -> Self {
        Self {
            name,
            path,
            kind,
            priority: 0,
            description: "",
        }
    }

    /// Shown only when the user asks for a wide table.
    #[must_use]
    pub const fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    /// Sets the description.
    #[must_use]
    pub const fn described(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }
}

impl Version {
    /// A stored version of kind `K` with a status subresource if the kind has a status.
    #[must_use]
    pub fn stored<K: Kind<Spec: JsonSchema, Status: JsonSchema>>(columns: &'static [Column]) -> Self {
        Self {
            name: K::VERSION,
            storage: true,
            deprecated: false,
            status_subresource: K::HAS_STATUS,
            scale_subresource: false,
            columns,
            schema: || schema::root_schema::<K>(false),
            reencode: |document| serde_json::to_value(serde_json::from_value::<K>(document.clone())?),
        }
    }

    /// An older version of kind `K`: served, not stored and marked as deprecated.
    #[must_use]
    pub fn older<K: Kind<Spec: JsonSchema, Status: JsonSchema>>(columns: &'static [Column]) -> Self {
        Self {
            storage: false,
            deprecated: true,
            ..Self::stored::<K>(columns)
        }
    }

    /// `status` is an ordinary member of the object.
    #[must_use]
    pub fn without_status_subresource(mut self) -> Self {
        self.status_subresource = false;
        self
    }
}

impl Definition {
    /// The names of kind `K`, without categories, labels, annotations and conversion.
    pub(crate) fn new<K: Kind>(
        singular: &'static str,
        short_names: &'static [&'static str],
        versions: Vec<Version>,
    ) -> Self {
        Self {
            group: K::GROUP,
            kind: K::KIND,
            plural: K::PLURAL,
            singular,
            short_names,
            categories: &[],
            labels: &[],
            annotations: &[],
            conversion: None,
            versions,
        }
    }

    /// `plural.group`, the name of the CRD object.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}
