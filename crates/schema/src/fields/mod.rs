//! Who owns which field: the sets of fields behind server-side apply, and what they are computed from.
//!
//! A [`FieldSet`] names fields of an object as `fieldsV1` does. With a [`Schema`] the fields of an object are counted
//! ([`fields`](Schema::fields)), two objects are compared ([`changes`](Schema::changes)), one is merged into another
//! ([`merge`](Schema::merge)) and fields are taken out ([`without`](Schema::without)). What a list or a map is (one
//! value, a set, entries with keys) follows from `x-kubernetes-list-type` and `x-kubernetes-map-type`.
//!
//! Owners, conflicts and requests are not known here. Invariant: sets hold no entry that is neither a member nor the
//! parent of one, so equal sets have one form.

mod check;
mod compare;
mod element;
mod merge;
mod set;
mod shape;
mod take;

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
        take::fields(&Shape::root(self), object)
    }

    /// What keeps an object from being applied, as the API server words it; `duplicates` allows keys of lists to occur
    /// twice, as they may in stored objects.
    #[must_use]
    pub fn apply_errors(&self, object: &Value, duplicates: bool) -> Vec<String> {
        check::errors(&Shape::root(self), object, duplicates)
    }

    /// The fields in which two objects differ.
    #[must_use]
    pub fn changes(&self, old: &Value, new: &Value) -> Changes {
        compare::changes(&Shape::root(self), old, new)
    }

    /// `object` with everything that `applied` says.
    #[must_use]
    pub fn merge(&self, object: &Value, applied: &Value) -> Value {
        merge::merged(&Shape::root(self), object, applied)
    }

    /// `object` without these fields.
    #[must_use]
    pub fn without(&self, object: &Value, fields: &FieldSet) -> Value {
        take::without(&Shape::root(self), object, fields)
    }

    /// The set and all properties on the way to its members that the schema names.
    #[must_use]
    pub fn with_parents(&self, fields: &FieldSet) -> FieldSet {
        take::with_parents(Some(&Shape::root(self)), fields)
    }
}
