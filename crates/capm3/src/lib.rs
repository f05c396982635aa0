//! Controllers of clusters, machines and their data on bare-metal hosts.
//!
//! Decisions are deterministic functions of facts, without clock, client or log: they return the writes to make. Only
//! [`controller`] watches and writes.
#![warn(missing_docs)]

pub mod capacity;
pub mod cluster;
pub mod controller;
pub mod data;
mod diff;
pub mod endpoint;
pub mod host_choice;
pub mod label_sync;
pub mod machine;
pub mod needs;
pub mod node;
pub mod reasons;
pub mod remediation;
mod served;

#[cfg(test)]
mod tests;
