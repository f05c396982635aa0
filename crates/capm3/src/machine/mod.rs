//! One machine: what is decided about it, from facts alone.
//!
//! | Question | Where |
//! |---|---|
//! | what is known | [`facts`] |
//! | what to do | [`plan`](plan::plan) |
//! | what to do where the machine is gone | [`gone`] |
//! | what may be done | [`action`] |
//! | which Metal3Cluster is meant | [`resolve`] |
//! | what is said of it | [`conditions`] |

pub mod action;
pub mod conditions;
pub mod facts;
pub mod gone;
pub mod plan;
pub mod resolve;
mod rules;

#[cfg(test)]
mod tests;
