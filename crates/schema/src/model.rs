//! The schema tree, the result of [`Schema::parse`](crate::Schema::parse).
//!
//! All its expressions are compiled. The tree need not be structural; [`Schema::violations`](crate::Schema::violations)
//! checks that.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::format::Format;
use crate::program::Program;

/// A parsed and compiled schema. Parse it once and evaluate it from any thread.
#[derive(Debug, Clone)]
pub struct Schema {
    pub(crate) ty: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
    /// The keywords with an effective value, in alphabetical order.
    pub(crate) keywords: Vec<&'static str>,

    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Box<Schema>>,

    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) int_or_string: bool,
    pub(crate) list_type: Option<ListType>,
    pub(crate) list_map_keys: Vec<String>,
    pub(crate) map_type: Option<MapType>,
    pub(crate) rules: Vec<Rule>,
    /// Whether there are rules here or in a nested schema.
    pub(crate) has_rules: bool,

    pub(crate) limits: Limits,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) program: Program,
    /// The expression as written.
    pub(crate) source: String,
    pub(crate) message: String,
    pub(crate) message_program: Option<Program>,
    pub(crate) reason: String,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: bool,
}

/// The checks of a single value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    /// `None` also for the formats that the API server ignores, such as `int32`.
    pub(crate) format: Option<(String, Format)>,
    pub(crate) allowed: Vec<Value>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) max_properties: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) required: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) at: f64,
    pub(crate) exclusive: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    /// As written in the schema: error texts quote it.
    pub(crate) source: String,
    pub(crate) regex: Regex,
}

/// `additionalProperties`.
#[derive(Debug, Clone)]
pub(crate) enum Additional {
    Allowed(bool),
    Schema(Box<Schema>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub(crate) const ALL: [Type; 6] = [
        Type::Array,
        Type::Boolean,
        Type::Integer,
        Type::Number,
        Type::Object,
        Type::String,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapType {
    Atomic,
    Granular,
}

impl Schema {
    pub(crate) fn has_keyword(&self, keyword: &str) -> bool {
        self.keywords.contains(&keyword)
    }

    /// The allowed types of a value. Empty means any.
    pub(crate) fn types(&self) -> &[Type] {
        if self.int_or_string {
            &[Type::Integer, Type::String]
        } else {
            self.ty.as_slice()
        }
    }

    /// The schema of one entry of an object: that of the declared property, else `additionalProperties`.
    pub(crate) fn entry(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(self.additional_schema())
    }

    pub(crate) fn additional_schema(&self) -> Option<&Schema> {
        match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            Some(Additional::Allowed(_)) | None => None,
        }
    }

    /// The schema of one property, by its name: `schema.property("status")`.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name)
    }
}
