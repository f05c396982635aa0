//! Structural schemas of custom resources, with the behaviour of the Kubernetes API server.
//!
//! A [`Schema`] is parsed once from a CRD's `openAPIV3Schema` and then prunes, defaults and validates objects held as
//! JSON values. Errors have the API server's field paths, causes and texts, so that a simulator can replace the real
//! server and schema rules can be tested without a cluster.
//!
//! It does **not** contact a server, decode objects into types or convert versions, and has no knowledge of kinds.
//! Invariant: everything here is a pure, total function; no value causes a panic.
//!
//! ```
//! use metal3_schema::{Schema, invalid_message};
//! use serde_json::json;
//!
//! let schema = Schema::parse(&json!({
//!     "type": "object",
//!     "properties": {"spec": {
//!         "type": "object",
//!         "required": ["size"],
//!         "properties": {"size": {"type": "integer", "minimum": 1}, "colour": {"type": "string", "default": "red"}},
//!     }},
//! }))?;
//! let mut object = json!({"apiVersion": "example.org/v1", "kind": "Widget", "spec": {"size": 0, "weight": 7}});
//! assert_eq!(schema.prune(&mut object), ["spec.weight"]);
//! schema.default(&mut object);
//! assert_eq!(object["spec"], json!({"size": 0, "colour": "red"}));
//! assert_eq!(
//!     invalid_message("Widget", "example.org", "w", &schema.validate(&object)),
//!     "Widget.example.org \"w\" is invalid: spec.size: Invalid value: 0: \
//!      spec.size in body should be greater than or equal to 1",
//! );
//! # Ok::<(), metal3_schema::SchemaError>(())
//! ```
#![warn(missing_docs)]

mod crd;
mod defaulting;
mod error;
mod fields;
mod format;
mod golang;
mod lists;
mod model;
mod names;
mod number;
mod object_meta;
mod parse;
mod pattern;
mod program;
mod prune;
mod ratchet;
mod rules;
mod structural;
mod uri;
mod validate;
mod value_path;

use serde_json::Value;

use crate::validate::Checker;
use crate::value_path::ValuePath;

pub use crate::crd::{Column, Conversion, CrdError, CustomResource, Scale, Version};
pub use crate::error::{Cause, FieldError, invalid_message};
pub use crate::fields::{Changes, Element, FieldSet, FieldSetError};
pub use crate::model::Schema;
pub use crate::names::{
    key_violations as label_key_violations, kind_violations, label_violations, subdomain_violations,
    value_violations as label_value_violations,
};
pub use crate::object_meta::{Scope, metadata_errors, metadata_update_errors};
pub use crate::parse::SchemaError;

impl Schema {
    /// Validates an object to create, without its own metadata: see [`metadata_errors`].
    #[must_use]
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.check(object, None, &mut errors);
        errors
    }

    /// Validates an object that replaces `old`.
    ///
    /// As in the API server (ratcheting), these errors are tolerated: schema errors (not of embedded resources) in a
    /// value that equals its correlated old value, duplicates in lists if the old object had any, and failed rules
    /// without `oldSelf` over an unchanged value. Objects correlate by name, items of lists of type `map` by key, other
    /// items not at all. [`default`](Schema::default) must have been applied to both objects.
    #[must_use]
    pub fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.check(object, Some(old), &mut errors);
        errors
    }

    fn check(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        errors.extend(Checker { prefix: "" }.check(self, object, old));
        object_meta::embedded(self, object, &ValuePath::Root, errors);
        match old {
            None => lists::duplicates(self, object, &ValuePath::Root, errors),
            Some(old) => lists::new_duplicates(self, object, old, errors),
        }
        rules::check(self, object, old, errors);
    }
}
