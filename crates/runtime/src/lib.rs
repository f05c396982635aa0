//! The controller toolkit: caches, work queues, writes and servers that all controllers share.
//!
//! Each part is a pure state machine, with a thin asynchronous wrapper where it waits. Time is an argument:
//! [`metal3_domain::clock::Clock`]. The toolkit knows no kind of a product and makes no decision of one.
#![warn(missing_docs)]

pub mod access;
pub mod admin;
pub mod cache;
pub mod client;
pub mod clock;
pub mod condition;
pub mod events;
pub mod guard;
pub mod lease;
pub mod logs;
pub mod metrics;
pub mod object_reader;
pub mod patch;
pub mod plan;
pub mod queue;
mod resource;
mod safety_rules;
pub mod tls;
pub mod version;
pub mod watch;
pub mod work;
pub mod write;

pub use metal3_domain::reason;
