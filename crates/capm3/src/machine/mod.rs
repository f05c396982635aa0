//! Decisions about one machine, from facts alone.
//!
//! | Question | Module |
//! |---|---|
//! | inputs | [`facts`] |
//! | plan | [`plan`](plan::plan) |
//! | what a plan consists of | [`action`] |
//! | the machine's Metal3Cluster | [`resolve`] |
//! | the set that keeps its host for the next machine | [`reuse`] |
//! | conditions | [`conditions`] |
//! | observation and execution | [`reconciler`] |
//! | what enqueues a machine | `watches` |
//! | the state in the metrics | `states` |
//! | which host it would choose, for users | [`select`] |

pub mod action;
pub mod conditions;
pub mod facts;
pub mod plan;
pub mod reconciler;
pub mod resolve;
pub mod reuse;
mod rules;
pub mod select;
mod states;
pub(crate) mod watches;

#[cfg(test)]
mod tests;
