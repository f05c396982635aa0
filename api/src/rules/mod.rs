//! Admission rules: defaulting and validation as tables.
//!
//! Webhooks run these tables when an object is written; controllers run them again for objects that were stored without
//! a webhook. `docs/controllers/` is rendered from the same tables.
//!
//! A rule receives the object to store and, on update, the stored one. It is pure and total: it reports all findings,
//! each with the field path and a cure, and never panics on user input.
//!
//! Each row has an example in `api/tests/rules/KIND/ROW.yaml` that only this row reports. A row without an example
//! fails a test, and so does an example without a row.

mod finding;
pub(crate) mod images;
mod path;
mod review;
mod short;
mod table;

pub use finding::{Finding, Findings, KEPT, Level, Reason};
pub use path::FieldPath;
pub use review::{Decision, Operation, ReviewError, Reviewer, Row};
pub use short::beginning;
pub use table::{AdmissionRules, Change, Defaulting, On, Rule, Unserved, WriteRequest, review, set_defaults};
