//! Decisions about one Metal3Remediation, from facts alone, and its controller.
//!
//! | Question | Module |
//! |---|---|
//! | inputs | [`facts`] |
//! | plan | [`plan`](plan::plan) |
//! | what a plan consists of | [`action`] |
//! | observation and execution | [`reconciler`] |
//! | what enqueues a remediation | `related` |
//! | hosts of remediations that do not exist | `orphans` |
//!
//! Annotations, phases and the place of a Node's saved labels are those of the Go manager, so that either continues
//! what the other began.

pub mod action;
pub mod facts;
mod orphans;
pub mod plan;
pub mod reconciler;
mod related;

#[cfg(test)]
mod tests;
