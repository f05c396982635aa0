//! Readable scripts of what happens to clusters: apply, wait, assert, break, restart.
//!
//! A script does not know what world it runs on. Here are its words ([`Scenario`]) and the judgement of what was found
//! ([`Wish::judge`], [`Nodes::judge`]). What a step does is a world's own: nothing here waits, asks or writes.
#![warn(missing_docs)]

mod wish;
mod words;

pub use wish::{Nodes, Wish};
pub use words::{Apply, Scenario, Span, Step, kind_and_name};
