//! Patches: how a controller says what it changed, and nothing else.
//!
//! Pure: documents go in, merge patches (RFC 7386) come out; sending them is the caller's. The invariant: applying the
//! patch between two documents to the first gives the second, and no patch exists where nothing changed. Members that
//! the server owns are never sent, and members that nobody here models are never touched.
//!
//! A merge patch cannot say null: a null member means an absent one. It replaces lists whole, which is why a patch
//! knows whether it does ([`MergePatch::replaces_list`]) and lists that others write too go with a precondition.

mod changes;
mod conditions;
mod finalizers;
mod merge;

pub use changes::{Changes, MergePatch};
pub use conditions::{AnyCondition, ConditionMerge, Conflict, merge_conditions};
pub use finalizers::{add_finalizer, has_finalizer, remove_finalizer, with_finalizer};
pub use merge::{apply, diff};
