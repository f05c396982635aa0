//! Machines on bare-metal hosts: which host a machine takes, and what the machine is told about itself.
//!
//! Decisions stand apart from deeds: [`data`], [`host_choice`], [`machine`] and [`node`] are functions of facts, total and
//! deterministic, without clock, client or log. They say what to write, in objects of the API; [`controller`] watches and
//! writes.
#![warn(missing_docs)]

pub mod controller;
pub mod data;
pub mod host_choice;
pub mod machine;
pub mod node;
