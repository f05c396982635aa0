//! Machines on bare-metal hosts: which host a machine takes, and what the machine is told about itself.
//!
//! What stands here are decisions: functions of facts, total and deterministic, without clock, client or log. Who
//! watches and who writes is not their business; they say what to write, in objects of the API.
#![warn(missing_docs)]

pub mod data;
pub mod host_choice;
pub mod machine;
pub mod node;
