//! Merge patches (RFC 7386) that contain exactly what a controller changed.
//!
//! Pure: documents in, patches out; the caller sends them. The invariant: applying the patch between two documents to
//! the first gives the second, and equal documents give no patch. Fields that the server owns are never sent, and
//! unmodelled fields are never touched.
//!
//! A merge patch cannot set null: a null field means an absent one. It replaces lists whole, so a patch records whether
//! it does ([`MergePatch::replaces_list`]), and shared lists are patched with a precondition.

mod changes;
mod conditions;
mod finalizers;
mod merge;

pub use changes::{Changes, MergePatch};
pub use conditions::{AnyCondition, ConditionMerge, Conflict, merge_conditions};
pub use finalizers::{add_finalizer, has_finalizer, remove_finalizer, with_finalizer};
pub use merge::{apply, diff};
