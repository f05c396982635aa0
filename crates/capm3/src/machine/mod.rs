//! Decisions about one machine, from facts alone.
//!
//! | Question | Module |
//! |---|---|
//! | inputs | [`facts`] |
//! | plan | [`plan`](plan::plan) |
//! | cleanup after a deleted machine | [`cleanup`] |
//! | possible actions | [`action`] |
//! | the machine's Metal3Cluster | [`resolve`] |
//! | conditions | [`conditions`] |
//! | observation and execution | [`reconciler`] |

pub mod action;
pub mod cleanup;
pub mod conditions;
pub mod facts;
pub mod plan;
pub mod reconciler;
pub mod resolve;
mod rules;

#[cfg(test)]
mod tests;
