//! Machines on bare-metal hosts: which host a machine takes, and what the machine is told about itself.
//!
//! The decisions are functions of facts, total and deterministic, without clock, client or log: they say what to write,
//! in objects of the API. Only [`controller`] watches and writes.
#![warn(missing_docs)]

pub mod cluster;
pub mod controller;
pub mod data;
mod documents;
pub mod endpoint;
pub mod host_choice;
pub mod machine;
pub mod needs;
pub mod node;

#[cfg(test)]
mod tests;
