//! What may be written: defaulting and validation as tables of rules.
//!
//! Webhooks run these tables when an object is written; controllers run them again on what they read, for objects that
//! entered without a webhook. `docs/controllers/` is rendered from the same tables.
//!
//! A rule sees the object as it would be stored, and on update the stored one beside it. It is pure and total: it
//! reports every finding it has, names the member and says what to do, and never panics on what a user wrote.
//!
//! For each row there is an example in `api/tests/rules/KIND/ROW.yaml` that this row alone objects to. A row without an
//! example fails a test, and so does an example without its row.

mod finding;
mod path;
mod review;
mod table;

pub use finding::{Finding, Findings, Level, Reason};
pub use path::FieldPath;
pub use review::{Operation, ReviewError, Reviewer, Row, Verdict};
pub use table::{Change, Filling, On, Rule, Ruled, Writing, fill, review};
