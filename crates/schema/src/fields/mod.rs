//! Field sets of server-side apply.
//!
//! A [`FieldSet`] identifies fields of an object as in `fieldsV1`. A [`Schema`] lists the fields of an object
//! ([`fields`](Schema::fields)), compares two objects ([`changes`](Schema::changes)), merges one into another
//! ([`merge`](Schema::merge)) and removes fields ([`without`](Schema::without)). `x-kubernetes-list-type` and
//! `x-kubernetes-map-type` determine whether a list or map is one value, a set, or entries with keys.
//!
//! Managers, conflicts and requests are not part of this module. Invariant: every entry of a set is a member or the
//! parent of one, so equal sets are equal values.

mod check;
mod compare;
mod element;
mod merge;
mod select;
mod set;
mod shape;

use serde_json::Value;

use crate::model::Schema;

pub use self::compare::Changes;
pub use self::element::Element;
pub use self::set::{FieldSet, FieldSetError};

use self::shape::Shape;

impl Schema {
    /// All fields of an object.
    #[must_use]
    pub fn fields(&self, object: &Value) -> FieldSet {
        select::fields(&Shape::root(self), object)
    }

    /// Why an object cannot be applied, with the texts of the API server; `duplicates` allows repeated list keys, as in
    /// stored objects.
    #[must_use]
    pub fn apply_errors(&self, object: &Value, duplicates: bool) -> Vec<String> {
        check::errors(&Shape::root(self), object, duplicates)
    }

    /// The fields in which two objects differ.
    #[must_use]
    pub fn changes(&self, old: &Value, new: &Value) -> Changes {
        compare::changes(&Shape::root(self), old, new)
    }

    /// Merges `applied` into `object`.
    #[must_use]
    pub fn merge(&self, object: &Value, applied: &Value) -> Value {
        merge::merged(&Shape::root(self), object, applied)
    }

    /// `object` without these fields.
    #[must_use]
    pub fn without(&self, object: &Value, fields: &FieldSet) -> Value {
        select::without(&Shape::root(self), object, fields)
    }

    /// The set and all declared properties on the paths to its members.
    #[must_use]
    pub fn with_parents(&self, fields: &FieldSet) -> FieldSet {
        select::with_parents(Some(&Shape::root(self)), fields)
    }
}
