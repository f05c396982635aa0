//! Structural schemas of custom resources, handled as the Kubernetes API server handles them.
//!
//! A [`Schema`] is parsed once from a CRD's `openAPIV3Schema` and then prunes, defaults and validates objects held as
//! JSON values. Errors carry the API server's field paths, causes and texts, so that a test double can stand in for the
//! real server and a rule of ours can be shown to do what it will do in a cluster.
//!
//! It does **not** talk to a server, know any kind, decode objects into types or convert versions. It keeps one
//! invariant: everything here is a pure, total function; no value of any shape makes it panic.
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
mod prune;
mod ratchet;
mod rules;
mod structural;
mod trail;
mod uri;
mod validate;

use serde_json::Value;

use crate::trail::Trail;
use crate::validate::Checker;

pub use crate::crd::{Column, Conversion, CrdError, CustomResource, Scale, Version};
pub use crate::error::{Cause, FieldError, invalid_message};
pub use crate::fields::{Changes, Element, FieldSet, FieldSetError};
pub use crate::model::Schema;
pub use crate::object_meta::{Scope, metadata_errors, metadata_update_errors};
pub use crate::parse::SchemaError;

impl Schema {
    /// What is wrong with an object that is to be created. Its own metadata is not looked at: see [`metadata_errors`].
    #[must_use]
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Checker { prefix: "" }.check(self, object, None);
        object_meta::embedded(self, object, &Trail::Root, &mut errors);
        lists::duplicates(self, object, &Trail::Root, &mut errors);
        rules::check(self, object, None, &mut errors);
        errors
    }

    /// What is wrong with an object that is to replace `old`.
    ///
    /// Tolerated are errors of the schema proper (not of embedded resources) in a value that continues an equal old
    /// one, duplicates in lists if the old object had duplicates anywhere, and broken rules over an unchanged value if
    /// they do not look at the old one. Objects continue by name, items of lists of type `map` by key, other items not
    /// at all. Both objects must have gone through [`default`](Schema::default).
    #[must_use]
    pub fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Checker { prefix: "" }.check(self, object, Some(old));
        object_meta::embedded(self, object, &Trail::Root, &mut errors);
        lists::new_duplicates(self, object, old, &mut errors);
        rules::check(self, object, Some(old), &mut errors);
        errors
    }
}
